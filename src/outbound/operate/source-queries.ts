// SQL of the sending addresses as operators see them, over all organizations, and of taking one out of use.
import type { Query, Tx } from "../../platform/database/db.ts";

/** Up to so many deliveries of a lane are counted. */
const COUNTED_MAX = 1_000;

export const SOURCE_STATES = ["ready", "warming", "unavailable", "out_of_use", "leaving"] as const;

export type OperatedSource = {
  id: string;
  org_id: string | null;
  pool: string | null;
  ip: string | null;
  ehlo: string | null;
  weight: number;
  warmup_started_at: Date | null;
  held_at: Date | null;
  held_by: string | null;
  held_note: string | null;
  state: (typeof SOURCE_STATES)[number];
};

/** Our connections join by look-ups alone (platform/database/db.ts); lists over whole tables of 10,000 rows need more. */
export async function joinWholeTables(tx: Tx): Promise<void> {
  for (const method of ["seqscan", "hashjoin", "mergejoin"]) await tx.execute(`set local enable_${method} = on`);
}

/** $1: what began its warm-up before then is warm. */
const WITH_STATE = `bindable as (select distinct a as ip from node n, unnest(n.addresses) a where 'mta' = any(n.roles)),
  known as (
    select s.id, s.org_id, s.pool, host(s.ip) as ip, coalesce(s.ip, '0.0.0.0') as place, s.ehlo, s.weight, s.warmup_started_at,
           s.held_at, s.held_by, s.held_note,
           case when s.held_at is not null then 'out_of_use'
                when s.removed_at is not null then 'leaving'
                when s.ip is not null and b.ip is null then 'unavailable'
                when s.warmup_started_at >= $1 then 'warming' else 'ready' end as state
      from source s left join bindable b on b.ip = s.ip)`;

export type SourceFilter = { pattern: string | null; org_ids: string[]; state: string | null };
/** Behind which address a page begins. */
export type BehindSource = { place: string; id: string } | null;

/** In the order of the addresses, the shared one first. It reads the whole table: 10,000 addresses in 0.25 s, on two overloaded cores. */
export function listSources(
  tx: Tx,
  { pattern, org_ids, state }: SourceFilter,
  { warm_before, limit, behind }: { warm_before: Date; limit: number; behind: BehindSource },
) {
  return tx.query<OperatedSource & { place: string; total: number }>(
    `with ${WITH_STATE},
       chosen as (select *, count(*) over () as total from known
                   where ($2::text is null or ip like $2 or lower(ehlo) like $2 or pool like $2 or org_id = any($3::uuid[]))
                     and ($4::text is null or state = $4))
     select id, org_id, pool, ip, host(place) as place, ehlo, weight, warmup_started_at, held_at, held_by, held_note, state, total
       from chosen where $5::inet is null or (place, id) > ($5, $6::uuid)
      order by chosen.place, id limit $7`,
    [warm_before, pattern, org_ids, state, behind?.place ?? null, behind?.id ?? null, limit],
  );
}

export function findSource(db: Query, id: string, warm_before: Date) {
  return db.query<OperatedSource>(
    `with ${WITH_STATE}
     select id, org_id, pool, ip, ehlo, weight, warmup_started_at, held_at, held_by, held_note, state from known where id = $2`,
    [warm_before, id],
  );
}

export type SourceQueue = {
  source_id: string;
  waiting: number;
  is_at_least: boolean;
  /** Destinations that rest from here, and what the engine noted of one of them. */
  resting: number;
  reason: string | null;
};

/**
 * What waits to leave from these, without what leaves through relays: only their own lanes are looked into. Indexes: lane_due,
 * delivery_claim.
 */
export function readSourceQueues(db: Query, ids: string[], now: Date) {
  return db.query<SourceQueue>(
    `with free as (
         select l.source_id, n.found, n.found > ${COUNTED_MAX} as is_cut, l.paused_until > $2 as is_resting, l.domain, l.reason
           from lane l
           cross join lateral (select count(*) as found from (
             select 1 from delivery where lane_id = l.id and owner is null limit ${COUNTED_MAX + 1}) d) n
          where l.source_id = any($1) and l.relay_domain_id is null and n.found > 0),
       in_hand as (
         select l.source_id, h.deliveries as found, false as is_cut, false as is_resting, l.domain, null::text as reason
           from (select lane_id, count(*) as deliveries from delivery where owner is not null group by lane_id) h
           join lane l on l.id = h.lane_id and l.source_id = any($1) and l.relay_domain_id is null)
     select source_id, sum(found)::float8 as waiting, bool_or(is_cut) as is_at_least,
            count(distinct domain) filter (where is_resting) as resting, max(reason) filter (where is_resting) as reason
       from (select * from free union all select * from in_hand) as lanes group by source_id`,
    [ids, now],
  );
}

export type SourceUsage = {
  source_id: string;
  used_today: number;
  delivered: number;
  deferred: number;
  bounced: number;
  blocked: number;
};

/** What these did from `since` on, and how many attempts of today are given out. Index: primary key. */
export function readSourceUsage(db: Query, ids: string[], { since, today }: { since: string; today: string }) {
  return db.query<SourceUsage>(
    `select source_id, coalesce(sum(granted) filter (where day = $3::date), 0)::float8 as used_today,
            sum(delivered)::float8 as delivered, sum(deferred)::float8 as deferred, sum(bounced)::float8 as bounced,
            sum(blocked)::float8 as blocked
       from source_day where source_id = any($1) and day >= $2::date group by source_id`,
    [ids, since, today],
  );
}

/** The machines that send, and which addresses of pools each has. */
export function findMachines(db: Query, ips: string[]) {
  return db.query<{ machine: string; addresses: string[] }>(
    `select split_part(machine, '/', 1) as machine, array_agg(distinct host(a)) filter (where a is not null) as addresses
       from node left join lateral unnest(addresses) a on a = any($1::inet[])
      where 'mta' = any(roles) group by 1 order by 1`,
    [ips],
  );
}

/** Not the shared address: without it nothing leaves. */
export function holdSource(tx: Tx, id: string, { at, by, note }: { at: Date; by: string; note: string | null }) {
  return tx.execute(
    `update source set held_at = coalesce(held_at, $2), held_by = $3, held_note = $4
      where id = $1 and ip is not null and removed_at is null`,
    [id, at, by, note],
  );
}

/** With the rows of its address that were removed meanwhile. */
export function giveBackSource(tx: Tx, id: string) {
  return tx.execute(
    `update source s set held_at = null, held_by = null, held_note = null from source given
      where given.id = $1 and given.held_at is not null and s.ip = given.ip and s.held_at is not null`,
    [id],
  );
}
