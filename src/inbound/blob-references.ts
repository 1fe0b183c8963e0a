// Blobs of received mail: kept once however many mails hold them, and gone with the last that does. A reference is
// committed before its blob is written, and a blob is deleted under a lock that every writer of references shares, so
// that no blob is deleted while somebody is about to rely on it. A crash leaves at worst a reference too many, which
// retention removes.
import { createHash } from "node:crypto";
import type { Tx } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import { isBlobOfMessage } from "../sending/sending.ts";
import * as queries from "./blob-queries.ts";

type BlobWorld = Pick<World, "db" | "blobs">;

/** Keeps `contents` durably in the name of `ownerId`; their keys, in order. Needs no transaction, and commits its own. */
export async function keepBlobs(
  world: BlobWorld,
  owner: { org_id: string; owner_id: string },
  contents: readonly Buffer[],
): Promise<string[]> {
  if (contents.length === 0) return [];
  const keys = contents.map((content) => createHash("sha256").update(content).digest("hex"));
  await world.db.transaction(async (tx) => {
    await queries.lockShared(tx, keys);
    await queries.insertReferences(
      tx,
      keys.map((blob_key) => ({ ...owner, blob_key })),
    );
  });
  for (const content of contents) await world.blobs.put(content);
  return keys;
}

/** Keeps bytes that are too large for their row; their key, else null. Commits on its own, like `keepBlobs`. */
export async function keepIfLarge(
  world: BlobWorld & Pick<World, "config">,
  owner: { org_id: string; owner_id: string },
  bytes: Buffer,
): Promise<string | null> {
  if (bytes.length <= world.config.body_inline_bytes_max) return null;
  return (await keepBlobs(world, owner, [bytes]))[0] as string;
}

/** Gives up the references of an owner; the keys are for `collectBlobs`, after the commit. */
export async function releaseBlobs(tx: Tx, orgId: string, ownerId: string): Promise<string[]> {
  return (await queries.deleteReferences(tx, orgId, ownerId)).map(({ blob_key }) => blob_key);
}

/** Deletes those blobs that nobody refers to any more. */
export async function collectBlobs(world: BlobWorld, keys: readonly string[]): Promise<void> {
  for (const key of new Set(keys)) {
    // Deliberate: the store is asked within the transaction. It holds no row, only the lock on this one key.
    await world.db.transaction(async (tx) => {
      await queries.lockExclusive(tx, key);
      if ((await queries.isReferenced(tx, key)) || (await isBlobOfMessage(tx, key))) return;
      await world.blobs.delete(key);
    });
  }
}
