// All SQL on the queue of deliveries: what producers add, what dispatchers claim and finish, and the lanes between them.
// Lanes are always locked in the order of (org_id, webhook_id).
import { type ArrayWriter, arrayWriter, type ElementType } from "../platform/database/binary-arrays.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { AttemptResult, ClaimedRow, WebhookEventType } from "./types.ts";

// --- producers -------------------------------------------------------------------------------------------------------

export type Subscriber = {
  org_id: string;
  id: string;
  event_types: WebhookEventType[];
  domain_id: string | null;
  match_pattern: string | null;
  environment: "live" | "test";
  sleeps: boolean;
};

/**
 * Enabled endpoints of these organizations that subscribe to one of these events; their lanes stay awake until the
 * transaction ends. Index: primary key of webhook.
 */
export function holdSubscribers(tx: Tx, orgIds: readonly string[], events: readonly string[], at: Date) {
  return tx.query<Subscriber>(
    `select w.org_id, w.id, w.event_types, w.domain_id, w.match_pattern, w.environment, l.next_at > $3 as sleeps
       from webhook w join webhook_lane l on l.org_id = w.org_id and l.webhook_id = w.id
      where w.org_id = any($1::uuid[]) and w.enabled and w.event_types && $2::text[]
      order by w.org_id, w.id
        for key share of l`,
    [orgIds, events, at],
  );
}

export type NewBody = { org_id: string; id: string; event: string; body: Buffer };
export type NewDelivery = {
  org_id: string;
  id: string;
  webhook_id: string;
  event_id: string;
  event: string;
  body_bytes: number;
};

const BODY = { org_id: "uuid", id: "uuid", event: "text", body: "bytea" } as const;
const DELIVERY = {
  org_id: "uuid",
  id: "uuid",
  webhook_id: "uuid",
  event_id: "uuid",
  event: "text",
  body_bytes: "int",
} as const;

/** In binary form: bodies as text would be quoted and read octet by octet. */
function inColumns<Row>(
  columns: { [K in keyof Row]: ElementType },
  rows: readonly Row[],
  writer: ArrayWriter,
): Buffer[] {
  return (Object.keys(columns) as (keyof Row)[]).map((name) =>
    writer.array(
      columns[name],
      rows.map((row) => row[name]),
    ),
  );
}

/** One statement for all bodies and deliveries of a batch, due at `at`. An event known already keeps its first body. */
export function insertDeliveries(tx: Tx, bodies: NewBody[], deliveries: NewDelivery[], at: Date) {
  const writer = arrayWriter();
  return tx.execute(
    `with bodies as (
       insert into webhook_event (org_id, id, event, created_at, body)
       select b.org_id, b.id, b.event, $1, b.body
         from unnest($2::uuid[], $3::uuid[], $4::text[], $5::bytea[]) as b(org_id, id, event, body)
       on conflict do nothing)
     insert into webhook_queue (org_id, id, webhook_id, event_id, event, body_bytes, created_at, next_attempt_at)
     select d.*, $1, $1
       from unnest($6::uuid[], $7::uuid[], $8::uuid[], $9::uuid[], $10::text[], $11::integer[])
         as d(org_id, id, webhook_id, event_id, event, body_bytes)
     returning 1`,
    [at, ...inColumns(BODY, bodies, writer), ...inColumns(DELIVERY, deliveries, writer)],
  );
}

export type LaneKey = { org_id: string; webhook_id: string };

/** Keeps lanes awake until the transaction ends: needed before rows of theirs become free to claim. */
export async function holdLanes(tx: Tx, lanes: readonly LaneKey[]): Promise<void> {
  await tx.execute(
    `select 1 from webhook_lane l
       join unnest($1::uuid[], $2::uuid[]) as k(org_id, webhook_id) on l.org_id = k.org_id and l.webhook_id = k.webhook_id
      order by l.org_id, l.webhook_id for key share of l`,
    laneColumns(lanes),
  );
}

/** Lanes look for work at `at` at the latest. They must be held: by `holdSubscribers` or `holdLanes`. */
export async function wakeLanes(tx: Tx, lanes: readonly LaneKey[], at: Date): Promise<void> {
  await tx.execute(
    `with held as (
       select l.org_id, l.webhook_id from webhook_lane l
         join unnest($1::uuid[], $2::uuid[]) as k(org_id, webhook_id) on l.org_id = k.org_id and l.webhook_id = k.webhook_id
        where l.next_at > $3 order by l.org_id, l.webhook_id for no key update of l)
     update webhook_lane l set next_at = least(l.next_at, $3) from held
      where l.org_id = held.org_id and l.webhook_id = held.webhook_id`,
    [...laneColumns(lanes), at],
  );
}

function laneColumns(lanes: readonly LaneKey[]): [string[], string[]] {
  return [lanes.map((lane) => lane.org_id), lanes.map((lane) => lane.webhook_id)];
}

// --- dispatchers: looking and claiming -------------------------------------------------------------------------------

export type DueLane = LaneKey & {
  consecutive_failures: number;
  /** Deleted or disabled: nothing may be sent. */
  closed: boolean;
};

/** Lanes with work, longest waiting first, without those in `except`. Index: webhook_lane_due. */
export function findDueLanes(db: Query, at: Date, except: readonly string[], limit: number) {
  return db.query<DueLane>(
    `select l.org_id, l.webhook_id, l.consecutive_failures, w.enabled is not true as closed
       from webhook_lane l left join webhook w on w.org_id = l.org_id and w.id = l.webhook_id
      where l.next_at <= $1 and not exists (select from unnest($2::uuid[]) as x(id) where x.id = l.webhook_id)
      order by l.next_at limit $3`,
    [at, except, limit],
  );
}

export type Want = LaneKey & { rows: number };

/**
 * Claims up to `rows` due deliveries of each lane, oldest first, passing over what others hold. Index:
 * webhook_queue_claim, so a lane with a million rows costs as much as one with ten: 200 rows in 3 ms. By ctid, which
 * the lock keeps in place: a join on the key is planned as a scan of the whole queue (450 ms), as the planner takes a
 * limit it cannot see for a tenth of the rows.
 */
export function claimDeliveries(db: Query, wants: readonly Want[], claim: { id: string; at: Date; lease_s: number }) {
  return db.query<ClaimedRow>(
    `update webhook_queue q set claim_id = $4, lease_until = statement_timestamp() + make_interval(secs => $6)
      where q.ctid = any(array(
        select x.ctid from unnest($1::uuid[], $2::uuid[], $3::integer[]) as k(org_id, webhook_id, row_count)
         cross join lateral (
           select q.ctid from webhook_queue q
            where q.org_id = k.org_id and q.webhook_id = k.webhook_id and q.claim_id is null and q.next_attempt_at <= $5
            order by q.next_attempt_at limit k.row_count for update skip locked) as x))
        and q.org_id = any($1::uuid[])
     returning q.org_id, q.id, q.webhook_id, q.event_id, q.event, q.body_bytes, q.created_at, q.attempt, q.claim_id`,
    [...laneColumns(wants), wants.map((want) => want.rows), claim.id, claim.at, claim.lease_s],
  );
}

/** Lanes that had more than was taken go behind the others; at most once a second each. */
export async function requeueLanes(db: Query, lanes: readonly LaneKey[], at: Date): Promise<void> {
  await db.execute(
    `with held as (
       select l.org_id, l.webhook_id from webhook_lane l
         join unnest($1::uuid[], $2::uuid[]) as k(org_id, webhook_id) on l.org_id = k.org_id and l.webhook_id = k.webhook_id
        where l.next_at < $3::timestamptz - interval '1 second'
        order by l.org_id, l.webhook_id for no key update of l skip locked)
     update webhook_lane l set next_at = $3 from held
      where l.org_id = held.org_id and l.webhook_id = held.webhook_id`,
    [...laneColumns(lanes), at],
  );
}

/** Gives claimed rows back untouched. Their lanes must be held. */
export function releaseDeliveries(tx: Tx, rows: readonly ClaimedRow[]) {
  return tx.execute(
    `update webhook_queue q set claim_id = null, lease_until = null
       from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as r(org_id, id, claim_id)
      where q.org_id = r.org_id and q.id = r.id and q.claim_id = r.claim_id`,
    [rows.map((row) => row.org_id), rows.map((row) => row.id), rows.map((row) => row.claim_id)],
  );
}

/** Claims that a dead process left behind. Index: webhook_queue_leased. */
export function findExpiredClaims(tx: Tx, limit: number) {
  return tx.query<ClaimedRow>(
    `select org_id, id, webhook_id, event_id, event, body_bytes, created_at, attempt, claim_id from webhook_queue
      where claim_id is not null and lease_until < statement_timestamp() order by lease_until limit $1 for update skip locked`,
    [limit],
  );
}

/** For how many seconds a webhook has been due that waited longest. Index: webhook_lane_due. */
export function oldestDue(db: Query, at: Date) {
  return db.query<{ seconds: number }>(
    "select greatest(0, coalesce(extract(epoch from $1 - min(next_at)), 0))::float8 as seconds from webhook_lane where next_at <= $1",
    [at],
  );
}

/** Once at start: no lane may sleep past a delivery, whatever happened to the database meanwhile. */
export function healLanes(db: Query) {
  return db.execute(
    `with held as (
       select l.org_id, l.webhook_id, q.first_at from webhook_lane l
         join (select org_id, webhook_id, min(next_attempt_at) as first_at from webhook_queue
                group by org_id, webhook_id) as q on q.org_id = l.org_id and q.webhook_id = l.webhook_id
        where l.next_at > q.first_at for no key update of l skip locked)
     update webhook_lane l set next_at = held.first_at from held
      where l.org_id = held.org_id and l.webhook_id = held.webhook_id`,
  );
}

/** Bodies of many events at once. Index: primary key of the event's day. */
export function findBodies(db: Query, orgIds: readonly string[], eventIds: readonly string[]) {
  return db.query<{ org_id: string; id: string; body: Buffer }>(
    `select e.org_id, e.id, e.body from unnest($1::uuid[], $2::uuid[]) as k(org_id, id)
       join webhook_event e on e.org_id = k.org_id and e.id = k.id`,
    [orgIds, eventIds],
  );
}

// --- dispatchers: outcomes -------------------------------------------------------------------------------------------

export type Outcome = AttemptResult & {
  row: Pick<ClaimedRow, "org_id" | "id" | "webhook_id" | "claim_id" | "attempt">;
  status: "delivered" | "failed" | "retrying";
  /** True if a request was made. Without one neither the attempt nor the endpoint's failures count. */
  tried: boolean;
  at: Date;
  next_attempt_at: Date | null;
  /** 410: the endpoint is to be disabled. */
  gone: boolean;
};

function outcomeColumns(outcomes: readonly Outcome[]) {
  return [
    outcomes.map(({ row }) => row.org_id),
    outcomes.map(({ row }) => row.id),
    outcomes.map(({ row }) => row.claim_id),
    outcomes.map(({ row, tried }) => row.attempt + (tried ? 1 : 0)),
    outcomes.map((outcome) => outcome.status_code),
    outcomes.map((outcome) => outcome.error),
    outcomes.map((outcome) => outcome.duration_ms),
    outcomes.map((outcome) => outcome.attempt_id),
    outcomes.map((outcome) => outcome.at),
  ];
}

const OUTCOMES = `unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::smallint[], $6::text[], $7::integer[],
  $8::uuid[], $9::timestamptz[]`;
const OUTCOME_NAMES = "org_id, id, claim_id, attempt, status_code, error, duration_ms, attempt_id, at";

/** Moves finished deliveries from the queue into the log; rows that are not ours any more are left alone. */
export function finishDeliveries(tx: Tx, outcomes: readonly Outcome[]) {
  return tx.execute(
    `with done as (
       delete from webhook_queue q using ${OUTCOMES}, $10::text[]) as o(${OUTCOME_NAMES}, status)
        where q.org_id = o.org_id and q.id = o.id and q.claim_id = o.claim_id
       returning q.org_id, q.id, q.webhook_id, q.event_id, q.event, q.created_at, o.at, o.attempt, o.status,
                 o.status_code, o.error, o.duration_ms, o.attempt_id)
     insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status,
                                   status_code, error, duration_ms, attempt_id)
     select * from done returning 1`,
    [...outcomeColumns(outcomes), outcomes.map((outcome) => outcome.status)],
  );
}

/** Schedules the next attempt; rows that are not ours any more are left alone. */
export function retryDeliveries(tx: Tx, outcomes: readonly Outcome[]) {
  return tx.execute(
    `update webhook_queue q set attempt = o.attempt, status_code = o.status_code, error = o.error,
        duration_ms = o.duration_ms, attempt_id = o.attempt_id, next_attempt_at = o.next_attempt_at,
        claim_id = null, lease_until = null
       from ${OUTCOMES}, $10::timestamptz[]) as o(${OUTCOME_NAMES}, next_attempt_at)
      where q.org_id = o.org_id and q.id = o.id and q.claim_id = o.claim_id`,
    [...outcomeColumns(outcomes), outcomes.map((outcome) => outcome.next_attempt_at)],
  );
}

export type LaneNote = LaneKey & {
  /** The last success, from which `failures` counts; null if there was none. */
  succeeded_at: Date | null;
  failures: number;
  next_at: Date | null;
};

/** Counts failures and successes, and looks again when the earliest retry is due. */
export async function noteLanes(tx: Tx, notes: readonly LaneNote[]): Promise<void> {
  await tx.execute(
    `with held as (
       select l.org_id, l.webhook_id, n.succeeded_at, n.failures, n.next_at from webhook_lane l
         join unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::integer[], $5::timestamptz[])
           as n(org_id, webhook_id, succeeded_at, failures, next_at)
           on l.org_id = n.org_id and l.webhook_id = n.webhook_id
        order by l.org_id, l.webhook_id for no key update of l)
     update webhook_lane l set
       consecutive_failures = case when held.succeeded_at is null then l.consecutive_failures + held.failures else held.failures end,
       last_success_at = greatest(l.last_success_at, held.succeeded_at),
       next_at = least(l.next_at, held.next_at)
      from held where l.org_id = held.org_id and l.webhook_id = held.webhook_id`,
    [
      ...laneColumns(notes),
      notes.map((note) => note.succeeded_at),
      notes.map((note) => note.failures),
      notes.map((note) => note.next_at),
    ],
  );
}

/** 410 Gone: no more deliveries, and what is queued fails as soon as a dispatcher comes by. */
export async function disableGone(tx: Tx, lanes: readonly LaneKey[], at: Date): Promise<void> {
  await tx.execute(
    `update webhook w set enabled = false, disabled_reason = 'gone', disabled_at = $3, updated_at = $3
       from unnest($1::uuid[], $2::uuid[]) as k(org_id, id)
      where w.org_id = k.org_id and w.id = k.id and w.enabled`,
    [...laneColumns(lanes), at],
  );
}

// --- dispatchers: sleep, and closed endpoints ------------------------------------------------------------------------

/**
 * Locks those of these lanes that no producer holds. A later statement of the transaction sees all their rows, and no
 * new ones can come.
 */
export function lockQuietLanes(tx: Tx, lanes: readonly LaneKey[]) {
  return tx.query<LaneKey>(
    `select l.org_id, l.webhook_id from webhook_lane l
       join unnest($1::uuid[], $2::uuid[]) as k(org_id, webhook_id) on l.org_id = k.org_id and l.webhook_id = k.webhook_id
      order by l.org_id, l.webhook_id for update of l skip locked`,
    laneColumns(lanes),
  );
}

/** The next look is when the first unclaimed delivery is due, or never. Lanes must be locked by `lockQuietLanes`. */
export async function sleepLanes(tx: Tx, lanes: readonly LaneKey[]): Promise<void> {
  await tx.execute(
    `update webhook_lane l set next_at = coalesce(
        (select min(q.next_attempt_at) from webhook_queue q
          where q.org_id = l.org_id and q.webhook_id = l.webhook_id and q.claim_id is null), 'infinity')
       from unnest($1::uuid[], $2::uuid[]) as k(org_id, webhook_id)
      where l.org_id = k.org_id and l.webhook_id = k.webhook_id`,
    laneColumns(lanes),
  );
}

/** Why nothing may be sent to a lane's endpoint; none when it was deleted. */
export function findClosed(tx: Tx, lane: LaneKey) {
  return tx.query<{ enabled: boolean; disabled_reason: "asked" | "gone" | null; disabled_at: Date | null }>(
    "select enabled, disabled_reason, disabled_at from webhook where org_id = $1 and id = $2",
    [lane.org_id, lane.webhook_id],
  );
}

/** When to look at the lane again. It must be locked. */
export function setLane(tx: Tx, lane: LaneKey, nextAt: Date) {
  return tx.execute("update webhook_lane set next_at = $3 where org_id = $1 and webhook_id = $2", [
    lane.org_id,
    lane.webhook_id,
    nextAt,
  ]);
}

/** Drops up to `limit` deliveries of a deleted endpoint, claimed ones too: their outcome then finds nothing. */
export function dropDeliveries(tx: Query, lane: LaneKey, limit: number) {
  return tx.execute(
    `delete from webhook_queue where org_id = $1 and ctid = any(array(
       select ctid from webhook_queue where org_id = $1 and webhook_id = $2 limit $3 for update skip locked))`,
    [lane.org_id, lane.webhook_id, limit],
  );
}

/** Removes the lane of a deleted endpoint once nothing is queued for it. */
export function dropLane(tx: Query, lane: LaneKey) {
  return tx.execute(
    `delete from webhook_lane l where l.org_id = $1 and l.webhook_id = $2
        and not exists (select from webhook_queue q where q.org_id = $1 and q.webhook_id = $2)
        and not exists (select from webhook w where w.org_id = $1 and w.id = $2)`,
    [lane.org_id, lane.webhook_id],
  );
}

/** Fails up to `limit` unclaimed deliveries, with what is known of their last attempt. */
export function failDeliveries(tx: Tx, lane: LaneKey, why: { error: string; at: Date; limit: number }) {
  return tx.execute(
    `with done as (
       delete from webhook_queue where org_id = $1 and ctid = any(array(
         select ctid from webhook_queue where org_id = $1 and webhook_id = $2 and claim_id is null
          order by next_attempt_at limit $5 for update skip locked))
       returning org_id, id, webhook_id, event_id, event, created_at, $4::timestamptz as finished_at, attempt,
                 'failed', status_code, $3 as error, duration_ms, attempt_id)
     insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status,
                                   status_code, error, duration_ms, attempt_id)
     select * from done returning 1`,
    [lane.org_id, lane.webhook_id, why.error, why.at, why.limit],
  );
}

/** Deliveries of an organization that a dispatcher has in hand. Index: webhook_queue_leased. */
export async function countClaimed(db: Query, orgId: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    "select count(*)::int as n from webhook_queue where claim_id is not null and org_id = $1",
    [orgId],
  );
  return row?.n ?? 0;
}
