// All SQL on ip_pool, source and source_day: dedicated addresses, who has them, what they did.

import type { Query, Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { countUpToMax } from "../../platform/database/totals.ts";

export type PoolRow = { org_id: string; id: string; name: string; created_at: Date; updated_at: Date };

export type SourceRow = {
  id: string;
  org_id: string | null;
  pool: string | null;
  ip: string | null;
  ehlo: string | null;
  weight: number;
  warmup_started_at: Date | null;
  removed_at: Date | null;
  /** When an operator took it out of use (operate/sources.ts). */
  held_at: Date | null;
};

const POOL = "org_id, id, name, created_at, updated_at";
const SOURCE = "id, org_id, pool, host(ip) as ip, ehlo, weight, warmup_started_at, removed_at, held_at";

// --- pools ------------------------------------------------------------------------------------------------------------

export function insertPool(tx: Tx, orgId: string, row: PoolRow) {
  return tx.query<PoolRow>(
    `insert into ip_pool (${POOL}) values ($1, $2, $3, $4, $4)
     on conflict (org_id, name) do nothing returning ${POOL}`,
    [orgId, row.id, row.name, row.created_at],
  );
}

export function countPools(tx: Tx, orgId: string) {
  return countUpToMax(tx, "ip_pool where org_id = $1", [orgId]);
}

export function listPools(tx: Tx, orgId: string, { limit, offset, below }: Page) {
  return tx.query<PoolRow>(
    `select ${POOL} from ip_pool where org_id = $1 and id < $4 order by id desc limit $2 offset $3`,
    [orgId, limit, offset, below],
  );
}

/** By id or name. */
export function findPool(tx: Query, orgId: string, idOrName: string) {
  return tx.query<PoolRow>(`select ${POOL} from ip_pool where org_id = $1 and (id::text = $2 or name = $2)`, [
    orgId,
    idOrName,
  ]);
}

export function lockPool(tx: Tx, orgId: string, id: string) {
  return tx.query<PoolRow>(`select ${POOL} from ip_pool where org_id = $1 and id = $2 for update`, [orgId, id]);
}

export function touchPool(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.query<PoolRow>(`update ip_pool set updated_at = $3 where org_id = $1 and id = $2 returning ${POOL}`, [
    orgId,
    id,
    at,
  ]);
}

export function deletePool(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from ip_pool where org_id = $1 and id = $2", [orgId, id]);
}

/** True if mail waits in lanes of the pool's addresses. */
export function hasQueuedMail(tx: Tx, orgId: string, pool: string) {
  return tx.query<{ found: boolean }>(
    `select exists (select 1 from source s join lane l on l.org_id = s.org_id and l.source_id = s.id
                     where s.org_id = $1 and s.pool = $2 and s.removed_at is null
                       and exists (select 1 from delivery d where d.lane_id = l.id and d.org_id = $1)) as found`,
    [orgId, pool],
  );
}

// --- the addresses of pools -------------------------------------------------------------------------------------------

/** The addresses of the pools that are in use now, in the order in which they were added. */
export function listSources(tx: Query, orgId: string, pools: string[]) {
  return tx.query<SourceRow & { pool: string; ip: string }>(
    `select ${SOURCE} from source where org_id = $1 and pool = any($2) and removed_at is null order by id`,
    [orgId, pools],
  );
}

/** What customers set of an address. */
type WrittenSource = Omit<SourceRow, "held_at">;

/**
 * With a lease for each of its slots, free to take. The unique index refuses an address that is in use. One that an operator took out
 * of use stays so where its organization removes it and adds it again.
 */
export async function insertSource(tx: Tx, orgId: string, row: WrittenSource): Promise<number> {
  const [held] = await tx.query<Pick<SourceRow, "held_at"> & { held_by: string | null; held_note: string | null }>(
    `select held_at, held_by, held_note from source where org_id = $1 and ip = $2::inet and held_at is not null
      order by removed_at desc limit 1`,
    [orgId, row.ip],
  );
  return await tx.execute(
    `with s as (
       insert into source (id, org_id, pool, ip, ehlo, weight, warmup_started_at, held_at, held_by, held_note)
       values ($2, $1, $3, $4, $5, $6, $7, $8, $9, $10)
       returning id, slots)
     insert into lease (source_id, slot) select s.id, slot from s, generate_series(0, s.slots - 1) as slot
     returning 1`,
    [
      ...[orgId, row.id, row.pool, row.ip, row.ehlo, row.weight, row.warmup_started_at],
      ...(held ? [held.held_at, held.held_by, held.held_note] : [null, null, null]),
    ],
  );
}

export function updateSource(tx: Tx, orgId: string, row: WrittenSource) {
  return tx.execute("update source set ehlo = $3, weight = $4, warmup_started_at = $5 where org_id = $1 and id = $2", [
    orgId,
    row.id,
    row.ehlo,
    row.weight,
    row.warmup_started_at,
  ]);
}

export function removeSources(tx: Tx, orgId: string, ids: string[], at: Date) {
  return tx.execute("update source set removed_at = $3 where org_id = $1 and id = any($2)", [orgId, ids, at]);
}

/** Removed addresses without lanes are forgotten, but for those out of use; lanes go when nobody used them for a while. */
export function dropRemovedSources(db: Query, limit: number) {
  return db.execute(
    `delete from source where id in (
       select s.id from source s
        where s.removed_at is not null and s.held_at is null
          and not exists (select 1 from lane l where l.source_id = s.id) limit $1)`,
    [limit],
  );
}

export type UsageRow = {
  source_id: string;
  day: string;
  granted: number;
  delivered: number;
  deferred: number;
  bounced: number;
  blocked: number;
};

/** The usage of the organization's own addresses, from the day `since` on. */
export function listUsage(tx: Query, orgId: string, ids: string[], since: string) {
  return tx.query<UsageRow>(
    `select d.source_id, d.day, d.granted, d.delivered, d.deferred, d.bounced, d.blocked
       from source_day d join source s on s.id = d.source_id and s.org_id = $1
      where d.source_id = any($2) and d.day >= $3`,
    [orgId, ids, since],
  );
}

/** Which of these addresses some sending process can bind now. Nobody announces one that an operator took out of use. */
export function findBindable(db: Query, ips: string[]) {
  return db.query<{ ip: string }>(
    `select distinct host(a) as ip from node n, unnest(n.addresses) as a
      where 'mta' = any(n.roles) and a = any($1::inet[])`,
    [ips],
  );
}

// --- for placing mail: batched over organizations -----------------------------------------------------------------------

export type ChoiceRow = Pick<SourceRow, "id" | "weight" | "warmup_started_at"> & {
  org_id: string;
  pool: string;
  granted: number;
  bindable: boolean;
};

/** The addresses of pools by organization and name, with what is used of today; a pool without any gives one empty row. */
export function findChoices(db: Query, names: { org_id: string; pool: string }[], day: string) {
  return db.query<Omit<ChoiceRow, "id"> & { id: string | null }>(
    `select p.org_id, p.name as pool, s.id, s.weight, s.warmup_started_at, coalesce(d.granted, 0) as granted,
            exists (select 1 from node n where 'mta' = any(n.roles) and s.ip = any(n.addresses)) as bindable
       from unnest($1::uuid[], $2::text[]) as wanted (org_id, name)
       join ip_pool p using (org_id, name)
       left join source s on s.org_id = p.org_id and s.pool = p.name and s.removed_at is null
       left join source_day d on d.source_id = s.id and d.day = $3
      order by s.id`,
    [names.map((name) => name.org_id), names.map((name) => name.pool), day],
  );
}

// --- for the engine ---------------------------------------------------------------------------------------------------

/** Every sending address, the shared one and removed ones included. */
export function allSources(db: Query) {
  return db.query<SourceRow>(`select ${SOURCE} from source order by id`);
}

/** Says which addresses of pools this node can bind. */
export function announceAddresses(tx: Tx, node: number, addresses: string[]) {
  return tx.execute("update node set addresses = $2::inet[] where id = $1 and addresses <> $2::inet[]", [
    node,
    addresses,
  ]);
}

export function addressesOfNodes(tx: Query) {
  return tx.query<{ id: number; addresses: string[] }>(
    `select id, array(select host(a) from unnest(addresses) as a) as addresses from node where 'mta' = any(roles)`,
  );
}

/** Sets aside up to `wanted` attempts of the day under `limit`; answers how many. One row for all processes. */
export async function grantAttempts(
  db: Query,
  source: { id: string; day: string; limit: number },
  wanted: number,
): Promise<number> {
  await db.execute("insert into source_day (source_id, day) values ($1, $2) on conflict do nothing", [
    source.id,
    source.day,
  ]);
  const [row] = await db.query<{ granted: number }>(
    `with before as (select granted from source_day where source_id = $1 and day = $2 for update)
     update source_day d set granted = b.granted + least($4::bigint, $3 - b.granted)
       from before b where d.source_id = $1 and d.day = $2 and b.granted < $3
     returning least($4::bigint, $3 - b.granted) as granted`,
    [source.id, source.day, source.limit, wanted],
  );
  return row?.granted ?? 0;
}

/** Gives back what was set aside and not used. */
export function returnAttempts(db: Query, source: { id: string; day: string }, count: number) {
  return db.execute("update source_day set granted = greatest(0, granted - $3) where source_id = $1 and day = $2", [
    source.id,
    source.day,
    count,
  ]);
}

export type UsageCount = Pick<UsageRow, "source_id" | "day" | "delivered" | "deferred" | "bounced" | "blocked">;

export function addUsage(db: Query, counts: UsageCount[]) {
  const columns = ["source_id", "day", "delivered", "deferred", "bounced", "blocked"] as const;
  return db.execute(
    `with known as (
     select u.* from unnest($1::uuid[], $2::date[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
       as u (${columns.join(", ")}) join source s on s.id = u.source_id
      order by 1, 2)
     insert into source_day as d (${columns.join(", ")}) select * from known
     on conflict (source_id, day) do update
       set delivered = d.delivered + excluded.delivered, deferred = d.deferred + excluded.deferred,
           bounced = d.bounced + excluded.bounced, blocked = d.blocked + excluded.blocked`,
    columns.map((name) => counts.map((count) => count[name])),
  );
}

export function dropOldUsage(db: Query, before: string, limit: number) {
  return db.execute(
    "delete from source_day where ctid = any(array(select ctid from source_day where day < $1 limit $2))",
    [before, limit],
  );
}

/** Addresses in an organization's pools that are not removed. */
export function findAddressesOf(db: Query, orgId: string) {
  return db.query<{ ip: string }>(
    "select host(ip) as ip from source where org_id = $1 and ip is not null and removed_at is null order by 1",
    [orgId],
  );
}
