// How many attempts a new address may make on each day (UTC) since its warm-up began, as data (warmup.json).
import schedule from "./warmup.json" with { type: "json" };

const DAY_MS = 86_400_000;

/** The day of the warm-up, from 1; null when there is none or it is over. */
export function warmupDay(startedAt: Date | null, nowMs: number): number | null {
  if (startedAt === null) return null;
  const day = Math.floor(nowMs / DAY_MS) - Math.floor(startedAt.getTime() / DAY_MS);
  return day < schedule.daily_limits.length ? Math.max(0, day) + 1 : null;
}

/** An address whose warm-up began before this moment is warm. */
export function warmBefore(nowMs: number): Date {
  return new Date((Math.floor(nowMs / DAY_MS) - schedule.daily_limits.length + 1) * DAY_MS);
}

/** Today's limit; null for none. */
export function dailyLimit(startedAt: Date | null, nowMs: number): number | null {
  const day = warmupDay(startedAt, nowMs);
  return day === null ? null : (schedule.daily_limits[day - 1] as number);
}

/** The day (UTC) as the database has it. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
