// Forgetting a received mail that nobody can ask for: mail to and from masked addresses, once it is processed. Its row, the
// message itself when no other recipient's mail is left of it, and what was kept outside the database.
import type { World } from "../platform/world.ts";
import { collectBlobs, releaseBlobs } from "./blob-references.ts";
import * as list from "./list-queries.ts";
import { loadMail } from "./queries.ts";

type ForgetWorld = Pick<World, "db" | "blobs">;

/** Forgets a processed mail; one that is gone already is fine. */
export async function forgetReceived(world: ForgetWorld, orgId: string, id: string): Promise<void> {
  const keys = await world.db.asOrg(orgId, async (tx) => {
    const [row] = await loadMail(tx, [{ org_id: orgId, id }]);
    if (!row) return [];
    await list.lockRaw(tx, orgId, row.raw_id);
    await list.deleteEmail(tx, orgId, id);
    const released = await releaseBlobs(tx, orgId, id);
    if ((await list.deleteUnusedRaw(tx, orgId, row.raw_id)) === 0) return released;
    return [...released, ...(await releaseBlobs(tx, orgId, row.raw_id))];
  });
  await collectBlobs(world, keys);
}

/** Gives up the blobs that were kept in the name of a message which is forgotten. */
export async function forgetBlobs(world: ForgetWorld, orgId: string, ownerId: string): Promise<void> {
  const keys = await world.db.asOrg(orgId, (tx) => releaseBlobs(tx, orgId, ownerId));
  await collectBlobs(world, keys);
}
