// A cell: the schema of one Postern as Citus places it, whole, on one of its servers, and moves it to another while it is used. Every
// statement touches one server, so that statements stay as they are. Several cells of one Citus have a role and a Postern each, which
// know nothing of each other. Not here: which organization lives in which cell (its Postern knows).
import pg from "pg";
import { sleep } from "../../clock.ts";
import { migrate } from "../migrate.ts";
import { keepUnsampled } from "./unsampled.ts";

export type Cell = { name: string; host: string; port: number; bytes: number; tables: number };
export type Server = { host: string; port: number };

const ANSWER_MS = 10_000;
/** How long one cell with millions of rows may take to be copied to another server. */
const MOVE_MS = 24 * 3_600_000;

/** True if Citus keeps this schema's tables. False for a PostgreSQL without it, and before the first migration. */
export function isDistributed(url: string): Promise<boolean> {
  return withClient(url, ANSWER_MS, distributed);
}

/** The schema that Postern's tables are in: `public`, and the one that it was given to Citus as. */
export function schemaOf(url: string): Promise<string> {
  return withClient(url, ANSWER_MS, async (client) => {
    if (!(await distributed(client))) return "public";
    return (await client.query<{ name: string }>("select current_schema()::text as name")).rows[0]?.name ?? "public";
  });
}

async function distributed(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query("select to_regproc('postern_is_distributed') is not null as known");
  if (!rows[0].known) return false;
  return (await client.query("select postern_is_distributed() as is_so")).rows[0].is_so;
}

/** Why a command cannot be done, in sentences for the operator. */
export class CellProblem extends Error {}

/** The schemas that Citus places for this role, and the servers that it may place them on. */
export function listCells(url: string): Promise<{ cells: Cell[]; servers: Server[] }> {
  return withClient(url, ANSWER_MS, async (client) => {
    await needCitus(client);
    const cells = await client.query<Cell>(
      `select c.relnamespace::regnamespace::text as name, s.nodename as host, s.nodeport as port,
              coalesce(sum(s.shard_size), 0)::bigint as bytes, count(*)::int as tables
         from citus_shards s join pg_class c on c.oid = s.table_name
        where s.citus_table_type = 'schema' group by 1, 2, 3 order by 1`,
    );
    const servers = await client.query<Server>(
      "select nodename as host, nodeport as port from pg_dist_node where isactive and shouldhaveshards order by nodeid",
    );
    return { cells: cells.rows, servers: servers.rows };
  });
}

/**
 * Gives the schema of this database to Citus, which puts it on one of its servers. Nothing may use it meanwhile. A schema of the name
 * `public` cannot be given: it gets the role's name, under which PostgreSQL finds it.
 */
export function distribute(url: string): Promise<string> {
  return withClient(url, MOVE_MS, async (client) => {
    await needCitus(client);
    if (await distributed(client)) throw new CellProblem("Citus keeps this database's schema already.");
    const { rows } = await client.query("select to_regclass('schema_migration') is not null as is_there");
    if (!rows[0].is_there) throw new CellProblem("There is no schema yet: run postern migrate first.");
    await refuseUsers(client);
    return await give(client);
  });
}

async function give(client: pg.Client): Promise<string> {
  await client.query("begin");
  await leavePublic(client);
  await client.query(DROP_TRIGGERS);
  await client.query(LOG_ALL);
  await client.query(REWRITE_POLICIES);
  const { rows: named } = await client.query<{ name: string }>("select current_schema()::text as name");
  const { rows: walled } = await client.query<{ name: string }>(WALLED);
  for (const { name } of walled) await client.query(`alter table ${name} no force row level security`);
  await client.query(numberAgain("webhook_event"));
  await client.query("select citus_schema_distribute(current_schema()::regnamespace)");
  for (const { name } of walled) await client.query(`alter table ${name} force row level security`);
  await client.query("commit");
  const schema = named[0]?.name ?? "";
  await unsample(client, schema);
  return schema;
}

async function unsample(client: pg.Client, schema: string): Promise<void> {
  await keepUnsampled(async (text, values) => (await client.query(text, [...values])).rows, { schema });
}

const NAME = /^(?!pg_)[a-z][a-z0-9_]{0,62}$/;

/**
 * Makes an empty cell: a role of this name and password, which may use nothing but its own schema, and the schema, brought up to date and
 * given to Citus. Answers the address for the processes of its Postern. What was begun is removed where it fails.
 */
export async function addCell(url: string, { name, password }: { name: string; password: string }): Promise<string> {
  if (!NAME.test(name) || name === "public")
    throw new CellProblem(`"${name}" cannot be a cell's name: lower-case letters, digits and _, the first a letter.`);
  const own = new URL(url);
  own.username = name;
  own.password = password;
  await withClient(url, ANSWER_MS, (client) => makeRole(client, name, password));
  try {
    await migrate(own.href);
    await withClient(own.href, MOVE_MS, give);
  } catch (error) {
    await withClient(url, MOVE_MS, async (client) => {
      await client.query(`drop schema ${name} cascade`);
      await client.query(`drop role ${name}`);
    }).catch(() => undefined);
    throw error;
  }
  return own.href;
}

/** Citus makes both on its other servers, too. */
async function makeRole(client: pg.Client, name: string, password: string): Promise<void> {
  await needCitus(client);
  const { rows } = await client.query<{ rolsuper: boolean; taken: boolean }>(
    `select rolsuper, to_regrole($1) is not null or to_regnamespace($1) is not null as taken
       from pg_roles where rolname = current_user`,
    [name],
  );
  if (!rows[0]?.rolsuper)
    throw new CellProblem("A role is made for the cell: name a superuser in DATABASE_URL for this command.");
  if (rows[0].taken) throw new CellProblem(`There is a role or a schema ${name} already.`);
  await client.query("begin");
  await client.query(`create role ${name} login password ${pg.escapeLiteral(password)}`);
  await client.query(`create schema ${name} authorization ${name}`);
  await client.query("commit");
}

/**
 * Moves a cell to another server while it is used: writing stops for the moment of the switch. Citus copies with the rights of this
 * role, in sessions of its own. From a role that row-level security binds the copy would see no row: the tables would arrive empty,
 * without an error.
 */
export function moveCell(url: string, { name, to }: { name: string; to: Server }): Promise<void> {
  return withClient(url, MOVE_MS, async (client) => {
    await needCitus(client);
    const { rows } = await client.query(
      "select rolsuper or rolbypassrls as sees_all from pg_roles where rolname = current_user",
    );
    if (!rows[0].sees_all) throw new CellProblem(SEES_TOO_LITTLE);
    const move = "select citus_schema_move($1::regnamespace, $2, $3, shard_transfer_mode => 'auto')";
    await letReplicate(url, () => onceClean(() => client.query(move, [name, to.host, to.port])));
    await unsample(client, name);
    await client.query(numberAgain(`${name}.webhook_event`));
  });
}

/**
 * Events that wait for their readers have the numbers of transactions of the server that they come from: of one that counted further,
 * nobody would see them here. They come first, by their ids, before all that is written from now on.
 */
function numberAgain(table: string): string {
  return `update ${table} set listened = '3' where listened is not null`;
}

/**
 * A cell that was there before leaves its old tables there until nobody reads them any more. Citus removes them before it moves
 * the cell back, and refuses where it cannot yet.
 */
async function onceClean(move: () => Promise<unknown>): Promise<void> {
  for (const until = performance.now() + CLEAN_MS; ; await sleep(CLEAN_EVERY_MS)) {
    try {
      await move();
      return;
    } catch (error) {
      if (!LEFT_OVER.test((error as Error).message) || performance.now() > until) throw error;
    }
  }
}

const LEFT_OVER = /^shard move failed as the orphaned shard/;
const CLEAN_MS = 120_000;
const CLEAN_EVERY_MS = 2_000;

/**
 * Citus brings what is written during a move to the new server as a role that it makes for this move. PostgreSQL lets no role that
 * row-level security binds write there ("cannot replicate into relation with row-level security enabled"), and tries again every 5 s: the
 * move would never end. So that role, which goes when the move ends, is freed of it as soon as it is there.
 */
async function letReplicate(url: string, move: () => Promise<unknown>): Promise<void> {
  const ended = new AbortController();
  const freeing = withClient(url, ANSWER_MS, async (client) => {
    while (!ended.signal.aborted) {
      await client.query("select run_command_on_workers($1)", [FREE_REPLICATION]).catch(() => undefined);
      await sleep(FREE_EVERY_MS, ended.signal);
    }
  });
  try {
    await move();
  } finally {
    ended.abort();
    await freeing.catch(() => undefined);
  }
}

const FREE_EVERY_MS = 500;
const FREE_REPLICATION = `do $$ declare found record; begin
  set local citus.enable_alter_role_propagation = off;
  for found in select distinct rolname from pg_subscription join pg_roles r on r.oid = subowner
      where subname like 'citus\\_shard\\_move\\_%' and not rolsuper and not rolbypassrls loop
    execute format('alter role %I bypassrls', found.rolname);
  end loop; end $$`;

const SEES_TOO_LITTLE =
  "Citus copies with the rights of the role of DATABASE_URL, and row-level security hides the rows from this one: name a superuser in DATABASE_URL for this command.";

async function needCitus(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select extversion from pg_extension where extname = 'citus'");
  if (rows.length === 0)
    throw new CellProblem("The database has no extension citus: DATABASE_URL must name a Citus coordinator.");
}

async function refuseUsers(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
        and backend_type = 'client backend'`,
  );
  const n = rows[0]?.n ?? 0;
  if (n > 0) throw new CellProblem(`${n} sessions use this database: stop every process of Postern first.`);
}

async function leavePublic(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ schema: string; role: string }>(
    "select current_schema()::text as schema, current_user::text as role",
  );
  const [found] = rows;
  if (found?.schema !== "public") return;
  await client.query(`alter schema public rename to ${pg.escapeIdentifier(found.role)}`);
  await client.query("create schema public");
}

/** COPY, by which rows go to their server, passes no row-level security that binds the owner. */
const WALLED = `select oid::regclass::text as name from pg_class
  where relforcerowsecurity and relnamespace = current_schema()::regnamespace order by 1`;
const TABLES = "where not tgisinternal and relnamespace = current_schema()::regnamespace";
/** Kept for processes of versions before migration 215: there are none left. */
const DROP_TRIGGERS = `do $$ declare found record; begin
  for found in select tgname, tgrelid::regclass as relation from pg_trigger join pg_class c on c.oid = tgrelid ${TABLES} loop
    execute format('drop trigger %I on %s', found.tgname, found.relation);
  end loop; end $$`;

/** What is not logged cannot be moved while it is used. */
const LOG_ALL = `do $$ declare found record; begin
  for found in select oid::regclass as relation from pg_class
      where relpersistence = 'u' and relkind = 'r' and relnamespace = current_schema()::regnamespace loop
    execute format('alter table %s set logged', found.relation);
  end loop; end $$`;

const POLICIES = `select polname, polrelid::regclass as relation, pg_get_expr(polqual, polrelid) as wall
  from pg_policy join pg_class c on c.oid = polrelid where relnamespace = current_schema()::regnamespace`;
/** Without inner selects. Of `person` the select on `membership` is left to the statements, which all have it (decision 38). */
const REWRITE_POLICIES = `do $$ declare found record; begin
  for found in ${POLICIES} loop
    execute format('alter policy %I on %s using (%s)', found.polname, found.relation,
      case when found.wall ~ 'membership' then '(postern_system() or postern_org() is not null)'
           else regexp_replace(found.wall, '\\(\\s*SELECT (postern_\\w+)\\(\\) AS \\w+\\)', '\\1()', 'g') end);
  end loop; end $$`;

async function withClient<T>(url: string, answerMs: number, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: ANSWER_MS, query_timeout: answerMs });
  client.on("error", () => undefined); // the statement under way fails with the same
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
