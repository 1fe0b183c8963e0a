// When to try again, as data: after failed attempt n wait 5, 10, 20, 40 min, 1, 2, 4 h, then 6 h each, to 72 h in all.
// 5 min passes usual greylisting; a one-time code gets four tries in 35 min (RFC 5321 §4.5.4.1 asks for less haste
// only towards hosts that do not answer, which the path's back-off sees to).

const MINUTE_MS = 60_000;
const STEPS_MIN = [5, 10, 20, 40, 60, 120, 240];
const LAST_STEP_MIN = 360;
const JITTER = 0.15;

export const KEEP_TRYING_MS = 72 * 60 * MINUTE_MS;

/** Milliseconds to wait after failed attempt `attempts` (1, 2, …); `random` in [0,1) spreads it by ±15 %. */
export function retryDelayMs(attempts: number, random: number, atLeastMin = 0): number {
  const minutes = STEPS_MIN[attempts - 1] ?? LAST_STEP_MIN;
  const spread = 1 + JITTER * (2 * random - 1);
  return Math.max(minutes * spread, atLeastMin) * MINUTE_MS;
}
