// How the look-up of the send path, the list and the totals behave as the suppression list grows: at none, a tenth and
// all of `rows` entries of one organization, on a PostgreSQL of its own with durable settings. It inserts by SQL
// (generate_series), not through the import. Random access over the whole list, half of it hits.

import { readConfig } from "../src/config.ts";
import type { Db, Tx } from "../src/platform/database/db.ts";
import { LAST_ID } from "../src/platform/database/page.ts";
import { createLog } from "../src/platform/process/log.ts";
import type { World } from "../src/platform/world.ts";
import { findSuppressed, listSuppressions } from "../src/suppressions/suppressions.ts";
import { openWorld } from "../src/world.ts";
import { type BenchResult, conditions, FILLING_MS, fillIn, makeFolder, round } from "./support/bench.ts";
import { percentile } from "./support/load.ts";

const LOOKUPS = 2_000;
/** As in a process that has run for a while. */
const WARM_UP = 5_000;
const CONCURRENCY = 100;
const INSERT_ROWS = 100_000;

/** Fills a list in three steps up to `rows` and measures at each; some 15 µs a row. `ours` has the size in its keys. */
export async function benchSuppressions({ rows }: { rows: number } = { rows: 10_000_000 }): Promise<BenchResult> {
  const { dir, remove } = makeFolder();
  const open = () => openWorld(readConfig({ POSTERN_DATA: dir }), createLog({ level: "silent", role: "bench" }));
  let opened = await open();
  try {
    const orgId = opened.world.random.uuid();
    const ours: Record<string, number> = {};
    let entries = 0;
    const startedAt = performance.now();
    for (const size of [0, Math.floor(rows / 10), rows]) {
      await fillIn(opened.database_url, (db) => fill(db, orgId, entries, size));
      entries = size;
      // Or those who look something up would write what filling left unwritten.
      await opened.close();
      opened = await open();
      if (size === rows) ours.fill_seconds = round((performance.now() - startedAt) / 1000);
      for (const [name, value] of Object.entries(await measure(opened.world, orgId, size)))
        ours[`${name}_at_${size}`] = value;
    }
    return { name: "suppressions", conditions: conditions({ rows, lookups: LOOKUPS }), ours, peers: {}, ratio: {} };
  } finally {
    await opened.close();
    remove();
  }
}

// Addresses in scattered order, as they come in life: a multiplication by an odd constant is a permutation of 2³².
const ADDRESS = "'user' || ((i * 2654435761) & 4294967295) || '@example.com'";
const addressOf = (index: number) => `user${(BigInt(index) * 2654435761n) & 4294967295n}@example.com`;

/** Without the indexes in between: into them, rows in scattered order go at a tenth of the speed of building them again. */
async function fill(db: Db, orgId: string, from: number, to: number): Promise<void> {
  const indexes = await db.query<{ name: string; constraint: string | null; definition: string }>(INDEXES);
  for (const { name, constraint } of indexes)
    await db.execute(constraint === null ? `drop index ${name}` : `alter table suppression drop constraint ${name}`);
  for (let at = from; at < to; at += INSERT_ROWS) await insertEntries(db, orgId, at, Math.min(to, at + INSERT_ROWS));
  for (const { name, constraint, definition } of indexes)
    await db.execute(constraint === null ? definition : `alter table suppression add constraint ${name} ${constraint}`);
  await db.execute("vacuum analyze suppression");
}

/** All but the primary key, in whose order the rows come. */
const INDEXES = `
  select c.relname as name, pg_get_constraintdef(k.oid) as constraint, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class c on c.oid = i.indexrelid left join pg_constraint k on k.conindid = i.indexrelid
   where i.indrelid = 'suppression'::regclass and not i.indisprimary`;

/** One entry in 100,000 is manual, the others are imported bounces. */
function insertEntries(db: Db, orgId: string, from: number, to: number): Promise<void> {
  return db.transaction(async (tx) => {
    await tx.execute("set local postern.sums = ''"); // past the statements that count: triggers do
    await insertRows(tx, orgId, from, to);
  }, FILLING_MS);
}

function insertRows(tx: Tx, orgId: string, from: number, to: number): Promise<number> {
  return tx.execute(
    `insert into suppression (org_id, id, email, reason, scope_type, source, note, created_at)
     select $1::uuid, (lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid, ${ADDRESS},
            case when i % 100000 = 0 then 'manual' else 'hard_bounce' end, 'org',
            case when i % 100000 = 0 then 'manual' else 'import:sendgrid' end, '550 5.1.1 no such user', now()
       from generate_series($2::bigint, $3::bigint - 1) as i`,
    [orgId, from, to],
  );
}

async function measure(world: World, orgId: string, size: number): Promise<Record<string, number>> {
  const find = findSuppressed(world);
  const mail = { domain_id: orgId, template_id: null, list: null };
  const some = () => addressOf(Math.floor(world.random.float() * Math.max(100_000, size) * 2));
  const ask = (count: number) => find(orgId, { ...mail, emails: Array.from({ length: count }, some) });
  const list = (filter: object) => listSuppressions(world, orgId, filter, { limit: 50, offset: 0, below: LAST_ID });
  for (let turn = 0; turn < WARM_UP / 50; turn += 1) await ask(50);
  const single = await timed(LOOKUPS, () => ask(1));
  const startedAt = performance.now();
  const loops = Array.from({ length: CONCURRENCY }, () => timed(LOOKUPS / 20, () => ask(1)));
  const concurrent = (await Promise.all(loops)).flat();
  const perSecond = (concurrent.length / (performance.now() - startedAt)) * 1000;
  const fifty = await timed(LOOKUPS / 10, () => ask(50));
  const firstPage = await timed(100, () => list({}));
  const rareKind = await timed(100, () => list({ reason: "manual" }));
  const search = await timed(100, () => list({ query: addressOf(Math.floor(size / 2)) }));
  const searchPart = await timed(1, () => list({ query: "user1234567" }));
  return {
    single_p50_ms: round(percentile(single, 50), 2),
    single_p99_ms: round(percentile(single, 99), 2),
    hundred_at_once_p99_ms: round(percentile(concurrent, 99), 2),
    hundred_at_once_per_s: round(perSecond, 0),
    fifty_recipients_p50_ms: round(percentile(fifty, 50), 2),
    fifty_recipients_p99_ms: round(percentile(fifty, 99), 2),
    list_p99_ms: round(percentile(firstPage, 99), 2),
    rare_kind_list_p99_ms: round(percentile(rareKind, 99), 2),
    search_p99_ms: round(percentile(search, 99), 2),
    search_part_ms: round(searchPart[0] as number),
  };
}

async function timed(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < count; turn += 1) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return times;
}
