// Loading stored bodies at the moment of the attempt, many at a time. That a large one cannot be read is trouble of the store
// (another machine's folder, a backup without its blobs, a bucket that does not answer) and never the message's end: only a
// message of which nothing was kept is beyond sending.

import { coalesceByOrg } from "../../platform/fair/coalesce.ts";
import { isStoreTrouble, readHeld } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { Job } from "../types.ts";

type BodyWorld = Pick<World, "db" | "blobs" | "log" | "metrics">;

/**
 * A loader of the canonical message of a job; null when nothing of it is stored any longer. A blob that is named and not
 * there, or cannot be read, is thrown as trouble of the store (`isStoreTrouble`), logged and counted.
 */
export function bodyLoader(world: BodyWorld): (job: Pick<Job, "org_id" | "message_id">) => Promise<Buffer | null> {
  const unread = world.metrics.counter(
    "postern_bodies_unread_total",
    "Times that a stored large body could not be read",
  );
  const load = coalesceByOrg<{ mime: Buffer | null; blob_key: string | null }>({
    keys_max: 50,
    lanes: 3,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => ({ org_id, message_id: key }));
      const rows = await queries.loadBodies(world.db, keys);
      const byId = new Map(rows.map((row) => [row.id, row]));
      return asked.flatMap(({ org_id, key }) => {
        const row = byId.get(key);
        return row ? [[org_id, key, row] as const] : [];
      });
    },
  });
  return async ({ org_id, message_id }) => {
    const row = await load(org_id, message_id);
    if (!row) return null;
    try {
      return await readHeld(world.blobs, { bytes: row.mime, blob_key: row.blob_key });
    } catch (err) {
      if (!isStoreTrouble(err)) throw err;
      unread.inc();
      world.log.error({ err, message_id, blob_key: row.blob_key }, "the stored body of a message cannot be read");
      throw err;
    }
  };
}
