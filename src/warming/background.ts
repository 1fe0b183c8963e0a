// What the clock role does for warming: ends each UTC day of each domain with a decision and a row of its history, days that
// were missed one after the other, and pauses domains whose figures are beyond the limits. Any number of processes may
// run it: due rows are claimed with a lease, and decided under their lock.
import { atMostEvery, startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { decideDay, lookNow, trailing, trailingNow } from "./decide.ts";
import * as queries from "./queries.ts";
import { nextLookAt } from "./schedule.ts";
import type { WarmingPorts, WarmingRow } from "./types.ts";

type Worker = Pick<World, "db" | "clock" | "log" | "metrics">;
type Target = { org_id: string; domain_id: string };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const POLL_MS = 1_000;
const BATCH = 50;
/** Longer than a batch may take; after a crash the domains are due again then. */
const LEASE_MS = 10 * 60_000;
/** Missed days that are decided in one transaction; the rest at once after it. */
const DAYS_A_LOOK_MAX = 40;
const SWEEP_EVERY_MS = 3_600_000;
const WINDOWS_KEPT_MS = 3 * DAY_MS;
const HISTORY_KEPT_MS = 400 * DAY_MS;

/** Starts the work; `stop` waits for the domain at hand. */
export function startWarmingWork(world: Worker, ports: WarmingPorts): { stop(): Promise<void> } {
  const sweep = atMostEvery(world, SWEEP_EVERY_MS, () => sweepWarming(world, ports));
  return startRounds(world, {
    name: "warming",
    every_ms: POLL_MS,
    async round(signal, beat) {
      while ((await lookAtDue(world, ports, signal)) === BATCH && !signal.aborted) beat();
      await sweep();
    },
  });
}

/** Looks at one batch of due domains; returns how many. */
export async function lookAtDue(world: Worker, ports: WarmingPorts, signal?: AbortSignal): Promise<number> {
  const nowMs = world.clock.now();
  const due = { at: new Date(nowMs), lease_until: new Date(nowMs + LEASE_MS), limit: BATCH };
  const targets = await queries.claimDue(world.db, due);
  for (const target of targets) {
    if (signal?.aborted) break;
    try {
      await lookAt(world, ports, target);
    } catch (err) {
      // One failing domain must not hold up the others; it is due again when its lease is over.
      world.log.error({ err, ...target }, "a domain's warming could not be decided");
    }
  }
  return targets.length;
}

async function lookAt(world: Worker, ports: WarmingPorts, target: Target): Promise<void> {
  await world.db.transaction(async (tx) => {
    const [before] = await queries.lockWarming(tx, target.org_id, target.domain_id);
    if (!before) return;
    const figures = (period: { from: Date; to: Date }) => ports.figures(tx, target.org_id, target.domain_id, period);
    const nowMs = world.clock.now();
    let row = before;
    for (const dayMs of missedDays(before, nowMs)) {
      const day = { from: new Date(dayMs), to: new Date(dayMs + DAY_MS) };
      const window = await figures(trailing(dayMs + DAY_MS, row.judged_from));
      const decided = decideDay(row, dayMs, { day: await figures(day), window });
      if (decided.history) {
        await queries.saveDay(tx, target, decided.history);
        note(world, target, decided.history.decision);
      }
      row = decided.row;
    }
    if (missedDays(row, nowMs).length > 0) {
      await queries.saveWarming(tx, { ...row, next_look_at: new Date(nowMs) });
      return;
    }
    const looked = lookNow(row, await figures(trailingNow(nowMs, row.judged_from)), nowMs);
    if (looked !== row) note(world, target, "paused");
    await queries.saveWarming(tx, { ...looked, next_look_at: nextLookAt(looked, nowMs) });
  });
}

/** The first moments of the days that are over and undecided, oldest first. */
function missedDays(row: WarmingRow, nowMs: number): number[] {
  const days: number[] = [];
  const today = nowMs - (nowMs % DAY_MS);
  for (
    let day = Date.parse(row.decided_through) + DAY_MS;
    day < today && days.length < DAYS_A_LOOK_MAX;
    day += DAY_MS
  ) {
    days.push(day);
  }
  return days;
}

function note(world: Worker, target: Target, decision: string): void {
  world.metrics.counter("postern_warming_decisions_total", "Warming decisions", ["decision"]).inc({ decision });
  if (decision !== "continued") world.log.info({ ...target, decision }, "warming: a decision");
}

/** Forgets windows that are over and history beyond a year. */
export async function sweepWarming(world: Pick<World, "db" | "clock">, ports: WarmingPorts): Promise<void> {
  const nowMs = world.clock.now();
  await ports.forgetWindows(new Date(nowMs - WINDOWS_KEPT_MS));
  await queries.purgeDays(world.db, new Date(nowMs - HISTORY_KEPT_MS));
}
