// Day partitions: made ahead, dropped by retention. An id's day follows from its UUIDv7 time, so a jump of the clock
// needs partitions for the new day before the first insert: `withPartitions` makes them when an insert finds none.
import type { Config } from "../../config.ts";
import { atMostEvery, type RoundsWorld, startRounds } from "../process/rounds.ts";
import type { World } from "../world.ts";
import { keepUnsampled } from "./citus/unsampled.ts";
import type { Db } from "./db.ts";

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 3;
const LOOK_EVERY_MS = 60_000;
const WORK_EVERY_MS = 3_600_000;
/** Some sixty tables at a first start, each with its indexes, on a slow disk. */
const MAKE_MS = 120_000;
/** So long a day's drop, and with it all who use its table, may wait for who reads it. */
const DROP_WAIT_MS = 200;
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = "55P03";

/** Makes the partitions for yesterday to three days ahead of `now`. Idempotent; safe from several processes. */
export async function makePartitions(db: Db, nowMs: number): Promise<void> {
  const [first, last] = [day(nowMs - DAY_MS), day(nowMs + DAYS_AHEAD * DAY_MS)];
  await db.transaction(async (tx) => {
    await tx.query("select pg_advisory_xact_lock(1886352500)");
    await tx.query(`call make_day_partitions('${first}', '${last}')`);
  }, MAKE_MS);
  const [on] = await db.query<{ citus: boolean; schema: string }>(
    "select postern_is_distributed() as citus, current_schema()::text as schema",
  );
  if (!on?.citus) return;
  const [from, to] = [first.replaceAll("-", ""), last.replaceAll("-", "")];
  await keepUnsampled((text, values) => db.query(text, values), { schema: on.schema, first: from, last: to });
}

/** Runs `insert`; when a day partition is missing (SQLSTATE 23514 on routing), makes it and runs `insert` once more. */
export async function withPartitions<T>(world: Pick<World, "db" | "clock">, insert: () => Promise<T>): Promise<T> {
  try {
    return await insert();
  } catch (error) {
    if (!isMissingPartition(error)) throw error;
    await makePartitions(world.db, world.clock.now());
    return insert();
  }
}

function isMissingPartition(error: unknown): boolean {
  const failure = error as { code?: string; message?: string };
  return failure?.code === "23514" && /no partition of relation/.test(failure.message ?? "");
}

/**
 * Drops partitions whose whole day is older than their retention; returns their names. One that somebody reads is left for
 * another time: what waits to drop it would hold up everybody else at its table.
 */
export async function dropExpiredPartitions(
  world: Pick<World, "db" | "clock">,
  retentionDays: Config["retention_days"],
): Promise<string[]> {
  const rows = await world.db.query<{ leaf: string; retention_class: keyof Config["retention_days"] }>(
    `select c.relname as leaf, d.retention_class
       from day_partitioned d
       join pg_inherits i on i.inhparent = d.table_name::regclass
       join pg_class c on c.oid = i.inhrelid
      order by d.table_name desc, c.relname`, // packed texts (<table>_texts) before what they are of
  );
  const dropped: string[] = [];
  for (const { leaf, retention_class } of rows) {
    const oldest = day(world.clock.now() - (retentionDays[retention_class] + 1) * DAY_MS).replaceAll("-", "");
    if (leaf.slice(-8) >= oldest) continue;
    if (await dropUnread(world.db, leaf)) dropped.push(leaf);
  }
  return dropped;
}

/** False when it is in use, or its table is: dropping asks for ACCESS EXCLUSIVE on both. */
async function dropUnread(db: Db, leaf: string): Promise<boolean> {
  try {
    await db.transaction(async (tx) => {
      await tx.query(`set local lock_timeout = ${DROP_WAIT_MS}`);
      await tx.query(`drop table if exists "${leaf}"`);
    });
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

type PartitionWorld = Pick<World, "db" | "clock" | "config"> & RoundsWorld;

/** Keeps partitions made ahead and drops those past their retention, every hour; for the `clock` role. */
export function startPartitionWork(world: PartitionWorld): { stop(): Promise<void> } {
  const round = atMostEvery(world, WORK_EVERY_MS, async () => {
    await makePartitions(world.db, world.clock.now());
    const dropped = await dropExpiredPartitions(world, world.config.retention_days);
    if (dropped.length > 0) world.log.info({ dropped }, "past their retention");
  });
  return startRounds(world, { name: "partitions", every_ms: LOOK_EVERY_MS, round });
}
