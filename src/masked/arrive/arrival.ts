// Mail arrives for an alias or for a reverse address: the decision at RCPT, and the look at the whole message in session.
// What a stranger must not do is refused here, while the one who sends can still be informed, so that nothing is bounced later.

import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import type { Path } from "../../mail/smtp-server/command.ts";
import { OUT_OF_MEMORY } from "../../parsing/parse-pool.ts";
import type { World } from "../../platform/world.ts";
import { addressDigest, contactDigest, REPLY_LOCAL, untagged } from "../addresses/addresses.ts";
import {
  type AliasContext,
  addressFinder,
  contactFinder,
  contextFinder,
  type FindContact,
  type FindContext,
} from "../lookups.ts";
import { type FindPattern, patternFinder } from "../patterns/find-patterns.ts";
import { countNewContacts, findContacts } from "../people-queries.ts";
import { type FoundAddress, moveToDomain } from "../queries.ts";
import { isSameMailbox } from "../rewrite/spellings.ts";
import { maskedSettings } from "../settings.ts";
import { findTrace } from "../settle/trace-queries.ts";
import type { MaskedRoute, PatternRoute } from "../types.ts";
import { type AliasRow, DESTINATION_BOUNCING, type Destination } from "../types.ts";
import { isAnswer, isFromContact } from "./answers.ts";
import { LATER, OWN_MAIL, POLICY, type Refused, refuse, UNCONFIRMED, UNKNOWN, UNREACHABLE } from "./answers-of-smtp.ts";
import { addressOf, correspondents, everybody, type Named, usable } from "./correspondents.ts";
import { type Examined, readParts } from "./parts.ts";
import { type Asked, policyFor } from "./policy.ts";
import { type NoteRefusal, refusalNoter } from "./refusals.ts";
import { canonicalAddress, mayReply, type Proof } from "./sender-proof.ts";
import { stopOfSubject } from "./stop-subject.ts";
import { type IsWithin, takeReply, windowCounter } from "./windows.ts";

export type ArrivalWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

export type ArrivalPorts = {
  /** The domain that receives under this name, of whichever organization. */
  findReceiver(domain: string): Promise<{ id: string; org_id: string } | undefined>;
};

export const REPLY_RECIPIENTS_MAX = 10;
const NEW_CONTACTS_DAY_MAX = 200;
const DAY_MS = 86_400_000;

const STRANGERS = refuse(450, "4.7.1", "too many new correspondents of this address today; try later");
const CROWD = refuse(550, "5.5.3", `a reply has at most ${REPLY_RECIPIENTS_MAX} recipients`);
const NO_ANSWER = refuse(451, "4.4.3", "the sender could not be looked up; try later");
const UNREAD = refuse(451, "4.3.0", "the message could not be read; try later");
const TOO_MUCH = refuse(554, "5.6.0", "the message is too large or has too many parts within parts to be read");
const FOREIGN = refuse(550, "5.7.1", "this address takes answers of the message's recipient only");

/**
 * What a recipient was decided by, for the look at its message in the same session: asking once more would be a round trip a
 * mail. The step that carries the mail on asks again.
 */
const decidedBy = new WeakMap<MaskedRoute, AliasContext>();

/** Decides about aliases and reverse addresses; null for every other address. Header fields never route. */
export function maskedDecider(world: ArrivalWorld, ports: ArrivalPorts) {
  const findAddress = addressFinder(world);
  const findContext = contextFinder(world);
  const note = refusalNoter(world);
  return async (
    { to }: { to: Path },
    environment: "live" | "test" = "live",
  ): Promise<{ kind: "accept"; route: MaskedRoute } | Refused | null> => {
    if (to.domain === null) return null;
    const bare = untagged(`${to.local}@${to.domain}`);
    const local = bare.slice(0, bare.lastIndexOf("@"));
    const found = await findAddress(addressDigest(world, bare));
    // A forgotten reverse address must not fall to a catch-all.
    if (!found) return REPLY_LOCAL.test(local.toLowerCase()) && (await ports.findReceiver(to.domain)) ? UNKNOWN : null;
    const context = await findContext(found.org_id, found.alias_id);
    // What a test key made, there or deleted, stands in the way of no live mail to a pattern or catch-all of the domain.
    const isTrial = environment === "live" && context?.alias.environment === "test";
    if (isTrial && found.kind === "alias" && context.alias.domain_id !== null) return null;
    if (!context || context.alias.deleted_at !== null) return UNKNOWN;
    const alias = await atHome(world, ports, context.alias);
    if (alias === null) return null;
    if (found.kind === "reverse" && !(await isContact(world, found))) return UNKNOWN;
    const tag = to.local.slice(local.length + 1) || null;
    const route = routeTo(alias, found.kind === "alias" ? null : found.contact_id, tag);
    decidedBy.set(route, { ...context, alias });
    const turned = found.kind === "alias" ? whyNot({ ...context, alias }) : null;
    if (!turned) return { kind: "accept", route };
    await note({ route, code: turned.answer.code, reason: turned.reason, size: null, proof: null });
    return turned.answer;
  };
}

/**
 * The alias, if its organization's domain receives; null where it does not, or is somebody else's by now. A domain that was
 * removed and came back has another id.
 */
async function atHome(world: ArrivalWorld, ports: ArrivalPorts, alias: AliasRow): Promise<AliasRow | null> {
  if (alias.domain_id === null) return alias;
  const receiver = await ports.findReceiver(alias.domain);
  if (receiver?.org_id !== alias.org_id) return null;
  if (receiver.id === alias.domain_id) return alias;
  const move = { from: alias.domain_id, to: receiver.id };
  await world.db.asOrg(alias.org_id, (tx) => moveToDomain(tx, alias.org_id, move));
  return { ...alias, domain_id: receiver.id };
}

/**
 * Why mail to an alias is not taken at all. Deliberate: what its owner did not switch off is deferred, not dropped. The one
 * who writes keeps it for days, within which the owner confirms; if not, its own server says so.
 */
function whyNot({ alias, destinations }: AliasContext): { answer: Refused; reason: string } | null {
  if (!alias.active && alias.disabled_reason !== DESTINATION_BOUNCING) {
    return alias.on_disabled === "reject" ? { answer: UNKNOWN, reason: "alias_disabled" } : null;
  }
  const reason = unreachableReason({ alias, destinations });
  if (reason === null) return null;
  return { answer: reason === "destination_unconfirmed" ? UNCONFIRMED : UNREACHABLE, reason };
}

/** Why nobody behind an alias that its owner left on can get mail; null when somebody can. */
export function unreachableReason({ alias, destinations }: AliasContext): string | null {
  if (alias.active && destinations.some(({ status }) => status === "verified")) return null;
  return alias.active && destinations.some(({ status }) => status === "pending")
    ? "destination_unconfirmed"
    : "destination_suspended";
}

/** The route of mail to an alias (`contactId` null) or to a reverse address of it. */
export function routeTo(alias: AliasRow, contactId: string | null, tag: string | null): MaskedRoute {
  const { org_id, domain_id, environment } = alias;
  const detail = { alias_id: alias.id, contact_id: contactId, environment };
  return { kind: contactId === null ? "masked" : "reverse", org_id, domain_id, alias_id: null, tag, detail };
}

async function isContact(world: ArrivalWorld, found: FoundAddress): Promise<boolean> {
  if (found.contact_id === null) return false;
  return (await findContacts(world.db, found.org_id, [found.contact_id])).length === 1;
}

/** What the check needs of a message; the shape of receiving's Incoming. `message_id`: whose return path it is. */
export type Arriving = {
  environment: "live" | "test";
  envelope: { from: string };
  bytes: Buffer;
  recipients: readonly { route: { kind: string; org_id: string; message_id?: string } }[];
};

/**
 * Looks at mail for aliases, reverse addresses and return paths of replies before it is taken: forged senders, policy,
 * floods. A message to several recipients has one answer: it is deferred when one of them asks for that, and refused when
 * all of them do; otherwise each is judged again when it is handled.
 */
export function maskedCheck(world: ArrivalWorld) {
  const find = contextFinder(world);
  const findContact = contactFinder(world);
  const isWithin = windowCounter(world);
  const note = refusalNoter(world);
  const findPattern = patternFinder(world);
  return async (incoming: Arriving, examination: Examined): Promise<Refused | null> => {
    const answers: (Refused | null)[] = [];
    const about = { incoming, examination, counted: new Set<string>(), find, findContact, findPattern, isWithin, note };
    for (const { route } of incoming.recipients) {
      if (route.kind === "return_path") answers.push(await checkAnswer(world, about, route));
      else if (isUnmade(route)) answers.push(await checkUnmade(world, about, route));
      else if (!isMasked(route)) answers.push(null);
      else answers.push(await checkOne(world, { ...about, route }));
    }
    const later = answers.find((answer) => answer !== null && answer.code < 500);
    return later ?? (answers.every((answer) => answer !== null) ? (answers[0] ?? null) : null);
  };
}

function isMasked(route: { kind: string }): route is MaskedRoute {
  return route.kind === "masked" || route.kind === "reverse";
}

/** True for an address that a pattern takes, and that no alias has yet. */
export function isUnmade(route: { kind: string }): route is PatternRoute {
  return route.kind === "pattern";
}

/** `counted`: the aliases whose windows this message was counted in. */
type About = {
  incoming: Arriving;
  examination: Examined;
  counted: Set<string>;
  find: FindContext;
  findContact: FindContact;
  findPattern: FindPattern;
  isWithin: IsWithin;
  note: NoteRefusal;
};
type Checked = About & { route: MaskedRoute };

async function checkOne(world: ArrivalWorld, checked: Checked): Promise<Refused | null> {
  const { incoming, route } = checked;
  const { detail, org_id } = route;
  if (detail.environment === "test" && incoming.environment === "live") return UNKNOWN;
  const context = decidedBy.get(route) ?? (await checked.find(org_id, detail.alias_id));
  if (!context) return UNKNOWN;
  return route.kind === "reverse" ? checkReply(world, checked, context) : checkForward(world, checked, context);
}

function refusalFor(asked: Asked | null): Refused | null {
  if (asked === "doubt") return NO_ANSWER;
  return asked === "reject" ? POLICY : null;
}

/** Mail to an address that a pattern takes, before there is an alias: whom it is from, as for an alias. Limits: make-aliases.ts. */
async function checkUnmade(
  world: ArrivalWorld,
  { incoming, examination, findPattern }: About,
  { org_id, detail }: PatternRoute,
): Promise<Refused | null> {
  const verdicts = await examination.verdicts();
  const refused = refusalFor(await policyFor(world, org_id, verdicts));
  if (refused !== null) return refused;
  const pattern = await findPattern({ org_id, ...detail });
  if (pattern === null) return UNKNOWN;
  const parsed = await readParts(examination);
  return isProvenOwn([pattern.destination], { parsed, envelope_from: incoming.envelope.from }, verdicts)
    ? OWN_MAIL
    : null;
}

/** Mail to a return path: what its contact's machine answers to a reply is mail to the alias, with the same limits. */
async function checkAnswer(
  world: ArrivalWorld,
  about: About,
  { org_id, message_id }: Arriving["recipients"][number]["route"],
): Promise<Refused | null> {
  const [trace] = message_id === undefined ? [] : await findTrace(world.db, org_id, message_id);
  if (!trace || trace.alias_id === null || !(await isAnswer(trace, about.examination))) return null;
  const context = await about.find(org_id, trace.alias_id);
  if (!context) return null;
  const checked = { ...about, route: routeTo(context.alias, null, null) };
  const parsed = await readParts(about.examination);
  if (await isFromContact(world, trace, parsed)) return checkForward(world, checked, context);
  return turn(checked, FOREIGN, "foreign_answer");
}

/** The answer, with its entry in the activity. */
async function turn({ note, incoming, examination, route }: Checked, answer: Refused, reason: string) {
  const { code } = answer;
  await note({ route, code, reason, size: incoming.bytes.length, proof: await examination.verdicts() });
  return answer;
}

async function checkForward(
  world: ArrivalWorld,
  checked: Checked,
  { alias, destinations }: AliasContext,
): Promise<Refused | null> {
  const { incoming, examination, counted, isWithin } = checked;
  const verdicts = await examination.verdicts();
  const refused = refusalFor(await policyFor(world, alias.org_id, verdicts));
  if (refused !== null) return turn(checked, refused, "dmarc");
  if (!counted.has(alias.id) && !(await isWithin(alias, "forward_minute"))) return turn(checked, LATER, "rate_limited");
  counted.add(alias.id);
  if (!alias.active) return null;
  const parsed = await readParts(examination);
  const envelope_from = incoming.envelope.from;
  const mailboxes = destinations.map(({ email }) => email);
  const isProven = isProvenOwn(destinations, { parsed, envelope_from }, verdicts);
  if (
    isProven &&
    kindOfOwnMail(alias, destinations, parsed) === "alone" &&
    stopOfSubject(world, alias, parsed.subject) === null
  ) {
    return turn(checked, OWN_MAIL, "own_destination");
  }
  const named = { parsed, bytes: incoming.bytes, envelope_from, mailboxes: isProven ? mailboxes : [] };
  const isTooMany = await isCrowd(world, checked.findContact, alias, correspondents(alias, named));
  return isTooMany ? turn(checked, STRANGERS, "new_contacts") : null;
}

/**
 * True if it is proven that a mailbox of the alias writes, under whatever spelling. Anybody can forge mail, and must
 * not learn by it that this is the mailbox.
 */
export function isProvenOwn(
  destinations: readonly Destination[],
  { parsed, envelope_from }: { parsed: Pick<ParsedMail, "from">; envelope_from: string },
  verdicts: Proof,
): boolean {
  const from = parsed.from.map(({ email }) => email);
  const spelled = from.flatMap((email) => canonicalAddress(email) ?? []);
  const own = spelled.filter((email) => destinations.some((one) => isSameMailbox(one.email, email)));
  return mayReply({ from, envelope_from, destinations: own }, verdicts).kind === "allowed";
}

/**
 * What a mail is that a mailbox of the alias writes to the alias; null for anybody else's. `alone`: the alias leads to nobody but
 * that mailbox. `for_others`: it leads to others, too. `answer`: it answers everybody whom a forward names, and nobody needs it.
 */
export function kindOfOwnMail(
  alias: AliasRow,
  destinations: readonly Destination[],
  { from, to, cc }: Pick<ParsedMail, "from" | "to" | "cc">,
): "alone" | "answer" | "for_others" | null {
  const author = canonicalAddress(from[0]?.email ?? "").toLowerCase();
  if (!destinations.some(({ email }) => email.toLowerCase() === author)) return null;
  if ([...to, ...cc].some(({ email }) => email !== null && isReverseOf(alias, email))) return "answer";
  const others = destinations.filter(({ email, status }) => status === "verified" && email.toLowerCase() !== author);
  return others.length > 0 ? "for_others" : "alone";
}

function isReverseOf({ domain }: AliasRow, email: string): boolean {
  const [local = "", host] = untagged(email.toLowerCase()).split("@");
  return REPLY_LOCAL.test(local) && host === domain;
}

/** True if the mail would bring more new contacts than are allowed in a day. */
async function isCrowd(world: ArrivalWorld, find: FindContact, alias: AliasRow, named: Named): Promise<boolean> {
  const emails = [...new Set(everybody(named).map(({ email }) => email.toLowerCase()))];
  const found = await Promise.all(emails.map((email) => find(alias, contactDigest(world, alias.id, email))));
  const fresh = found.filter((contact) => !contact || contact.is_token).length;
  if (fresh === 0) return false;
  const since = new Date(world.clock.now() - DAY_MS);
  return (await countNewContacts(world.db, alias.org_id, alias.id, since)) + fresh > NEW_CONTACTS_DAY_MAX;
}

async function checkReply(world: ArrivalWorld, checked: Checked, context: AliasContext): Promise<Refused | null> {
  const { alias, destinations } = context;
  const { incoming, examination, counted } = checked;
  const [verdicts, parsed] = await Promise.all([examination.verdicts(), examination.parsed()]);
  // Nobody may be refused for good because our parser is busy: memory is a message's own.
  if (parsed.kind === "failed") return turn(checked, isTooMuch(parsed) ? TOO_MUCH : UNREAD, "unreadable");
  const { mail } = parsed;
  const permission = mayReply(
    {
      from: mail.from.map(({ email }) => email),
      envelope_from: incoming.envelope.from,
      destinations: writersOf(destinations),
    },
    verdicts,
  );
  if (permission.kind === "unknown") return turn(checked, NO_ANSWER, "unproven_sender");
  if (permission.kind === "refused") {
    const answer = refuse(550, "5.7.1", `you may not write through this address: ${permission.reason}`);
    return turn(checked, answer, "unauthorised_sender");
  }
  if (!alias.active || !alias.reply_enabled) {
    const why = "replies are switched off for this alias";
    return turn(checked, refuse(550, "5.7.1", `you may not write through this address: ${why}`), "reply_disabled");
  }
  if (countRecipients(alias, mail) > REPLY_RECIPIENTS_MAX) return turn(checked, CROWD, "too_many_recipients");
  if (counted.has(alias.id)) return null;
  counted.add(alias.id);
  const { org_id } = alias;
  const owner = destinations.find(({ email }) => isSameMailbox(email, permission.email));
  const leaving = { org_id, alias, destination_id: owner?.id ?? null, isLive: incoming.environment === "live" };
  const limits = await maskedSettings(world.db, org_id);
  const over = await takeReply(checked.isWithin, limits, leaving);
  return over === null ? null : turn(checked, LATER, "rate_limited");
}

function isTooMuch({ reason }: { reason: string }): boolean {
  return reason === OUT_OF_MEMORY;
}

/** Who may write from an alias: the mailboxes that were ever confirmed. */
export function writersOf(destinations: readonly Destination[]): string[] {
  return destinations.filter(({ status }) => status !== "pending").map(({ email }) => email);
}

/** To and Cc without the alias and the author. */
export function countRecipients(alias: AliasRow, mail: Pick<ParsedMail, "from" | "to" | "cc">): number {
  const own = [addressOf(alias), canonicalAddress(mail.from[0]?.email ?? null)?.toLowerCase()];
  const all = usable([...mail.to, ...mail.cc], Number.POSITIVE_INFINITY);
  return all.filter(({ email }) => !own.includes(email.toLowerCase())).length;
}

/** A check of receiving's (spam) with what it refuses to aliases noted in their activity. */
export function withActivity<I extends Arriving, E extends Examined>(
  world: ArrivalWorld,
  check: (incoming: I, examination: E) => Promise<Refused | null>,
) {
  const note = refusalNoter(world);
  return async (incoming: I, examination: E): Promise<Refused | null> => {
    const refused = await check(incoming, examination);
    if (refused === null) return null;
    const { code } = refused;
    const about = { code, reason: code < 500 ? "unjudged" : "spam", size: incoming.bytes.length };
    for (const { route } of incoming.recipients) {
      if (isMasked(route)) await note({ ...about, route, proof: await examination.verdicts() });
    }
    return refused;
  };
}
