// Outcomes of attempts, committed in batches: while one commit is on its way the next batch gathers, no timer. A row
// whose claim is not ours any more is left alone.

import { isUnavailable, whileUnavailable } from "../platform/database/db.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import { createGroupCommit } from "../platform/fair/group-commit.ts";
import { uuidTime } from "../platform/random.ts";
import type { World } from "../platform/world.ts";
import type { LaneNote, Outcome } from "./queue-queries.ts";
import * as queue from "./queue-queries.ts";

export type FinishWorld = Pick<World, "db" | "clock" | "log">;

export type Finisher = {
  add(outcome: Outcome): void;
  /** Outcomes not committed yet. */
  pending(): number;
  /** Resolves when all outcomes added so far are committed, or given up. */
  drained(): Promise<void>;
};

const BATCH_MAX = 500;
const RETRY_EVERY_MS = 500;

/** A finisher; a database that cannot be reached is asked again for `patience_ms`, then the lease frees the rows. */
export function createFinisher(world: FinishWorld, patienceMs: number): Finisher {
  const group = createGroupCommit<Outcome>({
    max: { items: BATCH_MAX, bytes: Number.POSITIVE_INFINITY },
    commit: (batch) => commitPatiently(world, batch, patienceMs),
  });
  return { add: group.add, pending: group.uncommitted, drained: group.drained };
}

async function commitPatiently(world: FinishWorld, batch: Outcome[], patienceMs: number): Promise<void> {
  const until = world.clock.monotonic() + patienceMs;
  try {
    await whileUnavailable(
      () => commitOutcomes(world, batch),
      RETRY_EVERY_MS,
      () => world.clock.monotonic() <= until,
    );
  } catch (err) {
    if (!isUnavailable(err)) return commitSingly(world, batch, err);
    world.log.error({ err, count: batch.length }, "webhook outcomes are lost; those attempts are made again");
  }
}

// One bad row must not cost the others their outcome.
async function commitSingly(world: FinishWorld, batch: Outcome[], cause: unknown): Promise<void> {
  if (batch.length > 1) world.log.warn({ err: cause, count: batch.length }, "a batch of webhook outcomes is split");
  for (const outcome of batch) {
    await commitOutcomes(world, [outcome]).catch((err) =>
      world.log.error({ err, delivery_id: outcome.row.id }, "a webhook outcome is lost; the attempt is made again"),
    );
  }
}

/** Commits the outcomes: the log, the next attempts, what the lanes learn, endpoints that are gone. */
async function commitOutcomes(world: FinishWorld, batch: readonly Outcome[]): Promise<void> {
  const finished = batch.filter((outcome) => outcome.status !== "retrying");
  const retrying = batch.filter((outcome) => outcome.status === "retrying");
  const gone = notesOf(batch.filter((outcome) => outcome.gone));
  const at = new Date(world.clock.now());
  // The log's day is the delivery's: a clock that jumped may have left it behind.
  const oldest = Math.min(...finished.map((outcome) => uuidTime(outcome.row.id)));
  await withPartitions({ db: world.db, clock: { ...world.clock, now: () => oldest } }, () =>
    world.db.transaction(async (tx) => {
      if (finished.length > 0) await queue.finishDeliveries(tx, finished);
      if (retrying.length > 0) await queue.retryDeliveries(tx, retrying);
      if (gone.length > 0) await queue.disableGone(tx, gone, at);
      await queue.noteLanes(tx, notesOf(batch));
    }),
  );
}

/** What the lanes learn of a batch, in the order of the outcomes. */
export function notesOf(batch: readonly Outcome[]): LaneNote[] {
  const notes = new Map<string, LaneNote>();
  for (const { row, status, tried, at, gone, next_attempt_at } of batch) {
    const note = notes.get(row.webhook_id) ?? {
      org_id: row.org_id,
      webhook_id: row.webhook_id,
      succeeded_at: null,
      failures: 0,
      next_at: null,
    };
    notes.set(row.webhook_id, note);
    if (status === "delivered") {
      note.succeeded_at = at;
      note.failures = 0;
    } else if (tried) {
      note.failures += 1;
    }
    const next = gone ? at : next_attempt_at;
    if (next !== null && (note.next_at === null || next < note.next_at)) note.next_at = next;
  }
  return [...notes.values()];
}
