// All SQL on blob_reference: who needs which blob.
import type { Query, Tx } from "../platform/db.ts";

export type BlobReference = { org_id: string; blob_key: string; owner_id: string };

/** Waits for a collector that is at one of these blobs right now. */
export async function lockShared(tx: Tx, keys: readonly string[]): Promise<void> {
  await tx.query(
    "select pg_advisory_xact_lock_shared(hashtextextended('blob:' || k, 0)) from (select unnest($1::text[]) as k order by 1) as keys",
    [keys],
  );
}

/** Nobody else may refer to this blob anew until the transaction ends. */
export async function lockExclusive(tx: Tx, key: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('blob:' || $1, 0))", [key]);
}

export function insertReferences(tx: Tx, references: readonly BlobReference[]) {
  return tx.execute(
    `insert into blob_reference (org_id, blob_key, owner_id)
     select * from unnest($1::uuid[], $2::text[], $3::uuid[]) on conflict do nothing`,
    [
      references.map(({ org_id }) => org_id),
      references.map(({ blob_key }) => blob_key),
      references.map(({ owner_id }) => owner_id),
    ],
  );
}

/** Index: blob_reference_by_owner. */
export function deleteReferences(tx: Query, orgId: string, ownerId: string) {
  return tx.query<{ blob_key: string }>(
    "delete from blob_reference where org_id = $1 and owner_id = $2 returning blob_key",
    [orgId, ownerId],
  );
}

/** Those of these owners that have references. Index: blob_reference_by_owner. */
export function findOwners(tx: Query, owners: readonly { org_id: string; id: string }[]) {
  return tx.query<{ org_id: string; id: string }>(
    `select distinct b.org_id, b.owner_id as id from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
       join blob_reference b on b.owner_id = k.id and b.org_id = k.org_id`,
    [owners.map(({ org_id }) => org_id), owners.map(({ id }) => id)],
  );
}

/** References of owners older than `before` (an id), of all organizations. Index: blob_reference_by_owner. */
export function deleteExpiredReferences(db: Query, before: string, limit: number) {
  return db.query<{ blob_key: string }>(
    `delete from blob_reference where (org_id, blob_key, owner_id) in (
       select org_id, blob_key, owner_id from blob_reference where owner_id < $1 order by owner_id limit $2)
     returning blob_key`,
    [before, limit],
  );
}

/** Index: blob_reference_by_key. */
export async function isReferenced(tx: Tx, key: string): Promise<boolean> {
  const [row] = await tx.query<{ found: boolean }>(
    "select exists (select 1 from blob_reference where blob_key = $1) as found",
    [key],
  );
  return row?.found ?? false;
}
