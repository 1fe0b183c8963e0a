// What the clock role does for sending: keeps other domains' TLS policies fresh, gives mail of suspended organizations time, and
// forgets what nobody needs any more (results for reports, figures of addresses, addresses taken out of pools). Nothing waits
// for it.
import { waitingOrganizations } from "../accounts/accounts.ts";
import { atMostEvery, startRounds } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import { dropOrdered } from "./operate/drop.ts";
import { suspendedDestinations } from "./operate/held.ts";
import type { FinishWorld } from "./path/finish.ts";
import * as pools from "./pools/pool-queries.ts";
import { dayOf } from "./pools/warmup.ts";
import { oldestDue } from "./queries.ts";
import { laneWatch } from "./queue/homeless.ts";
import { keepSuspended } from "./queue/suspended.ts";
import { refreshPolicies, type StsWorld } from "./route/sts.ts";
import { sweepTlsResults } from "./route/tls-results.ts";

type UpkeepWorld = StsWorld & Pick<World, "metrics">;

const EVERY_MS = 60_000;
const DROP_EVERY_MS = 2_000;
const KEEP_EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
const USAGE_KEPT_MS = 100 * DAY_MS;
const SWEEP_ROWS_MAX = 5_000;

/** Starts the work; `stop` ends it after the step at hand. */
export function startOutboundWork(world: UpkeepWorld & FinishWorld): { stop(): Promise<void> } {
  const works = [startUpkeep(world), startDrops(world)];
  return { stop: async () => void (await Promise.all(works.map(({ stop }) => stop()))) };
}

function startDrops(world: FinishWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "drops of the queue",
    every_ms: DROP_EVERY_MS,
    round: (signal, beat) => dropOrdered(world, signal, beat),
  });
}

function startUpkeep(world: UpkeepWorld): { stop(): Promise<void> } {
  const watchLanes = laneWatch(world);
  const keepWaiting = atMostEvery(world, KEEP_EVERY_MS, () => keepSuspended(world));
  return startRounds(world, {
    name: "upkeep of sending",
    every_ms: EVERY_MS,
    async round(signal) {
      await tellAge(world);
      await watchLanes();
      await keepWaiting();
      await refreshPolicies(world, signal);
      await sweepTlsResults(world);
      await sweepSources(world);
    },
  });
}

/** How long the mail that has waited longest has been due: it grows when nobody takes mail. */
async function tellAge(world: Pick<World, "db" | "clock" | "metrics">): Promise<void> {
  const gauge = world.metrics.gauge("postern_oldest_due_seconds", "How long the oldest due work has waited", ["queue"]);
  const suspended = { orgs: await waitingOrganizations(world), domains: await suspendedDestinations(world) };
  const [row] = await oldestDue(world.db, new Date(world.clock.now()), suspended);
  gauge.set({ queue: "mail" }, row?.seconds ?? 0);
}

/** An address that was taken out stays as long as it has lanes; those that nobody uses are forgotten (claims.ts). */
export async function sweepSources(world: Pick<World, "db" | "clock">): Promise<void> {
  const nowMs = world.clock.now();
  await pools.dropRemovedSources(world.db, SWEEP_ROWS_MAX);
  await pools.dropOldUsage(world.db, dayOf(nowMs - USAGE_KEPT_MS), SWEEP_ROWS_MAX);
}
