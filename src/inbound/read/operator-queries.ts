// SQL on mail for the operator's mailboxes, which belongs to no organization.
import { spelled } from "../../http/like.ts";
import type { Query } from "../../platform/database/db.ts";
import { countUpToMax } from "../../platform/database/totals.ts";
import { type EmailRow, ONE_EMAIL } from "./list-queries.ts";

export type OperatorMail = {
  id: string;
  mailbox: string;
  recipient: string;
  envelope_from: string;
  from_address: string | null;
  subject: string | null;
  has_attachments: boolean;
  size: number;
  status: EmailRow["status"];
  reason: string | null;
  received_at: Date;
};

const LISTED = `e.id, e.route->>'mailbox' as mailbox, e.recipient, e.envelope_from, e.from_address, e.subject,
  e.has_attachments, e.size, e.status, e.reason, e.received_at`;

/** `text` is part of the recipient, the envelope sender, From or Subject. */
export type OperatorFilter = { text?: string | undefined; mailbox?: string | undefined };

function where({ text, mailbox }: OperatorFilter, values: unknown[]): string {
  const parts = ["e.org_id = $1"];
  if (mailbox !== undefined) parts.push(`e.route->>'mailbox' = $${values.push(mailbox)}`);
  if (text !== undefined) {
    const like = `ilike any($${values.push(spelled(text))})`;
    const columns = ["e.recipient", "e.envelope_from", "e.from_address", "e.subject"];
    parts.push(`(${columns.map((column) => `${column} ${like}`).join(" or ")})`);
  }
  return parts.join(" and ");
}

/** Newest first, below the mail `below`. Index: the primary key of each day. */
export function listOperatorMail(
  db: Query,
  orgId: string,
  { below, limit, ...filter }: OperatorFilter & { below: string; limit: number },
) {
  const values: unknown[] = [orgId, below, limit];
  return db.query<OperatorMail>(
    `select ${LISTED} from inbound_email e where ${where(filter, values)} and e.id < $2 order by e.id desc limit $3`,
    values,
  );
}

export function countOperatorMail(db: Query, orgId: string, filter: OperatorFilter) {
  const values: unknown[] = [orgId];
  return countUpToMax(db, `inbound_email e where ${where(filter, values)}`, values);
}

export function findOperatorMail(db: Query, orgId: string, id: string) {
  return db.query<EmailRow>(ONE_EMAIL, [orgId, id]);
}
