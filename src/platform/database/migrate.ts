// Numbered, immutable, forward-only migrations (migrations/NNNN_name.sql), applied one transaction each under an
// advisory lock, so that any number of processes may start at once. A changed file is refused by its checksum.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { BEGIN_AS_SYSTEM } from "./session-settings.ts";

const FOLDER = resolve(fileURLToPath(import.meta.url), "../../../../migrations");
const LOCK = 0x706f7374; // "post"
/** The oldest major version of PostgreSQL that will do. */
export const OLDEST_POSTGRES = 15;

export type Migration = { number: number; name: string; text: string; checksum: string };

/** The migrations in `folder`, in order. Throws when a number is there twice. */
export function readMigrations(folder: string = FOLDER): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => /^\d{4}_[a-z0-9_]+\.sql$/.test(file))
    .sort();
  return files.map((file, index) => {
    const number = Number(file.slice(0, 4));
    if (files[index + 1]?.startsWith(file.slice(0, 4))) throw new Error(`migrations: number ${number} is there twice`);
    const text = readFileSync(join(folder, file), "utf8");
    return { number, name: file.slice(5, -4), text, checksum: createHash("sha256").update(text).digest("hex") };
  });
}

/** Brings the database at `url` up to date; returns the names of what it applied (empty when nothing was to do). */
export async function migrate(url: string, folder: string = FOLDER): Promise<string[]> {
  return (await migrateNoting(url, folder)).applied;
}

/** The same; `newer`: in words, that a newer Postern has run on it. Beside that one this version may still run. */
export async function migrateNoting(
  url: string,
  folder: string = FOLDER,
): Promise<{ applied: string[]; newer: string | null }> {
  const client = new pg.Client({ connectionString: url, options: "-c postern.scope=system" });
  try {
    await client.connect();
    await checkVersion(client);
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await refuseRestoring(client);
    const known = readMigrations(folder);
    const applied = await applyMissing(client, known);
    return { applied, newer: await newerThan(client, known) };
  } finally {
    await client.end();
  }
}

async function newerThan(client: pg.Client, known: Migration[]): Promise<string | null> {
  const { rows } = await client.query<{ number: number; name: string }>(
    "select number, name from schema_migration where number <> all($1) order by number desc limit 1",
    [known.map(({ number }) => number)],
  );
  const [last] = rows;
  return last ? `the database has migration ${last.number} (${last.name}): a newer Postern has run on it.` : null;
}

async function checkVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select current_setting('server_version_num')::int as version");
  if (rows[0].version < OLDEST_POSTGRES * 10_000) {
    throw new Error(
      `PostgreSQL ${OLDEST_POSTGRES} or newer is needed; this server reports ${rows[0].version}. Upgrade it first.`,
    );
  }
}

/** What `schema_migration` is called while a restore fills the database: it is not to be started on. */
export const RESTORING = "schema_migration_restoring";

/** Applies these to an empty database, as they were when a backup was made. Throws where one is unknown here, or was another. */
export async function applyThese(client: pg.Client, wanted: { number: number; checksum: string }[]): Promise<void> {
  const known = new Map(readMigrations().map((migration) => [migration.number, migration]));
  const migrations = wanted.map(({ number, checksum }) => {
    const migration = known.get(number);
    if (migration?.checksum === checksum) return migration;
    throw new Error(
      `the backup has migration ${number} as this Postern does not know it: restore it with the version that made it, or a newer one.`,
    );
  });
  await applyMissing(client, migrations);
}

/**
 * The numbers of what is applied to the database, of which nothing is changed. Throws where a start of this version would, and where the
 * database has what this version does not know.
 */
export async function checkDatabase(client: pg.Client, migrations: Migration[]): Promise<Set<number>> {
  await checkVersion(client);
  await refuseRestoring(client);
  const { rows: found } = await client.query("select to_regclass('schema_migration') is not null as is_there");
  if (!found[0].is_there) return new Set();
  const { rows: applied } = await client.query<{ number: number; name: string; checksum: string }>(
    "select number, name, checksum from schema_migration order by number",
  );
  const known = new Map(migrations.map((migration) => [migration.number, migration]));
  for (const { number, name, checksum } of applied) {
    const own = known.get(number);
    if (!own) throw new Error(`the database has migration ${number} (${name}): a newer Postern has run on it.`);
    if (own.checksum !== checksum) throw changed(own);
  }
  return new Set(applied.map(({ number }) => number));
}

function changed({ number, name }: Migration): Error {
  return new Error(`migration ${number} (${name}) was changed after it had been applied`);
}

async function refuseRestoring(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select to_regclass($1) is not null as restoring", [RESTORING]);
  if (rows[0].restoring) {
    throw new Error("a restore into this database was begun and has not finished: run postern restore again.");
  }
}

/** Applies the migrations that the database does not have; answers their names. */
export async function applyMissing(client: pg.Client, migrations: Migration[]): Promise<string[]> {
  await client.query(`create table if not exists schema_migration (
    number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await client.query("select number, checksum from schema_migration");
  const applied = new Map(rows.map((row) => [row.number as number, row.checksum as string]));
  const done: string[] = [];
  for (const migration of migrations) {
    const checksum = applied.get(migration.number);
    if (checksum === undefined) {
      await apply(client, migration);
      done.push(migration.name);
    } else if (checksum !== migration.checksum) {
      throw changed(migration);
    }
  }
  return done;
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query(BEGIN_AS_SYSTEM);
  try {
    await client.query(migration.text);
    await client.query("insert into schema_migration (number, name, checksum) values ($1, $2, $3)", [
      migration.number,
      migration.name,
      migration.checksum,
    ]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration ${migration.number} (${migration.name}): ${(error as Error).message}`, { cause: error });
  }
}
