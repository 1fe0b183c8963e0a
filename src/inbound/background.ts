// What the clock role does for receiving: lets go of the blobs of mail past its retention, received and sent (its rows go
// with their day partitions), deletes mail of organizations that keep it for a shorter time, forgets what greylisting
// remembers too long, and tells how long mail has waited that was taken and is not processed.
import { organizationsWith } from "../accounts/accounts.ts";
import { type RoundsWorld, startRounds } from "../platform/process/rounds.ts";
import { uuidFloor } from "../platform/random.ts";
import type { World } from "../platform/world.ts";
import * as blobQueries from "./blobs/blob-queries.ts";
import { collectBlobs } from "./blobs/blob-references.ts";
import { forgetReceived } from "./blobs/forget.ts";
import { releaseSent } from "./blobs/sent-blobs.ts";
import { oldestWaiting } from "./queries.ts";
import * as list from "./read/list-queries.ts";
import { REMEMBER_MS } from "./receive/greylist.ts";
import * as greylistQueries from "./receive/greylist-queries.ts";

export type RetentionWorld = Pick<World, "db" | "blobs" | "clock" | "config" | "log">;

const LOOK_EVERY_MS = 60_000;
const AT_ONCE_MAX = 500;
const FAILURES_MAX = 10;
const DAY_MS = 86_400_000;

/** Starts the work; `stop` ends it after the batch at hand. */
export function startInboundWork(world: RetentionWorld & RoundsWorld & Pick<World, "metrics">): {
  stop(): Promise<void>;
} {
  // Of its own: a sweep may take long, or fail as long as the store does.
  const telling = startRounds(world, { name: "inbound age", every_ms: LOOK_EVERY_MS, round: () => tellAge(world) });
  const sweeping = startSweeping(world);
  return {
    async stop() {
      await Promise.all([telling.stop(), sweeping.stop()]);
    },
  };
}

/** Reports how long received mail has waited: that grows when nobody processes mail, or nobody can. */
async function tellAge(world: Pick<World, "db" | "clock" | "metrics">): Promise<void> {
  const gauge = world.metrics.gauge("postern_oldest_due_seconds", "How long the oldest due work has waited", ["queue"]);
  const [row] = await oldestWaiting(world.db, new Date(world.clock.now()));
  gauge.set({ queue: "inbound" }, row?.seconds ?? 0);
}

function startSweeping(world: RetentionWorld & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "inbound retention",
    every_ms: LOOK_EVERY_MS,
    async round(signal, beat) {
      while (!signal.aborted && (await sweepBlobs(world)) >= AT_ONCE_MAX) beat();
      await sweepOrganizations(world, signal, beat);
      const before = new Date(world.clock.now() - REMEMBER_MS);
      while (!signal.aborted && (await greylistQueries.forget(world.db, before, AT_ONCE_MAX)) === AT_ONCE_MAX) beat();
    },
  });
}

/**
 * Gives up the references of mail past its retention, and deletes blobs that nobody needs then; how many were looked at. Mail
 * goes with the whole day in which it came (partitions.ts): its blobs a day later than it can be read.
 */
export async function sweepBlobs(world: RetentionWorld): Promise<number> {
  const keptMs = (world.config.retention_days.inbound + 2) * DAY_MS;
  const before = uuidFloor(world.clock.now() - keptMs);
  const expired = await blobQueries.findExpiredOwners(world.db, before, AT_ONCE_MAX);
  await blobQueries.releaseReferences(world.db, expired);
  const sent = await releaseSent(world, AT_ONCE_MAX);
  const released = await blobQueries.findReleased(world.db, AT_ONCE_MAX);
  await collectAll(
    world,
    released.map(({ blob_key }) => blob_key),
  );
  return Math.max(expired.length, sent, released.length);
}

/** One that the store cannot delete does not hold up the others; a store that deletes none is left alone. */
async function collectAll(world: RetentionWorld, keys: string[]): Promise<void> {
  const failures: unknown[] = [];
  for (const key of keys) {
    await collectBlobs(world, [key]).catch((err) => failures.push(err));
    if (failures.length === FAILURES_MAX) break;
  }
  if (failures.length > 0) throw failures[0];
}

/** Deletes mail that is older than its own organization keeps it (`postern settings`, inbound_retention_days). */
export async function sweepOrganizations(
  world: RetentionWorld,
  signal?: AbortSignal,
  beat?: () => void,
): Promise<void> {
  for (const { org_id, value } of await organizationsWith(world, "inbound_retention_days")) {
    const before = uuidFloor(world.clock.now() - Number(value) * DAY_MS);
    for (let isMore = true; isMore && !signal?.aborted; beat?.()) {
      const mails = await list.findProcessedBefore(world.db, org_id, before, AT_ONCE_MAX);
      await forgetReceived(world, mails);
      isMore = mails.length === AT_ONCE_MAX;
    }
  }
}
