// All SQL on events as they are read from the API, in the order in which they were committed.
import { arrayWriter } from "../../platform/database/binary-arrays.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import type { WebhookEventType } from "../types.ts";

const HOUR_MS = 3_600_000;

/** Events of this organization are kept for its readers until then. Written once an hour, however often it reads. */
export function noteListener(db: Query, orgId: string, { now, until }: { now: Date; until: Date }) {
  return db.execute(
    `insert into event_listener (org_id, until, since) values ($1, $2, $4)
     on conflict (org_id) do update
        set until = excluded.until,
            since = case when event_listener.until < excluded.since then excluded.since else event_listener.since end
      where event_listener.until < $3`,
    [orgId, until, new Date(until.getTime() - HOUR_MS), now],
  );
}

/** Since when they are kept without a pause; null where it is not known. Index: primary key. */
export async function listenedSince(db: Query, orgId: string): Promise<Date | null> {
  const [row] = await db.query<{ since: Date | null }>("select since from event_listener where org_id = $1", [orgId]);
  return row?.since ?? null;
}

/** Those of these organizations whose events are read at the moment. Index: primary key. */
export function findListeners(db: Query, orgIds: readonly string[], at: Date) {
  return db.query<{ org_id: string }>(
    "select org_id from event_listener where org_id = any($1::uuid[]) and until > $2",
    [orgIds, at],
  );
}

/** Bodies in one answer, but for the last one: received mail has up to some MiB each. */
const BYTES_MAX = 8 * 1024 * 1024;

export type EventRow = { id: string; event: WebhookEventType; body: Buffer };
export type Wanted = {
  after: string;
  types: readonly WebhookEventType[];
  environments: readonly string[];
  /** Ids from this UUIDv7 on: bounds the day partitions. */
  from_id: string;
};

/**
 * Events behind `after`, oldest first. A transaction that began earlier may commit later, so what is written by one that is not
 * older than all that are under way waits for them: whoever reads never passes over an event. `after` may also be an id
 * without a row; then what has a later id counts. A database that was restored elsewhere counts its transactions again:
 * numbers from before are then ahead of it, and a row that has one stands before all others. Index: webhook_event_listened.
 */
export function readEvents(db: Query, orgId: string, wanted: Wanted, limit: number) {
  return db.query<EventRow>(
    `with last as (
       select case when listened < pg_snapshot_xmax(pg_current_snapshot()) then listened else '0' end as written
         from webhook_event where org_id = $1 and id = $2 and listened is not null)
     select id, event, body from (
       select e.id, e.event, e.body, e.listened, octet_length(e.body) as size,
              sum(octet_length(e.body)) over (order by e.listened, e.id) as total
         from webhook_event e
      where e.org_id = $1 and e.listened is not null and e.id >= $5
        and e.listened < pg_snapshot_xmin(pg_current_snapshot())
        and case when exists (select from last)
              then (e.listened, e.id) > ((select written from last), $2::uuid) else e.id > $2::uuid end
        and e.event = any($3::text[]) and e.environment = any($4::text[])
      order by e.listened, e.id limit $6) as page
      where total - size < $7 order by listened, id`,
    [orgId, wanted.after, wanted.types, wanted.environments, wanted.from_id, limit, BYTES_MAX],
  );
}

export type ListenedBody = { org_id: string; id: string; event: string; environment: string; body: Buffer };

/** Keeps events for those who read them, each once. `listened`, the number of the transaction, is their place in the order. */
export function insertListened(
  tx: Tx,
  bodies: readonly ListenedBody[],
  { at, listened }: { at: Date; listened: string },
) {
  const writer = arrayWriter();
  const column = (type: "uuid" | "text" | "bytea", name: keyof ListenedBody) =>
    writer.array(
      type,
      bodies.map((body) => body[name]),
    );
  return tx.execute(
    `insert into webhook_event (org_id, id, event, created_at, environment, listened, body)
     select b.org_id, b.id, b.event, $1, b.environment, $7::text::xid8, b.body
       from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bytea[]) as b(org_id, id, event, environment, body)
     on conflict do nothing`,
    [
      at,
      column("uuid", "org_id"),
      column("uuid", "id"),
      column("text", "event"),
      column("text", "environment"),
      column("bytea", "body"),
      listened,
    ],
  );
}
