// PostgreSQL behind a narrow face: statements that are always prepared by name (74 % faster than unnamed ones; not over a
// pooler, see session-settings.ts), and two walls of tenancy. `system` connections (batches over many organizations: queue, authentication) see every row;
// everything a request touches runs inside `asOrg`, where row-level security hides all other organizations' rows.
import pg from "pg";
import { sleep } from "../clock.ts";
import { createFairPlaces } from "../fair/fair-gate.ts";
import { beginWith, CONNECTIONS_MAX, passedOn, type Setting, startUpOptions } from "./session-settings.ts";

// bigint and numeric as numbers (counters stay far below 2^53), dates as their text, not as a local-time Date.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.DATE, (text: string) => text);

export type Query = {
  /** Runs one statement and returns its rows. */
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Runs one statement and returns how many rows it touched. */
  execute(text: string, values?: readonly unknown[]): Promise<number>;
};

declare const insideTransaction: unique symbol;
/** "Must run inside a transaction": only `transaction` and `asOrg` make one. */
export type Tx = Query & {
  readonly [insideTransaction]: true;
  /** Runs a statement of which nothing is known: its columns as they are named, which may be twice, and its rows in their order. */
  table(text: string): Promise<{ columns: string[]; rows: unknown[][] }>;
};

export type Db = Query & {
  /**
   * A transaction that sees every organization's rows; for batches and background work only. Its statements may take
   * `statementMs` each, 30 s by default.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>, statementMs?: number): Promise<T>;
  /** A transaction that sees one organization's rows only (row-level security). Every request's work runs in here. */
  asOrg<T>(orgId: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /** A dedicated connection for LISTEN; `onNotify` gets the channel. Reconnects by itself until closed. */
  listen(channels: string[], onNotify: (channel: string) => void): Promise<{ close(): Promise<void> }>;
  /** Milliseconds that the database's clock is ahead of this process's. */
  clockSkewMs(): Promise<number>;
  close(): Promise<void>;
};

const STATEMENT_NAMES_MAX = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * So long may a statement take, and so much longer is its answer waited for: then the connection is taken for dead (a firewall
 * that forgot it, a machine that is gone, a server that stands still; the kernel alone would wait for 15 minutes).
 */
const STATEMENT_MS = 30_000;
const TENANT_STATEMENT_MS = 10_000;
const ANSWER_MS = 5_000;
/** Idle connections are asked whether they live, after 10 s and ten times a second apart. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };
const RELISTEN_MS = 500;
/** For a session to end that was asked to: longer only where the server or the way to it is gone. */
const CLOSE_TIMEOUT_MS = 2_000;
/**
 * A process that stands still in the middle of a transaction, or a machine that is gone without a word, must not keep what
 * it has locked from the others: PostgreSQL ends its session after 15 s, or when its keep-alives are not answered.
 */
const NOT_FOR_EVER: Setting[] = [["idle_in_transaction_session_timeout", "15000"]];
/** Settings of the connection itself: behind a pooler it is the pooler's. */
const KEPT_ALIVE: Setting[] = [
  ["tcp_keepalives_idle", "10"],
  ["tcp_keepalives_interval", "5"],
  ["tcp_keepalives_count", "3"],
];
/** Statements of this version keep the sums themselves (migration 215): triggers do it for those of older ones. */
const OWN_SUMS: Setting[] = [["postern.sums", "statements"]];
const ALWAYS: Setting[] = [["synchronous_commit", "on"], ["jit", "off"], ...OWN_SUMS, ...NOT_FOR_EVER];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * True if `text` is a UUID in canonical lower-case form. Ids from outside must pass this before they reach a statement.
 */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Failures to connect, whatever the reason: a name, a route, a certificate, a password, a role or database that is not admitted. */
const unconnected = new WeakSet<object>();

type Callback = ((error: Error) => void) | ((error: null, client: pg.Client) => void);

class Session extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<pg.Client> | undefined {
    if (callback === undefined) return super.connect().catch((error) => Promise.reject(noted(error)));
    super.connect((error: Error) => (callback as (error: Error) => void)(noted(error)));
    return undefined;
  }
}

/** The same error, noted. pg calls back with null where nothing failed. */
function noted(error: Error): Error {
  if (error) unconnected.add(error);
  return error;
}

/**
 * No connection came about, SQLSTATE classes 08 (connection), 57P (shutting down), 53 (resources), 25P03 and 25P04 (too long in
 * a transaction), 57014 (a statement out of time), CIINF (Citus: the cell moved to another server in the middle of a
 * statement, which did nothing), and socket errors: the database could not answer, as opposed to having refused.
 */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: string })?.code ?? "";
  if (isUnconnected(error)) return true;
  if (/^(08...|57014|57P0.|53...|25P0[34]|CIINF|ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT)$/.test(code))
    return true;
  if (isUnanswered(error)) return true;
  const message = (error as Error)?.message ?? "";
  return UNAVAILABLE_OF_PG.test(message) || (code === "XX000" && UNAVAILABLE_OF_CITUS.test(message));
}

const UNAVAILABLE_OF_PG =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/;
/** A server behind the coordinator was lost during a statement or a commit, which is done or not. Citus has no code for that. */
const UNAVAILABLE_OF_CITUS = new RegExp(
  [
    "^could not commit transaction for shard",
    "^failure on connection marked as essential",
    "^connection (?:to|establishment for) .* failed",
    "^could not (?:establish|find an available)\\b.* connections?\\b",
    "^server closed the connection",
    "^SSL connection has been closed",
    "^no connection to the server",
    "^could not (?:receive data from|send data to) server",
    "^terminating connection (?:due to|because of)",
    "^the database system is ",
  ].join("|"),
);

/** SQLSTATE query_canceled: a statement took longer than it may, and did nothing. */
export function isOutOfTime(error: unknown): boolean {
  return (error as { code?: string })?.code === "57014";
}

/** The statement may be done or not, or still under way. */
function isUnanswered(error: unknown): boolean {
  return (error as Error)?.message === "Query read timeout";
}

/**
 * Does the work, and while the database is unavailable again every `everyMs`, for as long as `goOn` says (it hears of each
 * failure and how often there was one; without it, until the database answers). Rejects with the last failure, and at once
 * with any of another kind. A commit whose answer was lost is done again: the work must bear that.
 */
export async function whileUnavailable<T>(
  work: () => Promise<T>,
  everyMs: number,
  goOn: (failure: unknown, times: number) => boolean = () => true,
): Promise<T> {
  for (let times = 1; ; times += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || !goOn(error, times)) throw error;
      await sleep(everyMs);
    }
  }
}

/** The organization's other statements took all its connections for as long as one waits; SQLSTATE too_many_connections. */
export class Crowded extends Error {
  readonly code = "53300";
}

/** SQLSTATE class 53: the server answered that it lacks room, memory or connections; the statement did nothing. */
export function isShortage(error: unknown): boolean {
  return /^53...$/.test((error as { code?: string })?.code ?? "");
}

/** SQLSTATE 40P01, 40001: two transactions stood in each other's way, and this one did nothing; the next try will do. */
export function isDeadlock(error: unknown): boolean {
  return /^(40P01|40001)$/.test((error as { code?: string })?.code ?? "");
}

/** There was no connection to send the statement over, so that it did nothing; not where one broke. */
export function isUnreached(error: unknown): boolean {
  if (isUnconnected(error)) return true;
  if (/^(57P03|ECONNREFUSED|ENOENT)$/.test((error as { code?: string })?.code ?? "")) return true;
  return /timeout exceeded when trying to connect/.test((error as Error)?.message ?? "");
}

function isUnconnected(error: unknown): boolean {
  return typeof error === "object" && error !== null && unconnected.has(error);
}

/** True if a unique constraint (by name, when given) refused the row: SQLSTATE 23505. */
export function isDuplicate(error: unknown, constraint?: string): boolean {
  const isOne = (error as { code?: string })?.code === "23505";
  return isOne && (constraint === undefined || isRefusedBy(error, constraint));
}

/**
 * True if this constraint refused the row. Citus names it in the message alone, a unique one with the number of the
 * shard.
 */
export function isRefusedBy(error: unknown, constraint: string): boolean {
  const { constraint: named, message = "" } = (error ?? {}) as { constraint?: string; message?: string };
  if (named !== undefined) return named === constraint;
  const said = / constraint "(\w+)"/.exec(message)?.[1];
  return said !== undefined && said.replace(/_\d{6,}$/, "") === constraint;
}

/**
 * True if a column that must have a value refused the row: SQLSTATE 23502. Citus names column and table in the message
 * alone, the table with a shard's number.
 */
export function isMissingValue(error: unknown, table: string, column: string): boolean {
  const failure = (error ?? {}) as { code?: string; table?: string; column?: string; message?: string };
  if (failure.code !== "23502") return false;
  if (failure.table !== undefined) return failure.table === table && failure.column === column;
  const said = /^null value in column "(\w+)" of relation "(\w+)"/.exec(failure.message ?? "");
  return said?.[1] === column && said[2]?.replace(/_\d{6,}$/, "") === table;
}

/**
 * Batches look rows up by keys handed in as arrays. A plan made while a table was young (few rows, no statistics) joins
 * such an array by reading the whole table, and a prepared statement keeps it while the table grows: measured 1.7 ms of the
 * database's time a message instead of 0.25. Only index look-ups are right here, whatever the statistics say, and how many keys
 * there are changes nothing: one plan does, where planning for each batch takes 1 to 2 ms at a month of partitions.
 */
const BY_KEYS: Setting[] = [
  ["plan_cache_mode", "force_generic_plan"],
  ["enable_seqscan", "off"],
  ["enable_hashjoin", "off"],
  ["enable_mergejoin", "off"],
];

export type DbOptions = {
  onError(error: Error): void;
  /** A pooler in front of the same database, for all but LISTEN. */
  pooler_url?: string | null;
  /** Citus keeps the tables on another server (cells.ts), which knows what is set in a transaction alone. */
  distributed?: boolean;
  /** At once, but for those that LISTEN; 30 by default. */
  connections_max?: number;
  /** For tests. */
  statement_ms?: number;
  answer_ms?: number;
};

/** Opens both pools; connections are made on demand. `onError` hears of connections lost while idle. */
export function openDb(url: string, options: DbOptions): Db {
  const { statement_ms = STATEMENT_MS, answer_ms = ANSWER_MS, connections_max = CONNECTIONS_MAX } = options;
  // Of the other two thirds an organization has half: what takes its time there (a search of millions) keeps nobody else's
  // requests waiting.
  const shared = Math.floor(connections_max / 3);
  const settings: Setting[] = [["postern.scope", "system"], ["statement_timeout", String(statement_ms)], ...BY_KEYS];
  const system = openPool(url, settings, shared, options);
  const forTenants: Setting[] = [["statement_timeout", String(TENANT_STATEMENT_MS)]];
  const tenant = openPool(url, forTenants, connections_max - shared, options);
  const inPlace = shareOut(connections_max - shared);
  return {
    ...(options.pooler_url || options.distributed ? singly(system) : statements(system)),
    transaction(work, statementMs) {
      if (statementMs === undefined) return inTransaction(system, [], work);
      return inTransaction(system, [["statement_timeout", String(statementMs)]], work, statementMs + answer_ms);
    },
    asOrg(orgId, work) {
      if (!isUuid(orgId)) throw new Error("asOrg needs an organization id");
      return inPlace(orgId, () => inTransaction(tenant, [["postern.org_id", orgId]], work));
    },
    listen: (channels, onNotify) => listen(url, channels, onNotify),
    clockSkewMs: () => measureSkew(system.pool),
    async close() {
      await Promise.all([endPool(system.pool), endPool(tenant.pool)]);
    },
  };
}

/** Over a pooler or on Citus each statement is a transaction: its settings must reach the session that runs it. */
function singly(connections: Connections): Query {
  return {
    query: (text, values) => inTransaction(connections, [], (tx) => tx.query(text, values)),
    execute: (text, values) => inTransaction(connections, [], (tx) => tx.execute(text, values)),
  };
}

/** The pool serves in the order of arrival, whoever it is: this stands before it, and has the pool's patience. */
function shareOut(connections: number): <T>(orgId: string, work: () => Promise<T>) => Promise<T> {
  const places = createFairPlaces({ places: connections, waiting_max: Number.POSITIVE_INFINITY });
  return async (orgId, work) => {
    const leave = places.enterNow(orgId) ?? (await places.enter(orgId, AbortSignal.timeout(CONNECT_TIMEOUT_MS)));
    if (leave === null) throw new Crowded("too many requests of the organization are at the database");
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

/** `settings`: those that each transaction begins with, as the sessions have none; empty where they have them. */
type Connections = { pool: pg.Pool; settings: Setting[]; prepares: boolean; answered_ms: number };

function openPool(
  url: string,
  own: Setting[],
  max: number,
  { onError, pooler_url, distributed, statement_ms = STATEMENT_MS, answer_ms = ANSWER_MS }: DbOptions,
): Connections {
  // Citus finds the server of a statement by its values: it makes no plan for all of them.
  const settings = [...ALWAYS, ...own].filter(([name]) => !(distributed && name === "plan_cache_mode"));
  const pool = new pg.Pool({
    Client: Session,
    connectionString: pooler_url ?? url,
    ...KEEP_ALIVE,
    query_timeout: statement_ms + answer_ms,
    ...(pooler_url ? {} : { options: startUpOptions(distributed ? KEPT_ALIVE : [...KEPT_ALIVE, ...settings]) }),
    max,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: false,
  });
  // Without listeners a restart of the server would end the process: the pool's hears of idle connections, a
  // connection's own of one that is lost between two statements of a transaction, whose next statement then fails.
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const answered_ms = statement_ms + answer_ms;
  if (pooler_url) return { pool, settings: passedOn(settings), prepares: false, answered_ms };
  if (distributed) return { pool, settings: passedOn(settings), prepares: true, answered_ms };
  return { pool, settings: [], prepares: true, answered_ms };
}

/**
 * pg's own promise is fulfilled once all sessions were asked to end. Until they have, a database that is stopped next would
 * tell each of them so, and they would be taken for lost.
 */
async function endPool(pool: pg.Pool): Promise<void> {
  let asked = pool.totalCount;
  const given = new AbortController();
  pool.on("remove", () => {
    asked -= 1;
    if (asked <= 0) given.abort();
  });
  await pool.end();
  if (asked > 0) await sleep(CLOSE_TIMEOUT_MS, given.signal);
}

const names = new Map<string, string>();

function statementName(text: string): string | undefined {
  const known = names.get(text);
  if (known) return known;
  if (names.size >= STATEMENT_NAMES_MAX) return undefined;
  const name = `p${names.size}`;
  names.set(text, name);
  return name;
}

/** `answeredInMs`: unless as long as the pool waits. */
function statements({ pool, prepares }: Connections, client?: pg.PoolClient, answeredInMs?: number): Query {
  const runner = client ?? pool;
  const wait = answeredInMs === undefined ? {} : { query_timeout: answeredInMs };
  const run = (text: string, values: readonly unknown[] = []) =>
    runner.query({ name: prepares ? statementName(text) : undefined, text, values: values as unknown[], ...wait });
  return {
    async query<Row>(text: string, values?: readonly unknown[]) {
      return (await run(text, values)).rows as Row[];
    },
    async execute(text, values) {
      return (await run(text, values)).rowCount ?? 0;
    },
  };
}

async function tableOf(client: pg.PoolClient, text: string, answeredInMs?: number) {
  const wait = answeredInMs === undefined ? {} : { query_timeout: answeredInMs };
  const { fields, rows } = await client.query<unknown[]>({ text, rowMode: "array", ...wait });
  return { columns: fields.map(({ name }) => name), rows };
}

async function inTransaction<T>(
  connections: Connections,
  settings: Setting[],
  work: (tx: Tx) => Promise<T>,
  answeredInMs?: number,
): Promise<T> {
  const client = await connections.pool.connect();
  // A full pooler lets a transaction wait where it begins, a lost connection anywhere.
  const wait = { query_timeout: Math.min(answeredInMs ?? connections.answered_ms, connections.answered_ms) };
  let broken: Error | undefined;
  try {
    await client.query({ text: beginWith([...connections.settings, ...settings]), ...wait });
    const table = (text: string) => tableOf(client, text, answeredInMs);
    const result = await work({ ...statements(connections, client, answeredInMs), table } as Tx);
    await client.query({ text: "commit", ...wait });
    return result;
  } catch (error) {
    // What does not answer a statement does not answer a rollback either: PostgreSQL rolls back when the connection is gone.
    if (isUnanswered(error)) broken = error as Error;
    else {
      await client.query("rollback").catch((failure: Error) => {
        broken = failure;
      });
    }
    throw error;
  } finally {
    client.release(broken);
  }
}

async function measureSkew(pool: pg.Pool): Promise<number> {
  // A connection first: waiting for one would count as the way of the question.
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const startedAtMs = performance.now();
    const { rows } = await client.query("select extract(epoch from clock_timestamp()) * 1000 as at_ms");
    const tookMs = performance.now() - startedAtMs;
    return Math.round(Number(rows[0].at_ms) - (Date.now() - tookMs / 2));
  } catch (error) {
    broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}

/** One connection at a time: an attempt that fails must not leave two behind it, or an outage ends in a storm of them. */
async function listen(url: string, channels: string[], onNotify: (channel: string) => void) {
  let closed = false;
  let client = await hear();
  follow();

  async function hear(): Promise<pg.Client> {
    const next = new pg.Client({ connectionString: url, ...KEEP_ALIVE, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
    next.on("notification", (message) => onNotify(message.channel));
    next.on("error", () => undefined);
    try {
      await next.connect();
      for (const channel of channels) await next.query(`listen ${pg.escapeIdentifier(channel)}`);
      return next;
    } catch (error) {
      await next.end().catch(() => undefined);
      throw error;
    }
  }

  function follow(): void {
    client.once("end", () => void hearAgain());
  }

  async function hearAgain(): Promise<void> {
    while (!closed) {
      await sleep(RELISTEN_MS);
      const next = closed ? null : await hear().catch(() => null);
      if (!next) continue;
      if (closed) return void next.end().catch(() => undefined);
      client = next;
      follow();
      // Notifications of that time are lost.
      for (const channel of channels) onNotify(channel);
      return;
    }
  }

  return {
    async close() {
      closed = true;
      await client.end().catch(() => undefined);
    },
  };
}
