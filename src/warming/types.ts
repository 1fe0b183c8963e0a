// Warming as rows, what it is judged by, and what the feature needs from features to its right (handed in by app.ts).
import type { Tx } from "../platform/database/db.ts";

/** Phases with limits, in order. */
export const RUNNING_PHASES = ["phase_1", "phase_2", "phase_3", "phase_4"] as const;
export type RunningPhase = (typeof RUNNING_PHASES)[number];

/** Where a start may begin. */
export const START_PHASES = [...RUNNING_PHASES, "warmed"] as const;
export type StoredPhase = (typeof START_PHASES)[number];

export const PHASES = ["not_started", ...START_PHASES] as const;
export type Phase = (typeof PHASES)[number];

export const DECISIONS = ["continued", "advanced", "held", "paused", "stepped_back"] as const;
export type Decision = (typeof DECISIONS)[number];

export type WarmingRow = {
  org_id: string;
  domain_id: string;
  phase: StoredPhase;
  warming_started_at: Date;
  phase_started_at: Date;
  /** Days of this phase that do not count, because it was paused. */
  paused_days: number;
  paused_at: Date | null;
  paused_reason: string | null;
  held_reason: string | null;
  /** Figures from before do not count. */
  judged_from: Date;
  /** The last UTC day that was decided, as YYYY-MM-DD. */
  decided_through: string;
  idle_days: number;
  next_look_at: Date;
};

/** What today's limits follow from. */
export type PhaseState = Pick<WarmingRow, "phase" | "phase_started_at" | "paused_days" | "paused_at" | "paused_reason">;

export type Limits = { daily_limit: number; hourly_limit: number; per_minute_limit: number };

/** A counted window of the domain, as the accepting statement takes it. */
export type WarmingAllowance = {
  scope_id: string;
  kind: "daily" | "hourly" | "per_minute";
  starts_at: Date;
  ceiling: number;
  warming_phase: string;
  retry_after_seconds: number;
  explanation?: string;
};

/** What became of a domain's mail in some time, in recipients. */
export type Figures = {
  sent: number;
  delivered: number;
  bounced: number;
  hard_bounced: number;
  complained: number;
};

export type DayRow = Figures & {
  date: string;
  phase: StoredPhase;
  daily_limit: number | null;
  decision: Decision;
  reason: string | null;
};

/** Functions of features to the right, handed in by app.ts. */
export type WarmingPorts = {
  /** How much of each of these windows of the domain is used. */
  used(tx: Tx, orgId: string, windows: Pick<WarmingAllowance, "scope_id" | "kind" | "starts_at">[]): Promise<number[]>;
  /** Forgets windows that began before `before`. */
  forgetWindows(before: Date): Promise<void>;
  /** Mail of the domain that waits for its turn is looked at now: other limits hold. */
  hastenWaiting(orgId: string, domainId: string): Promise<void>;
  /** The figures from `from` until before `to`, both whole hours. */
  figures(tx: Tx, orgId: string, domainId: string, period: { from: Date; to: Date }): Promise<Figures>;
};
