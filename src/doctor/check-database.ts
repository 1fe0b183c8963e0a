// The database as `postern doctor` sees it: reachable, recent enough, durable, with a role that row-level security binds,
// in time with this machine, and migrated. Reads only.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import type { FoundConfig } from "../config.ts";
import { findPause } from "../outbound/outbound.ts";
import { createClock } from "../platform/clock.ts";
import { databaseTrouble, databaseWords, OWN_IT } from "../platform/database/database-trouble.ts";
import type { Query } from "../platform/database/db.ts";
import { OLDEST_POSTGRES, readMigrations } from "../platform/database/migrate.ts";
import { type DatabasePlace, findDatabase } from "../platform/postgres/database-folder.ts";
import { runningEmbeddedPostgres } from "../platform/postgres/embedded-postgres.ts";
import { NOBODY, userName } from "../platform/postgres/own-user.ts";
import { refuseEmptyDatabase, refuseLostDatabase } from "../platform/storage/data-folder.ts";
import { judgeMasterKey } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { type Check, ok, problem, skipped, warning } from "./check.ts";

const SKEW_MS_MAX = 1_000;
/** Receivers refuse signatures that far in the future, and webhooks that far in the past. */
const SKEW_MS_GRAVE = 300_000;
/**
 * The connections on which a process with all roles listens: for notifications of mail, webhooks, readers of events and
 * certificates.
 */
const LISTENING = 4;
/** The role `api` has a second process, for heavy requests, which opens as many for itself. */
const PROCESSES = 2;
const ANSWER_MS = 5_000;

type DatabaseConfig = Pick<
  FoundConfig,
  "database_url" | "database_pooler_url" | "database_connections" | "data_dir" | "master_key" | "testing"
>;

/** Reaches the database of these settings and judges it; a database that is not there is a finding, not a failure. */
export async function checkDatabase(config: DatabaseConfig): Promise<Check[]> {
  if (config.database_url) return judge(config.database_url, config);
  let place: DatabasePlace | null;
  try {
    place = await findDatabase(config.data_dir);
  } catch (error) {
    return [problem("database", (error as Error).message, "Until then Postern does not start.")];
  }
  if (place === null) {
    const none = skipped("database", "There is no embedded database yet; the first start makes it.");
    return [(await refusedBy(refuseLostDatabase(config.data_dir, async () => false))) ?? none];
  }
  const url = (await runningEmbeddedPostgres(place.folder).catch(() => null))?.url;
  const found = url ? await judge(url, config) : [notRunning(place)];
  return [...whereItLies(place), ...(await whoReads(place)), ...found];
}

/** What a start is refused for. */
function refusedBy(refusal: Promise<void>): Promise<Check | null> {
  return refusal.then(
    () => null,
    (error: Error) => problem("database", error.message, "Until then Postern does not start."),
  );
}

function whereItLies({ folder, moved, unused }: DatabasePlace): Check[] {
  const place = ok("database", `Its files are in ${folder}${moved ? ", not in the data folder: back up both" : ""}.`);
  if (unused === null) return [place];
  const says = `There is a second database of this data folder in ${unused}; it is not used.`;
  return [place, warning("database", says, "Look into both before you remove either.")];
}

async function whoReads({ folder }: DatabasePlace): Promise<Check[]> {
  const owner = await stat(join(folder, "cluster")).catch(() => null);
  if (owner === null || process.platform === "win32") return [];
  const name = await userName(owner.uid);
  if (owner.uid !== NOBODY) return [ok("database", `Its files can be read by processes of ${name} and of root.`)];
  const says = `Its files can be read by every process of ${name}, a user that other services run as too.`;
  return [warning("database", says, "Start Postern as root once: it gives them to a user of their own.")];
}

function notRunning({ folder }: DatabasePlace): Check {
  const says = "The embedded database is not running, or is another user's; Postern starts it.";
  return skipped("database", says, `Run this again while Postern runs, as the user that owns ${folder} or as root.`);
}

async function judge(url: string, config: DatabaseConfig): Promise<Check[]> {
  let client: pg.Client | null = null;
  try {
    // Reads the files that the URL names.
    client = new pg.Client({
      connectionString: url,
      options: "-c postern.scope=system",
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    client.on("error", () => undefined);
    await client.connect();
    const found = [...(await readDatabase(client, config)), ...(await checkKey(client, config))];
    const isUpToDate = found.some(({ name, status }) => name === "schema" && status === "ok");
    return isUpToDate ? [...found, ...(await checkSending(client))] : found;
  } catch (error) {
    const { remedy } = databaseTrouble(error);
    const otherwise = "Check DATABASE_URL, that the server runs, and that it takes connections from here";
    return [problem("database", `The database ${databaseWords(error)}.`, `${remedy ?? otherwise}.`)];
  } finally {
    await client?.end().catch(() => undefined);
  }
}

/** Checks that the master key of these settings is the one that the database's secrets are sealed with. */
async function checkKey(client: pg.Client, { master_key, data_dir }: DatabaseConfig): Promise<Check[]> {
  const { rows } = await client.query<{ found: boolean }>("select to_regclass('master_key') is not null as found");
  // Without a key none is right: any other one tells whether the database knows one.
  const key = master_key ?? Buffer.alloc(32);
  const found = rows[0]?.found ? await judgeMasterKey(readingOnly(client), key) : "unknown";
  if (found === "unknown") {
    const refused = await refusedBy(refuseEmptyDatabase(data_dir, async () => true));
    return refused ? [refused] : [];
  }
  if (found === "right") return [ok("master key", "It is the one that the database was sealed with.")];
  return [
    problem(
      "master key",
      master_key === null
        ? "There is no master key here, and the database was sealed with one."
        : "The database was sealed with another master key: Postern does not start with this one.",
      `Set POSTERN_MASTER_KEY to that key (after a rotation, to the new one), or put your copy of it back as ${data_dir}/master.key.`,
    ),
  ];
}

/** A restored backup or a copy sends nothing until somebody says so. */
async function checkSending(client: pg.Client): Promise<Check[]> {
  const pause = await findPause(readingOnly(client));
  if (pause === null) return [];
  const says = `Sending is paused, and all mail waits: ${pause.reason}.`;
  return [problem("sending", says, "Look at GET /v1/emails?status=queued, then: postern resume")];
}

function readingOnly(client: pg.Client): Query {
  return {
    query: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows as Row[],
    execute: () => Promise.reject(new Error("the doctor changes nothing")),
  };
}

type Server = {
  version: number;
  full_version: string;
  settings: Record<string, string>;
  is_super: boolean;
  /** For roles without superuser rights. */
  connections_max: number;
  at_ms: number;
};

async function readDatabase(client: pg.Client, config: DatabaseConfig): Promise<Check[]> {
  const { testing, database_pooler_url: pooler, database_connections } = config;
  const now = createClock({ offsetFile: testing.clock_file }).now;
  const before = now();
  const { rows } = await client.query<Server>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as full_version,
            (select json_object_agg(name, setting) from pg_settings
              where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums')) as settings,
            (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) as is_super,
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
              - coalesce(current_setting('reserved_connections', true), '0')::int as connections_max,
            (extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms`,
  );
  const server = rows[0] as Server;
  const skewMs = Math.round(server.at_ms - (before + now()) / 2);
  return [
    checkVersion(server),
    ...checkDurability(server),
    ...checkConnections(server.connections_max, LISTENING + (pooler ? 0 : PROCESSES * database_connections)),
    checkRole(server),
    checkClock(skewMs),
    await checkSchema(client),
  ];
}

function checkVersion({ version, full_version }: Server): Check {
  if (version >= OLDEST_POSTGRES * 10_000) return ok("database", `PostgreSQL ${full_version} answers.`);
  return problem(
    "database",
    `PostgreSQL ${full_version} is too old.`,
    `Use ${OLDEST_POSTGRES} or newer, or leave DATABASE_URL out to use the embedded one.`,
  );
}

function checkDurability({ settings }: Server): Check[] {
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
  return checks.length > 0 ? checks : [ok("durability", "fsync, full_page_writes and synchronous_commit are on.")];
}

/** Exported for its test: `max` is what roles without superuser rights may have, `used` what a process has of them. */
export function checkConnections(max: number, used: number): Check[] {
  if (max >= used) return [];
  const says = `The server takes ${max} connections; Postern with all roles uses up to ${used}.`;
  const remedy = `Raise max_connections to ${used} for each such node, and some in reserve, or lower POSTERN_DATABASE_CONNECTIONS.`;
  return [problem("database", says, remedy)];
}

function checkRole({ is_super }: Pick<Server, "is_super">): Check {
  if (!is_super) return ok("role", "Row-level security binds the database role.");
  return problem(
    "role",
    "The database role is a superuser or has BYPASSRLS: one of the two walls between organizations is missing.",
    "Use a role without SUPERUSER and BYPASSRLS that owns the database.",
  );
}

function checkClock(skewMs: number): Check {
  const away = Math.abs(skewMs);
  const amount = away < 10_000 ? `${away} ms` : `${Math.round(away / 1_000)} s`;
  const says = `The database's clock is ${amount} ${skewMs < 0 ? "behind" : "ahead of"} this machine's.`;
  const remedy = "Run chrony or systemd-timesyncd on both: signatures, certificates and webhooks carry the time.";
  if (away <= SKEW_MS_MAX) return ok("clock", says);
  return (away > SKEW_MS_GRAVE ? problem : warning)("clock", says, remedy);
}

async function checkSchema(client: pg.Client): Promise<Check> {
  const { rows } = await client.query<{ found: boolean; may_create: boolean }>(
    `select to_regclass('schema_migration') is not null as found,
            coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as may_create`,
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
  if (!rows[0]?.may_create) return problem("schema", "The database role may make no tables.", `${OWN_IT}.`);
  return skipped(
    "schema",
    `${missing.length} of ${known.length} migrations are not applied yet.`,
    "postern start applies them, or: postern migrate",
  );
}

/** Says at the start that the role of DATABASE_URL passes by row-level security. */
export async function warnOfRole(world: Pick<World, "db" | "log">): Promise<void> {
  const [role] = await world.db.query<{ is_super: boolean }>(
    "select rolsuper or rolbypassrls as is_super from pg_roles where rolname = current_user",
  );
  if (!role?.is_super) return;
  const check = checkRole({ is_super: true });
  world.log.warn({ remedy: check.remedy }, check.says);
}
