// Deliveries that have to leave another way than the lane says they wait in: a relay was set after they were queued, or is
// needed now. They move to a lane of that way, where whoever drives it claims them; once, and not back.
import { sleep } from "../../platform/clock.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import { DEFAULT_SOURCE_ID, type Job, type Lane } from "../types.ts";
import { isLaneGone } from "./lane-queries.ts";
import type { FindLane } from "./lanes.ts";
import { notifier } from "./wake.ts";

export type Move = { lane: Lane; job: Job };

export type Rehomer = {
  push(move: Move): void;
  /** Resolves once everything pushed so far has moved. */
  drain(): Promise<void>;
};

const GATHER_MS = 10;
const BATCH_MAX = 250;
const RETRY_MS = 500;

type Hooks = {
  /** The job left this process's memory. */
  done(job: Job): void;
  /** There is due mail in other lanes; the other processes are notified of it. */
  moved(): void;
  findLane: FindLane;
};

/** Moves each pushed job to the lane of its sender domain's relay. Until that is committed it stays this node's. */
export function createRehomer(world: Pick<World, "db" | "clock" | "log">, hooks: Hooks): Rehomer {
  const { findLane } = hooks;
  const tellOthers = notifier(world);
  let waiting: Move[] = [];
  let running: Promise<void> | null = null;

  async function pump(): Promise<void> {
    while (waiting.length > 0) {
      if (waiting.length < BATCH_MAX) await sleep(GATHER_MS);
      const batch = waiting.slice(0, BATCH_MAX);
      waiting = waiting.slice(BATCH_MAX);
      await moveUntilDone(batch);
      for (const { job } of batch) hooks.done(job);
      hooks.moved();
      tellOthers();
    }
    running = null;
  }

  async function moveUntilDone(batch: Move[]): Promise<void> {
    for (;;) {
      try {
        await move(world, findLane, batch);
        return;
      } catch (err) {
        world.log.error({ err, deliveries: batch.length }, "deliveries could not be moved to a relay; trying again");
        await sleep(RETRY_MS);
      }
    }
  }

  return {
    push(wanted) {
      waiting.push(wanted);
      running ??= pump();
    },
    drain: () => running ?? Promise.resolve(),
  };
}

async function move(world: Pick<World, "db">, findLane: FindLane, batch: Move[]): Promise<void> {
  const targets = await Promise.all(
    batch.map(({ lane, job }) => {
      const { org_id, domain, class: mailClass } = lane;
      const relay_domain_id = job.about.domain_id;
      return findLane({ org_id, source_id: DEFAULT_SOURCE_ID, domain, class: mailClass, relay_domain_id });
    }),
  );
  const rows = batch.map(({ job: { org_id, message_id, position, owner } }, n) => {
    return { org_id, message_id, position, owner, lane_id: (targets[n] as Lane).id };
  });
  try {
    await queries.moveDeliveries(world.db, rows);
  } catch (err) {
    if (isLaneGone(err)) for (const lane of targets) findLane.forget?.(lane);
    throw err;
  }
}
