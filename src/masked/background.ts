// What the clock role does for masked addresses: settles what was sent, and forgets by the clock: counted windows,
// Message-IDs that nobody answers any more, aliases that cannot be restored (their addresses stay taken), and addresses of people
// who were asked and never agreed.
import { atMostEvery, type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import { RESTORE_WITHIN_MS } from "./addresses/aliases.ts";
import type * as carry from "./carry/carry.ts";
import { forgetFailed } from "./held/failed.ts";
import { forgetHeld } from "./held/held.ts";
import type { TracePorts } from "./settle/ports.ts";
import { settleTraces } from "./settle/settling.ts";
import * as queries from "./settle/trace-queries.ts";

export type WorkWorld = carry.CarryWorld & RoundsWorld;

const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 1_000;
const SWEEP_EVERY_MS = 600_000;
const SWEPT_AT_ONCE = 5_000;
const ALIASES_AT_ONCE = 100;
const HELD_AT_ONCE = 1_000;
const WINDOWS_KEPT_MS = 2 * DAY_MS;
/** People answer mail of last year. */
const MESSAGE_IDS_KEPT_MS = 400 * DAY_MS;
/** Whoever has not confirmed in three months, with no alias waiting for it, does not want to. */
const UNCONFIRMED_KEPT_MS = 90 * DAY_MS;

/** Starts the work; `stop` ends it after what is at hand. Any number of processes may run it. */
export function startMaskedWork(world: WorkWorld, ports: TracePorts): { stop(): Promise<void> } {
  const sweepOld = atMostEvery(world, SWEEP_EVERY_MS, () => forgetOld(world, ports));
  // It reads all of them.
  const sweepUnconfirmed = atMostEvery(world, DAY_MS, () => sweep(undefined, () => forgetUnconfirmed(world)));
  return startRounds(world, {
    name: "masked",
    every_ms: LOOK_EVERY_MS,
    async round(signal, beat) {
      while (!signal.aborted && (await settleTraces(world, ports)) > 0) beat();
      await sweepOld();
      await sweepUnconfirmed();
    },
  });
}

/** Forgets what is old by the clock; how many rows. */
async function forgetOld(world: Pick<carry.CarryWorld, "db" | "clock">, ports: TracePorts): Promise<number> {
  const now = world.clock.now();
  const before = (keptMs: number) => new Date(now - keptMs);
  const windows = await queries.purgeWindows(world.db, before(WINDOWS_KEPT_MS), SWEPT_AT_ONCE);
  const days = await queries.purgeConfirmationDays(world.db, before(WINDOWS_KEPT_MS), SWEPT_AT_ONCE);
  const ids = await queries.purgeMessageIds(world.db, before(MESSAGE_IDS_KEPT_MS), SWEPT_AT_ONCE);
  const sent = await queries.purgeSent(world.db, before(MESSAGE_IDS_KEPT_MS), SWEPT_AT_ONCE);
  const held = (await forgetHeld(world, ports, HELD_AT_ONCE)) + (await forgetFailed(world, ports, HELD_AT_ONCE));
  return (
    windows +
    days +
    ids +
    sent +
    held +
    (await queries.purgeAliases(world.db, before(RESTORE_WITHIN_MS), ALIASES_AT_ONCE))
  );
}

/** Forgets destinations that never confirmed and that no alias forwards to, of all organizations; how many, of 5,000 at most. */
export function forgetUnconfirmed({ db, clock }: Pick<carry.CarryWorld, "db" | "clock">): Promise<number> {
  return queries.purgeUnconfirmed(db, new Date(clock.now() - UNCONFIRMED_KEPT_MS), SWEPT_AT_ONCE);
}
