// Mail that leaves later than it was accepted (scheduled, or held back) counts in the windows of the time at which it leaves:
// the windows of its domain's warming. What does not fit waits for the next one, and its timeline says so. A message is counted
// once with all its recipients; what was given to a server and is tried again is not counted again.
import { KEEP_TRYING_MS } from "../outbound/outbound.ts";
import { remember } from "../platform/fair/remember.ts";
import type { World } from "../platform/world.ts";
import { raiseAllowances } from "./emails/retry-queries.ts";
import * as queries from "./leaving-queries.ts";
import { explainFull, forMessage, isOverAllowance, usedOf } from "./prepare/allowances.ts";
import type { Allowance, SendingDeps } from "./types.ts";

/** A delivery that is about to be attempted. */
export type Departing = {
  org_id: string;
  message_id: string;
  position: number;
  attempts: number;
  charged_at?: Date | null;
  about: { domain_id: string; has_expiry: boolean };
};

/** When to try again, why, and until when it may wait then; `expires_at` null: as before. */
export type Wait = { at: Date; why: string; expires_at: Date | null };

const HOUR_MS = 3_600_000;
/** What leaves within the hour it was counted in leaves in time. */
const CHARGE_HOLDS_MS = HOUR_MS;
const WINDOW_MS: Record<Allowance["kind"], number> = {
  monthly_quota: 31 * 24 * HOUR_MS,
  daily: 24 * HOUR_MS,
  hourly: HOUR_MS,
  per_minute: 60_000,
};
/** What waits is spread over the windows to come, not further than this. */
const SPREAD_MAX_MS: Record<Allowance["kind"], number> = {
  monthly_quota: 0,
  daily: 0,
  hourly: 12 * HOUR_MS,
  per_minute: HOUR_MS,
};
const WINDOWS_REMEMBERED = 20_000;
const MESSAGES_REMEMBERED = 20_000;
const AGAIN_MS = 1_000;

/** Counts what is about to leave; null: it may. */
export function windowsOfLeaving(
  world: Pick<World, "db" | "clock">,
  { warmingAllowances }: Pick<SendingDeps, "warmingAllowances">,
): (mail: Departing) => Promise<Wait | null> {
  const queues = remember<number>(world.clock, { for_ms: HOUR_MS, names_max: WINDOWS_REMEMBERED });
  const waits = remember<number>(world.clock, { for_ms: HOUR_MS, names_max: MESSAGES_REMEMBERED });

  /** How many windows further on there is room for it, behind what waits for the same one already. */
  function spread({ scope_id, kind, starts_at, ceiling }: Allowance, count: number): number {
    const name = `${scope_id}/${kind}/${starts_at.getTime()}/${ceiling}`;
    const before = queues.get(name) ?? 0;
    queues.set(name, before + count);
    return Math.min(SPREAD_MAX_MS[kind], Math.floor(before / Math.max(1, ceiling)) * WINDOW_MS[kind]);
  }

  /** All recipients of a message wait for the same window, in which the message is counted once. */
  function nextWindow(mail: Departing, full: Allowance, { count, nowMs }: { count: number; nowMs: number }): number {
    const name = `${mail.message_id}/${full.kind}/${full.starts_at.getTime()}/${full.ceiling}`;
    const known = waits.get(name);
    if (known !== undefined && known > nowMs) return known;
    const atMs = nowMs + full.retry_after_seconds * 1_000 + spread(full, count);
    waits.set(name, atMs);
    return atMs;
  }

  async function waitFor(mail: Departing, windows: Allowance[], nowMs: number): Promise<Wait> {
    const count = await queries.countUncharged(world.db, mail, holdsSince(nowMs));
    const used = await usedOf(world.db, mail.org_id, windows);
    const full = windows.find((window, n) => (used[n] as number) + count > forMessage(window, count).ceiling);
    const at = new Date(full ? nextWindow(mail, full, { count, nowMs }) : nowMs + AGAIN_MS);
    const expires_at = mail.about.has_expiry ? null : new Date(at.getTime() + KEEP_TRYING_MS);
    if (expires_at) await queries.giveTime(world.db, mail, expires_at);
    const why = full
      ? `waits for the next window: ${explainFull(full, count)}`
      : "waits for its turn in its domain's warming";
    return { at, why, expires_at };
  }

  return async (mail) => {
    const nowMs = world.clock.now();
    if (mail.attempts > 0 || (mail.charged_at && mail.charged_at.getTime() > nowMs - CHARGE_HOLDS_MS)) return null;
    const now = await warmingAllowances(mail.org_id, mail.about.domain_id, nowMs);
    // Of the day in which it was accepted it has its part already.
    const windows = now.filter(
      ({ starts_at, ceiling }) => ceiling === 0 || !mail.charged_at || starts_at > mail.charged_at,
    );
    if (windows.length === 0) return null;
    try {
      await charge(world, mail, windows, nowMs);
    } catch (error) {
      if (isOverAllowance(error)) return waitFor(mail, windows, nowMs);
      throw error;
    }
    mail.charged_at = new Date(nowMs);
    return null;
  };
}

function holdsSince(nowMs: number): Date {
  return new Date(nowMs - CHARGE_HOLDS_MS);
}

/** The message with all its recipients that were not attempted; another recipient's look may have done it. */
function charge({ db }: Pick<World, "db">, mail: Departing, windows: Allowance[], nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    const count = await queries.markCharged(tx, mail, { now: new Date(nowMs), before: holdsSince(nowMs) });
    if (count === 0) return;
    const open = windows.map((window) => forMessage(window, count));
    await raiseAllowances(tx, mail.org_id, { windows: open, count });
  });
}
