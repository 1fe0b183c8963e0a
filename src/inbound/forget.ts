// Forgetting a received mail that nobody can ask for: mail to and from masked addresses, once it is processed. Its row, the
// message itself when no other recipient's mail is left of it, and what was kept outside the database.
import type { World } from "../platform/world.ts";
import * as blobQueries from "./blob-queries.ts";
import { collectBlobs, releaseBlobs } from "./blob-references.ts";
import * as list from "./list-queries.ts";

type ForgetWorld = Pick<World, "db" | "blobs">;

/** Forgets processed mails; those that are gone already are fine. For background work over all organizations. */
export async function forgetReceived(
  world: ForgetWorld,
  mails: readonly { org_id: string; id: string }[],
): Promise<void> {
  const keys = await world.db.transaction(async (tx) => {
    const raws = await list.deleteProcessed(tx, mails);
    const unused = await list.deleteUnusedRaws(tx, raws);
    const owners = [...mails, ...unused];
    const released: string[] = [];
    for (const { org_id, id } of await blobQueries.findOwners(tx, owners)) {
      released.push(...(await releaseBlobs(tx, org_id, id)));
    }
    return released;
  });
  await collectBlobs(world, keys);
}

/** Gives up the blobs that were kept in the name of a message which is forgotten. */
export async function forgetBlobs(world: ForgetWorld, orgId: string, ownerId: string): Promise<void> {
  const keys = await world.db.asOrg(orgId, (tx) => releaseBlobs(tx, orgId, ownerId));
  await collectBlobs(world, keys);
}
