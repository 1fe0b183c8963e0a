// The schedule of warming as data, and what it allows at a moment: pure. Limits count recipients per UTC day; an hour has a
// tenth of the day, a minute a twenty-fifth of the hour but at least ten.
import {
  type Limits,
  type Phase,
  type PhaseState,
  RUNNING_PHASES,
  type RunningPhase,
  START_PHASES,
  type StoredPhase,
  type WarmingAllowance,
} from "./types.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const HOURS_A_DAY_OF_LIMIT = 10;
const MINUTES_AN_HOUR_OF_LIMIT = 25;
/** A message to a few people, and the next one, fit into a minute of the first day. */
const PER_MINUTE_MIN = 10;
/** A paused domain starts again when somebody resumes it; until then asking once an hour is enough. */
const PAUSED_RETRY_S = 3_600;

/**
 * Daily limits of each phase, day by day: from what a mailbox provider takes from a stranger to what it
 * takes from a sender it has known for two months, never more than half as much again from one step to the next but for
 * the first days.
 */
const DAILY_LIMITS: Record<RunningPhase, readonly number[]> = {
  phase_1: [50, 75, 100, 150, 200, 275, 350, 450, 550, 700, 850, 1_000, 1_250, 1_500],
  phase_2: steps([2_000, 2_750, 3_500, 4_500, 6_000, 8_000, 10_000], [2, 2, 2, 2, 2, 2, 2]),
  phase_3: steps([15_000, 19_000, 24_000, 30_000, 38_000, 48_000, 60_000], [2, 2, 2, 2, 2, 2, 2]),
  phase_4: steps([100_000, 125_000, 160_000, 200_000], [3, 3, 4, 4]),
};

function steps(limits: number[], days: number[]): number[] {
  return limits.flatMap((limit, index) => Array.from({ length: days[index] ?? 0 }, () => limit));
}

/** True if the phase has days and limits, so that a domain moves on from it by itself. */
export function isRunning(phase: Phase): phase is RunningPhase {
  return RUNNING_PHASES.includes(phase as RunningPhase);
}

/** The days of a phase. */
export function daysOf(phase: RunningPhase): number {
  return DAILY_LIMITS[phase].length;
}

/** The phase after this one; null for the last. */
export function nextPhase(phase: StoredPhase): StoredPhase | null {
  return START_PHASES[START_PHASES.indexOf(phase) + 1] ?? null;
}

/** The phase before this one; the first begins again. */
export function previousPhase(phase: StoredPhase): RunningPhase {
  return RUNNING_PHASES[START_PHASES.indexOf(phase) - 1] ?? "phase_1";
}

/** The hour's and the minute's share of a daily limit, rounded down. */
export function limitsOf(dailyLimit: number): Limits {
  const hourly = Math.floor(dailyLimit / HOURS_A_DAY_OF_LIMIT);
  return {
    daily_limit: dailyLimit,
    hourly_limit: hourly,
    per_minute_limit: Math.max(PER_MINUTE_MIN, Math.floor(hourly / MINUTES_AN_HOUR_OF_LIMIT)),
  };
}

/** The day of the phase at a moment, from 1. It stands still while paused. */
export function dayInPhase(state: PhaseState, atMs: number): number {
  const untilMs = state.paused_at ? Math.min(atMs, state.paused_at.getTime()) : atMs;
  return Math.max(1, dayNumber(untilMs) - dayNumber(state.phase_started_at.getTime()) - state.paused_days + 1);
}

function dayNumber(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** How many days a pause that ends at `atMs` took off the phase. */
export function daysLost(state: PhaseState, atMs: number): number {
  if (!state.paused_at) return 0;
  const sinceMs = Math.max(state.paused_at.getTime(), state.phase_started_at.getTime());
  return Math.max(0, dayNumber(atMs) - dayNumber(sinceMs));
}

/** The schedule's limits at a moment, paused or not; null when there is none. After the last day they stay as they were. */
export function scheduledLimits(state: PhaseState, atMs: number): Limits | null {
  if (!isRunning(state.phase)) return null;
  const limits = DAILY_LIMITS[state.phase];
  return limitsOf(limits[Math.min(dayInPhase(state, atMs), limits.length) - 1] as number);
}

/** The earliest moment at which the next phase may begin; null when none is to come or the clock of the phase stands. */
export function nextPhaseAt(state: PhaseState, nowMs: number): Date | null {
  if (!isRunning(state.phase) || state.paused_at) return null;
  const overMs = (dayNumber(state.phase_started_at.getTime()) + daysOf(state.phase) + state.paused_days) * DAY_MS;
  const midnightMs = (dayNumber(nowMs) + 1) * DAY_MS;
  return new Date(Math.max(overMs, midnightMs));
}

/** Figures are looked at this often, so that a domain whose mail bounces stops within minutes. */
const LOOK_EVERY_MS = 5 * MINUTE_MS;

/** When the clock role is to look at the domain again: at midnight, and often while figures may pause it. */
export function nextLookAt(state: PhaseState, nowMs: number): Date {
  const midnightMs = (dayNumber(nowMs) + 1) * DAY_MS;
  const isWatched = isRunning(state.phase) && !state.paused_at;
  return new Date(isWatched ? Math.min(nowMs + LOOK_EVERY_MS, midnightMs) : midnightMs);
}

const WINDOWS = [
  { kind: "daily", limit: "daily_limit", ms: DAY_MS },
  { kind: "hourly", limit: "hourly_limit", ms: HOUR_MS },
  { kind: "per_minute", limit: "per_minute_limit", ms: MINUTE_MS },
] as const;

/**
 * The windows that mail accepted at `nowMs` counts in, the longest first: where several are full, the answer names the
 * one that takes longest to open. None for a warm domain. A paused one has a day in which nothing may be sent.
 */
export function allowancesAt(state: PhaseState, domainId: string, nowMs: number): WarmingAllowance[] {
  const limits = scheduledLimits(state, nowMs);
  const rest = { scope_id: domainId, warming_phase: state.phase };
  if (state.paused_at) return [pausedWindow(state, rest, nowMs)];
  if (!limits) return [];
  return WINDOWS.map(({ kind, limit, ms }) => {
    const startsMs = nowMs - (nowMs % ms);
    return {
      ...rest,
      kind,
      starts_at: new Date(startsMs),
      ceiling: limits[limit],
      retry_after_seconds: Math.max(1, Math.ceil((startsMs + ms - nowMs) / 1000)),
    };
  });
}

function pausedWindow(
  state: PhaseState,
  rest: Pick<WarmingAllowance, "scope_id" | "warming_phase">,
  nowMs: number,
): WarmingAllowance {
  return {
    ...rest,
    kind: "daily",
    starts_at: new Date(nowMs - (nowMs % DAY_MS)),
    ceiling: 0,
    retry_after_seconds: PAUSED_RETRY_S,
    explanation: `sending from this domain is paused (${state.paused_reason ?? "no reason was noted"}) until POST /v1/domains/{id}/warming/resume`,
  };
}
