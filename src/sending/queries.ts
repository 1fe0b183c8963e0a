// All SQL on message, message_body, recipient, idempotency and allowance that sending needs, but for the accepting
// statement (accept-queries.ts) and ready-made messages (raw-queries.ts).

import type { Query, Tx } from "../platform/database/db.ts";

export function readAllowances(db: Query, keys: { org_id: string; scope_id: string; kind: string; starts_at: Date }[]) {
  return db.query<{ org_id: string; scope_id: string; kind: string; starts_at: Date; used: number }>(
    `select a.org_id, a.scope_id, a.kind, a.starts_at, a.used
       from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) as k (org_id, scope_id, kind, starts_at)
       join allowance a using (org_id, scope_id, kind, starts_at)`,
    [keys.map((k) => k.org_id), keys.map((k) => k.scope_id), keys.map((k) => k.kind), keys.map((k) => k.starts_at)],
  );
}

export type IdempotencyName = { org_id: string; environment: string; key: string };
export type StoredAnswer = { request_hash: Buffer; status: number; answer: string; created_at: Date };

/**
 * Batched over organizations. A key that created something else is there as well: as a request that no other is the same
 * as. The latest comes last. Index: idempotency_pkey, idempotent_create_pkey.
 */
export function findIdempotent(db: Query, names: IdempotencyName[]) {
  return db.query<IdempotencyName & StoredAnswer>(
    `with n as (select * from unnest($1::uuid[], $2::text[], $3::text[]) as n (org_id, environment, key))
     select i.org_id, i.environment, i.key, i.request_hash, i.status, i.answer, i.created_at
       from n join idempotency i using (org_id, environment, key)
      union all
     select c.org_id, c.environment, c.key, c.request_hash, 409, '', c.created_at
       from n join idempotent_create c using (org_id, environment, key)
      order by created_at`,
    [names.map((n) => n.org_id), names.map((n) => n.environment), names.map((n) => n.key)],
  );
}

/** Unless it was taken again since the one of `at`. */
export function forgetIdempotent(db: Query, { org_id, environment, key }: IdempotencyName, at: Date) {
  return db.execute(
    "delete from idempotency where org_id = $1 and environment = $2 and key = $3 and created_at <= $4",
    [org_id, environment, key, at],
  );
}

/** At most `limit` of them. Index: idempotency_age. */
export function purgeIdempotent(db: Query, before: Date, limit: number) {
  return db.execute(
    "delete from idempotency where ctid = any(array(select ctid from idempotency where created_at < $1 limit $2))",
    [before, limit],
  );
}

/** At most `limit` of them. Index: allowance_age. */
export function purgeAllowances(db: Query, before: Date, limit: number) {
  return db.execute(
    "delete from allowance where ctid = any(array(select ctid from allowance where starts_at < $1 limit $2))",
    [before, limit],
  );
}

/** The windows of domains only: a month is the quota's. Index: allowance_age. */
export function purgeDomainWindows(db: Query, before: Date) {
  return db.execute("delete from allowance where starts_at < $1 and kind <> 'monthly_quota'", [before]);
}

// Reading ----------------------------------------------------------------------------------------------------------

export type EmailRow = {
  id: string;
  message_id: string;
  status: string;
  environment: "live" | "test";
  from: string;
  reply_to: string[];
  subject: string;
  tags: string[];
  metadata: Record<string, unknown>;
  template_id: string | null;
  domain_id: string;
  size: number;
  created_at: Date;
  scheduled_at: Date | null;
  completed_at: Date | null;
};

/** The columns of `message m` that an e-mail is shown with. */
export const EMAIL = `m.id, m.message_id, m.status, m.environment, m.from_header as "from", m.reply_to, m.subject, m.tags,
  m.metadata, m.template_id, m.domain_id, m.size, m.created_at, m.scheduled_at, m.completed_at`;

export function findEmail(tx: Query, orgId: string, id: string) {
  return tx.query<EmailRow>(`select ${EMAIL} from message m where m.org_id = $1 and m.id = $2`, [orgId, id]);
}

/** The e-mail that was sent, whatever forwarded it later under the same Message-ID; the newest. Index: message_by_message_id. */
export function findEmailByMessageId(tx: Query, orgId: string, messageId: string) {
  return tx.query<EmailRow>(
    `select ${EMAIL} from message m where m.org_id = $1 and m.message_id = $2 and m.origin not in ('masked', 'tls_report')
      order by m.origin in ('forward', 'system'), m.id desc limit 1`,
    [orgId, messageId],
  );
}

export type RecipientRow = {
  message_id: string;
  position: number;
  email: string;
  kind: "to" | "cc" | "bcc";
  status: string;
  attempts: number;
  next_attempt_at: Date | null;
  delivered_at: Date | null;
  bounce_type: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  diag_message: string | null;
  bounce_class: string | null;
};

export function listRecipients(tx: Query, orgId: string, messageIds: string[]) {
  return tx.query<RecipientRow>(
    `select r.message_id, r.position, r.email, r.kind, r.status, r.attempts, r.next_attempt_at, r.delivered_at,
            r.bounce_type, r.bounce_code, r.diag_code, r.diag_message, r.bounce_class
       from unnest($2::uuid[]) as k (id) join recipient r on r.org_id = $1 and r.message_id = k.id
      order by r.message_id, r.position`,
    [orgId, messageIds],
  );
}

export function findBody(tx: Query, orgId: string, id: string) {
  return tx.query<{ mime: Buffer | null; blob_key: string | null }>(
    "select mime, blob_key from message_body where org_id = $1 and id = $2",
    [orgId, id],
  );
}

// Changing ---------------------------------------------------------------------------------------------------------

export type LockedRow = EmailRow & { class: number; expires_at: Date | null };

/** Locks the message so that retry, cancel and outcomes take turns. */
export function lockEmail(tx: Tx, orgId: string, id: string) {
  return tx.query<LockedRow>(
    `select ${EMAIL}, m.class, m.expires_at from message m where m.org_id = $1 and m.id = $2 for update`,
    [orgId, id],
  );
}

/** Removes deliveries that nobody holds and nobody tried. */
export function removeUnattempted(tx: Tx, orgId: string, id: string) {
  return tx.query<{ position: number }>(
    `delete from delivery where org_id = $1 and message_id = $2 and owner is null and attempts = 0 returning position`,
    [orgId, id],
  );
}

type RecipientState = { positions: number[]; status: string; next_attempt_at: Date | null };

export function setRecipients(tx: Tx, orgId: string, id: string, to: RecipientState) {
  return tx.execute(
    `update recipient set status = $4, next_attempt_at = $5, bounce_type = null, bounce_code = null, diag_code = null,
            diag_message = null, bounce_class = null
      where org_id = $1 and message_id = $2 and position = any($3::smallint[])`,
    [orgId, id, to.positions, to.status, to.next_attempt_at],
  );
}

export function setStatus(tx: Tx, orgId: string, id: string, to: { status: string; completed_at: Date | null }) {
  return tx.execute("update message set status = $3, completed_at = $4 where org_id = $1 and id = $2", [
    orgId,
    id,
    to.status,
    to.completed_at,
  ]);
}
