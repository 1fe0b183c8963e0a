// The one statement that records what became of a mail of an alias: apart, its writes would be eight round trips, and many
// mails are concluded in one transaction.
import type { Tx } from "../platform/db.ts";
import type { ActivityRow } from "./people-queries.ts";
import type { KnownId } from "./queries.ts";
import type { TraceInsert } from "./traces.ts";

export type ConcludedMail = {
  at: Date;
  traces: readonly TraceInsert[];
  ids: readonly KnownId[];
  contact: { id: string; received: number; sent: number } | null;
  entries: readonly ActivityRow[];
  counts: { received: number; forwarded: number; replied: number; blocked: number };
};

const CONCLUDE = `with t as (
    insert into masked_trace (org_id, alias_id, created_at, due_at, id, kind, destination_id, contact_id, owner_id)
    select $1, $2, $3, $4, u.* from unnest($5::uuid[], $6::text[], $7::uuid[], $8::uuid[], $9::uuid[]) as u
        on conflict (org_id, id) do nothing),
  i as (
    insert into masked_message_id (org_id, alias_id, created_at, digest, counterpart)
    select $1, $2, $3, u.* from unnest($10::bytea[], $11::bytea[]) as u
        on conflict (org_id, alias_id, digest) do nothing),
  c as (
    update masked_contact
       set received = received + $13::int, sent = sent + $14::int, last_seen_at = greatest(last_seen_at, $3)
     where org_id = $1 and id = $12),
  a as (
    insert into masked_activity (org_id, alias_id, id, at, type, outcome, reason, contact_id, destination_id, message_id,
      size, spf, dkim, dmarc, spam_score, redactions)
    select $1, $2, u.* from unnest($15::uuid[], $16::timestamptz[], $17::text[], $18::text[], $19::text[], $20::uuid[],
      $21::uuid[], $22::text[], $23::int[], $24::text[], $25::text[], $26::text[], $27::real[], $28::int[]) as u)
  update masked_alias set emails_received = emails_received + $29::int, emails_forwarded = emails_forwarded + $30::int,
         emails_replied = emails_replied + $31::int, emails_blocked = emails_blocked + $32::int,
         last_activity_at = greatest(last_activity_at, $3)
   where org_id = $1 and id = $2`;

const TRACE = ["id", "kind", "destination_id", "contact_id", "owner_id"] as const;
const ENTRY = [
  ...(["id", "at", "type", "outcome", "reason", "contact_id", "destination_id", "message_id", "size"] as const),
  ...(["spf", "dkim", "dmarc", "spam_score", "redactions"] as const),
] as const;

/** Run the transaction in `withPartitions`. */
export function concludeMail(tx: Tx, orgId: string, aliasId: string, mail: ConcludedMail) {
  const { at, traces, ids, contact, entries, counts } = mail;
  return tx.execute(CONCLUDE, [
    orgId,
    aliasId,
    at,
    traces[0]?.due_at ?? at,
    ...TRACE.map((name) => traces.map((trace) => trace[name])),
    ids.map(({ digest }) => digest),
    ids.map(({ counterpart }) => counterpart),
    contact?.id ?? null,
    contact?.received ?? 0,
    contact?.sent ?? 0,
    ...ENTRY.map((name) => entries.map((entry) => entry[name])),
    counts.received,
    counts.forwarded,
    counts.replied,
    counts.blocked,
  ]);
}
