// SQL that keeps every delivery in a lane that is looked at: lanes that were forgotten while somebody remembered them, and
// times that lie ahead because the clock was set back. Healing, not routine; the routine is in queries.ts.

import { isMissingValue, type Query, type Tx } from "../../platform/database/db.ts";

/** Those of these lanes that mail may be put into. */
export function openLanes(tx: Tx, ids: number[]) {
  return tx.query<{ id: number }>("select id from lane where id = any($1) and retired_xid is null", [ids]);
}

/**
 * The lanes that hold free mail, one after the other (a skip scan: some 5 µs a lane, whatever it holds). Index: delivery_claim.
 */
const LANES_WITH_MAIL = `recursive held as (
  (select lane_id from delivery where owner is null order by lane_id limit 1)
  union all
  select (select d.lane_id from delivery d where d.owner is null and d.lane_id > h.lane_id order by d.lane_id limit 1)
    from held h where h.lane_id is not null)`;

export type Homeless = {
  org_id: string;
  message_id: string;
  position: number;
  lane_id: number;
  email: string;
  class: number;
  domain_id: string;
  ip_pool: string | null;
};

/** Free deliveries whose lane is not there. */
export function findHomeless(db: Query, limit: number) {
  return db.query<Homeless>(
    `with ${LANES_WITH_MAIL},
       gone as (select lane_id from held h where lane_id is not null and not exists (select 1 from lane where id = h.lane_id))
     select d.org_id, d.message_id, d.position, d.lane_id, d.email, m.class, m.domain_id, m.ip_pool
       from gone join delivery d on d.lane_id = gone.lane_id and d.owner is null
       join message m on m.org_id = d.org_id and m.id = d.message_id
      limit $1`,
    [limit],
  );
}

type Rehomed = { org_id: string; message_id: string; position: number; lane_id: number; new_lane_id: number };

/** Moves free deliveries out of lanes that are not there; a lane that is not there either takes none. */
export function rehomeFree(db: Query, rows: Rehomed[]) {
  return db.execute(
    `with moved as (
       update delivery d set lane_id = (select id from lane where id = k.new_lane_id and retired_xid is null)
         from unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::bigint[], $5::bigint[])
           as k (org_id, message_id, position, lane_id, new_lane_id)
        where d.org_id = k.org_id and d.message_id = k.message_id and d.position = k.position
          and d.lane_id = k.lane_id and d.owner is null
       returning d.lane_id, d.due_at)
     update lane l set next_at = m.due_at
       from (select lane_id, min(due_at) as due_at from moved group by lane_id order by lane_id) m
      where l.id = m.lane_id and l.next_at > m.due_at`,
    (["org_id", "message_id", "position", "lane_id", "new_lane_id"] as const).map((name) =>
      rows.map((row) => row[name]),
    ),
  );
}

/**
 * How much mail nobody will look at: its lane is not there, or sleeps for longer than its first row, which has been due since
 * `due_before`, or the row lies further ahead than anything may be scheduled.
 */
export function countUnwatched(db: Query, at: { now: Date; due_before: Date; ahead: Date }) {
  return db.query<{ deliveries: number }>(
    `with ${LANES_WITH_MAIL}
     select coalesce(sum(n.deliveries), 0)::float8 as deliveries
       from held h left join lane l on l.id = h.lane_id
       cross join lateral (
         select count(*) as deliveries from delivery d
          where d.lane_id = h.lane_id and d.owner is null
            and (l.id is null or d.due_at > $3
                 or (d.due_at < $2 and l.next_at > $1 and (l.paused_until is null or l.paused_until <= $1)))) n
      where h.lane_id is not null
        and (l.id is null or l.next_at > $1 or exists (
              select 1 from delivery d where d.lane_id = h.lane_id and d.owner is null and d.due_at > $3))`,
    [at.now, at.due_before, at.ahead],
  );
}

/**
 * After the clock was set back: mail that was accepted in what is the future now keeps its plan from now on, and a retry
 * that waits for longer than any wait is due soon. Reads the whole queue: for the start and for a clock that was seen to step.
 */
export function bringBack(db: Query, at: { now: Date; accepted_after: Date; retried_after: Date }) {
  return db.execute(
    `with wrong as (
       select org_id, message_id, position, greatest(created_at - $1::timestamptz, interval '0') as ahead, attempts > 0 as is_retry
         from delivery
        where owner is null and (created_at > $2 or (attempts > 0 and due_at > $3))
          for update skip locked),
     back as (
       update delivery d
          set created_at = d.created_at - w.ahead, expires_at = d.expires_at - w.ahead,
              due_at = case when w.is_retry then least(d.due_at - w.ahead, $1::timestamptz) else d.due_at - w.ahead end
         from wrong w
        where d.org_id = w.org_id and d.message_id = w.message_id and d.position = w.position
       returning d.lane_id, d.due_at)
     update lane l set next_at = b.due_at
       from (select lane_id, min(due_at) as due_at from back group by lane_id order by lane_id) b
      where l.id = b.lane_id and l.next_at > b.due_at`,
    [at.now, at.accepted_after, at.retried_after],
  );
}

/** Lanes that are parked for longer than anything is: the clock was set back meanwhile. */
export function unparkBeyond(db: Query, slots: { source_id: string; slot: number }[], now: Date, latest: Date) {
  return db.execute(
    `update lane l set paused_until = null, reason = null, next_at = least(l.next_at, $3)
       from unnest($1::uuid[], $2::smallint[]) as s (source_id, slot)
      where l.source_id = s.source_id and l.slot = s.slot and l.paused_until > $4`,
    [slots.map((s) => s.source_id), slots.map((s) => s.slot), now, latest],
  );
}

/** A statement that put mail into a lane that is retired or not there: it wrote nothing. */
export function isLaneGone(error: unknown): boolean {
  return isMissingValue(error, "delivery", "lane_id");
}
