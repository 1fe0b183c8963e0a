// Deleting received mail, whoever asks: by hand, when its time is over, or when mail of masked addresses is done with. Its
// row, the bodies of its events, the message itself when no other recipient's mail is left of it, and what was kept outside
// the database. The log of deliveries stays. Not here: messages that carried it on, which are sent mail.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import type { World } from "../../platform/world.ts";
import { forgetEvents } from "../../webhooks/webhooks.ts";
import * as list from "../read/list-queries.ts";
import { unpack } from "../search/pack.ts";
import * as blobQueries from "./blob-queries.ts";
import { collectBlobs, releaseBlobs } from "./blob-references.ts";

type ForgetWorld = Pick<World, "db" | "blobs" | "clock">;
type Key = { org_id: string; id: string };

/** Deletes one mail, whatever state it is in. `isThere` throws what is to be answered when it is not. */
export async function deleteReceived(
  world: ForgetWorld,
  mail: Key,
  isThere: (tx: Tx) => Promise<unknown>,
): Promise<void> {
  const keys = await withPartitions(world, () =>
    world.db.asOrg(mail.org_id, async (tx) => {
      await isThere(tx);
      await list.lockRaws(tx, [mail]);
      await list.dropFromQueue(tx, mail.org_id, mail.id);
      return deleteLocked(tx, world, [mail]);
    }),
  );
  await collectBlobs(world, keys);
}

/** Forgets processed mails; those that are gone already are fine. For background work over all organizations. */
export async function forgetReceived(world: ForgetWorld, mails: readonly Key[]): Promise<void> {
  const keys = await withPartitions(world, () =>
    world.db.transaction(async (tx) => {
      await list.lockRaws(tx, mails);
      return deleteLocked(tx, world, mails);
    }),
  );
  await collectBlobs(world, keys);
}

/** The keys of blobs that were let go, for `collectBlobs` after the commit. */
async function deleteLocked(tx: Tx, world: Pick<World, "clock">, mails: readonly Key[]): Promise<string[]> {
  await unpack(tx, mails);
  const deleted = await list.deleteProcessed(tx, mails);
  await forgetEvents(
    tx,
    world,
    deleted.flatMap(({ org_id, event_ids }) => event_ids.map((id) => ({ org_id, id }))),
  );
  const raws = deleted.map(({ org_id, raw_id }) => ({ org_id, id: raw_id }));
  const unused = await list.deleteUnusedRaws(tx, raws);
  const released: string[] = [];
  for (const { org_id, id } of await blobQueries.findOwners(tx, [...deleted, ...unused])) {
    released.push(...(await releaseBlobs(tx, org_id, id)));
  }
  return released;
}

/** Gives up the blobs that were kept in the name of a message which is forgotten. */
export async function forgetBlobs(world: Pick<World, "db" | "blobs">, orgId: string, ownerId: string): Promise<void> {
  const keys = await world.db.asOrg(orgId, (tx) => releaseBlobs(tx, orgId, ownerId));
  await collectBlobs(world, keys);
}
