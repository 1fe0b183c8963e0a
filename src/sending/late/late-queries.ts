// SQL for what becomes known of a message after it left: reading who it went to, and the moves from delivered to bounced or
// complained.
import type { Query, Tx } from "../../platform/database/db.ts";

export type DeliveryKey = { org_id: string; message_id: string; position: number };

export type SentMessage = {
  domain_id: string;
  rfc_message_id: string;
  from_address: string;
  subject: string;
  tags: string[];
  metadata: Record<string, unknown>;
  environment: "live" | "test";
  origin: string;
  unsubscribe_list: string | null;
  recipient_count: number;
};

export function findSentMessage(db: Query, orgId: string, id: string) {
  return db.query<SentMessage>(
    `select domain_id, message_id as rfc_message_id, from_address, subject, tags, metadata, environment, origin,
            unsubscribe_list, recipient_count
       from message where org_id = $1 and id = $2`,
    [orgId, id],
  );
}

export function listSentRecipients(db: Query, orgId: string, id: string) {
  return db.query<{ position: number; email: string }>(
    "select position, email from recipient where org_id = $1 and message_id = $2 order by position",
    [orgId, id],
  );
}

/** The same turn-taking as outcomes have: messages with several recipients are moved one after the other. */
export function lockMessage(tx: Tx, orgId: string, id: string) {
  return tx.query("select 1 from message where org_id = $1 and id = $2 for update", [orgId, id]);
}

export function lockRecipient(tx: Tx, { org_id, message_id, position }: DeliveryKey) {
  return tx.query<{ email: string; status: string; isp: string | null; delivered_at: Date | null }>(
    `select email, status, isp, delivered_at from recipient
      where org_id = $1 and message_id = $2 and position = $3 for update`,
    [org_id, message_id, position],
  );
}

/** True if an attempt is under way. Null: the delivery is not in the queue. */
export function findQueued(db: Query, { org_id, message_id, position }: DeliveryKey) {
  return db.query<{ owned: boolean }>(
    "select owner is not null as owned from delivery where org_id = $1 and message_id = $2 and position = $3",
    [org_id, message_id, position],
  );
}

/** Takes it out of the queue unless a node has it in hand. */
export function removeQueued(tx: Tx, { org_id, message_id, position }: DeliveryKey) {
  return tx.execute("delete from delivery where org_id = $1 and message_id = $2 and position = $3 and owner is null", [
    org_id,
    message_id,
    position,
  ]);
}

export type LateState = {
  status: "bounced" | "complained";
  bounce_type: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  diag_message: string | null;
  bounce_class: string | null;
};

export function moveRecipient(tx: Tx, { org_id, message_id, position }: DeliveryKey, to: LateState) {
  return tx.execute(
    `update recipient set status = $4, next_attempt_at = null, bounce_type = $5, bounce_code = $6, diag_code = $7,
            diag_message = $8, bounce_class = $9
      where org_id = $1 and message_id = $2 and position = $3`,
    [
      org_id,
      message_id,
      position,
      to.status,
      to.bounce_type,
      to.bounce_code,
      to.diag_code,
      to.diag_message,
      to.bounce_class,
    ],
  );
}

/** The e-mail's status from its recipients'. When it was complete before, it stays complete since then. */
export function refoldMessage(tx: Tx, orgId: string, id: string, now: Date) {
  return tx.execute(
    `update message m
        set status = f.status, completed_at = case when f.open then null else coalesce(m.completed_at, $3) end
       from (select fold_status(array_agg(status)) as status,
                    bool_or(status in ('queued', 'deferred', 'scheduled')) as open
               from recipient where org_id = $1 and message_id = $2) f
      where m.org_id = $1 and m.id = $2`,
    [orgId, id, now],
  );
}

/** An organization's e-mail by its Message-ID, a forward of it only where there is none; the newest. Index: message_by_message_id. */
export function findByMessageId(db: Query, orgId: string, messageId: string) {
  return db.query<{ id: string }>(
    `select id from message where org_id = $1 and message_id = $2 and origin not in ('masked', 'tls_report')
      order by origin in ('forward', 'system'), id desc limit 1`,
    [orgId, messageId],
  );
}
