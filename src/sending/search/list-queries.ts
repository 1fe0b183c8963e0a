// SQL that lists sent mail from its own rows. Days whose texts are packed: search.ts.
import { spelled } from "../../http/like.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { countUpToMax } from "../../platform/database/totals.ts";
import { EMAIL, type EmailRow } from "../queries.ts";

/** What goes through masked addresses is shown in their activity, and reports on TLS are no organization's mail. */
export const SHOWN = "m.origin not in ('masked', 'tls_report')";

export type EmailFilter = {
  status?: string;
  from?: string;
  to?: string;
  subject?: string;
  tag?: string;
  domain_id?: string;
  environment?: string;
  message_id?: string;
  id_from?: string;
  id_to?: string;
};

/** `filter` in SQL; ids bound the day partitions, as they hold the time. */
export function where(filter: EmailFilter, values: unknown[]): string {
  const parts = ["m.org_id = $1", SHOWN];
  const add = (sql: string, value: unknown): void => {
    values.push(value);
    parts.push(sql.replaceAll("?", `$${values.length}`));
  };
  if (filter.status) add("m.status = ?", filter.status);
  if (filter.environment) add("m.environment = ?", filter.environment);
  if (filter.domain_id) add("m.domain_id = ?", filter.domain_id);
  if (filter.message_id) add("m.message_id = ?", filter.message_id);
  if (filter.from) add("(m.from_header ilike any(?) or m.from_address ilike any(?))", spelled(filter.from));
  if (filter.subject) add("m.subject ilike any(?)", spelled(filter.subject));
  if (filter.tag) add("m.tags @> to_jsonb(?::text)", filter.tag);
  if (filter.id_from) add("m.id >= ?", filter.id_from);
  if (filter.id_to) add("m.id < ?", filter.id_to);
  if (filter.to) {
    // `offset 0`: each e-mail's recipients are looked up; joined, those of all days would be read for a few e-mails.
    add(
      `exists (select 1 from recipient r where r.org_id = m.org_id and r.message_id = m.id and r.email ilike any(?) offset 0)`,
      spelled(filter.to),
    );
  }
  return parts.join(" and ");
}

export function listEmails(tx: Tx, orgId: string, filter: EmailFilter, page: Page) {
  const values: unknown[] = [orgId];
  const condition = where(filter, values);
  values.push(page.limit, page.offset, page.below);
  const [limit, offset, below] = [values.length - 2, values.length - 1, values.length];
  return tx.query<EmailRow>(
    `select ${EMAIL} from message m where ${condition} and m.id < $${below}
      order by m.id desc limit $${limit} offset $${offset}`,
    values,
  );
}

export function countEmails(tx: Tx, orgId: string, filter: EmailFilter) {
  const values: unknown[] = [orgId];
  return countUpToMax(tx, `message m where ${where(filter, values)}`, values);
}
