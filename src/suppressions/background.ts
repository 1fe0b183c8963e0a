// What the clock role does for suppressions: commits imports, deletes expired entries, folds the counts, retires jobs.
// The row is the job: a worker claims it with a lease, and each block and the cursor move in one transaction, so that a
// crash at any instruction neither loses nor doubles a row.
import { isUnavailable } from "../platform/database/db.ts";
import { atMostEvery, type RoundsWorld, startRounds, sweep } from "../platform/process/rounds.ts";
import type { World } from "../platform/world.ts";
import * as imports from "./import-queries.ts";
import * as queries from "./queries.ts";

type Worker = Pick<World, "db" | "clock" | "log">;

const LOOK_EVERY_MS = 1_000;
const SWEEP_EVERY_MS = 60_000;
const LEASE_SECONDS = 30;
const RETRY_SECONDS = 5;
const FAILED_CLAIMS_MAX = 5;
/** 40,000 rows, one to two seconds. */
const BLOCKS_A_TURN = 20;
const SWEEP_ENTRIES_MAX = 5_000;
const SWEEP_JOBS_MAX = 100;
const COUNT_ROWS_MAX = 100;
const READING_LIFE_MS = 2 * 3_600_000;
/** How long an ended job can be looked at after its day as a preview is over. */
const ENDED_LIFE_MS = 30 * 86_400_000;

/** Starts the work; `stop` ends it after the block at hand and gives the job back. */
export function startSuppressionWork(world: Worker & RoundsWorld): { stop(): Promise<void> } {
  const sweepSometimes = atMostEvery(world, SWEEP_EVERY_MS, () => sweepSuppressions(world));
  return startRounds(world, {
    name: "suppressions",
    every_ms: LOOK_EVERY_MS,
    async round(signal, beat) {
      await commitImports(world, signal, beat);
      await sweepSometimes();
    },
  });
}

/** Commits every job that is due, and says after each turn that it lives; returns how many were finished. */
export async function commitImports(world: Worker, signal?: AbortSignal, beat?: () => void): Promise<number> {
  let finished = 0;
  while (!signal?.aborted) {
    const claim = await imports.claimJob(world.db, LEASE_SECONDS);
    if (claim === null) return finished;
    if (await commitJob(world, claim, signal)) finished += 1;
    beat?.();
  }
  return finished;
}

// A turn is bounded, then the job goes to the end of the row: a million rows do not keep a small list waiting.
async function commitJob(world: Worker, claim: imports.Claim, signal?: AbortSignal): Promise<boolean> {
  const end = Math.min(claim.block_count, claim.next_block + BLOCKS_A_TURN);
  for (let position = claim.next_block; position < end && !signal?.aborted; position += 1) {
    try {
      if (!(await commitBlock(world, claim, position))) return false;
      claim.next_block = position + 1;
    } catch (error) {
      await giveBack(world, claim, error);
      return false;
    }
  }
  if (claim.next_block < claim.block_count) {
    await imports.releaseJob(world.db, claim, 0, "progress");
    return false;
  }
  await world.db.transaction((tx) => imports.endJob(tx, claim, "committed", []));
  return true;
}

/** False when another worker has taken the job over. */
async function commitBlock(world: Worker, claim: imports.Claim, position: number): Promise<boolean> {
  return world.db.transaction(async (tx) => {
    if (!(await imports.advance(tx, claim, position, LEASE_SECONDS))) return false;
    await imports.commitBlock(tx, claim, { now: new Date(world.clock.now()), position });
    return true;
  });
}

// A block that fails again and again would hold the job forever; after five claims without progress the job says so.
async function giveBack(world: Worker, claim: imports.Claim, error: unknown): Promise<void> {
  if (isUnavailable(error)) throw error;
  world.log.error({ err: error, job_id: claim.id }, "suppressions: a block of an import could not be committed");
  if ((await imports.failedClaims(world.db, claim)) < FAILED_CLAIMS_MAX) {
    await imports.releaseJob(world.db, claim, RETRY_SECONDS, "no progress");
    return;
  }
  const message = "the import failed and stopped; the rows counted as committed stay, the rest were not added";
  await world.db.transaction((tx) =>
    imports.endJob(tx, claim, "failed", [{ row: null, column: null, value: null, message }]),
  );
}

/** Deletes what has expired and folds the counts; bounded work, the rest next time. */
export async function sweepSuppressions(world: Worker): Promise<void> {
  const nowMs = world.clock.now();
  const now = new Date(nowMs);
  await sweep(undefined, () => queries.deleteExpired(world.db, now, SWEEP_ENTRIES_MAX));
  for (const orgId of await queries.orgsToFold(world.db, COUNT_ROWS_MAX)) await queries.foldCounts(world.db, orgId);
  await world.db.transaction(async (tx) => {
    await imports.expireJobs(tx, now, SWEEP_JOBS_MAX);
    await imports.deleteOldJobs(tx, new Date(nowMs - ENDED_LIFE_MS), new Date(nowMs - READING_LIFE_MS), SWEEP_JOBS_MAX);
  });
}
