// What a start of this version would do to a database, without doing it: which migrations are open, which tables each locks and
// reads whole, about how long that takes with the rows that are there, and whether older processes may run on beside it. Locks and
// scans are not guessed from the SQL: the migrations run on an empty copy of the schema in a scratch PostgreSQL.
import pg from "pg";
import { type ScratchDatabase, scratchDatabase } from "../postgres/scratch-database.ts";
import { applyMissing, checkDatabase, type Migration, readMigrations } from "./migrate.ts";

export type TableEffect = {
  table: string;
  /** The strongest lock that it holds until its end, as PostgreSQL names it; null: none that anybody waits for. */
  lock: string | null;
  waits: "nobody" | "writes" | "reads and writes";
  /** Every row is read or written. */
  is_read_whole: boolean;
  bytes: number;
  /** Null where a part of it was never analysed. */
  rows: number | null;
};

export type OpenMigration = {
  number: number;
  name: string;
  tables: TableEffect[];
  about_seconds: number;
  /** Why a process of the version before would fail beside it; empty: it may run on. */
  breaks_old: string[];
};

export type UpgradeCheck = {
  applied: number;
  open: OpenMigration[];
  about_seconds: number;
  old_processes_may_run_on: boolean;
};

/** A disk and a processor that nobody would call fast: an index on 1 GB takes half a minute. */
const BYTES_PER_SECOND = 32 * 1024 * 1024;
/** What a migration takes whatever the tables hold. */
const LEAST_SECONDS = 0.1;
const BLOCKS_WRITES = ["ShareLock", "ShareRowExclusiveLock", "ExclusiveLock"];
const LOCKS = [
  ...["AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock"],
  ...[...BLOCKS_WRITES, "AccessExclusiveLock"],
];
/** Any day: it makes one partition of each log, so that what is done to partitions is seen. */
const ONE_DAY = "2001-01-01";

type Column = { table: string; column: string; type: string; needs_value: boolean };

/** Throws where a start would: too old a PostgreSQL, a changed migration, a restore that is not finished. */
export async function checkUpgrade(
  url: string,
  migrations = readMigrations(),
  scratch = scratchDatabase("postern-upgrade"),
): Promise<UpgradeCheck> {
  const client = new pg.Client({ connectionString: url, options: "-c postern.scope=system" });
  try {
    await client.connect();
    const applied = await checkDatabase(client, migrations);
    const missing = migrations.filter(({ number }) => !applied.has(number));
    const done = migrations.filter(({ number }) => applied.has(number));
    const open = missing.length === 0 ? [] : await tryOut(client, scratch, { applied: done, open: missing });
    return {
      applied: applied.size,
      open,
      about_seconds: sumOf(open.map(({ about_seconds }) => about_seconds)),
      old_processes_may_run_on: open.every(({ breaks_old }) => breaks_old.length === 0),
    };
  } finally {
    await client.end();
  }
}

/** On a schema without rows, in `scratch`. */
function tryOut(
  real: pg.Client,
  scratch: ScratchDatabase,
  { applied, open }: { applied: Migration[]; open: Migration[] },
): Promise<OpenMigration[]> {
  return scratch.use(async (url) => {
    const client = new pg.Client({ connectionString: url, options: "-c postern.scope=system" });
    try {
      await client.connect();
      await applyMissing(client, applied);
      if (applied.length > 0) await client.query("call make_day_partitions($1, $1)", [ONE_DAY]);
      const found: OpenMigration[] = [];
      for (const migration of open) found.push(await tryOne(real, client, migration));
      return found;
    } finally {
      await client.end();
    }
  });
}

async function tryOne(real: pg.Client, scratch: pg.Client, { number, name, text }: Migration): Promise<OpenMigration> {
  const before = await columnsOf(scratch);
  const known = new Set(before.map(({ table }) => table));
  await scratch.query("select pg_stat_force_next_flush()"); // else scans of the migration before count as well
  await scratch.query("begin");
  await scratch.query(text);
  const touched = (await touchedTables(scratch)).filter(({ table }) => known.has(table));
  await scratch.query("commit");
  const breaks_old = breaksOf(before, await columnsOf(scratch));
  const tables: TableEffect[] = [];
  for (const { table, locks, is_read_whole } of touched) {
    const lock = locks.toSorted((a, b) => LOCKS.indexOf(b) - LOCKS.indexOf(a))[0] ?? null;
    if (waitsFor(lock) === "nobody" && !is_read_whole) continue;
    tables.push({ table, lock, waits: waitsFor(lock), is_read_whole, ...(await sizeOf(real, table)) });
  }
  const seconds = sumOf(tables.filter((one) => one.is_read_whole).map(({ bytes }) => bytes / BYTES_PER_SECOND));
  return { number, name, tables, about_seconds: Math.max(LEAST_SECONDS, seconds), breaks_old };
}

/**
 * The tables that the transaction under way has touched; partitions count as their table. What builds an index or
 * rewrites a table counts a scan, too.
 */
async function touchedTables(scratch: pg.Client) {
  const { rows } = await scratch.query<{ table: string; locks: string[]; is_read_whole: boolean }>(
    `select coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as table,
            array_agg(distinct l.mode) as locks,
            bool_or(coalesce(x.seq_scan, 0) > 0) as is_read_whole
       from pg_locks l join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
            and c.relnamespace = current_schema()::regnamespace
       left join pg_stat_xact_user_tables x on x.relid = c.oid
      where l.pid = pg_backend_pid() and l.locktype = 'relation' and l.granted
      group by 1 order by 1`,
  );
  return rows;
}

function waitsFor(lock: string | null): TableEffect["waits"] {
  if (lock === "AccessExclusiveLock") return "reads and writes";
  return lock !== null && BLOCKS_WRITES.includes(lock) ? "writes" : "nobody";
}

async function columnsOf(scratch: pg.Client): Promise<Column[]> {
  const { rows } = await scratch.query<Column>(
    `select c.relname::text as table, a.attname::text as column, format_type(a.atttypid, a.atttypmod) as type,
            a.attnotnull and not a.atthasdef and a.attidentity = '' as needs_value
       from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
      where c.relnamespace = current_schema()::regnamespace and a.attnum > 0 and not a.attisdropped`,
  );
  return rows;
}

/** What statements of an older version would miss, or not know that they must give. */
function breaksOf(before: Column[], after: Column[]): string[] {
  const key = ({ table, column }: Column) => `${table}.${column}`;
  const is = new Map(after.map((column) => [key(column), column]));
  const was = new Map(before.map((column) => [key(column), column]));
  const known = new Set(before.map(({ table }) => table));
  return [
    ...before.filter((column) => !is.has(key(column))).map((column) => `${key(column)} is no more`),
    ...before
      .filter((column) => is.has(key(column)) && is.get(key(column))?.type !== column.type)
      .map((column) => `${key(column)} is ${is.get(key(column))?.type}, and was ${column.type}`),
    ...after
      .filter((column) => known.has(column.table) && column.needs_value && !was.get(key(column))?.needs_value)
      .map((column) => `${key(column)} must be given`),
  ];
}

/** With indexes and partitions; 0 where an open migration before makes it. */
async function sizeOf(real: pg.Client, table: string): Promise<{ bytes: number; rows: number | null }> {
  const { rows } = await real.query<{ bytes: number; rows: number | null }>(
    `select coalesce(sum(pg_total_relation_size(p.relid)), 0)::float8 as bytes,
            case when bool_or(c.reltuples < 0 and pg_relation_size(c.oid) > 0) then null
                 else coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 end as rows
       from (select relid from pg_partition_tree(to_regclass($1)) union select to_regclass($1)) p
       join pg_class c on c.oid = p.relid`,
    [table],
  );
  return rows[0] ?? { bytes: 0, rows: 0 };
}

function sumOf(seconds: number[]): number {
  return Math.round(10 * seconds.reduce((sum, one) => sum + one, 0)) / 10;
}
