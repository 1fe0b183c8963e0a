// The one statement that records what became of mails of aliases: apart, its writes would be eight round trips a mail, and
// many mails are concluded in one transaction.
import { arrayWriter, type ElementType } from "../../platform/database/binary-arrays.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { ActivityRow } from "../people-queries.ts";
import type { KnownId } from "../queries.ts";
import type { TraceInsert } from "../settle/traces.ts";

export type Counts = { received: number; forwarded: number; replied: number; blocked: number };

export type ConcludedMail = {
  org_id: string;
  alias_id: string;
  at: Date;
  traces: readonly TraceInsert[];
  ids: readonly KnownId[];
  /** What contacts sent that names the owner's mailbox, by digests. */
  sent: readonly { contact_id: string; digest: Buffer }[];
  contact: { id: string; received: number; sent: number } | null;
  entries: readonly ActivityRow[];
  counts: Counts;
};

const DAY_MS = 86_400_000;

type Columns = Record<string, ElementType>;

const TRACE = {
  org_id: "uuid",
  alias_id: "uuid",
  created_at: "timestamptz",
  due_at: "timestamptz",
  id: "uuid",
  kind: "text",
  destination_id: "uuid",
  contact_id: "uuid",
  owner_id: "uuid",
  cleared: "text",
} as const;
/** Arrays of arrays are all of one length: the ids are handed over as PostgreSQL writes them. */
const TRACE_VALUES = names(TRACE).replace("cleared", "cleared::uuid[]");
const KNOWN_ID = {
  org_id: "uuid",
  alias_id: "uuid",
  created_at: "timestamptz",
  digest: "bytea",
  counterpart: "bytea",
} as const;
const SENT = { org_id: "uuid", contact_id: "uuid", digest: "bytea", created_at: "timestamptz" } as const;
const CONTACT = { org_id: "uuid", id: "uuid", received: "int", sent: "int", at: "timestamptz" } as const;
const ENTRY = {
  org_id: "uuid",
  alias_id: "uuid",
  id: "uuid",
  at: "timestamptz",
  type: "text",
  outcome: "text",
  reason: "text",
  detail: "text",
  contact_id: "uuid",
  destination_id: "uuid",
  message_id: "text",
  size: "int",
  spf: "text",
  dkim: "text",
  dmarc: "text",
  spam_score: "real",
  redactions: "int",
} as const;
const ALIAS = {
  org_id: "uuid",
  id: "uuid",
  received: "int",
  forwarded: "int",
  replied: "int",
  blocked: "int",
  at: "timestamptz",
} as const;

const PARTS: readonly Columns[] = [TRACE, KNOWN_ID, SENT, CONTACT, ENTRY, ALIAS];

function names(columns: Columns): string {
  return Object.keys(columns).join(", ");
}

function rowsOf(columns: Columns): string {
  const before = PARTS.slice(0, PARTS.indexOf(columns)).flatMap((part) => Object.keys(part)).length;
  const arrays = Object.values(columns).map((type, index) => `$${before + index + 1}::${type}[]`);
  return `unnest(${arrays.join(", ")}) as u (${names(columns)})`;
}

const AGAIN_BEFORE = `$${PARTS.flatMap((part) => Object.keys(part)).length + 1}::timestamptz`;

/** What is sent again counts as new once a day (`r`): it is kept from then on, and other lines do not push it out. */
const CONCLUDE = `with t as (
    insert into masked_trace (${names(TRACE)}) select ${TRACE_VALUES} from ${rowsOf(TRACE)} on conflict (org_id, id) do nothing),
  i as (
    insert into masked_message_id (${names(KNOWN_ID)}) select u.* from ${rowsOf(KNOWN_ID)}
        on conflict (org_id, alias_id, digest) do nothing),
  known as (
    select u.*, o.created_at as sent_before
      from ${rowsOf(SENT)} join masked_contact k on k.org_id = u.org_id and k.id = u.contact_id
      left join masked_sent o on o.org_id = u.org_id and o.contact_id = u.contact_id and o.digest = u.digest),
  s as (
    with first as (select ${names(SENT)} from known where sent_before is null)
    insert into masked_sent (${names(SENT)}) select * from first
        on conflict (org_id, contact_id, digest) do nothing),
  r as (
    update masked_sent o set created_at = d.created_at
      from (select x.org_id, x.contact_id, x.digest, u.created_at
              from known u
              join masked_sent x on x.org_id = u.org_id and x.contact_id = u.contact_id and x.digest = u.digest
             where u.sent_before < ${AGAIN_BEFORE} for update of x skip locked) d
     where o.org_id = d.org_id and o.contact_id = d.contact_id and o.digest = d.digest),
  c as (
    update masked_contact c
       set received = c.received + u.received, sent = c.sent + u.sent, last_seen_at = greatest(c.last_seen_at, u.at)
      from ${rowsOf(CONTACT)} where c.org_id = u.org_id and c.id = u.id),
  a as (insert into masked_activity (${names(ENTRY)}) select u.* from ${rowsOf(ENTRY)} returning 1)
  update masked_alias m set emails_received = m.emails_received + u.received,
         emails_forwarded = m.emails_forwarded + u.forwarded, emails_replied = m.emails_replied + u.replied,
         emails_blocked = m.emails_blocked + u.blocked, last_activity_at = greatest(m.last_activity_at, u.at)
    from ${rowsOf(ALIAS)} where m.org_id = u.org_id and m.id = u.id`;

/** Run the transaction in `withPartitions`. Indexes: the primary keys; the rows are in one order for all writers. */
export async function concludeMails(tx: Tx, mails: readonly ConcludedMail[]): Promise<void> {
  const parts: readonly Record<string, unknown>[][] = [
    mails.flatMap(({ org_id, alias_id, traces }) =>
      traces.map(({ cleared, ...trace }) => ({
        ...trace,
        org_id,
        alias_id,
        cleared: cleared && `{${cleared.join(",")}}`,
      })),
    ),
    mails.flatMap(({ org_id, alias_id, at, ids }) => ids.map((id) => ({ ...id, org_id, alias_id, created_at: at }))),
    mails.flatMap(({ org_id, at, sent }) => sent.map((one) => ({ ...one, org_id, created_at: at }))),
    sums(mails.flatMap(({ org_id, at, contact }) => (contact ? [{ org_id, at, ...contact }] : []))),
    mails.flatMap(({ org_id, alias_id, entries }) => entries.map((entry) => ({ ...entry, org_id, alias_id }))),
    sums(mails.map(({ org_id, alias_id, at, counts }) => ({ org_id, id: alias_id, at, ...counts }))),
  ];
  const writer = arrayWriter();
  const values = PARTS.flatMap((columns, part) =>
    Object.entries(columns).map(([name, type]) =>
      writer.array(
        type,
        (parts[part] as Record<string, unknown>[]).map((row) => row[name]),
      ),
    ),
  );
  const now = Math.max(...mails.map(({ at }) => at.getTime()));
  await tx.execute(CONCLUDE, [...values, new Date(now - DAY_MS)]);
}

/** One row for each that is named, its numbers added up: an update touches a row once. */
function sums<T extends { org_id: string; id: string; at: Date }>(rows: readonly T[]): T[] {
  const byId = new Map<string, T>();
  for (const row of rows) {
    const known = byId.get(row.id);
    byId.set(row.id, known ? addUp(known, row) : row);
  }
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function addUp<T extends { at: Date }>(a: T, b: T): T {
  const added = Object.entries(a).map(([name, value]) => {
    const other = b[name as keyof T];
    return [name, typeof value === "number" ? value + (other as number) : value];
  });
  return { ...Object.fromEntries(added), at: a.at > b.at ? a.at : b.at };
}
