// What came for postmaster@, abuse@ and the other mailboxes of our own hosts, as `postern mail` prints it. It is kept as long as
// received mail is. Nothing here answers or forwards.
import { isUuid } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import type { World } from "../../platform/world.ts";
import { findBytes } from "../process/raw.ts";
import { OPERATOR_ORG_ID } from "../receive/own-addresses.ts";
import * as queries from "./operator-queries.ts";

const SHOWN_MAX = 200;

/** The newest mails: what is known of each, without its content. */
export function newestOperatorMail(world: Pick<World, "db">): Promise<queries.OperatorMail[]> {
  return queries.listOperatorMail(world.db, OPERATOR_ORG_ID, { below: LAST_ID, limit: SHOWN_MAX });
}

/** The same, a line each: id, time, recipient, sender, size, and why it is out of the ordinary. */
export async function describeOperatorMail(world: Pick<World, "db">): Promise<string> {
  const mails = await newestOperatorMail(world);
  if (mails.length === 0) return "There is no mail for the operator.";
  return mails.map(lineOf).join("\n");
}

function lineOf({ id, received_at, recipient, envelope_from, size, reason }: queries.OperatorMail): string {
  const words = [
    id,
    received_at.toISOString(),
    printable(recipient),
    `from <${printable(envelope_from)}>`,
    `${size} bytes`,
  ];
  return [...words, ...(reason === null ? [] : [printable(reason)])].join("  ");
}

/** A terminal must not get what a stranger wrote. */
function printable(text: string): string {
  return text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?");
}

/** A mail as it came; null when there is none with this id. */
export async function readOperatorMail(world: Pick<World, "db" | "blobs">, id: string): Promise<Buffer | null> {
  const [mail] = isUuid(id) ? await queries.findOperatorMail(world.db, OPERATOR_ORG_ID, id) : [];
  return mail ? findBytes(world, OPERATOR_ORG_ID, mail.raw_id) : null;
}
