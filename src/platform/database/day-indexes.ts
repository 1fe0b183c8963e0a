// Indexes that only days which are over have: lists of mail are filtered by them, and mail on its way never pays for them. An
// index on a state would cost each change of it a new entry in every index of the row. Made beside those who read and write
// (CONCURRENTLY), a leaf at a time. Row-level security lets nothing but plain columns that are compared whole be conditions of an
// index: searches in texts read the rows themselves.
import { type RoundsWorld, startRounds, sweep } from "../process/rounds.ts";
import type { World } from "../world.ts";
import { type Db, openDb } from "./db.ts";

type DayIndex = { table: string; suffix: string; columns: string };

const INDEXES: DayIndex[] = [
  { table: "message", suffix: "by_status", columns: "(org_id, status, id)" },
  { table: "message", suffix: "by_domain", columns: "(org_id, domain_id, id)" },
  { table: "message", suffix: "by_environment", columns: "(org_id, environment, id)" },
  { table: "inbound_email", suffix: "by_status", columns: "(org_id, status, id)" },
];
/** Building one takes some 3 s a million rows; what takes longer than a statement may would be begun again every hour. */
const ROWS_MAX = 5_000_000;

const LOOK_EVERY_MS = 600_000;

type IndexWorld = Pick<World, "clock" | "config" | "db">;
type Missing = { leaf: string; name: string; columns: string; isBroken: boolean };

/** Gives days that are over their indexes, the newest first; for the `clock` role. */
export function startDayIndexes(world: IndexWorld & RoundsWorld): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "day indexes",
    every_ms: LOOK_EVERY_MS,
    round: (signal, beat) =>
      sweep(signal, async () => {
        beat();
        return indexOne(world);
      }),
  });
}

/** Every day before today (UTC) has its indexes afterwards. */
export async function indexPastDays(world: IndexWorld): Promise<void> {
  while ((await indexOne(world)) > 0);
}

/** Builds one index that is missing, or that a process left half built; 0 when there is none. */
async function indexOne(world: IndexWorld): Promise<number> {
  const [missing] = await findMissing(world);
  if (missing === undefined) return 0;
  const { leaf, name, columns, isBroken } = missing;
  await directly(world, async (db) => {
    if (isBroken) await db.execute(`drop index concurrently if exists "${name}"`);
    await db.execute(`create index concurrently if not exists "${name}" on "${leaf}" ${columns}`);
  });
  return 1;
}

/** A pooler hands each statement a transaction, in which nothing can be built beside others. */
async function directly<T>({ config, db }: IndexWorld, work: (db: Db) => Promise<T>): Promise<T> {
  if (!config.database_pooler_url || !config.database_url) return work(db);
  const own = openDb(config.database_url, { onError: () => undefined, connections_max: 3 });
  try {
    return await work(own);
  } finally {
    await own.close();
  }
}

async function findMissing({ db, clock }: IndexWorld): Promise<Missing[]> {
  const today = new Date(clock.now()).toISOString().slice(0, 10).replaceAll("-", "");
  const missing: Missing[] = [];
  for (const { table, suffix, columns } of INDEXES) {
    const leaves = await db.query<{ leaf: string; is_valid: boolean | null }>(
      `select c.relname as leaf, (select x.indisvalid from pg_index x where x.indexrelid = to_regclass(c.relname || $2)) as is_valid
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = $1::regclass and right(c.relname, 8) < $3 and c.reltuples < $4
        order by c.relname desc`,
      [table, `_${suffix}`, today, ROWS_MAX],
    );
    for (const { leaf, is_valid } of leaves)
      if (is_valid !== true) missing.push({ leaf, name: `${leaf}_${suffix}`, columns, isBroken: is_valid === false });
  }
  return missing;
}
