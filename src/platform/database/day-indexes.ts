// Indexes that only days which are over have: lists of mail are filtered by them, and mail on its way never pays for them. An
// index on a state would cost each change of it a new entry in every index of the row. Made beside those who read and write
// (CONCURRENTLY), a leaf at a time. Row-level security lets nothing but plain columns that are compared whole be conditions of an
// index: searches in texts pass over packed ones (../packed/search.ts).
import { type RoundsWorld, startRounds, sweep } from "../process/rounds.ts";
import type { World } from "../world.ts";
import { type Db, openDb } from "./db.ts";

/** `replaces`: suffixes of indexes of older versions, which are dropped once this one is there. */
type DayIndex = { table: string; suffix: string; columns: string; replaces: string[] };

// `origin`: what is not shown in lists is left out of totals without a look at its row. Orders of received mail: of texts the first
// 200 characters count, as a row of an index has at most 2.7 kB; mail without a text is kept out of that text's index and has one of
// its own, as row-level security lets no condition on a function be one of an index.
const INDEXES: DayIndex[] = [
  {
    table: "message",
    suffix: "by_status_shown",
    columns: "(org_id, status, id) include (origin)",
    replaces: ["by_status", "by_domain", "by_environment"],
  },
  ...received({
    by_status: "(org_id, status, id)",
    by_processed: "(org_id, processed_at, id)",
    by_author: "(org_id, left(lower(from_address), 200), id) where from_address is not null",
    by_recipient: "(org_id, left(lower(recipient), 200), id)",
    by_subject: "(org_id, left(lower(subject), 200), id) where subject is not null",
    by_spam_score: "(org_id, spam_score, id)",
    by_size: "(org_id, size, id)",
    by_lack: "(org_id, id) where from_address is null or subject is null",
  }),
];

function received(indexes: Record<string, string>): DayIndex[] {
  return Object.entries(indexes).map(([suffix, columns]) => ({
    table: "inbound_email",
    suffix,
    columns,
    replaces: [],
  }));
}
/** Building one takes some 3 s a million rows; what takes longer than a statement may would be begun again every hour. */
const ROWS_MAX = 5_000_000;

/** Rows of a table; of one that was never analysed (-1) no more than its size allows, which may be too many. */
const ROWS = `case when c.reltuples >= 0 then c.reltuples else pg_relation_size(c.oid) / 100 end`;

const LOOK_EVERY_MS = 600_000;
/** The advisory lock of the process that builds indexes of days. */
const LOCK = 720_118_043;

type IndexWorld = Pick<World, "clock" | "database_url" | "db">;
type Missing = DayIndex & { leaf: string; isBroken: boolean };

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

/** Builds one index that is missing, or that a process left half built; 0 if every index is there, or another process builds one. */
async function indexOne(world: IndexWorld): Promise<number> {
  if ((await findMissing(world)) === null) return 0;
  return alone(world, async (db) => {
    const missing = await findMissing(world);
    if (missing === null) return 0;
    const { leaf, suffix, columns, replaces, isBroken } = missing;
    const name = `${leaf}_${suffix}`;
    if (isBroken) await db.execute(`drop index concurrently if exists "${name}"`);
    await db.execute(`create index concurrently if not exists "${name}" on "${leaf}" ${columns}`);
    for (const old of replaces) await db.execute(`drop index concurrently if exists "${leaf}_${old}"`);
    return 1;
  });
}

/**
 * On one connection of its own: over a pooler and on Citus, statements of the World run in transactions, in which nothing can be built
 * CONCURRENTLY. Its lock keeps others out: of two that build beside each other, each waits for the other, and one is a deadlock.
 */
async function alone({ database_url }: IndexWorld, work: (db: Db) => Promise<number>): Promise<number> {
  const own = openDb(database_url, { onError: () => undefined, connections_max: 1 });
  try {
    const [lock] = await own.query<{ locked: boolean }>("select pg_try_advisory_lock($1) as locked", [LOCK]);
    if (!lock?.locked) return 0;
    const built = await work(own);
    // A session that is closed may keep its lock for a moment, and the next index would be left for another process to build.
    await own.query("select pg_advisory_unlock($1)", [LOCK]);
    return built;
  } finally {
    await own.close();
  }
}

/** Not of a day in which another process builds one now: such an index looks as if it were left half built. */
async function findMissing({ db, clock }: IndexWorld): Promise<Missing | null> {
  const today = new Date(clock.now()).toISOString().slice(0, 10).replaceAll("-", "");
  for (const index of INDEXES) {
    const { table, suffix } = index;
    const [found] = await db.query<{ leaf: string; is_broken: boolean }>(
      `select c.relname as leaf, x.indexrelid is not null as is_broken
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
         left join pg_index x on x.indexrelid = to_regclass(c.relname || $2)
        where i.inhparent = $1::regclass and right(c.relname, 8) < $3 and ${ROWS} < $4 and x.indisvalid is not true
          and not exists (select from pg_stat_progress_create_index p where p.relid = c.oid)
        order by c.relname desc limit 1`,
      [table, `_${suffix}`, today, ROWS_MAX],
    );
    if (found) return { ...index, leaf: found.leaf, isBroken: found.is_broken };
  }
  return null;
}
