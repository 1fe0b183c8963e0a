// SQL that finds messages for those who make ready-made ones, and for bounces and complaints about any.
import type { Query } from "../platform/database/db.ts";

/** The newest message whose body is this blob. Index: message_body_by_blob. */
export async function findBlobOwner(tx: Query, key: string): Promise<{ org_id: string; id: string } | null> {
  const [row] = await tx.query<{ org_id: string; id: string }>(
    "select org_id, id from message_body where blob_key = $1 order by id desc limit 1",
    [key],
  );
  return row ?? null;
}

/** Those of these messages whose body is stored, as a blob. Index: message_body_pkey. */
export function findLarge(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<{ org_id: string; id: string }>(
    `select b.org_id, b.id from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join message_body b on b.org_id = k.org_id and b.id = k.id and b.blob_key is not null`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

export type SentMatch = { org_id: string; message_id: string; id: string };

/** E-mails that an organization sent itself (no forwards) by Message-ID, the newest of each. Index: message_by_message_id. */
export function findSentByMessageId(db: Query, keys: readonly { org_id: string; message_id: string }[]) {
  return db.query<SentMatch>(
    `select distinct on (m.org_id, m.message_id) m.org_id, m.message_id, m.id
       from unnest($1::uuid[], $2::text[]) as k (org_id, message_id)
       join message m on m.org_id = k.org_id and m.message_id = k.message_id
        and m.origin not in ('forward', 'masked', 'system', 'tls_report')
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

/** The newest of the service's own mails to this address. Reads all of them: for commands. */
export async function findServiceMail(db: Query, email: string): Promise<{ org_id: string; id: string } | null> {
  const [row] = await db.query<{ org_id: string; id: string }>(
    `select m.org_id, m.id from message m join recipient r on r.org_id = m.org_id and r.message_id = m.id
      where m.origin = 'system' and r.email = $1 order by m.id desc limit 1`,
    [email],
  );
  return row ?? null;
}
