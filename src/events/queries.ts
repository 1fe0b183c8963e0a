// All SQL on the event log.
import type { Query, Tx } from "../platform/database/db.ts";
import type { EventType, EventView, MailEvent } from "./types.ts";

const COLUMNS = [
  "org_id",
  "id",
  "message_id",
  "event_type",
  "recipient",
  "at",
  "attempt",
  "smtp_code",
  "enhanced_code",
  "message",
  "mx_host",
  "mx_ip",
  "source_ip",
  "tls",
  "duration_ms",
  "class",
] as const;

/** One statement for the whole batch. */
export function insertEvents(tx: Tx, events: MailEvent[]) {
  return tx.execute(
    `insert into event (${COLUMNS.join(", ")})
     select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::smallint[],
       $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::int[], $16::text[])
     returning 1`,
    COLUMNS.map((name) => events.map((event) => event[name])),
  );
}

/** Index: event_by_message. */
export function forgetRecipients(tx: Tx, messages: readonly { org_id: string; id: string }[]) {
  return tx.execute(
    `update event e set recipient = null, message = null, mx_host = null, mx_ip = null
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where e.org_id = k.org_id and e.message_id = k.id`,
    [messages.map(({ org_id }) => org_id), messages.map(({ id }) => id)],
  );
}

/** All that happened to these messages; the ids. Index: event_by_message. */
export async function deleteTimelines(tx: Tx, orgId: string, messageIds: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    "delete from event where org_id = $1 and message_id = any($2) returning id",
    [orgId, messageIds],
  );
  return rows.map(({ id }) => id);
}

/** All events of these messages. Index: event_by_message. */
export async function findIds(tx: Tx, orgId: string, messageIds: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string }>("select id from event where org_id = $1 and message_id = any($2)", [
    orgId,
    messageIds,
  ]);
  return rows.map(({ id }) => id);
}

/** Takes one address out of the timelines of messages; the ids of its events. `mention` finds it in texts. Index: event_by_message. */
export async function blankAddress(
  tx: Tx,
  orgId: string,
  messageIds: readonly string[],
  { email, mention }: { email: string; mention: string },
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `update event set recipient = case when lower(recipient) = lower($3) then null else recipient end, message = null
      where org_id = $1 and message_id = any($2) and (lower(recipient) = lower($3) or message ~* $4) returning id`,
    [orgId, messageIds, email, mention],
  );
  return rows.map(({ id }) => id);
}

/** Index: event_by_message. */
export function listEvents(db: Query, orgId: string, messageId: string) {
  return db.query<EventView>(
    `select id, event_type, recipient, at as timestamp, attempt, smtp_code, enhanced_code, message, mx_host, mx_ip,
            source_ip, tls, duration_ms
       from event where org_id = $1 and message_id = $2 order by id limit 2000`,
    [orgId, messageId],
  );
}

export type AskedEvent = { org_id: string; message_id: string; recipient: string; event_type: EventType };

/** Index: event_by_message. */
export function findLast(tx: Tx, asked: AskedEvent) {
  return tx.query<{ at: Date }>(
    `select at from event where org_id = $1 and message_id = $2 and recipient = $3 and event_type = $4
      order by id desc limit 1`,
    [asked.org_id, asked.message_id, asked.recipient, asked.event_type],
  );
}

/** Index: event_by_message. */
export function findReported(tx: Tx, events: MailEvent[]) {
  return tx.query<{ id: string }>(
    `select k.id from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::smallint[])
                   as k (org_id, id, message_id, recipient, attempt)
      where exists (select 1 from event e
                     where e.org_id = k.org_id and e.message_id = k.message_id
                       and (e.id = k.id
                            or e.event_type = 'ambiguous' and e.recipient = k.recipient and e.attempt = k.attempt))`,
    (["org_id", "id", "message_id", "recipient", "attempt"] as const).map((name) => events.map((event) => event[name])),
  );
}
