// All SQL on blob_reference: who needs which blob.
import type { Query, Tx } from "../../platform/database/db.ts";

/**
 * For a large body of sent mail: whether its message is being accepted, or was found accepted. Null for received mail.
 */
export type SentState = "accepting" | "accepted";
export type BlobReference = { org_id: string; blob_key: string; owner_id: string; sent_state: SentState | null };
/** Who holds a reference. */
export type Owner = { org_id: string; id: string };

/**
 * Owns what nobody needs any more until the store has deleted it, so that a crash between the two leaves no blob behind.
 * Older than every id.
 */
const NOBODY = "00000000-0000-0000-0000-000000000000";

/** Waits for a collector that is at one of these blobs right now. */
export async function lockShared(tx: Tx, keys: readonly string[]): Promise<void> {
  await tx.query(
    "select pg_advisory_xact_lock_shared(hashtextextended('blob:' || k, 0)) from (select unnest($1::text[]) as k order by 1) as keys",
    [keys],
  );
}

/** Nobody else may refer to this blob again until the transaction ends. */
export async function lockExclusive(tx: Tx, key: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('blob:' || $1, 0))", [key]);
}

export function insertReferences(tx: Tx, references: readonly BlobReference[]) {
  return tx.execute(
    `insert into blob_reference (org_id, blob_key, owner_id, sent_state)
     select * from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[]) on conflict do nothing`,
    [
      references.map(({ org_id }) => org_id),
      references.map(({ blob_key }) => blob_key),
      references.map(({ owner_id }) => owner_id),
      references.map(({ sent_state }) => sent_state),
    ],
  );
}

/** What an owner held is nobody's then. Index: blob_reference_by_owner. */
export function releaseReferences(tx: Query, owners: readonly Owner[]) {
  return tx.query<{ blob_key: string }>(
    `with released as (
       delete from blob_reference b using unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
        where b.org_id = k.org_id and b.owner_id = k.id returning b.org_id, b.blob_key),
     left_over as (
       insert into blob_reference (org_id, blob_key, owner_id)
       select distinct org_id, blob_key, '${NOBODY}'::uuid from released on conflict do nothing)
     select blob_key from released`,
    [owners.map(({ org_id }) => org_id), owners.map(({ id }) => id)],
  );
}

/** All that an organization held is nobody's then; answers how many references it had. */
export function releaseAllOf(db: Query, orgId: string) {
  return db.execute(
    `with released as (
       delete from blob_reference where org_id = $1 and owner_id <> '${NOBODY}' returning blob_key)
     insert into blob_reference (org_id, blob_key, owner_id)
     select distinct $1::uuid, blob_key, '${NOBODY}'::uuid from released on conflict do nothing`,
    [orgId],
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

/** Owners of blobs of received mail that are older than `before` (an id), of all organizations. Index: blob_reference_by_owner. */
export function findExpiredOwners(db: Query, before: string, limit: number) {
  return db.query<Owner>(
    `select org_id, owner_id as id from blob_reference
      where owner_id > '${NOBODY}' and owner_id < $1 and sent_state is null order by owner_id limit $2`,
    [before, limit],
  );
}

/** Owners of blobs of sent mail in a state, from one id to another. Index: blob_reference_sent. */
export function findSentOwners(
  db: Query,
  state: SentState,
  { from = NOBODY, before, limit }: { from?: string; before: string; limit: number },
) {
  return db.query<Owner>(
    `select org_id, owner_id as id from blob_reference
      where sent_state = $1 and owner_id > $2 and owner_id < $3 order by owner_id limit $4`,
    [state, from, before, limit],
  );
}

/** Index: blob_reference_by_owner. */
export function markAccepted(db: Query, owners: readonly Owner[]) {
  return db.execute(
    `update blob_reference b set sent_state = 'accepted' from unnest($1::uuid[], $2::uuid[]) as k (org_id, id)
      where b.org_id = k.org_id and b.owner_id = k.id and b.sent_state = 'accepting'`,
    [owners.map(({ org_id }) => org_id), owners.map(({ id }) => id)],
  );
}

/** Blobs that somebody let go of. Index: blob_reference_by_owner. */
export function findReleased(db: Query, limit: number) {
  return db.query<{ blob_key: string }>(
    `select distinct blob_key from blob_reference where owner_id = '${NOBODY}' limit $1`,
    [limit],
  );
}

/** Index: blob_reference_by_key. */
export function dropReleased(tx: Tx, key: string) {
  return tx.execute(`delete from blob_reference where blob_key = $1 and owner_id = '${NOBODY}'`, [key]);
}

/** Index: blob_reference_by_key. */
export async function isReferenced(tx: Tx, key: string): Promise<boolean> {
  const [row] = await tx.query<{ found: boolean }>(
    "select exists (select 1 from blob_reference where blob_key = $1) as found",
    [key],
  );
  return row?.found ?? false;
}
