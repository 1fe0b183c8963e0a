// What the clock role does for sending, every hour: forgets idempotency keys after 72 h and counted windows that nobody
// asks about any more. Not here: day partitions (platform/partitions.ts), the windows of warming.
import { sleep } from "../platform/clock.ts";
import { isUnavailable } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import { KEEP_MS } from "./idempotency.ts";
import * as queries from "./queries.ts";

const LOOK_EVERY_MS = 60_000;
const WORK_EVERY_MS = 3_600_000;
/** Two months and a day: this month's quota and the last's stay to be looked at. */
const WINDOWS_KEPT_MS = 63 * 86_400_000;

type HousekeepingWorld = Pick<World, "db" | "clock" | "log">;

/** Starts the work; `stop` ends it after the statement at hand. */
export function startSendingWork(world: HousekeepingWorld): { stop(): Promise<void> } {
  const ending = new AbortController();
  const running = run(world, ending.signal);
  return {
    async stop() {
      ending.abort();
      await running;
    },
  };
}

/** Forgets what is old by the clock; returns how many rows. */
export async function forgetOld(world: Pick<World, "db" | "clock">): Promise<number> {
  const now = world.clock.now();
  const keys = await queries.purgeIdempotent(world.db, new Date(now - KEEP_MS));
  return keys + (await queries.purgeAllowances(world.db, new Date(now - WINDOWS_KEPT_MS)));
}

async function run(world: HousekeepingWorld, signal: AbortSignal): Promise<void> {
  let doneAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    if (world.clock.now() - doneAtMs >= WORK_EVERY_MS) {
      try {
        await forgetOld(world);
        doneAtMs = world.clock.now();
      } catch (err) {
        world.log.error(
          { err },
          isUnavailable(err) ? "sending: the database cannot be reached" : "housekeeping failed",
        );
      }
    }
    await sleep(LOOK_EVERY_MS, signal);
  }
}
