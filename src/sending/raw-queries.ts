// SQL for messages that come ready-made: a forward, a notice. Few compared with sends, so plain statements, inside the
// transaction of whoever makes them.
import type { Query, Tx } from "../platform/db.ts";
import type { RawMessage } from "./types.ts";

export function insertRawMessage(tx: Tx, row: RawMessage & { status: string }) {
  return tx.execute(
    `with m as (
       insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, metadata,
         status, size, recipient_count, origin, envelope_from, created_at, completed_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, $14,
         case when $10 = 'simulated' then $14::timestamptz end)),
     b as (
       insert into message_body (org_id, id, mime, blob_key) values ($1, $2, $15, $16))
     insert into recipient (org_id, message_id, position, email, kind, status, next_attempt_at)
     values ($1, $2, 0, $17, 'to', $10, case when $10 = 'queued' then $14::timestamptz end)`,
    [
      row.org_id,
      row.id,
      row.environment,
      row.domain_id,
      row.message_id,
      row.from_address,
      row.from_header,
      row.subject,
      JSON.stringify(row.metadata),
      row.status,
      row.mime.length,
      row.origin,
      row.envelope_from,
      row.created_at,
      row.blob_key === null ? row.mime : null,
      row.blob_key,
      row.recipient,
    ],
  );
}

/** The delivery, and its lane's wake. */
export function insertRawDelivery(tx: Tx, row: RawMessage, lane: { lane_id: number; expires_at: Date }) {
  return tx.execute(
    `with d as (
       insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, return_path_host)
       values ($1, $2, 0, $3, $4, $5, $5, $6, $7))
     update lane set next_at = $5 where id = $3 and next_at > $5`,
    [row.org_id, row.id, lane.lane_id, row.recipient, row.created_at, lane.expires_at, row.return_path_host],
  );
}

/** Index: message_body_by_blob. */
export async function isBlobOfMessage(tx: Query, key: string): Promise<boolean> {
  const [row] = await tx.query<{ found: boolean }>(
    "select exists (select 1 from message_body where blob_key = $1) as found",
    [key],
  );
  return row?.found ?? false;
}

export type SentMatch = { org_id: string; message_id: string; id: string };

/** E-mails that an organization sent itself (no forwards) by Message-ID, the newest of each. Index: message_by_message_id. */
export function findSentByMessageId(db: Query, keys: readonly { org_id: string; message_id: string }[]) {
  return db.query<SentMatch>(
    `select distinct on (m.org_id, m.message_id) m.org_id, m.message_id, m.id
       from unnest($1::uuid[], $2::text[]) as k (org_id, message_id)
       join message m on m.org_id = k.org_id and m.message_id = k.message_id
        and m.origin not in ('forward', 'masked', 'system')
      order by m.org_id, m.message_id, m.id desc`,
    [keys.map((key) => key.org_id), keys.map((key) => key.message_id)],
  );
}

/** The first bytes of a stored message; null when it is not stored inline. */
export function findHead(db: Query, orgId: string, id: string, octets: number) {
  return db.query<{ head: Buffer | null }>(
    "select substring(mime for $3) as head from message_body where org_id = $1 and id = $2",
    [orgId, id, octets],
  );
}

/**
 * The delivery that a return path names: its organization, and when its message left or was to leave. Index: message_pkey,
 * probed once an organization.
 */
export function findMessageOwner(db: Query, id: string, position = 0) {
  return db.query<{ org_id: string; domain_id: string; sent_at: Date }>(
    `select m.org_id, m.domain_id, coalesce(r.delivered_at, m.scheduled_at, m.created_at) as sent_at
       from organization o
       join message m on m.org_id = o.id and m.id = $1
       left join recipient r on r.org_id = m.org_id and r.message_id = m.id and r.position = $2
      limit 1`,
    [id, position],
  );
}
