// All SQL on delivery and lane: claim, finish, lanes. Every write after a claim names the owner; zero rows
// means that the node was declared dead meanwhile and its result is dropped (reliability rule 3).
import { oldestNumber, ownNumber } from "../platform/database/citus/transaction-numbers.ts";
import type { Db, Query, Tx } from "../platform/database/db.ts";
import type { Job, Lane, Mark } from "./types.ts";

type DueLanes = { busy: number[]; crowded?: string[]; held?: string[]; now: Date; limit: number };

/**
 * Lanes of the own slots with due mail. Index: lane_due. `busy` are lanes whose window in memory is full, `crowded` are
 * organizations that hold their share of the memory, or are suspended: their lanes are passed over (10,000 of them: 3 ms), and so
 * are those to the destinations that are `held`.
 */
export function dueLanes(
  db: Query,
  slots: { source_id: string; slot: number }[],
  { busy, crowded = [], held = [], now, limit }: DueLanes,
) {
  return db.query<Lane>(
    `select l.id, l.org_id, l.source_id, l.slot, l.domain, l.class, l.relay_domain_id
       from unnest($1::uuid[], $2::smallint[]) as s (source_id, slot)
       cross join lateral (
         select * from lane
          where source_id = s.source_id and slot = s.slot and next_at <= $4
            and (paused_until is null or paused_until <= $4) and id <> all($3::bigint[])
            and org_id <> all($6::uuid[]) and domain <> all($7::text[])
          order by next_at limit $5) l
      order by l.next_at limit $5`,
    [slots.map((s) => s.source_id), slots.map((s) => s.slot), busy, now, limit, crowded, held],
  );
}

export type ClaimedRow = Omit<Job, "mime" | "about">;

/** When a claim is made, and what was seen of the database (guard.ts); null: nobody watches over it. */
type Claim = { now: Date; mark: Pick<Mark, "id" | "beats"> | null };

/** Nothing is taken out of a database that was restored since it was seen, or is paused: each claim looks for itself. */
function unlessRestored(place: number): string {
  return `($${place}::uuid is null or exists (select 1 from sending_guard where id = $${place}
                                                and beats >= $${place + 1} and paused_at is null))`;
}

/** Takes up to k due rows of each lane. Index: delivery_claim. 5 ms for 200 rows at 10 M rows and 100,000 lanes. */
export function claimDue(db: Query, node: number, lanes: { id: number; k: number }[], { now, mark }: Claim) {
  return db.query<ClaimedRow>(
    `update delivery d set owner = $1
       from (select c.org_id, c.message_id, c.position
               from unnest($2::bigint[], $3::int[]) as l (id, k)
               cross join lateral (
                 select org_id, message_id, position from delivery
                  where lane_id = l.id and owner is null and due_at <= $4
                  order by due_at limit l.k for update skip locked) c
              where ${unlessRestored(5)}) picked
      where d.org_id = picked.org_id and d.message_id = picked.message_id and d.position = picked.position
      returning d.org_id, d.message_id, d.position, d.lane_id, d.email, d.attempts, d.created_at, d.expires_at,
                d.deferred_event_at, d.absent_since, d.return_path_host, d.owner, d.charged_at`,
    [node, lanes.map((lane) => lane.id), lanes.map((lane) => lane.k), now, mark?.id ?? null, mark?.beats ?? 0],
  );
}

/**
 * When each lane has work again: with its first row, or never (`infinity`). A lane in which nothing is due is `asleep`; it is
 * looked at once more after `lingerMs`, for rows that were being committed while this statement looked (their inserts
 * found the lane awake, and left it alone).
 */
export function rescheduleLanes(db: Query, lanes: number[], now: Date, lingerMs: number) {
  return db.query<{ id: number; asleep: boolean }>(
    `update lane l
        set next_at = least(coalesce(n.due_at, 'infinity'),
                            case when $3::int > 0 then $2::timestamptz + $3::int * interval '1 millisecond' end)
       from (select x.id, (select d.due_at from delivery d where d.lane_id = x.id and d.owner is null
                            order by d.due_at limit 1) as due_at
               from unnest($1::bigint[]) as x (id) order by x.id) n
      where l.id = n.id
      returning l.id, n.due_at is null or n.due_at > $2 as asleep`,
    [lanes, now, lingerMs],
  );
}

const LANE = "id, org_id, source_id, slot, domain, class, relay_domain_id";

export function findLanes(db: Query, ids: number[]) {
  return db.query<Lane>(`select ${LANE} from lane where id = any($1)`, [ids]);
}

export type LaneKey = Omit<Lane, "id">;

/** Finds or makes lanes; rows come back in no particular order. */
export function upsertLanes(db: Query, lanes: LaneKey[], now: Date) {
  return db.query<Lane>(
    `insert into lane (org_id, source_id, slot, domain, class, relay_domain_id, next_at, touched_at)
     select *, 'infinity'::timestamptz, $7::timestamptz
       from unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::text[], $5::smallint[], $6::uuid[])
      order by 1, 2, 4, 5, 6
     on conflict (org_id, source_id, domain, class, relay_domain_id) do update set touched_at = excluded.touched_at, retired_xid = null
     returning ${LANE}`,
    [
      lanes.map((lane) => lane.org_id),
      lanes.map((lane) => lane.source_id),
      lanes.map((lane) => lane.slot),
      lanes.map((lane) => lane.domain),
      lanes.map((lane) => lane.class),
      lanes.map((lane) => lane.relay_domain_id),
      now,
    ],
  );
}

/** Message and body size of claimed rows; bodies themselves are loaded when the attempt begins. */
export function describeMessages(db: Query, keys: { org_id: string; message_id: string }[]) {
  return db.query<{
    id: string;
    domain_id: string;
    rfc_message_id: string;
    from_address: string;
    subject: string;
    tags: string[];
    metadata: Record<string, unknown>;
    size: number;
    recipient_count: number;
    require_tls: boolean;
    has_expiry: boolean;
    environment: "live" | "test";
    origin: string;
    envelope_from: string | null;
    unsubscribe_list: string | null;
    template_id: string | null;
  }>(
    `select m.id, m.domain_id, m.message_id as rfc_message_id, m.from_address, m.subject, m.tags, m.metadata, m.size,
            m.recipient_count, m.require_tls, m.expires_at is not null as has_expiry, m.environment,
            m.origin, m.envelope_from, m.unsubscribe_list, m.template_id
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join message m on m.org_id = k.org_id and m.id = k.id`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id)],
  );
}

export function loadBodies(db: Query, keys: { org_id: string; message_id: string }[]) {
  return db.query<{ id: string; mime: Buffer | null; blob_key: string | null }>(
    `select b.id, b.mime, b.blob_key
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join message_body b on b.org_id = k.org_id and b.id = k.id`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id)],
  );
}

/**
 * `owner` where it is compared row by row: as an expression that null does not pass through, so that no index of the rows
 * that are owned is used. Statistics taken while few are make that index look better than the key, and each row would look
 * through all that a node holds: 1.3 ms of the database's processor a message in place of 0.2.
 */
export const OWNED_AS = "coalesce(d.owner, 0)";

const IN_DOUBT = `select d.org_id, d.message_id, d.position, d.lane_id, d.email, d.attempts, d.created_at, d.expires_at,
                         d.deferred_event_at, d.absent_since, d.return_path_host, d.owner, d.charged_at from delivery d`;

/** Everything a node holds. Index: delivery_owned. */
export function ownedBy(tx: Tx, node: number) {
  return tx.query<ClaimedRow>(`${IN_DOUBT} where d.owner = $1 order by d.message_id, d.position for update of d`, [
    node,
  ]);
}

/** Their names only. Index: delivery_owned. */
export function ownedKeys(db: Query, node: number) {
  return db.query<{ org_id: string; message_id: string; position: number }>(
    "select org_id, message_id, position from delivery where owner = $1",
    [node],
  );
}

/** What a node holds of these attempts; one that was recorded has another number or is gone. Index: delivery_owned. */
export function ownedAmong(
  tx: Tx,
  node: number,
  attempts: { message_id: string; position: number; attempts: number }[],
) {
  return tx.query<ClaimedRow>(
    `${IN_DOUBT} join unnest($2::uuid[], $3::int[], $4::int[]) as k (message_id, position, attempts)
         on d.message_id = k.message_id and d.position = k.position and d.attempts = k.attempts
      where d.owner = $1 order by d.message_id, d.position for update of d`,
    [
      node,
      attempts.map((one) => one.message_id),
      attempts.map((one) => one.position),
      attempts.map((one) => one.attempts),
    ],
  );
}

/** A delivery, and the node id under which it was taken. */
export type OwnedKey = { org_id: string; message_id: string; position: number; owner: number };

/** Gives rows back unattempted (graceful stop, a lost connection before any answer). */
export function returnDeliveries(db: Query, rows: OwnedKey[], due: Date) {
  return db.execute(
    `with given as (
       update delivery d set owner = null, due_at = greatest(d.due_at, $5)
         from unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[]) as k (owner, org_id, message_id, position)
        where d.org_id = k.org_id and d.message_id = k.message_id and d.position = k.position
          and ${OWNED_AS} = k.owner
       returning d.lane_id, d.due_at)
     update lane l set next_at = g.due_at
       from (select lane_id, min(due_at) as due_at from given group by lane_id order by lane_id) g
      where l.id = g.lane_id and l.next_at > g.due_at`,
    [...ownedColumns(rows), due],
  );
}

function ownedColumns(rows: OwnedKey[]): unknown[] {
  return (["owner", "org_id", "message_id", "position"] as const).map((name) => rows.map((row) => row[name]));
}

/** Moves deliveries to other lanes, free to claim there; fails as a whole (isLaneGone) where one of them is not there. */
export function moveDeliveries(db: Query, rows: (OwnedKey & { lane_id: number })[]) {
  return db.execute(
    `with moved as (
       update delivery d set owner = null, lane_id = (select id from lane where id = k.lane_id and retired_xid is null)
         from unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[])
           as k (owner, org_id, message_id, position, lane_id)
        where d.org_id = k.org_id and d.message_id = k.message_id and d.position = k.position
          and ${OWNED_AS} = k.owner
       returning d.lane_id, d.due_at)
     update lane l set next_at = m.due_at
       from (select lane_id, min(due_at) as due_at from moved group by lane_id order by lane_id) m
      where l.id = m.lane_id and l.next_at > m.due_at`,
    [...ownedColumns(rows), rows.map((row) => row.lane_id)],
  );
}

/** Parks every lane of a dead destination with one statement: a million rows behind it cost nothing. */
export function pauseLanes(db: Query, lanes: number[], until: Date, reason: string) {
  return db.execute(
    "update lane set paused_until = $2, next_at = greatest(next_at, $2), reason = $3 where id = any($1)",
    [lanes, until, reason],
  );
}

export function resumeLanes(db: Query, lanes: number[], now: Date) {
  return db.execute(
    "update lane set paused_until = null, next_at = $2, reason = null where id = any($1) and paused_until is not null",
    [lanes, now],
  );
}

/**
 * Wakes lanes that look later than their first row is due (an insert raced the lane's falling asleep, for longer than it
 * lingered). Healing, not routine. Lanes that are parked still look later on purpose.
 */
export function wakeForgottenLanes(db: Query, slots: { source_id: string; slot: number }[], now: Date) {
  return db.execute(
    `update lane l set next_at = d.due_at
       from unnest($1::uuid[], $2::smallint[]) as s (source_id, slot)
       join lane c on c.source_id = s.source_id and c.slot = s.slot
                  and (c.next_at = 'infinity' or c.paused_until is null or c.paused_until <= $3)
       cross join lateral (select due_at from delivery where lane_id = c.id and owner is null and due_at < c.next_at
                            order by due_at limit 1) d
      where l.id = c.id and l.next_at > d.due_at`,
    [slots.map((s) => s.source_id), slots.map((s) => s.slot), now],
  );
}

/** Rows past their time in lanes that nobody works on (paused destinations), but those of `suspended` organizations. Index: delivery_expiry. */
export function claimExpired(
  db: Query,
  node: number,
  slots: { source_id: string; slot: number }[],
  { now, mark, limit, suspended }: Claim & { limit: number; suspended: string[] },
) {
  return db.query<ClaimedRow>(
    `update delivery d set owner = $1
       from (select e.org_id, e.message_id, e.position from delivery e
              where e.owner is null and e.expires_at <= $4 and e.org_id <> all($8::uuid[]) and ${unlessRestored(6)}
                and exists (select 1 from lane l join unnest($2::uuid[], $3::smallint[]) as s (source_id, slot)
                              on l.source_id = s.source_id and l.slot = s.slot where l.id = e.lane_id)
              order by e.expires_at limit $5 for update skip locked) picked
      where d.org_id = picked.org_id and d.message_id = picked.message_id and d.position = picked.position
      returning d.org_id, d.message_id, d.position, d.lane_id, d.email, d.attempts, d.created_at, d.expires_at,
                d.deferred_event_at, d.absent_since, d.return_path_host, d.owner, d.charged_at`,
    [
      node,
      slots.map((s) => s.source_id),
      slots.map((s) => s.slot),
      now,
      limit,
      mark?.id ?? null,
      mark?.beats ?? 0,
      suspended,
    ],
  );
}

/**
 * Mail of these organizations and to these destinations (null: of and to all) that would be out of time before `until` has until
 * then, unless its sender set the time; how many. `held`: mail that was in the hands of a node. Indexes: delivery_expiry, delivery_owned.
 */
export function extendWaiting(
  db: Query,
  { orgs, domains }: { orgs: string[] | null; domains: string[] | null },
  { held, until, limit }: { held: boolean; until: Date; limit: number },
) {
  return db.execute(
    `update delivery d set expires_at = $1
       from (select e.org_id, e.message_id, e.position from delivery e
               join message m on m.org_id = e.org_id and m.id = e.message_id and m.expires_at is null
              where e.owner is ${held ? "not " : ""}null and e.expires_at < $1 and ($2::uuid[] is null or e.org_id = any($2))
                and ($4::text[] is null or e.lane_id = any(array(select id from lane where domain = any($4))))
              order by e.expires_at limit $3 for update of e skip locked) picked
      where d.org_id = picked.org_id and d.message_id = picked.message_id and d.position = picked.position`,
    [until, orgs, limit, domains],
  );
}

const IDLE_LANE = `l.touched_at < $1 and l.next_at = 'infinity'
        and not exists (select 1 from delivery d where d.lane_id = l.id)`;

/**
 * Drops lanes that nobody used since then and that hold nothing, at most `limit` of them. In two steps: a statement that began
 * before a lane was retired may put mail into it, so that it is deleted once no such transaction can be under way.
 */
export async function dropIdleLanes(db: Db, before: Date, limit: number): Promise<void> {
  await deleteRetired(db, before, { limit, oldest: await oldestNumber(db) });
  await db.transaction(async (tx) => retireIdle(tx, before, { limit, number: await ownNumber(tx) }));
}

export function deleteRetired(db: Query, before: Date, { limit, oldest }: { limit: number; oldest: string }) {
  return db.execute(
    `delete from lane l
      where l.id = any(array(select l.id from lane l
                              where l.retired_xid < $3::text::xid8 and ${IDLE_LANE} limit $2))
        and l.retired_xid is not null and ${IDLE_LANE}`,
    [before, limit, oldest],
  );
}

export function retireIdle(tx: Tx, before: Date, { limit, number }: { limit: number; number: string }) {
  return tx.execute(
    `update lane l set retired_xid = $3::text::xid8
      where l.id = any(array(select l.id from lane l where l.retired_xid is null and ${IDLE_LANE} limit $2))
        and l.retired_xid is null and ${IDLE_LANE}`,
    [before, limit, number],
  );
}

/**
 * For how many seconds mail has been due that waited longest; parked destinations do not count, nor what is suspended.
 * 20 ms at 100,000 lanes.
 */
export function oldestDue(db: Query, now: Date, suspended: { orgs: string[]; domains: string[] }) {
  return db.query<{ seconds: number }>(
    `select greatest(0, coalesce(extract(epoch from $1 - min(next_at)), 0))::float8 as seconds from lane
      where next_at <= $1 and (paused_until is null or paused_until <= $1) and org_id <> all($2::uuid[])
        and domain <> all($3::text[])`,
    [now, suspended.orgs, suspended.domains],
  );
}

/** True if mail of this domain is still queued. */
export function hasQueuedMail(tx: Query, orgId: string, domainId: string) {
  return tx.query<{ found: boolean }>(
    `select exists (select 1 from delivery d join message m on m.org_id = d.org_id and m.id = d.message_id
                     where d.org_id = $1 and m.domain_id = $2) as found`,
    [orgId, domainId],
  );
}

export type WaitingKey = { message_id: string; position: number };

/**
 * Mail of a sender domain that waits without an attempt (for a window, for the domain to be switched on) is due at `now`:
 * `limit` deliveries behind `after`, in the order of their key. The last one of them, or none when there are no more. Scheduled
 * mail keeps its time: it is `queued`. Index: primary key.
 */
export function hastenWaiting(
  tx: Tx,
  { org_id, domain_id }: { org_id: string; domain_id: string },
  { now, after, limit }: { now: Date; after: WaitingKey; limit: number },
) {
  return tx.query<WaitingKey>(
    `with waiting as (
       select d.org_id, d.message_id, d.position
         from delivery d
         join message m on m.org_id = d.org_id and m.id = d.message_id
         join recipient r on r.org_id = d.org_id and r.message_id = d.message_id and r.position = d.position
        where d.org_id = $1 and m.domain_id = $2 and d.owner is null and d.attempts = 0 and d.due_at > $3
          and r.status = 'deferred' and (d.message_id, d.position) > ($5::uuid, $6::smallint)
        order by d.message_id, d.position limit $4 for update of d skip locked),
     moved as (
       update delivery d set due_at = $3 from waiting w
        where d.org_id = w.org_id and d.message_id = w.message_id and d.position = w.position
       returning d.org_id, d.message_id, d.position, d.lane_id),
     shown as (
       update recipient r set next_attempt_at = $3 from moved m
        where r.org_id = m.org_id and r.message_id = m.message_id and r.position = m.position),
     woken as (
       update lane l set next_at = $3
         from (select id from lane where id in (select lane_id from moved) and next_at > $3 order by id for update) late
        where l.id = late.id)
     select message_id, position from waiting order by message_id desc, position desc limit 1`,
    [org_id, domain_id, now, limit, after.message_id, after.position],
  );
}

/** Deliveries of an organization that a node has in hand. Index: delivery_owned. */
export async function countOwned(db: Query, orgId: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    "select count(*)::int as n from delivery where owner is not null and org_id = $1",
    [orgId],
  );
  return row?.n ?? 0;
}
