// An automatic answer to a reply comes back to the reply's return path, which its contact knows and nobody else should. It
// is that contact's mail to the alias, and goes the way of such mail with its limits; from anybody else it is nothing.
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import type { World } from "../../platform/world.ts";
import { openContact } from "../addresses/addresses.ts";
import { findContacts } from "../people-queries.ts";
import type { TraceRow } from "../settle/trace-queries.ts";
import type { Examined } from "./parts.ts";
import { canonicalAddress } from "./sender-proof.ts";

type AnswerWorld = Pick<World, "db" | "seal">;

/** True if a machine wrote it, in answer to the reply that this trace is of. */
export async function isAnswer(
  { kind }: Pick<TraceRow, "kind">,
  examination: Pick<Examined, "returned">,
): Promise<boolean> {
  if (kind !== "reply") return false;
  const read = await examination.returned();
  return read.kind === "parsed" && read.returned.kind === "auto_reply";
}

/**
 * True if its only author is the contact that the reply went to. The policy of the author's domain says whether that is
 * proven.
 */
export async function isFromContact(
  world: AnswerWorld,
  { org_id, contact_id }: TraceRow,
  { from }: Pick<ParsedMail, "from">,
): Promise<boolean> {
  const [contact] = contact_id === null ? [] : await findContacts(world.db, org_id, [contact_id]);
  if (!contact || from.length !== 1) return false;
  const author = canonicalAddress(from[0]?.email ?? "").toLowerCase();
  return openContact(world, org_id, contact.sealed).email.toLowerCase() === author;
}
