// What the clock role does for sending, every hour: forgets idempotency keys after 72 h and counted windows that nobody
// asks about any more. Not here: day partitions (platform/database/partitions.ts), the windows of warming.
import { atMostEvery, type RoundsWorld, startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { KEEP_MS } from "./accept/idempotency.ts";
import * as queries from "./queries.ts";

const LOOK_EVERY_MS = 60_000;
const WORK_EVERY_MS = 3_600_000;
/** Two months and a day: this month's quota and the last's stay to be looked at. */
const WINDOWS_KEPT_MS = 63 * 86_400_000;
/** An hour has millions of keys where thousands a second are sent: each statement ends soon, and holds nobody up. */
const ROWS_MAX = 20_000;

type HousekeepingWorld = Pick<World, "db" | "clock"> & RoundsWorld;

/** Starts the work; `stop` ends it after the statement at hand. */
export function startSendingWork(world: HousekeepingWorld): { stop(): Promise<void> } {
  const round = atMostEvery(world, WORK_EVERY_MS, () => forgetOld(world));
  return startRounds(world, { name: "housekeeping of sending", every_ms: LOOK_EVERY_MS, round });
}

/** Forgets what is old by the clock, `rowsMax` at a time; returns how many rows. */
export async function forgetOld(world: Pick<World, "db" | "clock">, rowsMax: number = ROWS_MAX): Promise<number> {
  const now = world.clock.now();
  let forgotten = 0;
  for (const [purge, kept_ms] of [
    [queries.purgeIdempotent, KEEP_MS],
    [queries.purgeAllowances, WINDOWS_KEPT_MS],
  ] as const) {
    for (let gone = rowsMax; gone === rowsMax; forgotten += gone) {
      gone = await purge(world.db, new Date(now - kept_ms), rowsMax);
    }
  }
  return forgotten;
}
