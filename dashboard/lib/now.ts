// The time, for words such as “3 minutes ago”: all of a page read the same clock, which ticks every 10 seconds.
import { useSyncExternalStore } from "react";

export const TICK_MS = 10_000;
let nowMs = Date.now();

function subscribe(changed: () => void): () => void {
  const timer = setInterval(() => {
    nowMs = Date.now();
    changed();
  }, TICK_MS);
  return () => clearInterval(timer);
}

/** Milliseconds since 1970, at most 10 seconds old. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => nowMs);
}
