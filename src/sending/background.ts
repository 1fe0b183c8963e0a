// What the clock role does for sending, every hour: forgets idempotency keys after 72 h and counted windows that nobody
// asks about any more. Not here: day partitions (platform/partitions.ts), the windows of warming.
import { atMostEvery, type RoundsWorld, startRounds } from "../platform/rounds.ts";
import type { World } from "../platform/world.ts";
import { KEEP_MS } from "./idempotency.ts";
import * as queries from "./queries.ts";

const LOOK_EVERY_MS = 60_000;
const WORK_EVERY_MS = 3_600_000;
/** Two months and a day: this month's quota and the last's stay to be looked at. */
const WINDOWS_KEPT_MS = 63 * 86_400_000;

type HousekeepingWorld = Pick<World, "db" | "clock"> & RoundsWorld;

/** Starts the work; `stop` ends it after the statement at hand. */
export function startSendingWork(world: HousekeepingWorld): { stop(): Promise<void> } {
  const round = atMostEvery(world, WORK_EVERY_MS, () => forgetOld(world));
  return startRounds(world, { name: "housekeeping of sending", every_ms: LOOK_EVERY_MS, round });
}

/** Forgets what is old by the clock; returns how many rows. */
export async function forgetOld(world: Pick<World, "db" | "clock">): Promise<number> {
  const now = world.clock.now();
  const keys = await queries.purgeIdempotent(world.db, new Date(now - KEEP_MS));
  return keys + (await queries.purgeAllowances(world.db, new Date(now - WINDOWS_KEPT_MS)));
}
