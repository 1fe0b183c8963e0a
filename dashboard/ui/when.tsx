// Times on a page: short in tables, exact with the zone beside the relative one elsewhere; the exact one is always in the title.
import { useNow } from "../lib/now.ts";
import { sayExactly, sayRelative, sayShortly } from "../lib/times.ts";

/** `short`: for a table. `both`: exact, then relative. `relative`: alone. */
export function When({ at, as = "short" }: { at: string; as?: "short" | "both" | "relative" }) {
  const nowMs = useNow();
  const exact = sayExactly(at);
  const text = { short: () => sayShortly(at, nowMs), both: () => exact, relative: () => sayRelative(at, nowMs) };
  return (
    <>
      <time dateTime={at} title={exact}>
        {text[as]()}
      </time>
      {as === "both" && <span className="dim"> · {sayRelative(at, nowMs)}</span>}
    </>
  );
}
