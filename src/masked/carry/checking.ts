// What would become of a reply if its author sent it: read off what really builds replies (replying.ts), so that it cannot say
// anything else. Nothing is sent, counted or kept. Not judged: whether the author is proven, spam, and the limits.
import { decodeBase64 } from "../../mail/base64.ts";
import type { ParsePool } from "../../parsing/parse-pool.ts";
import { invalid, notFound } from "../../platform/refusal.ts";
import { untagged } from "../addresses/addresses.ts";
import { requireAlias } from "../addresses/aliases.ts";
import { writersOf } from "../arrive/arrival.ts";
import { usable } from "../arrive/correspondents.ts";
import { canonicalAddress, mayReply } from "../arrive/sender-proof.ts";
import { type AliasContext, addressFinder, contextFinder } from "../lookups.ts";
import { automaticKind } from "../rewrite/automatic-reply.ts";
import type { Change } from "../rewrite/changes.ts";
import { maskedWord, type ReportedLeak } from "../rewrite/tell-leaks.ts";
import type { Who } from "../types.ts";
import type * as carry from "./carry.ts";
import { contactsBehind } from "./quoted-people.ts";
import { composeReply } from "./replying.ts";
import { siblingFinder } from "./siblings.ts";

export const OUTCOMES = ["sent", "held", "refused"] as const;

/** `leaks`: why it would be held. `words`: what was found, as far as its owner recognizes it. */
export type Checked = {
  outcome: (typeof OUTCOMES)[number];
  /** As the activity would have it; null for one that would leave. */
  reason: string | null;
  /** As it would leave, or would have left. */
  raw_base64: string | null;
  changes: Change[];
  unopened: ReportedLeak[];
  leaks: ReportedLeak[];
  words: string[];
};

type Parser = Pick<ParsePool, "parse" | "buildReply">;

/** Verdicts as if the author's domain vouched for the mail. */
const PROVEN = {
  spf: { result: "pass", from_aligned: true },
  dkim: { result: "pass", from_aligned: true },
  dmarc: { result: "pass" },
};
const ADDRESSES_MAX = 50;

/** What would become of the mail, in base64, at this alias; 404 for an alias of somebody else. */
export async function checkReply(
  world: carry.CarryWorld,
  parser: Parser,
  who: Who,
  { id, raw_base64 }: { id: string; raw_base64: string },
): Promise<Checked> {
  await world.db.asOrg(who.org_id, (tx) => requireAlias(tx, who, id));
  const bytes = decodeBase64(raw_base64);
  if (bytes === null) throw invalid("raw_base64", "the 'raw_base64' field is not base64");
  const find = contextFinder(world);
  const context = await find(who.org_id, id);
  if (!context) throw notFound("masked alias");
  const read = await parser.parse(bytes);
  if (read.kind === "failed") return refused("unreadable");
  const parsed = read.mail;
  const reason = whyNot(context, parsed);
  if (reason !== null) return refused(reason);
  const named = usable([...parsed.to, ...parsed.cc], ADDRESSES_MAX).map(({ email }) => untagged(email.toLowerCase()));
  const [contact] = await contactsBehind(world, context.alias, named);
  if (!contact) return refused("no_reply_address");
  const composed = await composeReply(world, {
    ...{ context, parsed, bytes, contact_id: contact.id },
    author: canonicalAddress(parsed.from[0]?.email ?? ""),
    origin: { remote_ip: null, helo: "" },
    findSiblings: siblingFinder(world, addressFinder(world), find),
    write: (order) => parser.buildReply(bytes, order),
  });
  if ("refusal" in composed) return refused(composed.refusal.kind);
  const { built } = composed;
  if (built.kind === "failed") return refused("too_complex");
  if (built.kind === "refused") return refused(built.reason);
  const { changes, unopened } = built;
  const shown = { raw_base64: built.bytes.toString("base64"), changes, unopened };
  if (built.kind === "built") return { outcome: "sent", reason: null, ...shown, leaks: [], words: [] };
  return { outcome: "held", reason: "leak", ...shown, leaks: built.leaks, words: built.words.map(maskedWord) };
}

function whyNot({ alias, destinations }: AliasContext, parsed: Parameters<typeof automaticKind>[0] & Authors) {
  const from = parsed.from.map(({ email }) => canonicalAddress(email));
  const author = { from, envelope_from: from[0] ?? "", destinations: writersOf(destinations) };
  if (mayReply(author, PROVEN).kind !== "allowed") return "unauthorised_sender";
  const automatic = automaticKind(parsed, author.envelope_from);
  if (automatic !== null) return automatic === "answer" ? "auto_reply" : "bulk";
  return alias.active && alias.reply_enabled ? null : "reply_disabled";
}

type Authors = { from: readonly { email: string | null }[] };

function refused(reason: string): Checked {
  return { outcome: "refused", reason, raw_base64: null, changes: [], unopened: [], leaks: [], words: [] };
}
