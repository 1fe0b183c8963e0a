// What the clock role does for receiving: lets go of the blobs of mail past its retention (its rows go with their day
// partitions), and forgets what greylisting remembers too long.
import { uuidFloor } from "../platform/random.ts";
import { type RoundsWorld, startRounds } from "../platform/rounds.ts";
import type { World } from "../platform/world.ts";
import * as blobQueries from "./blob-queries.ts";
import { collectBlobs } from "./blob-references.ts";
import { REMEMBER_MS } from "./greylist.ts";
import * as greylistQueries from "./greylist-queries.ts";

export type RetentionWorld = Pick<World, "db" | "blobs" | "clock" | "config" | "log">;

const LOOK_EVERY_MS = 60_000;
const AT_ONCE_MAX = 500;
const DAY_MS = 86_400_000;

/** Starts the work; `stop` ends it after the batch at hand. */
export function startInboundWork(world: RetentionWorld & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "inbound retention",
    every_ms: LOOK_EVERY_MS,
    async round(signal, beat) {
      while (!signal.aborted && (await sweepBlobs(world)) === AT_ONCE_MAX) beat();
      const before = new Date(world.clock.now() - REMEMBER_MS);
      while (!signal.aborted && (await greylistQueries.forget(world.db, before, AT_ONCE_MAX)) === AT_ONCE_MAX) beat();
    },
  });
}

/** Gives up the references of mail past its retention, and deletes blobs that nobody needs then; how many references. */
export async function sweepBlobs(world: RetentionWorld): Promise<number> {
  const keptMs = (world.config.retention_days.inbound + 1) * DAY_MS;
  const before = uuidFloor(world.clock.now() - keptMs);
  const rows = await blobQueries.deleteExpiredReferences(world.db, before, AT_ONCE_MAX);
  await collectBlobs(
    world,
    rows.map(({ blob_key }) => blob_key),
  );
  return rows.length;
}
