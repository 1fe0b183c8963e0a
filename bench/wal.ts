// Bytes of PostgreSQL's log (WAL) that a message takes, by table and index: accepted (a process that only accepts), and accepted
// and delivered to the sink. Counts, not times: what else the machine does changes them little. Full images of pages,
// which follow a checkpoint, are counted apart. Read by pg_walinspect, which comes with PostgreSQL.

import { run } from "./outbound.ts";
import { type BenchResult, conditions, round, routeToSink, type Stage, setStage, withClient } from "./support/bench.ts";
import { postMany, sendBody } from "./support/load.ts";

const COUNT = 4_000;
const WARM_UP = 2_000;
const CONNECTIONS = 64;
/** Below so many bytes a message an object is not listed by itself. */
const LISTED_BYTES = 10;
const SETTLE_MS = 60_000;
const POLL_MS = 100;
const COUNTED_MS = 2_000;

type Figures = Record<string, number>;

/** Runs the benchmark. */
export async function benchWal({ rows: count = COUNT }: { rows?: number } = {}): Promise<BenchResult> {
  const accepted = await measure([["api"]], count, post);
  const delivered = await measure([["api", "mta", "hooks", "clock"]], count, async (stage, messages) => {
    await run(stage, messages);
    await settled(stage);
  });
  return {
    name: "wal",
    conditions: conditions({ rows: count, count, connections: CONNECTIONS, warm_up: WARM_UP }),
    ours: { ...named("accepted", accepted), ...named("delivered", delivered) },
    peers: {},
    ratio: {},
  };
}

async function measure(
  layout: string[][],
  count: number,
  work: (stage: Stage, count: number) => Promise<void>,
): Promise<Figures> {
  const stage = await setStage(layout);
  routeToSink(stage.dns, "customer.example");
  try {
    await work(stage, WARM_UP);
    const before = await look(stage);
    await work(stage, count);
    return await figuresSince(stage, before, count);
  } finally {
    await stage.close();
  }
}

/** Accepted, to destinations to which no process sends. */
async function post(stage: Stage, count: number): Promise<void> {
  const { accepted } = await postMany({
    base_url: stage.settings.base_url,
    path: "/v1/send",
    key: stage.settings.live_key,
    count,
    connections: CONNECTIONS,
    body: (n) => sendBody(`orders@${stage.domain}`, `customer${n}@rcpt${n % 20}.example`, n),
  });
  if (accepted !== count) throw new Error(`${count - accepted} of ${count} were not accepted`);
}

/** Until every outcome is recorded: a delivery leaves the queue with its record. */
async function settled(stage: Stage): Promise<void> {
  await withClient(stage, async (client) => {
    const until = performance.now() + SETTLE_MS;
    for (;;) {
      const { rows } = await client.query("select count(*)::int as left from delivery");
      if (rows[0].left === 0) return;
      if (performance.now() > until) throw new Error(`${rows[0].left} deliveries are not recorded`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  });
}

type Updates = Record<string, { updates: number; hot: number }>;
type Look = { lsn: string; updates: Updates };

async function look(stage: Stage): Promise<Look> {
  // Sessions hand their counts in once a second at most.
  await new Promise((resolve) => setTimeout(resolve, COUNTED_MS));
  return withClient(stage, async (client) => {
    const { rows } = await client.query<{ name: string; updates: number; hot: number }>(
      `select coalesce(pg_partition_root(relid), relid)::regclass::text as name, sum(n_tup_upd)::int as updates,
              sum(n_tup_hot_upd)::int as hot
         from pg_stat_user_tables group by 1`,
    );
    const at = await client.query<{ lsn: string }>("select pg_current_wal_insert_lsn()::text as lsn");
    return {
      lsn: at.rows[0]?.lsn as string,
      updates: Object.fromEntries(rows.map(({ name, updates, hot }) => [name, { updates, hot }])),
    };
  });
}

/** Figures for each message. What follows `wal` and a name is without full images of pages. */
async function figuresSince(stage: Stage, before: Look, count: number): Promise<Figures> {
  const after = await look(stage);
  const { total, objects } = await readLog(stage, before.lsn, after.lsn);
  const listed = objects.filter(({ bytes }) => bytes / count >= LISTED_BYTES);
  return {
    wal_bytes: round((total.bytes - total.images) / count),
    full_page_bytes: round(total.images / count),
    wal_records: round(total.records / count, 2),
    ...Object.fromEntries(listed.map(({ name, bytes }) => [`wal ${name}`, round(bytes / count)])),
    ...hotFigures(before.updates, after.updates, count),
  };
}

/** The share of updates that wrote no index entry, for each table whose rows are updated once a message or so. */
function hotFigures(before: Updates, after: Updates, count: number): Figures {
  const shares = Object.entries(after).flatMap(([name, { updates, hot }]) => {
    const done = updates - (before[name]?.updates ?? 0);
    return done < count / 2 ? [] : [[`hot_percent ${name}`, round((100 * (hot - (before[name]?.hot ?? 0))) / done)]];
  });
  return Object.fromEntries(shares);
}

type Log = { total: { records: number; bytes: number; images: number }; objects: { name: string; bytes: number }[] };

/**
 * A record that touches several blocks counts for the first. Partitions count as their table, what has no name any more as its kind.
 * PostgreSQL 15 does not say which blocks a record touches: objects are left out then.
 */
async function readLog(stage: Stage, from: string, to: string): Promise<Log> {
  return withClient({ database_url: stage.admin_url }, async (client) => {
    await client.query("create extension if not exists pg_walinspect");
    const { rows } = await client.query<Log["total"]>(
      `select sum(count)::int as records, sum(combined_size)::float8 as bytes, sum(fpi_size)::float8 as images
         from pg_get_wal_stats($1, $2)`,
      [from, to],
    );
    const { rows: versions } = await client.query(
      "select current_setting('server_version_num')::int < 160000 as is_old",
    );
    if (versions[0].is_old) return { total: rows[0] as Log["total"], objects: [] };
    const objects = await client.query<{ name: string; bytes: number }>(
      `with records as (
         select distinct on (start_lsn) start_lsn, reltablespace, relfilenode, record_length, resource_manager
           from pg_get_wal_block_info($1, $2, false) order by start_lsn, block_id),
       images as (
         select start_lsn, sum(block_fpi_length) as bytes from pg_get_wal_block_info($1, $2, false) group by 1),
       named as (
         select record_length - i.bytes as bytes, resource_manager,
                pg_filenode_relation(reltablespace, relfilenode)::oid as relation
           from records join images i using (start_lsn))
       select coalesce(coalesce(pg_partition_root(relation), relation)::regclass::text, resource_manager) as name,
              sum(bytes)::float8 as bytes
         from named group by 1 order by 2 desc`,
      [from, to],
    );
    return { total: rows[0] as Log["total"], objects: objects.rows };
  });
}

function named(name: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([figure, value]) => [`${name} ${figure}`, value]));
}
