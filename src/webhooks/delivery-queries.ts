// All SQL on the log of deliveries as customers see it: what is queued and what is finished, in one list; and replays.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type { AttemptResult, DeliveryRecord, DeliveryStatus, WebhookEventType } from "./types.ts";

export type DeliveryFilter = {
  status?: DeliveryStatus | undefined;
  endpoint_id?: string | undefined;
  event?: WebhookEventType | undefined;
  event_ids?: readonly string[] | undefined;
  /** Ids from this UUIDv7 on: bounds the day partitions. */
  from_id: string;
};

const SHOWN = `id, webhook_id as endpoint_id, event_id, event, attempt, status, status_code, error, duration_ms,
  attempt_id, created_at, next_attempt_at`;
const QUEUED = `select org_id, id, webhook_id, event_id, event, attempt,
    case when attempt = 0 then 'pending' else 'retrying' end as status,
    status_code, error, duration_ms, attempt_id, created_at, next_attempt_at
  from webhook_queue`;
const FINISHED = `select org_id, id, webhook_id, event_id, event, attempt, status, status_code, error, duration_ms,
    attempt_id, created_at, null::timestamptz as next_attempt_at
  from webhook_delivery`;
/** What a deleted endpoint had queued is on its way out and not shown. */
const NOT_ORPHANED =
  "exists (select from webhook w where w.org_id = webhook_queue.org_id and w.id = webhook_queue.webhook_id)";

type Halves = { halves: string[]; values: unknown[] };

/** Both tables with the same conditions, so that each can use its indexes; one that cannot match is left out. */
function filtered(orgId: string, filter: DeliveryFilter): Halves {
  const values: unknown[] = [orgId, filter.from_id];
  const conditions = ["org_id = $1", "id >= $2"];
  if (filter.endpoint_id !== undefined) conditions.push(`webhook_id = $${values.push(filter.endpoint_id)}`);
  if (filter.event !== undefined) conditions.push(`event = $${values.push(filter.event)}`);
  if (filter.event_ids !== undefined) conditions.push(`event_id = any($${values.push(filter.event_ids)}::uuid[])`);
  const where = conditions.join(" and ");
  const attempts = { pending: " and attempt = 0", retrying: " and attempt > 0" };
  const queued = (more: string) => `${QUEUED} where ${where} and ${NOT_ORPHANED}${more}`;
  const finished = (more: string) => `${FINISHED} where ${where}${more}`;
  const { status } = filter;
  if (status === "pending" || status === "retrying") return { halves: [queued(attempts[status])], values };
  if (status !== undefined) return { halves: [finished(` and status = $${values.push(status)}`)], values };
  return { halves: [queued(""), finished("")], values };
}

/** Each half is read only as far as the page reaches. Indexes: the primary keys, backwards. */
export function listDeliveries(
  db: Query,
  orgId: string,
  filter: DeliveryFilter,
  page: Page,
): Promise<DeliveryRecord[]> {
  const { halves, values } = filtered(orgId, filter);
  const limit = values.push(page.limit);
  const offset = values.push(page.offset);
  const below = values.push(page.below);
  const reach = values.push(page.limit + page.offset);
  const read = halves
    .map((half) => `(${half} and id < $${below} order by id desc limit $${reach})`)
    .join(" union all ");
  return db.query<DeliveryRecord>(
    `select ${SHOWN} from (${read}) as d order by id desc limit $${limit} offset $${offset}`,
    values,
  );
}

/** The total of what `listDeliveries` pages through. */
export function countDeliveries(db: Query, orgId: string, filter: DeliveryFilter): Promise<Total> {
  const { halves, values } = filtered(orgId, filter);
  return countUpToMax(db, `(${halves.join(" union all ")}) as d`, values);
}

/** Deliveries of these events, oldest first. Indexes: webhook_queue_by_event, webhook_delivery_by_event. */
export function listEventDeliveries(db: Query, orgId: string, eventIds: readonly string[]) {
  const where = "where org_id = $1 and event_id = any($2::uuid[])";
  return db.query<DeliveryRecord>(
    `select ${SHOWN} from (${QUEUED} ${where} and ${NOT_ORPHANED} union all ${FINISHED} ${where}) as d
      order by id limit 1000`,
    [orgId, eventIds],
  );
}

/** One delivery, queued or finished. Indexes: the primary keys. */
export function findDelivery(db: Query, orgId: string, id: string) {
  const where = "where org_id = $1 and id = $2";
  return db.query<DeliveryRecord>(
    `select ${SHOWN} from (${QUEUED} ${where} and ${NOT_ORPHANED} union all ${FINISHED} ${where}) as d`,
    [orgId, id],
  );
}

// --- replays ---------------------------------------------------------------------------------------------------------

/** A queued delivery is due at once; one that is being attempted right now stays as it is. */
export function hastenDelivery(tx: Tx, orgId: string, id: string, at: Date) {
  return tx.execute(
    `update webhook_queue set next_attempt_at = least(next_attempt_at, $3)
      where org_id = $1 and id = $2 and claim_id is null`,
    [orgId, id, at],
  );
}

/** Ids of finished deliveries of an endpoint that no replay has taken yet, oldest first, locked. */
export async function takeReplayable(tx: Tx, orgId: string, range: ReplayRange, limit: number): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id from webhook_delivery
      where org_id = $1 and webhook_id = $2 and id >= $3 and id < $4 and status = $5 and replayed_at is null
      order by id limit $6 for update`,
    [...rangeValues(orgId, range), limit],
  );
  return rows.map((row) => row.id);
}

/** How many `takeReplayable` would still find. */
export async function countReplayable(tx: Tx, orgId: string, range: ReplayRange): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    `select count(*) as total from webhook_delivery
      where org_id = $1 and webhook_id = $2 and id >= $3 and id < $4 and status = $5 and replayed_at is null`,
    rangeValues(orgId, range),
  );
  return row?.total ?? 0;
}

export type ReplayRange = { webhook_id: string; from_id: string; to_id: string; status: "failed" | "delivered" };

function rangeValues(orgId: string, range: ReplayRange) {
  return [orgId, range.webhook_id, range.from_id, range.to_id, range.status];
}

/** Queues each of these finished deliveries again, under the new id at its place; those without a body are left out. */
export function requeueFinished(tx: Tx, orgId: string, pairs: { ids: string[]; new_ids: string[] }, at: Date) {
  return tx.execute(
    `with again as (
       update webhook_delivery d set replayed_at = $4
         from unnest($2::uuid[], $3::uuid[]) as r(id, new_id)
        where d.org_id = $1 and d.id = r.id
       returning r.new_id, d.webhook_id, d.event_id, d.event),
     known as (
       select $1::uuid, a.new_id, a.webhook_id, a.event_id, a.event, octet_length(e.body), $4::timestamptz, $4::timestamptz
         from again a join webhook_event e on e.org_id = $1 and e.id = a.event_id)
     insert into webhook_queue (org_id, id, webhook_id, event_id, event, body_bytes, created_at, next_attempt_at)
     select * from known returning 1`,
    [orgId, pairs.ids, pairs.new_ids, at],
  );
}

// --- forgetting ------------------------------------------------------------------------------------------------------

type EventKey = { org_id: string; id: string };
const eventArrays = (events: readonly EventKey[]) => [events.map(({ org_id }) => org_id), events.map(({ id }) => id)];

/** The bytes of these events. Index: primary key of the event's day. */
export function deleteBodies(tx: Tx, events: readonly EventKey[]) {
  return tx.execute(
    `delete from webhook_event e using unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where e.org_id = k.org_id and e.id = k.id`,
    eventArrays(events),
  );
}

/** Unclaimed deliveries of these events fail, with what is known of their last attempt. Index: webhook_queue_by_event. */
export function failEvents(tx: Tx, events: readonly EventKey[], why: { error: string; at: Date }) {
  return tx.execute(
    `with done as (
       delete from webhook_queue q using unnest($1::uuid[], $2::uuid[]) as k (org_id, event_id)
        where q.org_id = k.org_id and q.event_id = k.event_id and q.claim_id is null
       returning q.org_id, q.id, q.webhook_id, q.event_id, q.event, q.created_at, $4::timestamptz as finished_at, q.attempt,
                 'failed', q.status_code, $3 as error, q.duration_ms, q.attempt_id)
     insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status,
                                   status_code, error, duration_ms, attempt_id)
     select * from done returning 1`,
    [...eventArrays(events), why.error, why.at],
  );
}

// --- tests -----------------------------------------------------------------------------------------------------------

export type MadeDelivery = AttemptResult & {
  id: string;
  webhook_id: string;
  event_id: string;
  event: WebhookEventType;
  body: Buffer;
  created_at: Date;
  finished_at: Date;
};

/** Logs an attempt that was made outside the queue. */
export async function insertMadeDelivery(tx: Tx, orgId: string, made: MadeDelivery): Promise<void> {
  await tx.execute(
    `with body as (insert into webhook_event (org_id, id, event, created_at, body) values ($1, $4, $5, $6, $12))
     insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status,
                                   status_code, error, duration_ms, attempt_id)
     values ($1, $2, $3, $4, $5, $6, $7, 1, case when $9::text is null then 'delivered' else 'failed' end, $8, $9, $10, $11)`,
    [
      orgId,
      made.id,
      made.webhook_id,
      made.event_id,
      made.event,
      made.created_at,
      made.finished_at,
      made.status_code,
      made.error,
      made.duration_ms,
      made.attempt_id,
      made.body,
    ],
  );
}
