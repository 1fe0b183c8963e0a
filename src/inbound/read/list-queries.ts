// SQL for what people ask of received mail: lists, one, deletion, its places to be changed by hand.

import { spelled } from "../../http/like.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import { LAST_ID, type Page } from "../../platform/database/page.ts";
import { countUpToMax, type Total } from "../../platform/database/totals.ts";
import { CUSTOMER_KINDS, type Findings, type Route, type Status } from "../types.ts";

const KINDS = CUSTOMER_KINDS.map((kind) => `'${kind}'`).join(", ");
/** An organization's own mail, and what waits for its word (or just got it) of the mail to its masked addresses. */
export const SHOWN = `(kind in (${KINDS}) or status = 'quarantined' or released_at is not null)`;

export type EmailFilter = {
  q?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  subject?: string | undefined;
  status?: Status | undefined;
  environment?: string | undefined;
  domain_id?: string | undefined;
  alias_id?: string | undefined;
  envelope_sender?: string | undefined;
  has_attachments?: boolean | undefined;
  thread_id?: string | undefined;
  received_from?: Date | undefined;
  received_to?: Date | undefined;
  /** The same bounds as ids, for the day partitions: a mail's id is made just after it was received. */
  id_from?: string | undefined;
  id_to?: string | undefined;
};

export const SORTS = ["received_at", "processed_at", "from", "to", "subject", "spam_score", "size"] as const;
export type Sort = (typeof SORTS)[number];

/** Beside the id, which orders by the time of receipt. Indexes: one of each, migration 0111. */
const SORT_COLUMNS: Record<Exclude<Sort, "received_at">, { by: string; column: string; may_lack: boolean }> = {
  processed_at: { by: "e.processed_at", column: "e.processed_at", may_lack: true },
  from: { by: "left(lower(e.from_address), 200)", column: "e.from_address", may_lack: true },
  to: { by: "left(lower(e.recipient), 200)", column: "e.recipient", may_lack: false },
  subject: { by: "left(lower(e.subject), 200)", column: "e.subject", may_lack: true },
  spam_score: { by: "e.spam_score", column: "e.spam_score", may_lack: true },
  size: { by: "e.size", column: "e.size", may_lack: false },
};

export type EmailListRow = {
  id: string;
  message_id: string | null;
  from_address: string | null;
  to_address: string;
  subject: string | null;
  status: Status;
  environment: "live" | "test";
  domain_id: string | null;
  alias_id: string | null;
  thread_id: string | null;
  has_attachments: boolean;
  spam_score: number | null;
  size: number;
  received_at: Date;
  processed_at: Date | null;
};

export const LISTED = `e.id, e.message_id, e.from_address, e.recipient as to_address, e.subject, e.status, e.environment,
  e.domain_id, e.alias_id, e.thread_id, e.has_attachments, e.spam_score, e.size, e.received_at, e.processed_at`;

const NAMES = LISTED.replace("e.recipient as ", "").replaceAll("e.", "");

/** `filter` in SQL. */
export function where(filter: EmailFilter, values: unknown[]): string {
  const parts = ["e.org_id = $1", SHOWN];
  const add = (sql: string, value: unknown): void => {
    if (value === undefined) return;
    values.push(value);
    parts.push(sql.replaceAll("?", `$${values.length}`));
  };
  const like = (text: string | undefined) => (text === undefined ? undefined : spelled(text));
  add("e.status = ?", filter.status);
  add("e.environment = ?", filter.environment);
  add("e.domain_id = ?", filter.domain_id);
  add("e.alias_id = ?", filter.alias_id);
  add("e.thread_id = ?", filter.thread_id);
  add("e.has_attachments = ?", filter.has_attachments);
  add("e.id >= ?", filter.id_from);
  add("e.id < ?", filter.id_to);
  add("e.received_at >= ?", filter.received_from);
  add("e.received_at < ?", filter.received_to);
  add("e.from_address ilike any(?)", like(filter.from));
  add("e.recipient ilike any(?)", like(filter.to));
  add("e.subject ilike any(?)", like(filter.subject));
  add("e.envelope_from ilike any(?)", like(filter.envelope_sender));
  add(
    "(e.from_address ilike any(?) or e.recipient ilike any(?) or e.subject ilike any(?) or e.message_id ilike any(?))",
    like(filter.q),
  );
  return parts.join(" and ");
}

export type Order = { sort: Sort; direction: "asc" | "desc" };

export function listEmails(tx: Tx, orgId: string, filter: EmailFilter, page: Order & Page) {
  const values: unknown[] = [orgId];
  values.push(page.limit, page.offset);
  const condition = `${where(filter, values)}${behind(page, values)}`;
  const { sort, direction } = page;
  if (sort === "received_at") {
    const listed = `select ${LISTED} from inbound_email e where ${condition} order by e.id ${direction}`;
    return tx.query<EmailListRow>(`${listed} limit $2 offset $3`, values);
  }
  const { by, column, may_lack } = SORT_COLUMNS[sort];
  const part = (number: number, has: string, order: string) => `(
    select ${LISTED}, ${number} as part, ${by} as sorted_by from inbound_email e where ${condition} and ${column} is ${has}
     order by ${order}e.id ${direction} limit $2::bigint + $3)`;
  // What has no value comes last in both directions, which no index gives: so it is a list of its own behind the other.
  const lacking = may_lack ? ` union all ${part(2, "null", "")}` : "";
  return tx.query<EmailListRow>(
    `select ${NAMES} from (${part(1, "not null", `${by} ${direction}, `)}${lacking}) as e
      order by part, sorted_by ${direction}, id ${direction} limit $2 offset $3`,
    values,
  );
}

/** What lies behind the mail `page.below` in the order of the page. */
function behind({ below, sort, direction }: Order & Page, values: unknown[]): string {
  if (below === LAST_ID) return "";
  const is = direction === "desc" ? "<" : ">";
  const id = `$${values.push(below)}::uuid`;
  if (sort === "received_at") return ` and e.id ${is} ${id}`;
  const { by: column } = SORT_COLUMNS[sort];
  const last = `(select ${column} from inbound_email e where e.org_id = $1 and e.id = ${id})`;
  return ` and case when ${last} is null then ${column} is null and e.id ${is} ${id}
    else ${column} ${is} ${last} or ${column} = ${last} and e.id ${is} ${id} or ${column} is null end`;
}

export function countEmails(tx: Tx, orgId: string, filter: EmailFilter): Promise<Total> {
  const values: unknown[] = [orgId];
  return countUpToMax(tx, `inbound_email e where ${where(filter, values)}`, values);
}

export type EmailRow = EmailListRow & {
  org_id: string;
  raw_id: string;
  route: Route;
  envelope_from: string;
  reason: string | null;
  matched_email_id: string | null;
  authentication_results: string | null;
  findings: Findings | null;
  rule_ids: string[];
  event_ids: string[];
  forward_ids: string[];
  released_at: Date | null;
  smtputf8: boolean;
  remote_ip: string | null;
  remote_port: number | null;
  helo: string;
  protocol: string;
  tls: string | null;
};

/** One mail of any kind, with its origin. */
export const ONE_EMAIL = `select ${LISTED}, e.org_id, e.raw_id, e.route, e.envelope_from, e.reason, e.matched_email_id,
         e.authentication_results, e.findings, e.rule_ids, e.event_ids, e.forward_ids, e.released_at, r.smtputf8,
         r.remote_ip, r.remote_port, r.helo, r.protocol, r.tls
    from inbound_email e join inbound_raw r on r.org_id = e.org_id and r.id = e.raw_id
   where e.org_id = $1 and e.id = $2`;

/** One mail that people see, with its origin. */
export function findEmail(tx: Query, orgId: string, id: string) {
  return tx.query<EmailRow>(`${ONE_EMAIL} and ${SHOWN}`, [orgId, id]);
}

/** The messages that carry these mails on. */
export async function findForwardIds(db: Query, orgId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ forward_ids: string[] }>(
    "select forward_ids from inbound_email where org_id = $1 and id = any($2) order by id",
    [orgId, ids],
  );
  return rows.flatMap(({ forward_ids }) => forward_ids);
}

export function lockEmail(tx: Tx, orgId: string, id: string) {
  return tx.query<{ status: Status; raw_id: string }>(
    `select status, raw_id from inbound_email where org_id = $1 and id = $2 and ${SHOWN} for update`,
    [orgId, id],
  );
}

/** Back to the start: it is about to be processed again, on this route. */
export function reopenEmail(tx: Tx, orgId: string, id: string, to: { route: Route; released_at: Date | null }) {
  return tx.execute(
    `update inbound_email set status = 'processing', reason = null, route = $3,
            released_at = coalesce($4, released_at)
      where org_id = $1 and id = $2`,
    [orgId, id, JSON.stringify(to.route), to.released_at],
  );
}

/** Takes a mail out of the queue: whoever works on it finds its claim gone. */
export async function dropFromQueue(tx: Tx, orgId: string, id: string): Promise<void> {
  await tx.execute("delete from inbound_queue where org_id = $1 and id = $2", [orgId, id]);
}

type Key = { org_id: string; id: string };
const keyArrays = (keys: readonly Key[]) => [keys.map(({ org_id }) => org_id), keys.map(({ id }) => id)];

/** The oldest mails of an organization with ids below `before` that nobody works on. Index: inbound_email_pkey. */
export function findProcessedBefore(db: Query, orgId: string, before: string, limit: number) {
  return db.query<Key>(
    `select e.org_id, e.id from inbound_email e
      where e.org_id = $1 and e.id < $2
        and not exists (select 1 from inbound_queue q where q.org_id = e.org_id and q.id = e.id)
      order by e.id limit $3`,
    [orgId, before, limit],
  );
}

/** Serializes deletions of the recipients of these messages, so that the last of them sees that it is. */
export async function lockRaws(tx: Tx, mails: readonly Key[]): Promise<void> {
  await tx.execute(
    `select 1 from inbound_raw r
      where (r.org_id, r.id) in (
        select e.org_id, e.raw_id from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
          join inbound_email e on e.org_id = k.org_id and e.id = k.id)
      order by r.id for update`,
    keyArrays(mails),
  );
}

export type DeletedRow = Key & { raw_id: string; event_ids: string[] };

/** Deletes those of the mails that are not in the queue; their messages must be locked. */
export function deleteProcessed(tx: Tx, mails: readonly Key[]) {
  return tx.query<DeletedRow>(
    `delete from inbound_email e using unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where e.org_id = k.org_id and e.id = k.id
        and not exists (select 1 from inbound_queue q where q.org_id = k.org_id and q.id = k.id)
      returning e.org_id, e.id, e.raw_id, e.event_ids`,
    keyArrays(mails),
  );
}

/** Those of the messages that no recipient's mail is left of, deleted. Index: inbound_email_by_raw. */
export function deleteUnusedRaws(tx: Tx, raws: readonly Key[]) {
  return tx.query<Key>(
    `delete from inbound_raw r using unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where r.org_id = k.org_id and r.id = k.id
        and not exists (select 1 from inbound_email e where e.org_id = k.org_id and e.raw_id = k.id)
      returning r.org_id, r.id`,
    keyArrays(raws),
  );
}
