// What is seen of the database and of the pooler while the nodes work, looked at from outside, four times a second.
import pg from "pg";
import { sleep } from "../../../src/platform/clock.ts";

export type Seen = {
  looks: number;
  /** Nodes that are registered, at the end; and those that were declared dead. */
  nodes: number;
  declared_dead: number;
  /** The longest that any node's last sign of life was ago. */
  longest_silence_ms: number;
  /** At once: the pooler's connections to PostgreSQL, those in use, the clients with a transaction that waited for one. */
  sessions_max: number;
  active_max: number;
  waiting_max: number;
  /** In how many of the looks somebody waited. */
  looks_with_waiting: number;
  clients_max: number;
  /** Connections that pass the pooler by, to LISTEN. */
  listening: number;
};

const EVERY_MS = 250;
const NODES = `select id::int, extract(epoch from clock_timestamp() - seen_at) * 1000 as silent_ms from node`;
const SESSIONS = `select count(*) filter (where query ilike 'listen %')::int as listening,
    count(*) filter (where query not ilike 'listen %')::int as sessions
  from pg_stat_activity where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`;

/** Looks until the signal says that it is over. */
export async function watch(url: string, console_url: string, over: AbortSignal): Promise<Seen> {
  const database = new pg.Client({ connectionString: url, options: "-c postern.scope=system" });
  const pooler = new pg.Client({ connectionString: console_url });
  await Promise.all([database.connect(), pooler.connect()]);
  const seen: Seen = {
    ...{ looks: 0, nodes: 0, declared_dead: 0, longest_silence_ms: 0, sessions_max: 0, active_max: 0 },
    ...{ waiting_max: 0, looks_with_waiting: 0, clients_max: 0, listening: 0 },
  };
  const alive = new Set<number>();
  try {
    while (!over.aborted) {
      await lookAtDatabase(database, seen, alive);
      await lookAtPooler(pooler, seen);
      seen.looks += 1;
      await sleep(EVERY_MS, over);
    }
    return seen;
  } finally {
    await Promise.all([database.end(), pooler.end()]);
  }
}

async function lookAtDatabase(database: pg.Client, seen: Seen, alive: Set<number>): Promise<void> {
  const { rows: nodes } = await database.query<{ id: number; silent_ms: number }>(NODES);
  const { rows } = await database.query<{ listening: number; sessions: number }>(SESSIONS);
  for (const { id, silent_ms } of nodes) {
    alive.add(id);
    seen.longest_silence_ms = Math.max(seen.longest_silence_ms, Math.round(silent_ms));
  }
  seen.nodes = nodes.length;
  seen.declared_dead = alive.size - nodes.length;
  seen.listening = rows[0]?.listening ?? 0;
  seen.sessions_max = Math.max(seen.sessions_max, rows[0]?.sessions ?? 0);
}

type PoolRow = { database: string; cl_active: string; cl_waiting: string; sv_active: string };

async function lookAtPooler(pooler: pg.Client, seen: Seen): Promise<void> {
  const { rows } = await pooler.query<PoolRow>("show pools");
  const pools = rows.filter(({ database }) => database !== "pgbouncer");
  const sum = (of: "cl_active" | "cl_waiting" | "sv_active") =>
    pools.reduce((total, row) => total + Number(row[of]), 0);
  const waiting = sum("cl_waiting");
  seen.active_max = Math.max(seen.active_max, sum("sv_active"));
  seen.waiting_max = Math.max(seen.waiting_max, waiting);
  seen.clients_max = Math.max(seen.clients_max, sum("cl_active") + waiting);
  if (waiting > 0) seen.looks_with_waiting += 1;
}
