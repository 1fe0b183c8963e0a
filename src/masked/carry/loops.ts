// Is mail to an alias our own forward that came back? Only what we can prove counts: a mark or a return path that we made
// for this very alias, an author that is one of our reverse addresses. What else this or another installation sends is mail.
import { readToken } from "../../mail/bounce-token.ts";
import { headerValues, splitMessage } from "../../mail/mime/parse-head.ts";
import { TOKEN_CONTEXT } from "../../outbound/outbound.ts";
import type { World } from "../../platform/world.ts";
import { addressDigest, REPLY_LOCAL } from "../addresses/addresses.ts";
import { addressOf } from "../arrive/correspondents.ts";
import type { addressFinder } from "../lookups.ts";
import { LOOP_FIELD } from "../rewrite/forward.ts";
import { findTrace } from "../settle/trace-queries.ts";
import type { AliasRow } from "../types.ts";

type LoopWorld = Pick<World, "db" | "seal">;
type FindAddress = ReturnType<typeof addressFinder>;

/** Forwards drop the Received fields, so this is what ends a circle through masks that hide each other's marks. */
const MARKS_MAX = 10;

export type Came = { bytes: Buffer; from: string; envelope_from: string };

/** True for a mail that this alias sent on before, or that comes from a reverse address. Addresses in any case. */
export async function isLoop(
  world: LoopWorld,
  findAddress: FindAddress,
  alias: AliasRow,
  { bytes, from, envelope_from }: Came,
): Promise<boolean> {
  const marks = headerValues(splitMessage(bytes).headers, LOOP_FIELD);
  if (marks.length >= MARKS_MAX || marks.some((mark) => mark.trim() === loopMark(world, alias))) return true;
  const senders = [...new Set([from.toLowerCase(), envelope_from.toLowerCase()])];
  if (senders.includes(addressOf(alias)) || (await isOwnForward(world, alias, envelope_from))) return true;
  const known = await Promise.all(senders.map((sender) => isReverse(world, findAddress, sender)));
  return known.includes(true);
}

/** What a forward of this alias is marked with: nobody else can make it, and it names nobody. */
export function loopMark({ seal }: Pick<World, "seal">, { id }: Pick<AliasRow, "id">): string {
  return seal.hashOften(id, "masked-loop").toString("hex").slice(0, 32);
}

/** Every mail that we send has one of our return paths: only that of a forward of this alias says that it came back. */
async function isOwnForward({ db, seal }: LoopWorld, alias: AliasRow, envelopeFrom: string): Promise<boolean> {
  const [, token = ""] = /^b\+([a-z2-7]+)@/i.exec(envelopeFrom) ?? [];
  const named = token === "" ? null : readToken(token, (text) => seal.hash(text, TOKEN_CONTEXT));
  const [trace] = named ? await findTrace(db, alias.org_id, named.message_id) : [];
  return trace?.kind === "forward" && trace.alias_id === alias.id;
}

/** Another installation's reverse addresses have the same form. */
async function isReverse(world: LoopWorld, findAddress: FindAddress, sender: string): Promise<boolean> {
  if (!REPLY_LOCAL.test(sender.slice(0, sender.lastIndexOf("@")))) return false;
  return (await findAddress(addressDigest(world, sender)))?.kind === "reverse";
}
