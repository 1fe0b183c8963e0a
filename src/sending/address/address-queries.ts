// SQL on sent mail of one address, for a request under data protection law: what there is, and erasing it. No index has addresses:
// the mail of an organization is passed over, some 1.1 s a million e-mails.

import { holds } from "../../http/like.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import { SHOWN } from "../search/list-queries.ts";

/** Stands where an address was erased. No mail reaches it (RFC 2606 §2), and it is never suppressed. */
export const ERASED = "erased@erased.invalid";

/**
 * Regular expressions that find the address: `exact` where it stands alone, `pattern` where addresses stand, `mention` in what people
 * wrote. What holds it holds the `needle` as well, in whatever case.
 */
export type OfAddress = {
  email: string;
  needle: string;
  exact: string;
  pattern: string;
  mention: string;
  environment: "live" | "test";
};

/** Mail to the address, and forwards of mail from it, below an id. Its messages are looked up by their ids (offset 0), not all read again. */
const FOUND = `(
    select r.message_id as id from recipient r where r.org_id = $1 and r.message_id < $5 and ${holds("r.email", "$2", "$6")}
    union
    select m.id from message m
     where m.org_id = $1 and m.id < $5 and m.origin = 'forward' and ${holds("concat_ws(' ', m.from_address, m.from_header)", "$2", "$3")}) as f
  cross join lateral (
    select m.id, m.completed_at from message m where m.org_id = $1 and m.id = f.id and m.environment = $4 and ${SHOWN} offset 0) as m`;

const valuesOf = ({ needle, pattern, environment, exact }: OfAddress, below: string) => [
  ...[needle, pattern, environment],
  ...[below, exact],
];

/** One page of ids, the newest first. */
export async function findIds(tx: Tx, orgId: string, of: OfAddress, page: { below: string; limit: number }) {
  const rows = await tx.query<{ id: string }>(`select m.id from ${FOUND} order by m.id desc limit $7`, [
    ...[orgId, ...valuesOf(of, page.below)],
    page.limit,
  ]);
  return rows.map(({ id }) => id);
}

/** The same for messages that are over, or for those that are not. */
export async function findInState(
  tx: Tx,
  orgId: string,
  of: OfAddress,
  page: { is_over: boolean; below: string; limit: number },
) {
  const rows = await tx.query<{ id: string }>(
    `select m.id from ${FOUND} where (m.completed_at is not null) = $8 order by m.id desc limit $7`,
    [orgId, ...valuesOf(of, page.below), page.limit, page.is_over],
  );
  return rows.map(({ id }) => id);
}

export async function countIds(tx: Tx, orgId: string, of: OfAddress, below: string): Promise<number> {
  const rows = await tx.query<{ n: number }>(`select count(*) as n from ${FOUND}`, [orgId, ...valuesOf(of, below)]);
  return rows[0]?.n ?? 0;
}

/** Mail that was sent from the address, or asks for answers to it. */
export async function countSentFrom(
  tx: Tx,
  orgId: string,
  { needle, pattern, environment }: OfAddress,
): Promise<number> {
  const rows = await tx.query<{ n: number }>(
    `select count(*) as n from message m
      where m.org_id = $1 and m.environment = $4 and m.origin <> 'forward' and ${SHOWN}
        and (${holds("m.from_address", "$2", "$3")} or ${holds("m.from_header", "$2", "$3")}
             or m.reply_to <> '[]' and ${holds("m.reply_to::text", "$2", "$3")})`,
    [orgId, needle, pattern, environment],
  );
  return rows[0]?.n ?? 0;
}

/** Those of these messages whose delivery has not ended. */
export async function findUnfinished(db: Query, orgId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    "select id from message where org_id = $1 and id = any($2) and completed_at is null",
    [orgId, ids],
  );
  return rows.map(({ id }) => id);
}

/** Takes deliveries out of the queue that no node has in hand, attempted before or not. */
export async function dropDeliveries(
  tx: Tx,
  orgId: string,
  id: string,
  positions: readonly number[],
): Promise<number[]> {
  const rows = await tx.query<{ position: number }>(
    `delete from delivery where org_id = $1 and message_id = $2 and position = any($3::smallint[]) and owner is null
     returning position`,
    [orgId, id, positions],
  );
  return rows.map(({ position }) => position);
}

/** Locks those of the messages that are over; `is_only`: nobody but the address got it, or it carried on mail from it. */
export function lockOver(tx: Tx, orgId: string, ids: readonly string[], exact: string) {
  return tx.query<{ id: string; is_only: boolean }>(
    `select m.id, m.origin = 'forward' or not exists (
              select from recipient r where r.org_id = m.org_id and r.message_id = m.id and r.email !~* $3 and r.email <> '${ERASED}') as is_only
       from message m where m.org_id = $1 and m.id = any($2) and m.completed_at is not null and ${SHOWN} order by m.id for update of m`,
    [orgId, ids, exact],
  );
}

/** Bodies go; those that had a blob. */
export async function deleteBodies(tx: Tx, orgId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string; blob_key: string | null }>(
    "delete from message_body where org_id = $1 and id = any($2) returning id, blob_key",
    [orgId, ids],
  );
  return rows.flatMap(({ id, blob_key }) => (blob_key === null ? [] : [id]));
}

/** Mail to nobody else, as if its day were past its retention. */
export async function deleteMessages(tx: Tx, orgId: string, ids: readonly string[]): Promise<void> {
  await tx.execute("delete from recipient where org_id = $1 and message_id = any($2)", [orgId, ids]);
  await tx.execute("delete from message where org_id = $1 and id = any($2)", [orgId, ids]);
}

const NAMES = "(coalesce(subject, '') || ' ' || tags::text || ' ' || metadata::text) ~* $3";

/** Those of the messages whose subject, tags or metadata hold the address. */
export async function findNaming(tx: Tx, orgId: string, ids: readonly string[], mention: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id from message where org_id = $1 and id = any($2) and ${NAMES}`,
    [...[orgId, ids, mention]],
  );
  return rows.map(({ id }) => id);
}

/** Blanks one recipient of mail to several, and what names the address in what is kept of the mail. */
export async function blankRecipient(tx: Tx, orgId: string, ids: readonly string[], of: OfAddress): Promise<void> {
  await tx.execute(
    `update recipient set email = '${ERASED}', diag_message = null
      where org_id = $1 and message_id = any($2) and email ~* $3`,
    [orgId, ids, of.exact],
  );
  await tx.execute(
    `update recipient set diag_message = null where org_id = $1 and message_id = any($2) and diag_message ~* $3`,
    [orgId, ids, of.mention],
  );
  await tx.execute(
    `update message set subject = case when subject ~* $3 then '' else subject end,
            tags = case when tags::text ~* $3 then '[]' else tags end,
            metadata = case when metadata::text ~* $3 then '{}' else metadata end
      where org_id = $1 and id = any($2) and ${NAMES}`,
    [orgId, ids, of.mention],
  );
}
