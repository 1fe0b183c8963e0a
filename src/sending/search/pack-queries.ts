// SQL that packs texts of sent mail (message_texts), and what of them are packed.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { Day } from "../../platform/packed/packed-days.ts";
import { facets, lines, PART_END, plain, ROWS_IN_ONE } from "../../platform/packed/packed-lines.ts";
import { SHOWN } from "./list-queries.ts";

/** Days of which all is packed that is to be. */
export async function findNotedDays(db: Query): Promise<Set<string>> {
  return new Set((await db.query<{ day: string }>("select day from message_texts_day")).map(({ day }) => day));
}

/** Organizations with so many e-mails of that day, how many, that are not packed. Index: message_pkey of the day. */
export function findUnpacked(db: Query, { from_id, to_id }: Day, { min, max }: { min: number; max: number }) {
  return db.query<{ org_id: string; mails: number }>(
    `select m.org_id, count(*) as mails from message m
      where m.id >= $1 and m.id < $2
        and not exists (select from message_texts t where t.org_id = m.org_id and t.id >= $1 and t.id < $2)
      group by m.org_id having count(*) between $3 and $4`,
    [from_id, to_id, min, max],
  );
}

/** Notes that everything of a day that is to be packed is packed. */
export async function noteDay(db: Query, day: string): Promise<void> {
  await db.execute("insert into message_texts_day (day) values ($1) on conflict do nothing", [day]);
}

/** Days before the oldest day of mail are forgotten, and those that are not over. */
export async function forgetNotedDays(db: Query, { oldest, open }: { oldest: string; open: string }): Promise<void> {
  await db.execute("delete from message_texts_day where day < $1 or day >= $2", [oldest, open]);
}

const SENDER = `case when strpos(lower(m.from_header), lower(m.from_address)) > 0 then ${plain("m.from_header")}
  else ${plain("m.from_header")} || '${PART_END}' || ${plain("m.from_address")} end`;
const RECIPIENTS = `(select string_agg(${plain("r.email")}, '${PART_END}') from recipient r
  where r.org_id = m.org_id and r.message_id = m.id)`;
const TAGS = `(select string_agg('${PART_END}' || ${plain("t.tag")}, '') || '${PART_END}' from jsonb_array_elements_text(m.tags) as t (tag))`;

const LOCK_SPACE = 45;

/** Until the transaction ends nothing of the organization is packed, or (`alone`) unpacked. */
async function lock(tx: Tx, orgId: string, alone: boolean): Promise<void> {
  const name = alone ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared";
  await tx.query(`select ${name}(hashtextextended($1::uuid::text, ${LOCK_SPACE}))`, [orgId]);
}

/** Before a day of an organization is packed. */
export function lockForPacking(tx: Tx, orgId: string): Promise<void> {
  return lock(tx, orgId, true);
}

/** Before mails of these days are deleted, or change: they are read from their rows until they are packed again. */
export async function unpackDays(tx: Tx, orgId: string, days: readonly Day[]): Promise<void> {
  await lock(tx, orgId, false);
  for (const { from_id, to_id } of days) {
    await tx.execute("delete from message_texts where org_id = $1 and id >= $2 and id < $3", [orgId, from_id, to_id]);
  }
}

/** Not all of these days is packed any more: the next round looks. */
export async function forgetNoted(db: Query, days: readonly Day[]): Promise<void> {
  await db.execute("delete from message_texts_day where day = any($1::date[])", [days.map(({ day }) => day)]);
}

/** What of an e-mail never changes, and is compared whole. */
export const FACETS = {
  environment: { sql: "m.environment", sign: "e" },
  domain_id: { sql: "m.domain_id", sign: "d", is_id: true },
} as const;

/** The mail of an organization with these ids. */
export function packRange(tx: Tx, orgId: string, { day, from_id, to_id }: Day) {
  return tx.execute(
    `with listed as (
       select m.id, (row_number() over (order by m.id desc) - 1) / ${ROWS_IN_ONE} as place, lower(${SENDER}) as sender,
              lower(${plain("m.subject")}) as subject, lower(coalesce(${RECIPIENTS}, '')) as recipients, coalesce(${TAGS}, '') as tags,
              ${facets(FACETS)} as facets
         from message m where m.org_id = $1 and m.id >= $2 and m.id < $3 and ${SHOWN}),
     packed as (
       select $1::uuid as org_id, array_agg(id order by id desc) as ids, ${lines("sender")} as senders, ${lines("subject")} as subjects,
              ${lines("recipients")} as recipients, ${lines("tags")} as tags, ${lines("facets")} as facets
         from listed group by place),
     made as (
       select org_id, ids[1] as id, ids[cardinality(ids)] as oldest_id, $4::date as day, cardinality(ids) as rows_in_it, ids, senders,
              subjects, recipients, tags, facets from packed)
     insert into message_texts (org_id, id, oldest_id, day, rows_in_it, ids, senders, subjects, recipients, tags, facets)
     select * from made on conflict (org_id, id) do nothing`,
    [orgId, from_id, to_id, day],
  );
}
