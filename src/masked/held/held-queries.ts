// SQL on masked_held.
import type { Query, Tx } from "../../platform/database/db.ts";
import type { Environment } from "../types.ts";

export type HeldRow = {
  org_id: string;
  id: string;
  alias_id: string;
  contact_id: string;
  owner_id: string;
  environment: Environment;
  message_id: string;
  sealed: Buffer | null;
  blob_key: string | null;
  created_at: Date;
  /** The mailboxes that it was searched for. */
  cleared: string[];
};

export function insertHeld(tx: Tx, orgId: string, row: HeldRow) {
  return tx.execute(
    `insert into masked_held (org_id, id, alias_id, contact_id, owner_id, environment, message_id, sealed, blob_key, created_at,
       cleared)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      orgId,
      row.id,
      row.alias_id,
      row.contact_id,
      row.owner_id,
      row.environment,
      row.message_id,
      row.sealed,
      row.blob_key,
      row.created_at,
      row.cleared,
    ],
  );
}

/** Lets mails of one alias be counted and kept one after the other, until the transaction ends. */
export function lockKept(tx: Tx, aliasId: string) {
  return tx.query("select pg_advisory_xact_lock(hashtextextended('masked-held:' || $1, 0))", [aliasId]);
}

/** That the alias of a kept mail `h` is there: what is kept of a deleted one waits for its return, unseen. */
export const ALIAS_IS_THERE =
  "exists (select 1 from masked_alias l where l.org_id = h.org_id and l.id = h.alias_id and l.deleted_at is null)";

export function findHeld(tx: Query, orgId: string, id: string, since: Date) {
  return tx.query<HeldRow>(
    `select org_id, id, alias_id, contact_id, owner_id, environment, message_id, sealed, blob_key, created_at, cleared
       from masked_held h where org_id = $1 and id = $2 and kind = 'leak' and created_at > $3 and ${ALIAS_IS_THERE}`,
    [orgId, id, since],
  );
}

/** Index: masked_held_by_alias. */
export async function countHeld(tx: Query, orgId: string, aliasId: string): Promise<number> {
  const [row] = await tx.query<{ total: number }>(
    "select count(*) as total from masked_held where org_id = $1 and alias_id = $2 and kind = 'leak'",
    [orgId, aliasId],
  );
  return row?.total ?? 0;
}

/** True for the one that takes it. */
export async function takeHeld(tx: Tx, orgId: string, id: string): Promise<boolean> {
  return (await tx.execute("delete from masked_held where org_id = $1 and id = $2", [orgId, id])) === 1;
}

/** Takes those of all organizations that are over. Index: masked_held_age. */
export function purgeHeld(db: Query, before: Date, limit: number) {
  return db.query<{ org_id: string; id: string; blob_key: string | null }>(
    `delete from masked_held where (org_id, id) in (
       select org_id, id from masked_held where created_at <= $1 and kind = 'leak' order by created_at limit $2)
     returning org_id, id, blob_key`,
    [before, limit],
  );
}

/** Index: masked_alias_pkey. */
export function setRedact(tx: Tx, orgId: string, aliasId: string, change: { redact: string; at: Date }) {
  return tx.execute(
    "update masked_alias set redact = $3, updated_at = $4 where org_id = $1 and id = $2 and deleted_at is null",
    [orgId, aliasId, change.redact, change.at],
  );
}
