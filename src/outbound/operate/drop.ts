// Works off what operators drop: mail of a suspended destination ends as `failed`, with the events, webhooks and counts of any other
// end, some hundred at a time. A process that dies in between leaves the order, and the next one goes on. Any number may run it.
import { withPartitions } from "../../platform/database/partitions.ts";
import { deferredLocally } from "../path/attempt.ts";
import { decide, type FinishWorld, record } from "../path/finish.ts";
import { lockMessages } from "../path/finish-queries.ts";
import { describe } from "../queue/claims.ts";
import type { Job, Outcome } from "../types.ts";
import * as queries from "./operate-queries.ts";

const BATCH = 250;
const ORDERS_KEPT_MS = 86_400_000;

const DROPPED: Outcome = {
  ...deferredLocally("given up: the operator dropped the mail that waited for this destination", "4.3.2", "local"),
  ...{ kind: "failed", unattempted: true },
};

/** Until nothing is left that may be dropped now; what a node still holds comes back, and its turn comes with a later round. */
export async function dropOrdered(
  world: FinishWorld,
  signal?: AbortSignal,
  beat: () => void = () => undefined,
): Promise<void> {
  for (const { domain, drop_before } of await queries.findDrops(world.db)) {
    let dropped = BATCH;
    while (dropped > 0 && !signal?.aborted) {
      beat();
      dropped = await withPartitions(world, () => dropSome(world, domain, drop_before));
    }
    if (!signal?.aborted) await queries.endDrop(world.db, domain, drop_before);
  }
  await queries.forgetOrders(world.db, new Date(world.clock.now() - ORDERS_KEPT_MS));
}

async function dropSome(world: FinishWorld, domain: string, before: Date): Promise<number> {
  return world.db.transaction(async (tx) => {
    // A resume that comes meanwhile waits for this batch; after it nothing more is dropped.
    const [order] = await queries.lockDrop(tx, domain, before);
    if (!order) return 0;
    const found = await queries.findForDrop(tx, domain, before, BATCH);
    if (found.length === 0) return 0;
    // Messages before deliveries: the order in which a cancel locks them.
    await lockMessages(tx, found);
    const rows = await queries.lockFree(tx, found);
    const abouts = await describe(tx, rows);
    const ends = rows.flatMap((row) => {
      const about = abouts.get(row.message_id);
      return about ? [decide(world, { ...row, mime: null, about } as Job, DROPPED)] : [];
    });
    const left = await record(tx, world, ends);
    // What nobody can end would be found again and again, in place of all that is behind it.
    const lost = rows.filter(({ message_id }) => !abouts.has(message_id));
    const dropped = ends.length - left.length + (lost.length > 0 ? await queries.dropLost(tx, lost) : 0);
    await queries.noteDropped(tx, domain, dropped);
    return dropped;
  });
}
