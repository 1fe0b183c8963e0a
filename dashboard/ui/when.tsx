// Times on a page: short in tables, exact with the zone beside the relative one elsewhere; the exact one is always in the title.
import { TICK_MS, useNow } from "../lib/now.ts";
import { sayExactly, sayRelative, sayShortly } from "../lib/times.ts";

/** `short`: for a table. `both`: exact, then relative. `relative`: alone. */
export function When({ at, as = "short" }: { at: string; as?: "short" | "both" | "relative" }) {
  const nowMs = soonest(at, useNow());
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

/** The page's clock is a tick late at most: what seems to come within it is now, not “in 2 seconds”. */
function soonest(at: string, nowMs: number): number {
  const aheadMs = Date.parse(at) - nowMs;
  return aheadMs > 0 && aheadMs <= TICK_MS ? Date.parse(at) : nowMs;
}
