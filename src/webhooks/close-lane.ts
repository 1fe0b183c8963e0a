// Lanes of endpoints that may not be sent to. A deleted endpoint's queue is dropped. What an endpoint that answered 410
// has queued fails at once; what one disabled by its owner has queued waits three days for it to be enabled again.
import type { Tx } from "../platform/database/db.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import type { World } from "../platform/world.ts";
import * as queue from "./queue-queries.ts";
import { PAUSED_KEPT_MS } from "./schedule.ts";

const ROWS_MAX = 5_000;
const REASONS = {
  gone: "the endpoint answered 410 and was disabled",
  asked: "the endpoint was disabled for 3 days",
};

/** One step: at most 5,000 rows. True: there may be more, the lane stays due. */
export async function closeLane(world: Pick<World, "db" | "clock">, lane: queue.LaneKey): Promise<boolean> {
  return withPartitions(world, () =>
    world.db.transaction(async (tx) => {
      const locked = await queue.lockQuietLanes(tx, [lane]);
      return locked.length > 0 && closeLocked(tx, lane, world.clock.now());
    }),
  );
}

async function closeLocked(tx: Tx, lane: queue.LaneKey, now: number): Promise<boolean> {
  const [webhook] = await queue.findClosed(tx, lane);
  if (!webhook) {
    if ((await queue.dropDeliveries(tx, lane, ROWS_MAX)) === ROWS_MAX) return true;
    await queue.dropLane(tx, lane);
    return false;
  }
  if (webhook.enabled) return false;
  const reason = webhook.disabled_reason ?? "asked";
  const keptUntil = reason === "gone" ? now : (webhook.disabled_at?.getTime() ?? now) + PAUSED_KEPT_MS;
  if (now < keptUntil) {
    await queue.setLane(tx, lane, new Date(keptUntil));
    return false;
  }
  const why = { error: REASONS[reason], at: new Date(now), limit: ROWS_MAX };
  if ((await queue.failDeliveries(tx, lane, why)) === ROWS_MAX) return true;
  await queue.sleepLanes(tx, [lane]);
  return false;
}
