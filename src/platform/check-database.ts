// The database as `postern doctor` sees it: reachable, recent enough, durable, with a role that row-level security binds,
// in time with this machine, and migrated. Reads only.
import pg from "pg";
import type { Config } from "../config.ts";
import { type Check, ok, problem, skipped, warning } from "./check.ts";
import { createClock } from "./clock.ts";
import { databaseFolder } from "./database-folder.ts";
import { runningEmbeddedPostgres } from "./embedded-postgres.ts";
import { readMigrations } from "./migrate.ts";

const OLDEST_POSTGRES = 150_000;
const SKEW_MS_MAX = 1_000;
const CONNECTIONS_MIN = 60;
const ANSWER_MS = 5_000;

/** Reaches the database of these settings and judges it; a database that is not there is a finding, not a failure. */
export async function checkDatabase(config: Pick<Config, "database_url" | "data_dir">): Promise<Check[]> {
  const name = "database";
  const url = config.database_url ?? (await embeddedUrl(config.data_dir));
  if (!url)
    return [
      skipped(name, "The embedded database is not running; Postern starts it.", "Run this again while Postern runs."),
    ];
  const client = new pg.Client({
    connectionString: url,
    options: "-c postern.scope=system",
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await readDatabase(client);
  } catch (error) {
    return [
      problem(
        name,
        `The database does not answer: ${(error as Error).message}.`,
        "Check DATABASE_URL, that the server runs, and that it takes connections from here.",
      ),
    ];
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function embeddedUrl(dataDir: string): Promise<string | null> {
  const { folder } = await databaseFolder(dataDir);
  return (await runningEmbeddedPostgres(folder))?.url ?? null;
}

type Server = {
  version: number;
  full_version: string;
  settings: Record<string, string>;
  is_super: boolean;
  connections_max: number;
  at_ms: number;
};

async function readDatabase(client: pg.Client): Promise<Check[]> {
  const now = createClock({}).now;
  const before = now();
  const { rows } = await client.query<Server>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as full_version,
            (select json_object_agg(name, setting) from pg_settings
              where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums')) as settings,
            (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) as is_super,
            current_setting('max_connections')::int as connections_max,
            (extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms`,
  );
  const server = rows[0] as Server;
  const skewMs = Math.round(server.at_ms - (before + now()) / 2);
  return [
    checkVersion(server),
    ...checkDurability(server),
    checkRole(server),
    checkClock(skewMs),
    await checkSchema(client),
  ];
}

function checkVersion({ version, full_version }: Server): Check {
  if (version >= OLDEST_POSTGRES) return ok("database", `PostgreSQL ${full_version} answers.`);
  return problem(
    "database",
    `PostgreSQL ${full_version} is too old.`,
    "Use 15 or newer, or leave DATABASE_URL out to use the embedded one.",
  );
}

function checkDurability({ settings, connections_max }: Server): Check[] {
  const checks: Check[] = [];
  for (const setting of ["fsync", "full_page_writes"]) {
    if (settings[setting] === "on") continue;
    checks.push(
      problem(
        "durability",
        `${setting} is ${settings[setting]}: accepted mail can be lost in a power cut.`,
        `Set ${setting} = on in postgresql.conf and reload.`,
      ),
    );
  }
  if (settings.synchronous_commit === "off") {
    checks.push(
      warning(
        "durability",
        "synchronous_commit is off on the server; Postern turns it on for its own sessions.",
        "Set synchronous_commit = on.",
      ),
    );
  }
  if (settings.data_checksums !== "on") {
    checks.push(
      warning(
        "durability",
        "Data checksums are off: a disk that returns wrong bytes goes unnoticed.",
        "pg_checksums --enable on the stopped server.",
      ),
    );
  }
  if (connections_max < CONNECTIONS_MIN) {
    checks.push(
      problem(
        "database",
        `max_connections is ${connections_max}; a Postern of all roles uses up to ${CONNECTIONS_MIN}.`,
        "Raise max_connections.",
      ),
    );
  }
  return checks.length > 0 ? checks : [ok("durability", "fsync, full_page_writes and synchronous_commit are on.")];
}

function checkRole({ is_super }: Server): Check {
  if (!is_super) return ok("role", "Row-level security binds the database role.");
  return problem(
    "role",
    "The database role is a superuser or has BYPASSRLS: one of the two walls between organizations is missing.",
    "Use a role without SUPERUSER and BYPASSRLS that owns the database.",
  );
}

function checkClock(skewMs: number): Check {
  const says = `The database's clock is ${Math.abs(skewMs)} ms ${skewMs < 0 ? "behind" : "ahead of"} this machine's.`;
  return Math.abs(skewMs) <= SKEW_MS_MAX
    ? ok("clock", says)
    : warning("clock", says, "Run chrony or systemd-timesyncd on both: signatures and webhooks carry the time.");
}

async function checkSchema(client: pg.Client): Promise<Check> {
  const { rows } = await client.query<{ found: boolean }>(
    "select to_regclass('schema_migration') is not null as found",
  );
  const applied = rows[0]?.found
    ? (await client.query<{ number: number }>("select number from schema_migration")).rows
    : [];
  const known = readMigrations();
  const missing = known.filter(({ number }) => !applied.some((row) => row.number === number));
  const newer = applied.filter(({ number }) => !known.some((migration) => migration.number === number));
  if (newer.length > 0)
    return problem(
      "schema",
      "The database was used by a newer Postern.",
      "Run the newer version; migrations go forward only.",
    );
  if (missing.length === 0) return ok("schema", "The database is up to date.");
  return skipped(
    "schema",
    `${missing.length} of ${known.length} migrations are not applied yet.`,
    "postern start applies them, or: postern migrate",
  );
}
