// The bytes of a stored message, wherever they are.
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";

/** The message as it came. Throws when it is not stored any more. */
export async function loadBytes(world: Pick<World, "db" | "blobs">, orgId: string, rawId: string): Promise<Buffer> {
  const bytes = await findBytes(world, orgId, rawId);
  if (!bytes) throw new Error(`the bytes of the received message ${rawId} are not stored`);
  return bytes;
}

/** The message as it came; null when it is not stored any more. */
export async function findBytes(
  world: Pick<World, "db" | "blobs">,
  orgId: string,
  rawId: string,
): Promise<Buffer | null> {
  const [row] = await queries.loadRaw(world.db, orgId, rawId);
  if (!row) return null;
  return row.bytes ?? (row.blob_key === null ? null : world.blobs.get(row.blob_key));
}
