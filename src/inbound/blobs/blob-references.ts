// Blobs of mail, received and sent: kept once however many mails hold them, and gone with the last that does. A reference is
// committed before its blob is written, and a blob is deleted under a lock that every writer of references shares, so
// that no blob is deleted while somebody is about to rely on it. What is let go of stays referred to, by nobody, until the
// store has deleted it. So a crash leaves at worst a reference too many, which retention removes.
import { createHash } from "node:crypto";
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { findBlobOwner } from "../../sending/sending.ts";
import * as queries from "./blob-queries.ts";

type BlobWorld = Pick<World, "db" | "blobs">;
type Keeper = { org_id: string; owner_id: string; sent_state?: queries.SentState };

/** Keeps `contents` durably in the name of its owner; their keys, in order. Needs no transaction, and commits its own. */
export async function keepBlobs(world: BlobWorld, owner: Keeper, contents: readonly Buffer[]): Promise<string[]> {
  if (contents.length === 0) return [];
  const keys = contents.map((content) => createHash("sha256").update(content).digest("hex"));
  await world.db.transaction(async (tx) => {
    await queries.lockShared(tx, keys);
    await queries.insertReferences(
      tx,
      keys.map((blob_key) => ({ sent_state: null, ...owner, blob_key })),
    );
  });
  for (const content of contents) await world.blobs.put(content);
  return keys;
}

/** Keeps bytes that are too large for their row; their key, else null. Commits on its own, like `keepBlobs`. */
export async function keepIfLarge(
  world: BlobWorld & Pick<World, "config">,
  owner: Keeper,
  bytes: Buffer,
): Promise<string | null> {
  if (bytes.length <= world.config.body_inline_bytes_max) return null;
  return (await keepBlobs(world, owner, [bytes]))[0] as string;
}

/** Gives up the references of an owner; the keys are for `collectBlobs`, after the commit. */
export async function releaseBlobs(tx: Tx, orgId: string, ownerId: string): Promise<string[]> {
  return (await queries.releaseReferences(tx, [{ org_id: orgId, id: ownerId }])).map(({ blob_key }) => blob_key);
}

/** Deletes those blobs that nobody refers to any more. */
export async function collectBlobs(world: BlobWorld, keys: readonly string[]): Promise<void> {
  for (const key of new Set(keys)) {
    // Deliberate: the store is asked within the transaction. It holds no row, only the lock on this one key.
    await world.db.transaction(async (tx) => {
      await queries.lockExclusive(tx, key);
      await queries.dropReleased(tx, key);
      if (await queries.isReferenced(tx, key)) return;
      const message = await findBlobOwner(tx, key);
      if (message === null) return world.blobs.delete(key);
      // A forward outlives the mail it is of: from now on the blob is its own.
      const { org_id, id: owner_id } = message;
      await queries.insertReferences(tx, [{ org_id, owner_id, blob_key: key, sent_state: "accepted" }]);
    });
  }
}
