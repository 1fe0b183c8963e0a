// All SQL on the event log.
import type { Query, Tx } from "../platform/db.ts";
import type { EventView, MailEvent } from "./types.ts";

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
       $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::int[], $16::text[])`,
    COLUMNS.map((name) => events.map((event) => event[name])),
  );
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
