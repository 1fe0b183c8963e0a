// What the clock role does for statistics: merges the shards of spans that are over, and forgets what nobody can ask for
// any more. Nothing depends on it: readers add up whatever is there. Any number of processes may run it.
import { type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";

type Worker = Pick<World, "db" | "clock">;

const SWEEP_EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/** A day's row is over after a day; the hour more is for transactions that were under way at midnight. */
const OVER_AFTER_MS = DAY_MS + 3_600_000;
/** The longest question is about 90 days. */
const KEPT_MS = 100 * DAY_MS;
const BATCH = 5_000;

/** Starts the work; `stop` waits for the statement under way. */
export function startStatsWork(world: Worker & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, { name: "stats", every_ms: SWEEP_EVERY_MS, round: (signal) => sweepStats(world, signal) });
}

/** Merges and deletes counters, a bounded number at once; the rest next time. */
export async function sweepStats(world: Worker, signal?: AbortSignal): Promise<void> {
  const nowMs = world.clock.now();
  const over = new Date(nowMs - OVER_AFTER_MS);
  const old = new Date(nowMs - KEPT_MS);
  await sweep(signal, () => queries.mergeCounts(world.db, over, BATCH));
  await sweep(signal, () => queries.mergeReasons(world.db, over, BATCH));
  await sweep(signal, () => queries.purgeCounts(world.db, old, BATCH));
  await sweep(signal, () => queries.purgeReasons(world.db, old, BATCH));
}
