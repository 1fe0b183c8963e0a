// When a delivery is tried again, and after how many attempts it has failed: the contract's table. Attempts alone decide.
// Age does not: a delivery that waited through our own outage has all seven before it, and so has one that waits behind
// a receiver which fails for days. What bounds such a backlog: bodies are kept POSTERN_RETENTION_BODY_DAYS (at least 36),
// and a delivery without a body is failed as soon as its turn comes (dispatch.ts); a dead receiver has four attempts at
// once and slots of the suspect only (board.ts); and no row of the queue is looked at before it is due.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Delay before attempts 2…7, counted from the end of the attempt before. */
const DELAYS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 8 * HOUR_MS, 24 * HOUR_MS];

/**
 * Never early, and late by at most a second: a herd of retries is held back by the limits per endpoint, so jitter need
 * only break ties, and the schedule stays what the contract says.
 */
const JITTER_MS_MAX = 1_000;

/** What a disabled endpoint has queued waits this long for it to be enabled again. */
export const PAUSED_KEPT_MS = 72 * HOUR_MS;

/** Milliseconds from the end of failed attempt `attempt` to the next, or null when it was the last. `float` is in [0, 1). */
export function delayAfterMs(attempt: number, float: number): number | null {
  const delayMs = DELAYS_MS[attempt - 1];
  return delayMs === undefined ? null : delayMs + Math.floor(float * JITTER_MS_MAX);
}
