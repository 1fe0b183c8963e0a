// `postern restore`: makes the schema as the backup had it, fills it, brings it up to date, and leaves sending paused
// (decision 0017): mail of its queue has left since. A database that holds anything is refused unless the operator says that
// it may be replaced. Until all is there, no Postern starts on the database.
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { pauseRestored } from "../outbound/outbound.ts";
import type { Clock } from "../platform/clock.ts";
import { isDistributed } from "../platform/database/citus/cells.ts";
import { applyThese, migrate, RESTORING } from "../platform/database/migrate.ts";
import type { Blobs } from "../platform/storage/blobs.ts";
import { openRing } from "../platform/storage/key-ring.ts";
import { masterKeyCheck, type Progress } from "./backup.ts";
import { type Keys, open } from "./envelope.ts";
import type { BackupHead, TableHead } from "./frames.ts";
import { type ReadTable, takeBackup } from "./read.ts";
import type { Target } from "./store.ts";
import { asQuery, connect, copyIn, quoted } from "./tables.ts";

export type RestoreWorld = { database_url: string; blobs: Pick<Blobs, "put" | "exists">; clock: Clock };
export type RestoreOptions = {
  target: Target;
  keys: Keys;
  /** Null: any master key will do, as in a trial of the backup. */
  master_key: Buffer | null;
  /** Rows that are there may go. */
  replace: boolean;
  progress: Progress;
};
export type RestoreResult = {
  created_at: string;
  tables: number;
  rows: number;
  bodies: number;
  /** Named by rows and neither in the backup nor in the store. */
  bodies_missing: number;
  migrations_applied: string[];
  seconds: number;
};

/** Restores, brings the schema up to date and pauses sending. Throws before anything is changed where it can. */
export async function restoreBackup(world: RestoreWorld, options: RestoreOptions): Promise<RestoreResult> {
  const startedAtMs = world.clock.monotonic();
  // A damaged backup must not cost the rows that are there, nor a store that keeps nothing of it.
  if (options.replace) await readThrough(world, options);
  const { head, end, tables, bodies } = await fillDatabase(world, options);
  const migrations_applied = await migrate(world.database_url);
  const reason = `it was restored from the backup of ${head.created_at}, and mail in its queue may have left since`;
  const client = await connect(world.database_url);
  await pauseRestored(asQuery(client), reason).finally(() => client.end());
  return {
    created_at: head.created_at,
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    bodies,
    bodies_missing: end.bodies_missing.length,
    migrations_applied,
    seconds: Math.round((world.clock.monotonic() - startedAtMs) / 100) / 10,
  };
}

/** The schema and the rows of the backup as they were, without later migrations. */
export async function fillDatabase(world: RestoreWorld, options: RestoreOptions) {
  const { progress } = options;
  const client = await connect(world.database_url);
  const done = { rows: 0, bodies: 0, bytes: 0 };
  try {
    const taken = await takeBackup(opened(options), {
      async head(head) {
        refuseOtherKey(head, options.master_key);
        await refuseCell(world.database_url);
        await refuseFull(client, options.replace);
        await makeSchema(client, head);
      },
      async table(head, rows) {
        progress({ step: head.table, ...done });
        done.rows += await fillTable(client, head, rows);
      },
      async body(_key, bytes) {
        progress({ step: "large bodies", ...done });
        await world.blobs.put(bytes);
        done.bodies += 1;
        done.bytes += bytes.length;
      },
    });
    await finish(client, taken.tables, taken.end.sequences);
    return { ...taken, bodies: done.bodies };
  } finally {
    await client.end();
  }
}

function opened({ target, keys }: Pick<RestoreOptions, "target" | "keys">): AsyncIterable<Buffer> {
  return open(target.read(), keys);
}

/** Every byte of the backup is looked at, and nothing done with it, but that the store gets one of the large bodies. */
async function readThrough({ blobs }: RestoreWorld, options: RestoreOptions): Promise<void> {
  let isTried = false;
  await takeBackup(opened(options), {
    head: async (head) => refuseOtherKey(head, options.master_key),
    table: async (_head, rows) => {
      for await (const _bytes of rows);
    },
    async body(_key, bytes) {
      if (!isTried) await blobs.put(bytes);
      isTried = true;
    },
  });
}

function refuseOtherKey(head: BackupHead, masterKey: Buffer | null): void {
  if (masterKey === null) return;
  const rings = (head.key_ring ?? []).map(({ master_key, sealed }) => ({
    master_key: Buffer.from(master_key, "hex"),
    sealed: Buffer.from(sealed, "hex"),
  }));
  const root = rings.length > 0 ? openRing(masterKey, rings)?.root : masterKey;
  if (root && head.master_key_check === masterKeyCheck(root)) return;
  throw new Error(
    "the backup was made under another master key, without which DKIM keys and webhook secrets cannot be opened: set POSTERN_MASTER_KEY to the key of that time, or put your copy of master.key into the data folder. If it is lost for good, restore with --other-master-key, then run postern accept-master-key.",
  );
}

// The target ---------------------------------------------------------------------------------------------------------

/** What is restored lies in a schema of the name `public`, which is never a cell. */
async function refuseCell(url: string): Promise<void> {
  if (await isDistributed(url))
    throw new Error(
      "Citus keeps this database's schema: restore into a database of one PostgreSQL. docs/scaling.md says how to give that to Citus.",
    );
}

async function refuseFull(client: pg.Client, replace: boolean): Promise<void> {
  const { rows: others } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  );
  if ((others[0]?.n ?? 0) > 0) {
    throw new Error("others are connected to this database: stop every Postern process of it first.");
  }
  const names = await relationsOf(client);
  if (names.includes(RESTORING) || names.length === 0) return;
  if (!names.includes("schema_migration")) {
    throw new Error("the database has tables that are not Postern's: make an empty one, and name it in DATABASE_URL.");
  }
  if (replace) return;
  const { rows: holders } = await client.query<{ name: string }>(
    `select table_name::text as name from information_schema.columns
      where table_schema = 'public' and column_name = 'org_id' and table_name = any($1)`,
    [names],
  );
  for (const { name } of holders) {
    const { rowCount } = await client.query(`select from ${quoted(name)} where org_id is not null limit 1`);
    if (rowCount) {
      throw new Error(
        "the database is not empty: restore into an empty one, or say --replace, and all that it holds is lost.",
      );
    }
  }
}

async function relationsOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname::text as name from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
        and not relispartition and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')`,
  );
  return rows.map(({ name }) => name);
}

/** Empty, with the schema that the backup had. Other processes see that a restore is under way. */
async function makeSchema(client: pg.Client, head: BackupHead): Promise<void> {
  for (const name of await relationsOf(client)) await client.query(`drop table if exists ${quoted(name)} cascade`);
  const { rows } = await client.query<{ routine: string }>(
    `select oid::regprocedure::text as routine from pg_proc p where pronamespace = 'public'::regnamespace
        and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')`,
  );
  for (const { routine } of rows) await client.query(`drop routine if exists ${routine} cascade`);
  await applyThese(client, head.migrations);
  await client.query(`alter table schema_migration rename to ${RESTORING}`);
  for (const day of head.days) await client.query("call make_day_partitions($1, $1)", [day]);
  // Migrations have put rows of their own there; those of the backup take their place.
  const names = (await relationsOf(client)).filter((name) => name !== RESTORING);
  await client.query(`truncate ${names.map(quoted).join(", ")}`);
}

/** COPY does not pass row-level security, and triggers would count rows that are counted already. */
async function fillTable(client: pg.Client, head: TableHead, rows: AsyncIterable<Buffer>): Promise<number> {
  const table = { name: head.table, columns: head.columns };
  const name = quoted(table.name);
  const { rows: found } = await client.query<{ forced: boolean }>(
    "select relforcerowsecurity as forced from pg_class where oid = to_regclass($1)",
    [table.name],
  );
  await client.query("begin");
  try {
    await client.query(`alter table ${name} disable trigger user`);
    if (found[0]?.forced) await client.query(`alter table ${name} no force row level security`);
    const copy = client.query(copyFrom(copyIn(table)));
    await pipeline(Readable.from(rows, { objectMode: false }), copy);
    if (found[0]?.forced) await client.query(`alter table ${name} force row level security`);
    await client.query(`alter table ${name} enable trigger user`);
    await client.query("commit");
    return copy.rowCount;
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

async function finish(client: pg.Client, tables: ReadTable[], sequences: { name: string; value: string }[]) {
  for (const { name, value } of sequences) await client.query("select setval($1::regclass, $2)", [quoted(name), value]);
  for (const { table } of tables) await client.query(`analyze ${quoted(table)}`);
  await client.query(`alter table ${RESTORING} rename to schema_migration`);
}

/** A store that keeps nothing: for looking at a backup. The reader has compared each body with its key. */
export const NO_STORE: RestoreWorld["blobs"] = {
  put: async (bytes) => createHash("sha256").update(bytes).digest("hex"),
  exists: async () => true,
};
