// What the figures of a day mean for the phase: pure. Order: idle too long → paused → figures that pause → the phase's days
// are over and the figures are good (advance) or not (hold). Decision 0006 has the reasons.
import { dayInPhase, daysOf, isRunning, nextPhase, previousPhase, scheduledLimits } from "./schedule.ts";
import type { DayRow, Decision, Figures, WarmingRow } from "./types.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Figures are taken over this many UTC days, the day in question included. */
const TRAILING_DAYS = 3;
/** Without mail for this long a mailbox provider begins to forget the sender. */
const IDLE_DAYS = 30;

const ADVANCE = { delivered_min: 0.95, hard_bounced_max: 0.02, complained_max: 0.001 };
/**
 * Deliberate: one event alone never pauses a domain, and nothing does before twenty recipients were tried: the first
 * mistyped address of a new customer would otherwise stop all of its mail.
 */
const PAUSE = { hard_bounced_max: 0.05, complained_max: 0.003, sent_min: 20, events_min: 2 };

export type Period = { from: Date; to: Date };

/** The trailing days that end before `toMs`, without what lies before `judgedFrom`. */
export function trailing(toMs: number, judgedFrom: Date | null): Period {
  const lastDayMs = toMs - 1 - ((toMs - 1) % DAY_MS);
  const fromMs = lastDayMs - (TRAILING_DAYS - 1) * DAY_MS;
  return { from: new Date(Math.max(fromMs, judgedFrom?.getTime() ?? 0)), to: new Date(toMs) };
}

/** The trailing days until now: the current hour included. */
export function trailingNow(nowMs: number, judgedFrom: Date | null): Period {
  return trailing(nowMs - (nowMs % HOUR_MS) + HOUR_MS, judgedFrom);
}

/** Why these figures pause the domain; null when they do not. */
export function pauseReason({ sent, hard_bounced, complained }: Figures): string | null {
  if (sent < PAUSE.sent_min) return null;
  if (isOver(hard_bounced, sent, PAUSE.hard_bounced_max)) {
    return `hard bounces are ${share(hard_bounced, sent)}, more than ${percent(PAUSE.hard_bounced_max)}`;
  }
  if (isOver(complained, sent, PAUSE.complained_max)) {
    return `complaints are ${share(complained, sent)}, more than ${percent(PAUSE.complained_max)}`;
  }
  return null;
}

function isOver(events: number, sent: number, max: number): boolean {
  return events >= PAUSE.events_min && events / sent > max;
}

/** Why these figures do not let the phase end; null when they do. */
export function holdReason({ sent, delivered, hard_bounced, complained }: Figures): string | null {
  if (sent === 0) return `no mail was sent in the last ${TRAILING_DAYS} days: there is nothing to judge by`;
  if (delivered / sent < ADVANCE.delivered_min) {
    return `deliveries are ${share(delivered, sent)}, less than ${percent(ADVANCE.delivered_min)}`;
  }
  if (hard_bounced / sent > ADVANCE.hard_bounced_max) {
    return `hard bounces are ${share(hard_bounced, sent)}, more than ${percent(ADVANCE.hard_bounced_max)}`;
  }
  if (complained / sent > ADVANCE.complained_max) {
    return `complaints are ${share(complained, sent)}, more than ${percent(ADVANCE.complained_max)}`;
  }
  return null;
}

function share(part: number, sent: number): string {
  return `${percent(part / sent)} of ${sent} recipients in the last ${TRAILING_DAYS} days`;
}

function percent(part: number): string {
  return `${Number((part * 100).toFixed(2))} %`;
}

export type Decided = { row: WarmingRow; history: DayRow | null };

type Verdict = { decision: Decision; reason: string | null; change: Partial<WarmingRow> };

/**
 * Ends the UTC day that begins at `dayMs`. `day` are its figures, `window` those of the trailing days. A warm domain's
 * days are not noted unless it steps back.
 */
export function decideDay(row: WarmingRow, dayMs: number, figures: { day: Figures; window: Figures }): Decided {
  const date = new Date(dayMs).toISOString().slice(0, 10);
  const idle_days = figures.day.sent > 0 ? 0 : row.idle_days + 1;
  const verdict = judge({ ...row, idle_days }, dayMs, figures.window);
  const decided = { ...row, idle_days, decided_through: date, ...verdict?.change };
  if (!verdict) return { row: decided, history: null };
  const { decision, reason } = verdict;
  const daily_limit = scheduledLimits(row, dayMs)?.daily_limit ?? null;
  return { row: decided, history: { date, phase: row.phase, daily_limit, ...figures.day, decision, reason } };
}

function judge(row: WarmingRow, dayMs: number, window: Figures): Verdict | null {
  const endsAt = new Date(dayMs + DAY_MS);
  if (row.idle_days >= IDLE_DAYS) return stepBack(row, endsAt);
  if (row.paused_at) return { decision: "paused", reason: row.paused_reason, change: {} };
  const { phase } = row;
  if (!isRunning(phase)) return null;
  const stop = pauseReason(window);
  if (stop) return { decision: "paused", reason: stop, change: { paused_at: endsAt, paused_reason: stop } };
  if (dayInPhase(row, dayMs) < daysOf(phase)) {
    return { decision: "continued", reason: null, change: { held_reason: null } };
  }
  const held = holdReason(window);
  if (held) return { decision: "held", reason: held, change: { held_reason: held } };
  const next = nextPhase(phase) as WarmingRow["phase"];
  const change = { phase: next, phase_started_at: endsAt, paused_days: 0, held_reason: null };
  return { decision: "advanced", reason: null, change };
}

function stepBack(row: WarmingRow, endsAt: Date): Verdict {
  return {
    decision: "stepped_back",
    reason: `no mail was sent for ${IDLE_DAYS} days`,
    change: {
      phase: previousPhase(row.phase),
      phase_started_at: endsAt,
      paused_days: 0,
      held_reason: null,
      idle_days: 0,
    },
  };
}

/** The row after a look in the middle of a day: figures beyond the limits pause at once. */
export function lookNow(row: WarmingRow, window: Figures, nowMs: number): WarmingRow {
  const reason = !row.paused_at && isRunning(row.phase) ? pauseReason(window) : null;
  return reason ? { ...row, paused_at: new Date(nowMs), paused_reason: reason } : row;
}
