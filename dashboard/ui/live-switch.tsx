// Whether a page follows what happens, and how old what it shows is. It says which: live, cut off, or read once.
import { useEffect, useState } from "react";
import type { LiveState } from "../lib/live.ts";

const WORDS: Record<LiveState, string> = {
  off: "Live is off",
  starting: "Live",
  live: "Live",
  polled: "Live",
  paused: "Paused",
  cut: "Connecting again",
};
const TICK_MS = 1_000;

type Given = { state: LiveState; readAtMs: number };

export function LiveSwitch({ state, readAtMs, flip }: Given & { flip: () => void }) {
  const isOn = state !== "off";
  return (
    <span className="inline-flex flex-wrap items-center">
      <button
        type="button"
        className="live"
        aria-pressed={isOn}
        data-state={state}
        title={isOn ? "The list follows what happens" : "Let the list follow what happens"}
        onClick={flip}
      >
        <i />
        {WORDS[state]}
      </button>
      {isOn && <ReadAgo readAtMs={readAtMs} />}
    </span>
  );
}

/** The same where following is no choice. */
export function LiveMark({ state, readAtMs }: Given) {
  if (state === "off") return null;
  return (
    <span className="live" data-state={state}>
      <i />
      {WORDS[state]}
      <ReadAgo readAtMs={readAtMs} />
    </span>
  );
}

/** Above what cannot be followed for now: how old it is, and that the page connects again by itself. */
export function CutBanner({ state, readAtMs }: Given) {
  const when = readAtMs === 0 ? null : new Date(readAtMs).toLocaleTimeString("en-GB");
  return (
    <div role="status">
      {state === "cut" && (
        <p className="cut">
          <b className="font-semibold">The connection is cut.</b>{" "}
          {when !== null && `What stands here was read at ${when} and may have changed since. `}
          This page tries again every few seconds, and then reads what it missed.
        </p>
      )}
    </div>
  );
}

function ReadAgo({ readAtMs }: Pick<Given, "readAtMs">) {
  const [nowMs, tick] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (readAtMs === 0) return null;
  const seconds = Math.max(0, Math.round((nowMs - readAtMs) / 1_000));
  const ago = seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  return <span className="dim text-[12.5px] tabular-nums">read {ago} ago</span>;
}
