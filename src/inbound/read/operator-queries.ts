// SQL on mail for the operator's mailboxes, which belongs to no organization.
import type { Query } from "../../platform/database/db.ts";

export type OperatorMail = {
  id: string;
  raw_id: string;
  received_at: Date;
  recipient: string;
  envelope_from: string;
  size: number;
  reason: string | null;
};

const COLUMNS = "id, raw_id, received_at, recipient, envelope_from, size, reason";

/** Newest first. Index: the primary key of each day. */
export function listOperatorMail(db: Query, orgId: string, limit: number) {
  return db.query<OperatorMail>(`select ${COLUMNS} from inbound_email where org_id = $1 order by id desc limit $2`, [
    orgId,
    limit,
  ]);
}

export function findOperatorMail(db: Query, orgId: string, id: string) {
  return db.query<OperatorMail>(`select ${COLUMNS} from inbound_email where org_id = $1 and id = $2`, [orgId, id]);
}
