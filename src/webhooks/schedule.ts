// When a delivery is tried again (the contract's table), and when it is given up.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Delay before attempts 2…7, counted from the end of the attempt before. */
const DELAYS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 8 * HOUR_MS, 24 * HOUR_MS];
export const ATTEMPTS_MAX = DELAYS_MS.length + 1;

/**
 * Never early, and late by at most a second: a herd of retries is held back by the limits per endpoint, so jitter need
 * only break ties, and the schedule stays what the contract says.
 */
const JITTER_MS_MAX = 1_000;

/** The whole schedule takes 34 h 36 min. What is older waits behind a receiver that cannot keep up. */
export const GIVE_UP_AFTER_MS = 72 * HOUR_MS;
/** What a disabled endpoint has queued waits this long for it to be enabled again. */
export const PAUSED_KEPT_MS = 72 * HOUR_MS;

/** Milliseconds from the end of failed attempt `attempt` to the next, or null when it was the last. `float` is in [0, 1). */
export function delayAfterMs(attempt: number, float: number): number | null {
  const delayMs = DELAYS_MS[attempt - 1];
  return delayMs === undefined ? null : delayMs + Math.floor(float * JITTER_MS_MAX);
}
