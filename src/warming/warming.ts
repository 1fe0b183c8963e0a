// Warming of a sender domain: how much it may send while mailbox providers get to know it. Face of the feature. The limits
// are windows that the accepting statement counts in; what each day's figures mean is decided by the clock role
// (background.ts). A domain that never started has no limits: that is so only where the automatic start is turned off.
import { organizationSetting } from "../accounts/accounts.ts";
import { requireDomain } from "../domains/domains.ts";
import type { DomainWarming } from "../domains/types.ts";
import type { Tx } from "../platform/database/db.ts";
import { coalesceByOrg } from "../platform/fair/coalesce.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { trailingNow } from "./decide.ts";
import * as queries from "./queries.ts";
import {
  allowancesAt,
  dayInPhase,
  daysLost,
  isRunning,
  nextLookAt,
  nextPhase,
  nextPhaseAt,
  scheduledLimits,
} from "./schedule.ts";
import type { Figures, Limits, PhaseState, StoredPhase, WarmingAllowance, WarmingPorts, WarmingRow } from "./types.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const KEYS_MAX = 500;
/** `{"warming_auto_start": false}` in an organization's settings: its domains begin when they are asked to. */
const AUTO_START = "warming_auto_start";

type Core = Pick<World, "db" | "clock">;

/**
 * A look-up of the windows that mail of a domain counts in, for the hot path: many domains a round trip, nothing cached,
 * so that a start, a pause or a new phase holds from the next request on in every process.
 */
export function warmingAllowances(
  world: Pick<World, "db">,
): (orgId: string, domainId: string, nowMs: number) => Promise<WarmingAllowance[]> {
  const find = coalesceByOrg<PhaseState>({
    keys_max: KEYS_MAX,
    lanes: 2,
    load: async (keys) => {
      const wanted = { org_ids: keys.map(({ org_id }) => org_id), domain_ids: keys.map(({ key }) => key) };
      const rows = await queries.findStates(world.db, wanted);
      return rows.map((row) => [row.org_id, row.domain_id, row]);
    },
  });
  return async (orgId, domainId, nowMs) => {
    const state = await find(orgId, domainId);
    return state ? allowancesAt(state, domainId, nowMs) : [];
  };
}

/** To be called when a domain that sends was verified, in the same transaction: begins phase 1 unless it began before. */
export function startOnVerified(
  world: Pick<World, "clock">,
): (tx: Tx, orgId: string, domainId: string) => Promise<void> {
  return async (tx, orgId, domainId) => {
    if ((await organizationSetting(tx, orgId, AUTO_START)) === "false") return;
    await queries.insertWarming(tx, begin(orgId, domainId, "phase_1", world.clock.now()));
  };
}

/** A domain that mailbox providers know already: it begins without limits, whenever it is verified. */
export function beginWarmed(world: Pick<World, "clock">): (tx: Tx, orgId: string, domainId: string) => Promise<void> {
  return async (tx, orgId, domainId) => {
    await queries.insertWarming(tx, begin(orgId, domainId, "warmed", world.clock.now()));
  };
}

/** How much some domains of an organization may send now, by id; those that never began are missing. */
export function warmingOf(world: Pick<World, "clock">) {
  return async (tx: Tx, orgId: string, ids: string[]): Promise<Map<string, DomainWarming>> => {
    const rows = await queries.findStates(tx, { org_ids: ids.map(() => orgId), domain_ids: ids });
    return new Map(rows.map((row) => [row.domain_id, toShown(row, world.clock.now())]));
  };
}

function toShown(row: PhaseState, nowMs: number): DomainWarming {
  const limits = currentLimits(row, nowMs);
  const none = { daily_limit: null, hourly_limit: null, per_minute_limit: null };
  return { phase: row.phase, ...(limits ?? none), hint: limits && hintOf(row, limits) };
}

function hintOf({ phase, paused_at }: PhaseState, limits: Limits): string {
  if (paused_at) return "Warming is paused: nothing may be sent until POST /v1/domains/{id}/warming/resume.";
  const { daily_limit, hourly_limit, per_minute_limit } = limits;
  const figures = `${daily_limit} recipients today, ${hourly_limit} an hour and ${per_minute_limit} a minute`;
  const remedy = 'POST /v1/domains/{id}/warming/start {"phase":"warmed"}';
  return `Warming, ${phase}: it may send to ${figures}; the limits rise daily. Where it has sent mail before, ${remedy} lifts them.`;
}

function begin(orgId: string, domainId: string, phase: StoredPhase, nowMs: number): WarmingRow {
  const now = new Date(nowMs);
  const state = { phase, phase_started_at: now, paused_days: 0, paused_at: null, paused_reason: null };
  return {
    ...state,
    org_id: orgId,
    domain_id: domainId,
    warming_started_at: now,
    held_reason: null,
    judged_from: new Date(nowMs - (nowMs % HOUR_MS)),
    decided_through: new Date(nowMs - DAY_MS).toISOString().slice(0, 10),
    idle_days: 0,
    next_look_at: nextLookAt(state, nowMs),
  };
}

/**
 * Begins at `phase`, from its first day; mail that waits for a window is looked at again. Without a phase, a domain that
 * never started begins at phase 1, and one that did is refused with 409.
 */
export async function startWarming(
  world: Core,
  ports: WarmingPorts,
  orgId: string,
  { id, phase }: { id: string; phase: StoredPhase | undefined },
): Promise<Status> {
  const started = await world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, id);
    if (domain.type !== "outbound" && domain.type !== "both") {
      throw new Refusal("invalid_state", `the domain ${domain.domain} is of type ${domain.type}: it does not send`);
    }
    const [before] = await queries.lockWarming(tx, orgId, domain.id);
    if (before && phase === undefined) {
      const hint = "name the 'phase' to begin there again";
      throw new Refusal("invalid_state", `warming of ${domain.domain} is in ${before.phase} already; ${hint}`);
    }
    const nowMs = world.clock.now();
    const row = begin(orgId, domain.id, phase ?? "phase_1", nowMs);
    if (before?.paused_at) row.judged_from = nextHour(nowMs);
    await queries.saveWarming(tx, row);
    return statusOf(ports, tx, { domain, row, nowMs });
  });
  await ports.hastenWaiting(orgId, started.domain_id);
  return started;
}

/** Figures that led to a pause must not lead to the next one: they count from the next full hour on. */
function nextHour(nowMs: number): Date {
  return new Date(nowMs - (nowMs % HOUR_MS) + HOUR_MS);
}

/** Refuses all mail of the domain until resumed; 409 unless a phase with limits is running. */
export async function pauseWarming(
  world: Core,
  ports: WarmingPorts,
  orgId: string,
  { id, reason }: { id: string; reason: string | undefined },
): Promise<Status> {
  return changeWarming(world, ports, { orgId, id }, (row, domain, nowMs) => {
    const state = row?.paused_at ? "paused" : (row?.phase ?? "not_started");
    if (!row || row.paused_at || !isRunning(row.phase)) {
      throw new Refusal("invalid_state", `warming of ${domain} is not running: it is ${state}`);
    }
    return { ...row, paused_at: new Date(nowMs), paused_reason: reason ?? "paused by request" };
  });
}

/** Goes on with the day of the phase at which it was paused; 409 unless paused. */
export async function resumeWarming(world: Core, ports: WarmingPorts, orgId: string, id: string): Promise<Status> {
  const resumed = await changeWarming(world, ports, { orgId, id }, (row, domain, nowMs) => {
    if (!row?.paused_at) {
      throw new Refusal("invalid_state", `warming of ${domain} is not paused: it is ${row?.phase ?? "not_started"}`);
    }
    return {
      ...row,
      paused_days: row.paused_days + daysLost(row, nowMs),
      paused_at: null,
      paused_reason: null,
      judged_from: nextHour(nowMs),
    };
  });
  await ports.hastenWaiting(orgId, resumed.domain_id);
  return resumed;
}

type Change = (row: WarmingRow | undefined, domain: string, nowMs: number) => WarmingRow;

async function changeWarming(
  world: Core,
  ports: WarmingPorts,
  { orgId, id }: { orgId: string; id: string },
  change: Change,
): Promise<Status> {
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, id);
    const [before] = await queries.lockWarming(tx, orgId, domain.id);
    const nowMs = world.clock.now();
    const row = change(before, domain.domain, nowMs);
    row.next_look_at = nextLookAt(row, nowMs);
    await queries.saveWarming(tx, row);
    return statusOf(ports, tx, { domain, row, nowMs });
  });
}

export type Status = Awaited<ReturnType<typeof statusOf>>;

/** Where the domain stands, or 404. */
export async function getStatus(world: Core, ports: WarmingPorts, orgId: string, idOrName: string): Promise<Status> {
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, idOrName);
    const [row] = await queries.findWarming(tx, orgId, domain.id);
    return statusOf(ports, tx, { domain, row, nowMs: world.clock.now() });
  });
}

type Subject = { domain: { org_id: string; id: string; domain: string }; row: WarmingRow | undefined; nowMs: number };

async function statusOf(ports: WarmingPorts, tx: Tx, subject: Subject) {
  const { domain, row, nowMs } = subject;
  const limits = row ? currentLimits(row, nowMs) : null;
  const used = await usedNow(ports, tx, subject, limits !== null);
  const figures = await ports.figures(tx, domain.org_id, domain.id, trailingNow(nowMs, null));
  const remaining = limits && Math.max(0, limits.daily_limit - used.today);
  return {
    domain_id: domain.id,
    domain: domain.domain,
    phase: row?.phase ?? ("not_started" as const),
    paused: row?.paused_at != null,
    paused_reason: row?.paused_reason ?? null,
    warming_started_at: row?.warming_started_at ?? null,
    phase_started_at: row?.phase_started_at ?? null,
    days_in_current_phase: row ? dayInPhase(row, nowMs) : 0,
    current_limits: limits ?? { daily_limit: null, hourly_limit: null, per_minute_limit: null },
    today_sent: used.today,
    this_hour_sent: used.hour,
    remaining_today: remaining,
    remaining_this_hour: limits && Math.min(remaining ?? 0, Math.max(0, limits.hourly_limit - used.hour)),
    delivery_rate: rate(figures.delivered, figures.sent),
    bounce_rate: rate(figures.hard_bounced, figures.sent),
    complaint_rate: rate(figures.complained, figures.sent),
    next_phase: row ? nextPhase(row.phase) : ("phase_1" as const),
    next_phase_at: row ? nextPhaseAt(row, nowMs) : null,
    held_reason: row?.held_reason ?? null,
  };
}

function currentLimits(row: PhaseState, nowMs: number) {
  if (row.paused_at) return { daily_limit: 0, hourly_limit: 0, per_minute_limit: 0 };
  return scheduledLimits(row, nowMs);
}

/** With limits what counts against them, that is accepted recipients; without, what was handed to delivery. */
async function usedNow(ports: WarmingPorts, tx: Tx, { domain, nowMs }: Subject, isLimited: boolean) {
  const starts = { day: new Date(nowMs - (nowMs % DAY_MS)), hour: new Date(nowMs - (nowMs % HOUR_MS)) };
  if (!isLimited) {
    const sent = async (from: Date): Promise<number> =>
      (await ports.figures(tx, domain.org_id, domain.id, { from, to: nextHour(nowMs) })).sent;
    return { today: await sent(starts.day), hour: await sent(starts.hour) };
  }
  const [today = 0, hour = 0] = await ports.used(tx, domain.org_id, [
    { scope_id: domain.id, kind: "daily", starts_at: starts.day },
    { scope_id: domain.id, kind: "hourly", starts_at: starts.hour },
  ]);
  return { today, hour };
}

function rate(part: number, sent: Figures["sent"]): number | null {
  return sent === 0 ? null : Math.min(1, Math.round((part / sent) * 10_000) / 10_000);
}

/** One page of the days that were decided, newest first, with the total; 404 for a foreign domain. */
export async function listHistory(
  world: Core,
  orgId: string,
  idOrName: string,
  page: { limit: number; offset: number },
) {
  return world.db.asOrg(orgId, async (tx) => {
    const { id } = await requireDomain(tx, orgId, idOrName);
    const history = await queries.listDays(tx, orgId, id, page);
    const total = await queries.countDays(tx, orgId, id);
    return { history, ...total, ...page };
  });
}
