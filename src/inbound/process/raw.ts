// The bytes of a stored message, wherever they are.

import { coalesceByOrg } from "../../platform/fair/coalesce.ts";
import { readHeld } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";

type RawWorld = Pick<World, "db" | "blobs">;
export type LoadBytes = (orgId: string, rawId: string) => Promise<Buffer>;

/** A loader of messages as they came, many per round trip. Throws when one was deleted, BlobsUnavailable when its blob is missing. */
export function bytesLoader(world: RawWorld): LoadBytes {
  const load = coalesceByOrg<queries.StoredBytes>({
    keys_max: 50,
    lanes: 2,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => ({ org_id, id: key }));
      const rows = await queries.loadRaws(world.db, keys);
      return rows.map((row) => [row.org_id, row.id, row]);
    },
  });
  return async (orgId, rawId) => {
    const row = await load(orgId, rawId);
    const bytes = row ? await readHeld(world.blobs, row) : null;
    if (!bytes) throw new Error(`the received message ${rawId} is not stored any more`);
    return bytes;
  };
}

/** The message as it came; null when it is not stored any more. Throws BlobsUnavailable when its blob is missing. */
export async function findBytes(world: RawWorld, orgId: string, rawId: string): Promise<Buffer | null> {
  const [row] = await queries.loadRaws(world.db, [{ org_id: orgId, id: rawId }]);
  return row ? readHeld(world.blobs, row) : null;
}
