// SQL for ready-made messages that must not be kept once they are over (those of masked addresses): how they ended, what
// they were, and forgetting whom they went to and what they said.
import type { Query, Tx } from "../platform/db.ts";

export type EndedMessage = {
  org_id: string;
  id: string;
  status: string;
  bounce_type: "hard" | "soft" | null;
  bounce_code: string | null;
  diag_code: string | null;
  bounce_class: string | null;
};

/** Those of these messages to one recipient that are over, and how they ended. */
export function findEnded(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<EndedMessage>(
    `select m.org_id, m.id, r.status, r.bounce_type, r.bounce_code, r.diag_code, r.bounce_class
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join message m on m.org_id = k.org_id and m.id = k.id and m.completed_at is not null
       join recipient r on r.org_id = m.org_id and r.message_id = m.id and r.position = 0`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

/** Forgets whom a message of one recipient went to and what it said; the key of its blob, if it had one. */
export async function forgetMessage(tx: Tx, orgId: string, id: string): Promise<string | null> {
  const [body] = await tx.query<{ blob_key: string | null }>(
    `with r as (
       update recipient set email = 'forgotten@masked.invalid', diag_message = null where org_id = $1 and message_id = $2),
     m as (
       update message set from_header = from_address, reply_to = '[]', metadata = '{}', message_id = $2::text
        where org_id = $1 and id = $2::uuid)
     delete from message_body where org_id = $1 and id = $2 returning blob_key`,
    [orgId, id],
  );
  return body?.blob_key ?? null;
}

/** A stored message of one recipient as it would leave; null when it is not stored in its row. */
export async function findLeaving(db: Query, orgId: string, id: string) {
  const [row] = await db.query<{
    recipient: string;
    from_address: string;
    mime: Buffer | null;
    blob_key: string | null;
  }>(
    `select r.email as recipient, m.from_address, b.mime, b.blob_key
       from message m
       join message_body b on b.org_id = m.org_id and b.id = m.id
       join recipient r on r.org_id = m.org_id and r.message_id = m.id and r.position = 0
      where m.org_id = $1 and m.id = $2`,
    [orgId, id],
  );
  return row ?? null;
}
