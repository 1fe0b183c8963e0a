// SQL for ready-made messages that must not be kept once they are over (those of masked addresses): how they ended, what
// they were, and forgetting whom they went to and what they said.
import type { Query, Tx } from "../platform/database/db.ts";

export type EndedMessage = {
  org_id: string;
  id: string;
  status: string;
  bounce_type: "hard" | "soft" | null;
  bounce_code: string | null;
  diag_code: string | null;
  bounce_class: string | null;
};

/**
 * Those of these messages to one recipient that are over, and how they ended. Each recipient is looked up by itself (`offset 0`
 * keeps it so): of partitions that are young the planner would read all rows for each message.
 */
export function findEnded(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<EndedMessage>(
    `select m.org_id, m.id, r.status, r.bounce_type, r.bounce_code, r.diag_code, r.bounce_class
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join message m on m.org_id = k.org_id and m.id = k.id and m.completed_at is not null
      cross join lateral (
        select r.status, r.bounce_type, r.bounce_code, r.diag_code, r.bounce_class
          from recipient r where r.org_id = m.org_id and r.message_id = m.id and r.position = 0 offset 0) r`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

/** Those of these messages to one recipient that a server deferred, and that are tried again. */
export function findDeferred(db: Query, keys: readonly { org_id: string; id: string }[]) {
  return db.query<{ org_id: string; id: string }>(
    `select r.org_id, r.message_id as id
       from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join recipient r on r.org_id = k.org_id and r.message_id = k.id and r.position = 0 and r.status = 'deferred'`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
}

/** Forgets whom messages of one recipient went to and what they said; those that have a blob. */
export function forgetMessages(tx: Tx, keys: readonly { org_id: string; id: string }[]) {
  return tx.query<{ org_id: string; id: string }>(
    `with k as (select * from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)),
     r as (
       update recipient r set email = 'forgotten@masked.invalid', diag_message = null
         from k where r.org_id = k.org_id and r.message_id = k.id),
     m as (
       update message m set from_header = m.from_address, reply_to = '[]', metadata = '{}', message_id = k.id::text
         from k where m.org_id = k.org_id and m.id = k.id),
     b as (
       delete from message_body b using k where b.org_id = k.org_id and b.id = k.id returning b.org_id, b.id, b.blob_key)
     select org_id, id from b where blob_key is not null`,
    [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)],
  );
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
