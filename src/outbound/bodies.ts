// Loading stored bodies at the moment of the attempt, many at a time.
import { coalesceByOrg } from "../platform/coalesce.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import type { Job } from "./types.ts";

/** A loader of the canonical message of a job; null when it is stored no longer. */
export function bodyLoader(world: Pick<World, "db" | "blobs">): (job: Job) => Promise<Buffer | null> {
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
  return async (job) => {
    const row = await load(job.org_id, job.message_id);
    if (!row) return null;
    return row.mime ?? (row.blob_key ? world.blobs.get(row.blob_key) : null);
  };
}
