// SQL that packs texts of received mail (inbound_email_texts) and unpacks them.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { Day } from "../../platform/packed/packed-days.ts";
import { facets, lines, PART_END, plain, ROWS_IN_ONE } from "../../platform/packed/packed-lines.ts";
import { SHOWN } from "../read/list-queries.ts";

/**
 * Organizations with at least `min` mails of that day that are not packed, and none that waits to be processed; by a skip scan of the
 * day. Index: inbound_email_pkey.
 */
export async function findUnpacked(db: Query, { from_id, to_id }: Day, min: number): Promise<string[]> {
  const rows = await db.query<{ org_id: string }>(
    `with recursive known as (
       (select e.org_id from inbound_email e where e.id >= $1 and e.id < $2 order by e.org_id limit 1)
       union all
       select (select e.org_id from inbound_email e where e.id >= $1 and e.id < $2 and e.org_id > k.org_id order by e.org_id limit 1)
         from known k where k.org_id is not null)
     select k.org_id from known k
      where k.org_id is not null
        and not exists (select from inbound_email_texts t where t.org_id = k.org_id and t.id >= $1 and t.id < $2)
        and not exists (select from inbound_queue q where q.org_id = k.org_id and q.id >= $1 and q.id < $2)
        and (select count(*) from (select from inbound_email e
              where e.org_id = k.org_id and e.id >= $1 and e.id < $2 limit $3) as first_ones) = $3`,
    [from_id, to_id, min],
  );
  return rows.map(({ org_id }) => org_id);
}

const LOCK_SPACE = 44;

/** Until the transaction ends nothing of these organizations is unpacked (`alone`), or packed. */
async function lock(tx: Tx, orgIds: readonly string[], alone: boolean): Promise<void> {
  const name = alone ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared";
  await tx.query(
    `select ${name}(hashtextextended(o.id::text, ${LOCK_SPACE})) from unnest($1::uuid[]) as o (id) order by o.id`,
    [[...new Set(orgIds)]],
  );
}

const text = (sql: string) => `lower(${plain(`coalesce(${sql}, '')`)})`;

/** What of a mail never changes, and is compared whole. */
export const FACETS = {
  environment: { sql: "e.environment", sign: "e" },
  domain_id: { sql: "e.domain_id", sign: "d", is_id: true },
  alias_id: { sql: "e.alias_id", sign: "a", is_id: true },
  has_attachments: { sql: "e.has_attachments", sign: "h" },
} as const;

/** The mail of an organization of that day, unless some of it waits to be processed or is packed already. */
export async function packDay(tx: Tx, orgId: string, { day, from_id, to_id }: Day): Promise<void> {
  await lock(tx, [orgId], true);
  await tx.execute(
    `with listed as (
       select e.id, (row_number() over (order by e.id desc) - 1) / ${ROWS_IN_ONE} as place, ${text("e.from_address")} as sender,
              ${text("e.recipient")} as recipient, ${text("e.subject")} as subject, ${text("e.envelope_from")} as envelope,
              ${text("e.message_id")} as message_id, ${facets(FACETS)} as facets
         from inbound_email e where e.org_id = $1 and e.id >= $2 and e.id < $3 and ${SHOWN}
          and not exists (select from inbound_queue q where q.org_id = $1 and q.id >= $2 and q.id < $3)),
     packed as (
       select $1::uuid as org_id, array_agg(id order by id desc) as ids, ${lines("sender")} as senders,
              ${lines("recipient")} as recipients, ${lines("subject")} as subjects, ${lines("envelope")} as envelopes,
              ${lines(`sender || '${PART_END}' || recipient || '${PART_END}' || subject || '${PART_END}' || message_id`)} as words,
              ${lines("facets")} as facets
         from listed group by place),
     made as (
       select org_id, ids[1] as id, ids[cardinality(ids)] as oldest_id, $4::date as day, cardinality(ids) as rows_in_it, ids, senders,
              recipients, subjects, envelopes, words, facets from packed)
     insert into inbound_email_texts (org_id, id, oldest_id, day, rows_in_it, ids, senders, recipients, subjects, envelopes, words, facets)
     select * from made on conflict (org_id, id) do nothing`,
    [orgId, from_id, to_id, day],
  );
}

/** Before mails of these days are deleted, or change: they are read from their rows until they are packed again. */
export async function unpackDays(
  tx: Tx,
  days: readonly { org_id: string; from_id: string; to_id: string }[],
): Promise<void> {
  await lock(
    tx,
    days.map(({ org_id }) => org_id),
    false,
  );
  await tx.execute(
    `delete from inbound_email_texts t using unnest($1::uuid[], $2::uuid[], $3::uuid[]) as k (org_id, from_id, to_id)
      where t.org_id = k.org_id and t.id >= k.from_id and t.id < k.to_id`,
    [days.map(({ org_id }) => org_id), days.map(({ from_id }) => from_id), days.map(({ to_id }) => to_id)],
  );
}
