// Received mail of one address, for a request under data protection law: what there is of it, and erasing it with the messages
// that carried it on.
import type { Tx } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { allowTime } from "../../platform/database/session-settings.ts";
import { notFound } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { type ErasePorts, eraseForwards } from "../../sending/sending.ts";
import { deleteReceived } from "../blobs/forget.ts";
import * as queries from "./address-queries.ts";
import { findEmail } from "./list-queries.ts";

type EraseWorld = Pick<World, "db" | "blobs" | "clock" | "random">;

const OF_A_REQUEST = 500;
/** How long a pass over the received mail of an organization may take. */
const FIND_S = 25;

/** Mail from the address, to it or with a copy to it, newest first. */
export async function listReceivedOf(
  tx: Tx,
  orgId: string,
  of: queries.OfAddress,
  page: { below: string; limit: number },
) {
  const rows = await queries.listOf(tx, orgId, of, page);
  return rows.map(({ forward_ids: _ids, ...shown }) => shown);
}

/** Deletes it, up to some 500 mails, and what carried it on; how many. What is being carried on right now stays. */
export async function eraseReceivedOf(
  world: EraseWorld,
  ports: Pick<ErasePorts, "forgetBlobs">,
  orgId: string,
  of: queries.OfAddress,
): Promise<number> {
  const page = { below: LAST_ID, limit: OF_A_REQUEST };
  const found = await world.db.asOrg(orgId, async (tx) => {
    await allowTime(tx, FIND_S);
    return queries.listOf(tx, orgId, of, page);
  });
  let deleted = 0;
  for (const { id, forward_ids } of found) {
    if (!(await eraseForwards(world, ports, orgId, { ids: forward_ids, of }))) continue;
    deleted += (await deleteOne(world, orgId, id)) ? 1 : 0;
  }
  return deleted;
}

/** False: somebody deleted it meanwhile. */
async function deleteOne(world: EraseWorld, orgId: string, id: string): Promise<boolean> {
  let isGone = false;
  const isThere = async (tx: Tx): Promise<void> => {
    isGone = (await findEmail(tx, orgId, id)).length === 0;
    if (isGone) throw notFound("inbound e-mail");
  };
  try {
    await deleteReceived(world, { org_id: orgId, id }, isThere);
  } catch (error) {
    if (isGone) return false;
    throw error;
  }
  return true;
}
