// D → R → C: a mail from a confirmed destination to a reverse address leaves from the alias. Who may was decided in session
// and is decided again here, because verdicts and settings may have changed since; then everything is rebuilt, and the
// leak gate has the last word. Its author is informed of what does not leave.

import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import { NotNow } from "../../platform/not-now.ts";
import { addressDigest, openContact, untagged } from "../addresses/addresses.ts";
import { countRecipients, REPLY_RECIPIENTS_MAX, writersOf } from "../arrive/arrival.ts";
import { addressOf, type Person, usable } from "../arrive/correspondents.ts";
import { readParts } from "../arrive/parts.ts";
import { canonicalAddress, mayReply, verdictsOf } from "../arrive/sender-proof.ts";
import { keepHeld } from "../held/held.ts";
import { type AliasContext, addressFinder, contextFinder } from "../lookups.ts";
import { findContacts } from "../people-queries.ts";
import { findAddresses } from "../queries.ts";
import { automaticKind } from "../rewrite/automatic-reply.ts";
import { NAMED_MAX } from "../rewrite/named-addresses.ts";
import { findAddressesIn } from "../rewrite/scrub/find-reverse.ts";
import type { Replacement } from "../rewrite/scrub/replace-addresses.ts";
import { type SentContent, withoutTokens } from "../rewrite/sent/sent-content.ts";
import type { Token } from "../rewrite/sent/tokens.ts";
import { serverNames } from "../rewrite/server-names.ts";
import { isSameMailbox } from "../rewrite/spellings.ts";
import { maskedWord } from "../rewrite/tell-leaks.ts";
import { detailOf, makeNotice, type Refusal } from "../settle/notices.ts";
import { tellSent } from "../settle/reports.ts";
import type { ActivityType, ContactSecrets } from "../types.ts";
import * as carry from "./carry.ts";
import { contactsBehind, type Quoted, quotedIds, restoring, writtenForms } from "./quoted-people.ts";
import { isNamedBy, isPersonTo, sentBy } from "./sent.ts";
import { shownName, UNPROVEN, undecorated } from "./shown-name.ts";
import { type FindSiblings, siblingFinder } from "./siblings.ts";
import { idsForReply, outerId, pairOfIds } from "./thread-ids.ts";

/** It was readable and proven when it was taken: what is in the way is a resolver or a parser that is not there now. */
const KEEP_TRYING_MS = 4 * 3_600_000;
/** A worker that is busy or stops fails any reply; one that fails for so long fails because of this one. */
const KEEP_BUILDING_MS = 1_800_000;
const DETAIL_MAX = 1_000;

/** The handler of mail for reverse addresses. What looks like spam was refused in session, unless it was for others, too. */
export function replyHandler<M extends carry.ArrivedMail>(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  spam: (mail: M) => Promise<{ quarantine: string | null }>,
) {
  const find = contextFinder(world);
  const findSiblings = siblingFinder(world, addressFinder(world), find);
  return async (mail: M) => {
    const context = await carry.loadContext(find, mail);
    if (!context) return carry.gone(world, mail);
    const { alias, route } = context;
    const { examination, envelope } = mail;
    const [verdicts, read, parsed] = await Promise.all([
      examination.verdicts(),
      examination.parsed(),
      readParts(examination),
    ]);
    const contact_id = route.detail.contact_id;
    const about = { ...verdictsOf(verdicts), size: mail.size, contact_id };
    const stop = (outcome: "failed" | "dropped", reason: string, type: ActivityType = "reply") =>
      carry.conclude(
        world,
        { alias, mail },
        { status: outcome, reason, entries: [{ ...about, type, outcome, reason }], counts: {} },
      );
    const from = parsed.from.map(({ email }) => canonicalAddress(email));
    const author = { from, envelope_from: envelope.from, destinations: writersOf(context.destinations) };
    const permission = mayReply(author, verdicts);
    if (permission.kind === "refused") return stop("failed", "unauthorised_sender");
    // RFC 3834 §2: two responders must not talk to each other through us.
    const automatic = automaticKind(parsed, envelope.from);
    if (automatic === "answer") return stop("dropped", "auto_reply", "auto_reply");
    const reply = { context, mail, parsed, author: from[0] as string, about, findSiblings };
    if (automatic === "bulk") return turnBack(world, ports, reply, { refusal: { kind: "bulk" } });
    const obstacle = permission.kind === "unknown" ? "unproven" : read.kind === "failed" ? "unreadable" : null;
    if (obstacle !== null) {
      if (ageOf(world, mail) < KEEP_TRYING_MS) throw new NotNow(`a reply waits, it is ${obstacle}`);
      return turnBack(world, ports, reply, { refusal: { kind: obstacle } });
    }
    if (!alias.active || !alias.reply_enabled)
      return turnBack(world, ports, reply, { refusal: { kind: "reply_disabled" } });
    if ((await spam(mail)).quarantine !== null) return turnBack(world, ports, reply, { refusal: { kind: "spam" } });
    return carryReply(world, ports, reply);
  };
}

function ageOf({ clock }: Pick<carry.CarryWorld, "clock">, { received_at }: carry.ArrivedMail): number {
  return clock.now() - received_at.getTime();
}

type About = { spf: string; dkim: string; dmarc: string; size: number; contact_id: string | null };
type Reply = {
  context: carry.Context;
  mail: carry.ArrivedMail;
  parsed: ParsedMail;
  author: string;
  about: About;
  findSiblings: FindSiblings;
};

/** What a reply is made from; `write` writes it from its order. */
export type Composing = {
  context: AliasContext;
  contact_id: string | null;
  parsed: ParsedMail;
  /** The author's address, as From has it. */
  author: string;
  bytes: Buffer;
  origin: carry.ArrivedMail["origin"];
  write: carry.ArrivedMail["examination"]["reply"];
  findSiblings: FindSiblings;
};

export type Composed = { refusal: Refusal } | { people: People; built: Awaited<ReturnType<typeof build>> };

/** The reply as it leaves, with whom it leaves for; or why it cannot be made. Changes nothing. */
export async function composeReply(world: carry.CarryWorld, composing: Composing): Promise<Composed> {
  const { context, contact_id, parsed, bytes, findSiblings } = composing;
  const found = findAddressesIn(bytes);
  if (found.named.length >= NAMED_MAX) return { refusal: { kind: "too_complex" } };
  const quoted = await contactsBehind(world, context.alias, found.reverse);
  const siblings = await findSiblings(context, [...found.named, ...quoted.map(({ email }) => email)]);
  const mailboxes = [...context.destinations.map(({ email }) => email), ...siblings];
  const sent = await sentBy(world, context.alias, contact_id as string, mailboxes);
  const people = await readPeople(world, context, { contact_id, sent, mailboxes }, parsed);
  if ("kind" in people) return { refusal: people };
  const others = quoted.filter(({ reverse }) => !people.reverse.includes(reverse));
  return { people, built: await build(world, composing, { ...people, sent, quoted: others, mailboxes }) };
}

async function carryReply(world: carry.CarryWorld, ports: carry.CarryPorts, reply: Reply) {
  const { context, mail, parsed, author, about, findSiblings } = reply;
  const { alias } = context;
  const composed = await composeReply(world, {
    ...{ context, parsed, author, findSiblings, contact_id: about.contact_id, origin: mail.origin },
    bytes: await mail.examination.bytes(),
    write: (order) => mail.examination.reply(order),
  });
  if ("refusal" in composed) return turnBack(world, ports, reply, composed);
  const { people, built } = composed;
  // In a bounded worker: what is too much for it is not sent.
  if (built.kind === "failed") {
    if (ageOf(world, mail) < KEEP_BUILDING_MS) throw new NotNow(`a reply waits, ${built.reason}`);
    return turnBack(world, ports, reply, { refusal: { kind: "too_complex" } });
  }
  if (built.kind === "refused") return turnBack(world, ports, reply, { refusal: { kind: built.reason } });
  if (built.kind === "held") return holdBack(world, ports, reply, built);
  const { id, outer, bytes, redactions, unopened, changes } = built;
  const outgoing = { id, message_id: outer, from: addressOf(alias), recipient: people.contact.email, mime: bytes };
  const raw = await carry.toRaw(world, ports, { alias, environment: mail.environment }, outgoing);
  const owner_id = ownerOf(reply)?.id ?? null;
  const entry = {
    ...about,
    id,
    type: "reply" as const,
    outcome: "sent" as const,
    redactions,
    detail: unopened.length === 0 ? null : leftUnopened(unopened),
    message_id: `<${outer}>`,
  };
  const cleared = context.destinations.map(({ id: one }) => one);
  const leaving: carry.Leaving[] = [{ raw, trace: { kind: "reply", contact_id: about.contact_id, owner_id, cleared } }];
  const order = { to: reply.author, environment: mail.environment, about_id: parsed.message_id, unopened, changes };
  const report = await tellSent(world, ports, alias, order);
  if (report !== null) leaving.push({ raw: report, trace: { kind: "notice" } });
  return carry.conclude(
    world,
    { alias, mail },
    {
      status: "delivered",
      reason: null,
      entries: [{ ...entry, destination_id: owner_id }],
      counts: { replied: 1 },
      leaving,
      ids: parsed.message_id === null ? [] : pairOfIds(world, alias, parsed.message_id),
      contact: { id: about.contact_id as string, received: 0, sent: 1 },
    },
  );
}

/** What the activity says of them: all, as far as there is room, and how many they are. */
function leftUnopened(unopened: readonly { where: string }[]): string {
  const said = `left without being looked into: ${unopened.map(({ where }) => where).join("; ")}`;
  if (said.length <= DETAIL_MAX) return said;
  const end = `… (${unopened.length} files)`;
  return said.slice(0, DETAIL_MAX - end.length) + end;
}

function ownerOf({ context, author }: Reply) {
  return context.destinations.find(({ email }) => isSameMailbox(email, author));
}

type Held = Extract<Awaited<ReturnType<typeof build>>, { kind: "held" }>;

/** The leak gate found something: its author is informed what, and may have it sent all the same where it is theirs alone. */
async function holdBack(world: carry.CarryWorld, ports: carry.CarryPorts, reply: Reply, held: Held) {
  const { context, mail, about, author, parsed } = reply;
  const { alias, destinations } = context;
  const owner = ownerOf(reply);
  const others = destinations.filter(({ email }) => !isSameMailbox(email, author));
  const isForeign = held.words.some((word) => others.some(({ email }) => isSameMailbox(email, word)));
  const { leaks, words, bytes, outer } = held;
  const kept =
    !owner || isForeign
      ? null
      : await keepHeld(world, ports, {
          ...{ alias, environment: mail.environment, bytes, message_id: outer },
          ...{ contact_id: about.contact_id as string, owner_id: owner.id },
          cleared: destinations.map(({ id }) => id),
        });
  const links = { send: kept?.send ?? null, setting: others.length > 0 ? null : (kept?.setting ?? null) };
  const refusal: Refusal = { kind: "leak", leaks, words: words.map(maskedWord), links };
  const ids = parsed.message_id === null ? [] : pairOfIds(world, alias, parsed.message_id);
  return turnBack(world, ports, reply, { refusal, also: kept?.also, ids });
}

type Kept = Pick<carry.Conclusion, "also" | "ids">;

/** The reply does not leave: its author is informed, and the activity says so. */
async function turnBack(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  reply: Reply,
  { refusal, ...kept }: { refusal: Refusal } & Kept,
) {
  const { context, mail, parsed, about } = reply;
  const { alias } = context;
  const owner = ownerOf(reply);
  const isHeld = refusal.kind === "leak";
  const outcome = isHeld ? ("held" as const) : ("failed" as const);
  const reason = refusal.kind;
  const detail = isHeld ? detailOf(refusal) : null;
  const raw = await makeNotice(world, ports, alias, {
    to: reply.author,
    environment: mail.environment,
    about_id: parsed.message_id,
    reverse_address: mail.recipient,
    refusal,
  });
  return carry.conclude(
    world,
    { alias, mail },
    {
      status: "failed",
      reason: refusal.kind,
      entries: [{ ...about, type: "reply", outcome, reason, detail, destination_id: owner?.id ?? null }],
      counts: {},
      leaving: [{ raw, trace: { kind: "notice" } }],
      ...kept,
    },
  );
}

/** `isWithin`: the contact is another mailbox of the alias. `reverse`: of all of them; `owners`: those who are the owner. */
type People = {
  contact: ContactSecrets;
  isWithin: boolean;
  to: Person[];
  cc: Person[];
  restored: Replacement[];
  reverse: string[];
  owners: Token[];
  /** All contacts that the reply goes to. */
  contacts: Token[];
};

type Knowing = { contact_id: string | null; sent: SentContent; mailboxes: readonly string[] };

/**
 * The contacts behind To and Cc; a refusal when somebody there is neither a contact nor the alias. A mailbox of the owner
 * that is a contact, too, is named to itself and to who named it before, and sees the others as in a forward: an answer to
 * their own addresses would leave from the mailbox. `mailboxes` are the alias's, and the owner's other aliases (siblings.ts).
 */
async function readPeople(
  world: carry.CarryWorld,
  { alias, destinations }: AliasContext,
  { contact_id: contactId, sent, mailboxes }: Knowing,
  parsed: ParsedMail,
): Promise<People | Refusal> {
  if (countRecipients(alias, parsed) > REPLY_RECIPIENTS_MAX) return { kind: "too_many_recipients" };
  const own = addressOf(alias);
  const from = canonicalAddress(parsed.from[0]?.email ?? null)?.toLowerCase();
  const listed = usable([...parsed.to, ...parsed.cc], REPLY_RECIPIENTS_MAX + 2);
  const named = listed.map(({ email }) => untagged(email.toLowerCase()));
  // Another mailbox of the owner's has the mail by itself, and is shown to nobody.
  const isOwners = (email: string) => mailboxes.some((one) => isSameMailbox(one, email));
  const others = named.filter(
    (email, at) => email !== own && listed[at]?.email.toLowerCase() !== from && !isOwners(email),
  );
  const digests = [...new Set(others)].map((email) => addressDigest(world, email));
  const found = await findAddresses(world.db, digests);
  const ours = found.filter(({ alias_id, kind }) => alias_id === alias.id && kind === "reverse");
  if (ours.length !== digests.length) return { kind: "foreign_recipient" };
  const ids = [...ours.map(({ contact_id }) => contact_id), contactId].filter((id) => id !== null);
  const rows = await findContacts(world.db, alias.org_id, ids);
  const opened = rows.map((row) => ({ id: row.id, ...openContact(world, alias.org_id, row.sealed) }));
  const contact = opened.find(({ id }) => id === contactId);
  if (!contact) return { kind: "unknown_contact" };
  const isOwn = ({ id, email }: { id: string; email: string }) => id !== contactId && isOwners(email);
  const isWithin = destinations.some(({ email }) => isSameMailbox(email, contact.email));
  const reverseOf = ({ reply_local }: ContactSecrets) => `${reply_local}@${alias.domain}`;
  const byReply = new Map(opened.map((one) => [reverseOf(one), one]));
  const shown = (list: ParsedMail["to"]) =>
    usable(list, REPLY_RECIPIENTS_MAX + 2).flatMap(({ name, email }) => {
      const known = byReply.get(untagged(email.toLowerCase()));
      if (!known || (isOwn(known) && !isNamedBy(sent, known.email))) return [];
      const person = { name: undecorated(name, known.email), email: known.email };
      return isWithin && known !== contact ? [{ name: shownName(person), email: reverseOf(known) }] : [person];
    });
  const to = shown(parsed.to);
  const cc = shown(parsed.cc);
  if (to.length + cc.length === 0) to.push({ name: null, email: contact.email });
  const restored = restoring(
    [...byReply].map(([reverse, known]) => {
      const seen = isWithin && known !== contact ? reverse : known.email;
      return { reverse, email: known.email, to: isOwn(known) ? own : seen };
    }),
  );
  const owners = [...byReply].flatMap(([reverse, known]) => (isOwn(known) ? { reverse, email: known.email } : []));
  const contacts = [...byReply].map(([reverse, { email }]) => ({ reverse, email }));
  return { contact, isWithin, to, cc, restored, reverse: [...byReply.keys()], owners, contacts };
}

/** As mail programs show an international domain, too. */
function inWrittenForms(token: Token): Token[] {
  return writtenForms(token.reverse).map((reverse) => ({ ...token, reverse }));
}

async function build(
  world: carry.CarryWorld,
  { context, parsed, author, bytes, origin, write }: Composing,
  people: People & { sent: SentContent; quoted: readonly Quoted[]; mailboxes: readonly string[] },
) {
  const { alias } = context;
  const { quoted } = people;
  const id = world.random.uuid();
  const outer = outerId(world, alias, parsed.message_id ?? id);
  const own = addressOf(alias);
  const given = withoutTokens(people.sent.tokens);
  const ids = await idsForReply(world, world.db, alias, {
    answered: parsed.answered.map(given),
    references: parsed.references.map(given),
    isWithin: people.isWithin,
  });
  const hidden = [...new Set([author, ...people.mailboxes])].filter(
    (email) => !isSameMailbox(email, people.contact.email),
  );
  const isHidden = (email: string) => hidden.some((one) => isSameMailbox(one, email));
  const others = quoted.map(({ reverse, email }) => {
    const seen = people.isWithin ? reverse : email;
    return { reverse, email, to: isHidden(email) ? own : seen };
  });
  const inner = parsed.message_id === null ? [] : [{ inner: parsed.message_id, outer: `<${outer}>` }];
  const restored = [
    ...people.restored,
    ...restoring(others),
    ...(people.isWithin ? [] : quotedIds([...inner, ...ids.own])),
    { from: `${UNPROVEN} `, to: "" },
  ];
  const named = [...people.owners, ...quoted.filter(({ email }) => isHidden(email))];
  const tokens = [
    ...people.sent.tokens.filter(({ reverse }) => !named.some((one) => one.reverse === reverse)),
    ...named.map(({ reverse, email }) => ({ reverse, email, shown: isPersonTo(people.sent, email) })),
  ];
  const linked = [...people.contacts, ...quoted].filter(
    (one) => !tokens.some(({ reverse }) => reverse === one.reverse),
  );
  const shown = restored.map(({ to }) => to);
  const { hostname, mx_host, bounce_host } = world.config;
  const ours = [hostname, mx_host, bounce_host, alias.domain];
  const built = await write({
    from: { name: alias.display_name, email: own },
    to: people.to,
    cc: people.cc,
    date_ms: world.clock.now(),
    message_id: outer,
    in_reply_to: ids.in_reply_to,
    references: ids.references,
    hidden: hidden.map((email) => ({ from: email, to: own })),
    restored,
    redact: alias.redact,
    unopened_files: alias.unopened_files,
    own_name: alias.own_name,
    names: [
      ...people.reverse.filter((one) => !shown.includes(one)),
      ...serverNames(bytes, { ...origin, ours, given: shown }),
    ],
    sent: { ...people.sent, tokens: tokens.flatMap(inWrittenForms), linked: linked.flatMap(inWrittenForms) },
    token_seed: world.random.token(20),
  });
  return { ...built, id, outer };
}
