// What the clock role does for DMARC reports: forgets what nobody can ask for any more. Any number of processes may run it.
import { type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import * as dayQueries from "./day-queries.ts";
import * as queries from "./queries.ts";
import { dayOf } from "./split-days.ts";

type Worker = Pick<World, "db" | "clock">;

const SWEEP_EVERY_MS = 600_000;
const DAY_MS = 86_400_000;
/** The longest question is about 400 days; counted from the day a report came, so that old ones can be uploaded and read. */
const KEPT_MS = 410 * DAY_MS;
/** Each takes its records with it. */
const REPORTS_BATCH = 50;
const ROWS_BATCH = 5_000;

/** Starts the work; `stop` waits for the statement under way. */
export function startDmarcWork(world: Worker & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "DMARC",
    every_ms: SWEEP_EVERY_MS,
    round: (signal) => sweepReports(world, signal),
  });
}

/** One sweep, bounded; the rest next time. */
export async function sweepReports(world: Worker, signal?: AbortSignal): Promise<void> {
  const before = new Date(world.clock.now() - KEPT_MS);
  const day = dayOf(before.getTime() / 1_000);
  await sweep(signal, () => queries.purgeReports(world.db, before, REPORTS_BATCH));
  await sweep(signal, () => queries.purgeTlsReports(world.db, before, ROWS_BATCH));
  await sweep(signal, () => dayQueries.purgeDays(world.db, day, ROWS_BATCH));
  await sweep(signal, () => dayQueries.purgeDaySources(world.db, day, ROWS_BATCH));
  await sweep(signal, () => dayQueries.purgeWeekSources(world.db, day, ROWS_BATCH));
}
