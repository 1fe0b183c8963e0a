// SQL of the relays of all organizations as operators see them, with the mail that waits for each.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { RelayRow } from "../route/relay-queries.ts";

/** Up to so many deliveries of a lane are counted. */
const COUNTED_MAX = 1_000;

export const RELAY_STATES = ["resting", "in_use", "standby"] as const;

/** How many lanes of one relay are looked into for what it said last. */
const LANES_READ_MAX = 20;

/** Lanes of relays alone: the others are met by name, never counted. */
const MAIL = `free as (
    select l.org_id, l.relay_domain_id as domain_id, l.id as lane_id, n.found, n.found > ${COUNTED_MAX} as is_cut, n.oldest_at,
           case when l.paused_until > $1 then l.paused_until end as paused_until,
           case when l.paused_until > $1 then l.reason end as reason
      from lane l
      cross join lateral (
        select count(*) as found, min(created_at) as oldest_at
          from (select created_at from delivery where lane_id = l.id and owner is null limit ${COUNTED_MAX + 1}) d) n
     where l.relay_domain_id is not null and n.found > 0),
  in_hand as (
    select l.org_id, l.relay_domain_id as domain_id, null::bigint as lane_id, h.deliveries as found, false as is_cut, h.oldest_at,
           null::timestamptz as paused_until, null::text as reason
      from (select lane_id, count(*) as deliveries, min(created_at) as oldest_at from delivery
             where owner is not null group by lane_id) h
      join lane l on l.id = h.lane_id and l.relay_domain_id is not null),
  mail as (
    select org_id, domain_id, sum(found)::float8 as waiting, bool_or(is_cut) as is_at_least, min(oldest_at) as oldest_at,
           max(paused_until) as paused_until, max(reason) as reason,
           (array_agg(lane_id) filter (where lane_id is not null))[1:${LANES_READ_MAX}] as lanes
      from (select * from free union all select * from in_hand) as lanes group by org_id, domain_id)`;

export type OperatedRelay = Pick<
  RelayRow,
  "org_id" | "domain_id" | "host" | "port" | "tls" | "mode" | "created_at" | "updated_at"
> & {
  has_login: boolean;
  state: (typeof RELAY_STATES)[number];
  waiting: number;
  is_at_least: boolean;
  oldest_at: Date | null;
  paused_until: Date | null;
  reason: string | null;
  /** Some that hold its mail. */
  lanes: number[] | null;
};

export type RelayFilter = { pattern: string | null; org_ids: string[]; domain_ids: string[]; state: string | null };
/** Behind which relay a page begins: the list is by how much waits, then by domain id. */
export type BehindRelay = { waiting: number; domain_id: string } | null;

/**
 * Those with the most mail first. 10,000 relays with ten deliveries each, on two overloaded cores: 0.8 s. `is_closed`: port 25 is, so
 * that those in reserve are used.
 */
export function listRelays(
  tx: Tx,
  { pattern, org_ids, domain_ids, state }: RelayFilter,
  { now, is_closed, limit, behind }: { now: Date; is_closed: boolean; limit: number; behind: BehindRelay },
) {
  return tx.query<OperatedRelay & { total: number }>(
    `with ${MAIL},
       known as (
         select r.org_id, r.domain_id, r.host, r.port, r.username is not null as has_login, r.tls, r.mode, r.created_at,
                r.updated_at, coalesce(m.waiting, 0) as waiting, coalesce(m.is_at_least, false) as is_at_least, m.oldest_at,
                m.paused_until, m.reason, m.lanes,
                case when m.paused_until is not null then 'resting' when r.mode = 'always' or $2 then 'in_use'
                     else 'standby' end as state
           from relay r left join mail m using (org_id, domain_id)),
       chosen as (select *, count(*) over () as total from known
                   where ($3::text is null or host like $3 or org_id = any($4::uuid[]) or domain_id = any($5::uuid[]))
                     and ($6::text is null or state = $6))
     select * from chosen where $7::float8 is null or (-waiting, domain_id) > (-$7, $8::uuid)
      order by waiting desc, domain_id limit $9`,
    [now, is_closed, pattern, org_ids, domain_ids, state, behind?.waiting ?? null, behind?.domain_id ?? null, limit],
  );
}

export type TriedByRelay = { domain_id: string; org_id: string; message_id: string; position: number };

/**
 * For each relay with mail in these lanes, the delivery that was tried and waits longest for its next attempt. Index:
 * delivery_claim.
 */
export function findTried(db: Query, lanes: number[]) {
  return db.query<TriedByRelay>(
    `select distinct on (l.relay_domain_id) l.relay_domain_id as domain_id, d.org_id, d.message_id, d.position
       from lane l cross join lateral (
         select org_id, message_id, position, due_at from delivery
          where lane_id = l.id and owner is null and attempts > 0 order by due_at desc limit 1) d
      where l.id = any($1) order by l.relay_domain_id, d.due_at desc`,
    [lanes],
  );
}
