// Forwarding a received mail to other addresses: untouched where its author's DMARC survives that, with From rewritten to
// the alias where it would not (or where the alias asks for it). The envelope sender is rewritten (SRS) so that SPF is
// ours to pass and bounces find their way back. Own marks against loops. Masked aliases forward elsewhere.

import { domainOfReturnPath } from "../../domains/domains.ts";
import { parseAddress } from "../../mail/address.ts";
import { stripForged } from "../../mail/auth/strip-forged.ts";
import { splitFields } from "../../mail/dkim/canonicalize.ts";
import type { ParsedAddress } from "../../mail/mime/parse-addresses.ts";
import { headerValues, isAllBody, splitMessage } from "../../mail/mime/parse-head.ts";
import { assertOneLine, mailboxHeader } from "../../mail/mime/write/encode-header.ts";
import { spamFields, withoutSpamFields } from "../../mail/spam/spam-fields.ts";
import { writeSrs } from "../../mail/srs.ts";
import { dateTime } from "../../mail/trace.ts";
import type { World } from "../../platform/world.ts";
import type { RawMessage } from "../../sending/types.ts";
import { keepIfLarge } from "../blobs/blob-references.ts";
import { SRS_CONTEXT } from "../receive/rcpt.ts";
import type { Found, Mail, RouteOf, SpamReport } from "../types.ts";
import { ourReceived } from "./stored-copy.ts";

export type ForwardWorld = Pick<World, "db" | "blobs" | "clock" | "random" | "config" | "seal">;

/** The domain that forwards, as a sender. */
export type ForwardSender = { id: string; return_path_host: string };

export type ForwardOrder = {
  forward_to: readonly string[];
  mode: "preserve_from" | "masked";
  sender: ForwardSender;
  found: Found;
  from: readonly ParsedAddress[];
  spam: SpamReport;
};

const LOOP_HEADER = "X-Loop-Guard";
const LOOP_CONTEXT = "forward-loop";
const LOOP_MARK_CHARS = 20;

/** True if the mail carries Postern's mark for this very alias: then it has been here before. */
export function isLoop(world: Pick<World, "seal">, bytes: Buffer, route: LoopRoute): boolean {
  const marks = headerValues(splitMessage(bytes).headers, LOOP_HEADER);
  return marks.some((mark) => mark.trim() === loopMark(world, route));
}

export type LoopRoute = Pick<Mail["route"], "org_id" | "domain_id" | "alias_id">;

function loopMark(world: Pick<World, "seal">, { org_id, domain_id, alias_id }: LoopRoute): string {
  return world.seal.hash(`${org_id}/${domain_id}/${alias_id}`, LOOP_CONTEXT).toString("hex").slice(0, LOOP_MARK_CHARS);
}

/** The messages that carry the mail on, one for each address. */
export async function makeForwards(
  world: ForwardWorld,
  mail: Mail & { route: RouteOf<"alias" | "catch_all"> },
  order: ForwardOrder,
): Promise<RawMessage[]> {
  const rewrites = order.mode === "masked" || (await breaksDmarc(mail));
  const bytes = await mail.examination.bytes();
  const mime = rewrites ? withOwnFrom(world, mail, bytes, order) : asItIs(world, mail, bytes, order);
  const envelope_from = rewrittenSender(world, mail, rewrites ? null : order.sender);
  const messages = [];
  for (const recipient of order.forward_to) {
    const id = world.random.uuid();
    const blob_key = await keepIfLarge(world, { org_id: mail.org_id, owner_id: id }, mime);
    messages.push({ ...describe(world, mail, order, rewrites), id, recipient, envelope_from, mime, blob_key });
  }
  return messages;
}

function describe(
  world: ForwardWorld,
  mail: Mail & { route: { domain: string } },
  order: ForwardOrder,
  rewrites: boolean,
) {
  const alias = aliasAddress(mail);
  const author = order.from[0]?.email ?? mail.envelope.from;
  return {
    org_id: mail.org_id,
    environment: mail.environment,
    domain_id: order.sender.id,
    origin: "forward" as const,
    message_id: messageIdOf(mail, order.found),
    from_address: rewrites ? alias : author,
    from_header: rewrites ? alias : (order.found.from_address ?? author),
    subject: order.found.subject ?? "",
    metadata: { inbound_id: mail.id },
    return_path_host: order.sender.return_path_host,
    created_at: new Date(world.clock.now()),
  };
}

/**
 * True if receivers of the forward will refuse it: SPF of the author's domain is lost, so DMARC passes by an aligned
 * signature or not at all (RFC 7960 §3.2).
 */
async function breaksDmarc(mail: Mail): Promise<boolean> {
  const { dmarc } = await mail.examination.verdictsNow();
  return !dmarc.dkim_aligned && (dmarc.policy === "quarantine" || dmarc.policy === "reject");
}

/**
 * SRS where the domain's return path leads to us; else, and where From is ours, our own return path. What came from
 * nobody goes on from nobody: it must not bounce.
 */
function rewrittenSender(world: ForwardWorld, mail: Mail, sender: ForwardSender | null): string | null {
  const { from } = mail.envelope;
  if (from === "") return "";
  if (!sender || domainOfReturnPath(sender.return_path_host) === null) return null;
  const mac = (text: string) => world.seal.hash(text, SRS_CONTEXT);
  const local = writeSrs(from, { mac, now_ms: world.clock.now() });
  return local === null ? null : `${local}@${sender.return_path_host}`;
}

function head(world: ForwardWorld, mail: Mail, spam: SpamReport): string {
  return ourReceived(world, mail) + `${LOOP_HEADER}: ${loopMark(world, mail.route)}\r\n` + spamFields(spam);
}

/** What came, without what pretends to be ours. */
function unforged(world: ForwardWorld, bytes: Buffer, spam: SpamReport): Buffer {
  const own = stripForged(bytes, world.config.mx_host);
  return spam.score === null ? own : withoutSpamFields(own);
}

function messageIdOf(mail: Mail & { route: { domain: string } }, found: Found): string {
  return found.message_id?.slice(1, -1) ?? `${mail.id}@${mail.route.domain}`;
}

/**
 * What a message must have and this one has not (RFC 5322 §3.6, RFC 6409 §8): large providers refuse mail without a
 * Message-ID. Behind them the end of the head, where there is none.
 */
function missingFields(mail: Mail & { route: { domain: string } }, bytes: Buffer, found: Found): string {
  const { headers, body_offset } = splitMessage(bytes);
  const add = (name: string, value: string) => (headerValues(headers, name).length > 0 ? "" : `${name}: ${value}\r\n`);
  const fields = add("Date", dateTime(mail.received_at.getTime())) + add("Message-ID", `<${messageIdOf(mail, found)}>`);
  const isHeadless = headers.length === 0 && body_offset !== 2;
  return isHeadless ? `${fields}\r\n` : fields;
}

/** Not a byte of what the author signed is touched; a signature may also say that a field is not there. */
function asItIs(
  world: ForwardWorld,
  mail: Mail & { route: { domain: string } },
  bytes: Buffer,
  { spam, found }: ForwardOrder,
): Buffer {
  const own = unforged(world, bytes, spam);
  const isSigned = headerValues(splitMessage(own).headers, "dkim-signature").length > 0;
  const missing = isSigned ? "" : missingFields(mail, own, found);
  return Buffer.concat([Buffer.from(head(world, mail, spam) + missing), without(own, /^return-path$/i)]);
}

function withOwnFrom(
  world: ForwardWorld,
  mail: Mail & { route: { domain: string } },
  bytes: Buffer,
  order: ForwardOrder,
): Buffer {
  const own = unforged(world, bytes, order.spam);
  const { headers } = splitMessage(own);
  const author = order.from[0];
  const shown = author?.name ?? author?.email ?? mail.envelope.from;
  const from = mailboxHeader("From", [
    { name: `${oneLine(shown)} via ${aliasAddress(mail)}`, email: aliasAddress(mail) },
  ]);
  const replyTo = headerValues(headers, "reply-to").length > 0 ? "" : replyToField(author?.email ?? null);
  // Signatures over the old From do not hold any more.
  const rest = without(own, /^(return-path|from|sender|dkim-signature|arc-.*)$/i);
  const missing = missingFields(mail, own, order.found);
  return Buffer.concat([Buffer.from(head(world, mail, order.spam) + from + replyTo + missing), rest]);
}

function replyToField(email: string | null): string {
  const parsed = email === null ? null : parseAddress(email);
  return parsed?.ok ? mailboxHeader("Reply-To", [{ name: null, email: parsed.address.email }]) : "";
}

function oneLine(text: string): string {
  const clean = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/gu, " ")
    .slice(0, 200)
    .trim();
  assertOneLine("From", clean);
  return clean;
}

/** The recipient without its tag: what the forward calls itself. */
function aliasAddress({ recipient, route }: Pick<Mail, "recipient" | "route">): string {
  return route.tag === null ? recipient : recipient.replace(/\+[^@]*@/, "@");
}

/** The message without these fields, everything else byte for byte. */
function without(bytes: Buffer, names: RegExp): Buffer {
  if (isAllBody(bytes)) return bytes;
  const { fields, body } = splitFields(bytes);
  if (!fields.some(({ name }) => names.test(name.trim()))) return bytes;
  const kept = fields.filter(({ name }) => !names.test(name.trim())).map((field) => field.bytes);
  return Buffer.concat([...kept, Buffer.from("\r\n"), body]);
}
