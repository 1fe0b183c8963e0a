// Sent mail of one address, for a request under data protection law: what there is of it, and erasing it. Mail to nobody else, and
// forwards of mail from the address, are deleted; mail to several loses the address and its content. What is on its way is canceled
// first. Mail of masked addresses is not here: it is forgotten by itself when it is over.
import { type EventView, eraseFromTimelines, eraseTimelines, timeline } from "../../events/events.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Tx } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { allowTime } from "../../platform/database/session-settings.ts";
import type { World } from "../../platform/world.ts";
import { recordChange } from "../emails/change-events.ts";
import { lockRow, shownRecipient } from "../emails/emails.ts";
import { refoldMessage } from "../late/late-queries.ts";
import * as sentQueries from "../queries.ts";
import { packAgain, unpackSent } from "../search/pack.ts";
import * as queries from "./address-queries.ts";

export type { OfAddress } from "./address-queries.ts";

type EraseWorld = Pick<World, "db" | "clock" | "random">;

/** So many mails are erased by one transaction, and looked at for one request. */
const AT_ONCE = 50;
const OF_A_REQUEST = 500;
/** How long a pass over the recipients of an organization may take. */
const FIND_S = 25;

export type SentTo = {
  id: string;
  from: string;
  subject: string;
  created_at: Date;
  recipients: ReturnType<typeof shownRecipient>[];
  events: EventView[];
};

/** A page of e-mails to the address, and of forwards of mail from it, newest first: that recipient's state and events alone. */
export async function listSentTo(
  tx: Tx,
  orgId: string,
  of: queries.OfAddress,
  page: { below: string; limit: number },
): Promise<SentTo[]> {
  const ids = await queries.findIds(tx, orgId, of, page);
  const found: SentTo[] = [];
  for (const id of ids) {
    const [row] = await sentQueries.findEmail(tx, orgId, id);
    if (!row) continue;
    const { from, subject, created_at } = row;
    const all = await sentQueries.listRecipients(tx, orgId, [id]);
    const events = await timeline(tx, orgId, id);
    found.push({
      ...{ id, from, subject, created_at },
      recipients: all.filter(({ email }) => isSame(email, of.email)).map(shownRecipient),
      events: events.filter(({ recipient }) => recipient !== null && isSame(recipient, of.email)),
    });
  }
  return found;
}

/** How many there are. */
export function countSentTo(tx: Tx, orgId: string, of: queries.OfAddress): Promise<number> {
  return queries.countIds(tx, orgId, of, LAST_ID);
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

export type ErasedSent = { canceled: number; deleted: number; blanked: number };

export type ErasePorts = {
  outbound(): Pick<Outbound, "withdraw"> | null;
  forgetBlobs(orgId: string, ownerId: string): Promise<void>;
};

/** Erases what is over of it, up to some 500 mails; a further call goes on. */
export async function eraseSentTo(
  world: EraseWorld,
  ports: ErasePorts,
  orgId: string,
  of: queries.OfAddress,
): Promise<ErasedSent> {
  const inState = (is_over: boolean) =>
    world.db.asOrg(orgId, async (tx) => {
      await allowTime(tx, FIND_S);
      return queries.findInState(tx, orgId, of, { is_over, below: LAST_ID, limit: OF_A_REQUEST });
    });
  const erased: ErasedSent = { canceled: 0, deleted: 0, blanked: 0 };
  for (const id of await inState(false)) erased.canceled += await stopDelivery(world, ports, orgId, { id, of });
  const over = await inState(true);
  for (let at = 0; at < over.length; at += AT_ONCE) {
    const { deleted, blanked } = await eraseThese(world, ports, orgId, { ids: over.slice(at, at + AT_ONCE), of });
    erased.deleted += deleted;
    erased.blanked += blanked;
  }
  return erased;
}

/** Takes what waits for the address out of the queue; how many deliveries. What a server is being given right now stays. */
async function stopDelivery(
  world: EraseWorld,
  { outbound }: ErasePorts,
  orgId: string,
  { id, of }: { id: string; of: queries.OfAddress },
): Promise<number> {
  await outbound()?.withdraw(orgId, id);
  return withPartitions(world, () =>
    world.db.asOrg(orgId, async (tx) => {
      const row = await lockRow(tx, orgId, id);
      const all = await sentQueries.listRecipients(tx, orgId, [id]);
      const own = all.filter(({ email }) => isSame(email, of.email));
      const dropped = await queries.dropDeliveries(
        tx,
        orgId,
        id,
        own.map(({ position }) => position),
      );
      if (dropped.length === 0) return 0;
      const to = { positions: dropped, status: "canceled", next_attempt_at: null };
      await sentQueries.setRecipients(tx, orgId, id, to);
      await refoldMessage(tx, orgId, id, new Date(world.clock.now()));
      const recipients = own.filter(({ position }) => dropped.includes(position));
      await recordChange(tx, world, { org_id: orgId, row, recipients, type: "canceled" });
      return dropped.length;
    }),
  );
}

/** Erases these messages where they are over. Ids of others are left out. */
async function eraseThese(
  world: EraseWorld,
  { forgetBlobs }: Pick<ErasePorts, "forgetBlobs">,
  orgId: string,
  { ids, of }: { ids: readonly string[]; of: queries.OfAddress },
): Promise<Omit<ErasedSent, "canceled">> {
  const { only, shared, with_blob } = await withPartitions(world, () =>
    world.db.asOrg(orgId, async (tx) => {
      const locked = await queries.lockOver(tx, orgId, ids, of.exact);
      const alone = locked.filter(({ is_only }) => is_only).map(({ id }) => id);
      const toSeveral = locked.filter(({ is_only }) => !is_only).map(({ id }) => id);
      await unpackSent(tx, orgId, [...alone, ...toSeveral]);
      await eraseTimelines(tx, world, orgId, alone);
      const named_in = await queries.findNaming(tx, orgId, toSeveral, of.mention);
      await eraseFromTimelines(tx, world, { org_id: orgId, message_ids: toSeveral, named_in }, of);
      const blobs = await queries.deleteBodies(tx, orgId, [...alone, ...toSeveral]);
      await queries.blankRecipient(tx, orgId, toSeveral, of);
      await queries.deleteMessages(tx, orgId, alone);
      return { only: alone, shared: toSeveral, with_blob: blobs };
    }),
  );
  await packAgain(world.db, [...only, ...shared]);
  // What a crash leaves here goes when its body's retention is over (inbound/blobs/sent-blobs.ts).
  for (const id of with_blob) await forgetBlobs(orgId, id);
  return { deleted: only.length, blanked: shared.length };
}

/**
 * Deletes what carried a received mail on, before that is deleted; false: some of it is on its way still, and nothing was done. Messages
 * of masked addresses are never here.
 */
export async function eraseForwards(
  world: EraseWorld,
  ports: Pick<ErasePorts, "forgetBlobs">,
  orgId: string,
  { ids, of }: { ids: readonly string[]; of: queries.OfAddress },
): Promise<boolean> {
  if (ids.length === 0) return true;
  const unfinished = await world.db.asOrg(orgId, (tx) => queries.findUnfinished(tx, orgId, ids));
  if (unfinished.length > 0) return false;
  await eraseThese(world, ports, orgId, { ids, of });
  return true;
}
