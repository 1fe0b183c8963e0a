// What the clock role does for the audit log: forgets what is over 400 days old. Any number of processes may run it.
import { type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { purgeEntries } from "./queries.ts";

type Worker = Pick<World, "db" | "clock">;

const SWEEP_EVERY_MS = 600_000;
const KEPT_MS = 400 * 86_400_000;
const BATCH = 5_000;

/** Starts the work; `stop` waits for the statement under way. */
export function startAuditWork(world: Worker & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "audit log",
    every_ms: SWEEP_EVERY_MS,
    round: (signal) => sweepAudit(world, signal),
  });
}

/** Deletes entries that are past their time, a bounded number at once; the rest next time. */
export async function sweepAudit(world: Worker, signal?: AbortSignal): Promise<void> {
  const before = new Date(world.clock.now() - KEPT_MS);
  await sweep(signal, () => purgeEntries(world.db, before, BATCH));
}
