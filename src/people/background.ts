// What the clock role does for people: forgets sessions, links and tries that are over.
import { type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { purgeChallenges } from "./proof/passkey-queries.ts";
import * as queries from "./queries.ts";
import { sessionBounds } from "./sign-in/sessions.ts";

type Worker = Pick<World, "db" | "clock">;

const SWEEP_EVERY_MS = 600_000;
const BATCH = 5_000;

/** Starts the work; `stop` waits for the statement under way. */
export function startPeopleWork(world: Worker & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "people",
    every_ms: SWEEP_EVERY_MS,
    round: (signal) => sweepPeople(world, signal),
  });
}

/** Deletes what is past its time, a bounded number at once; the rest next time. */
async function sweepPeople(world: Worker, signal?: AbortSignal): Promise<void> {
  const now = new Date(world.clock.now());
  await sweep(signal, () => queries.purgeSessions(world.db, sessionBounds(world), BATCH));
  await sweep(signal, () => queries.purgeLinks(world.db, now, BATCH));
  await sweep(signal, () => purgeChallenges(world.db, now, BATCH));
  await sweep(signal, () => queries.purgeTries(world.db, now, BATCH));
}
