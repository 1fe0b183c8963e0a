// Notices that the clock of schedules (the database's) was set back, and puts what was planned by the wrong time right: mail
// that was accepted in what is the future now, retries that would wait for as long as the step, lanes parked until then. Steps
// that happened while nobody ran are looked for at the start. A clock that goes ahead needs nothing: what is due is due.
import type { World } from "../../platform/world.ts";
import * as queries from "./lane-queries.ts";
import type { Slot } from "./leases.ts";

/** Less than this is what clocks differ by. */
const STEP_MIN_MS = 60_000;
/** The longest wait of the table with its jitter is under 7 h, a server may ask for half an hour. */
const RETRY_MAX_MS = 8 * 3_600_000;
/** What was in somebody's hands at the step comes back to the queue later, as it was planned. */
const LOOK_ON_MS = 15 * 60_000;
/** A destination rests for a quarter of an hour at most. */
const PARKED_MAX_MS = 3_600_000;

export type SteppedClock = {
  /** To be called every second or so: a clock may go ahead and back between two looks. */
  notice(): void;
  /** Looks; while the clock goes evenly once an hour. */
  look(slots: Slot[]): Promise<void>;
};

/** Whatever was noticed, everything is looked at this often. */
const LOOK_EVERY_MS = 3_600_000;

/** The first look is at everything. */
export function watchSteps(world: Pick<World, "db" | "clock" | "log">): SteppedClock {
  const { db, clock } = world;
  // By how much the schedules' clock is ahead of the one that only goes on; a machine that was suspended makes it more.
  let aheadMs = clock.now() - clock.monotonic();
  let lookUntilMs = clock.monotonic() + LOOK_ON_MS;
  let lookedAtMs = Number.NEGATIVE_INFINITY;

  function notice(): void {
    const before = aheadMs;
    aheadMs = clock.now() - clock.monotonic();
    if (aheadMs < before - STEP_MIN_MS) lookUntilMs = clock.monotonic() + LOOK_ON_MS;
  }

  return {
    notice,
    async look(slots) {
      notice();
      const isDue = clock.monotonic() <= lookUntilMs || clock.monotonic() - lookedAtMs >= LOOK_EVERY_MS;
      if (!isDue) return;
      const nowMs = clock.now();
      const now = new Date(nowMs);
      await queries.unparkBeyond(db, slots, now, new Date(nowMs + PARKED_MAX_MS));
      const limits = { accepted_after: new Date(nowMs + STEP_MIN_MS), retried_after: new Date(nowMs + RETRY_MAX_MS) };
      const lanes = await queries.bringBack(db, { now, ...limits });
      lookedAtMs = clock.monotonic();
      if (lanes > 0) world.log.warn({ lanes }, "the clock was set back; mail that was planned by it is planned again");
    },
  };
}
