// C → A → D: a mail to an alias goes on to every confirmed destination, each with its own message, its author as a reverse
// address. What is not forwarded stands in the activity, never to the one who wrote.

import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import type { Tx } from "../../platform/database/db.ts";
import { NotNow } from "../../platform/not-now.ts";
import { addressDigest, contactDigest, openContact, untagged } from "../addresses/addresses.ts";
import { ensureContacts } from "../addresses/contacts.ts";
import { encryptingFor } from "../addresses/pgp-keys.ts";
import { isProvenOwn, kindOfOwnMail, unreachableReason } from "../arrive/arrival.ts";
import { addressOf, correspondents, everybody, type Named, type Person } from "../arrive/correspondents.ts";
import { readParts } from "../arrive/parts.ts";
import { isToMark, policyFor } from "../arrive/policy.ts";
import { canonicalAddress, verdictsOf } from "../arrive/sender-proof.ts";
import { type Stop, stopOfSubject } from "../arrive/stop-subject.ts";
import { isFree, takeFree, windowCounter } from "../arrive/windows.ts";
import { keyLink, releaseLink } from "../held/release.ts";
import { type AliasContext, addressFinder, contactFinder, contextFinder, type FindContact } from "../lookups.ts";
import { findWarnedAt, setWarnedAt } from "../people-queries.ts";
import { mailtoToLeave } from "../rewrite/forward.ts";
import { linkedAddresses } from "../rewrite/mailto-links.ts";
import { NAMED_MAX } from "../rewrite/named-addresses.ts";
import type { Replacement } from "../rewrite/scrub/replace-addresses.ts";
import { personDigest, tokenDigest } from "../rewrite/sent/sent-content.ts";
import type { Token } from "../rewrite/sent/tokens.ts";
import { isSameMailbox } from "../rewrite/spellings.ts";
import type { ForwardOrder, GivenId } from "../rewrite/write-forwards.ts";
import { maskedSettings } from "../settings.ts";
import { isSuspicious, type Suspicious, tellKeyUnusable, tellQuarantined, warnOwner } from "../settle/reports.ts";
import {
  type ActivityType,
  type AliasRow,
  type ContactRow,
  type ContactSecrets,
  DESTINATION_BOUNCING,
  type Destination,
} from "../types.ts";
import * as carry from "./carry.ts";
import { isLoop, loopMark } from "./loops.ts";
import { linkedTokens, probingTokens, sentKey, sentRows, tokensOf } from "./sent.ts";
import { plainName, shownName, UNPROVEN } from "./shown-name.ts";
import { siblingFinder } from "./siblings.ts";
import { stopIn, stopLinks } from "./stopping.ts";
import { idsForMailbox, pairOfIds, sameIds, writableId } from "./thread-ids.ts";
import { unsubscribePage } from "./unsubscribing.ts";

/** Receiving's judgement on spam, and what it shows of a mail that is kept because of it. */
export type Judging<M, R extends { score: number | null }, F> = {
  spam(mail: M): Promise<{ report: R; quarantine: string | null }>;
  describe(mail: M, report: R): Promise<F>;
};

const KEEP_BUILDING_MS = 1_800_000;

/** The handler of mail for aliases. What is answered 250 goes on, is blocked by somebody's wish, or waits in quarantine. */
export function forwardHandler<M extends carry.ArrivedMail, R extends { score: number | null }, F>(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  judging: Judging<M, R, F>,
) {
  const finders = findersOf(world);
  const { find, findAddress, findContact, findSiblings } = finders;
  return async (mail: M) => {
    const context = await carry.loadContext(find, mail);
    if (!context) return carry.gone(world, mail);
    const { alias, destinations } = context;
    const { examination, envelope } = mail;
    const [bytes, verdicts, parsed] = await Promise.all([
      examination.bytes(),
      examination.verdicts(),
      readParts(examination),
    ]);
    const { report, quarantine } = await judging.spam(mail);
    const about = { ...verdictsOf(verdicts), size: mail.size, spam_score: report.score };
    const received = mail.released ? 0 : 1;
    const stop = (reason: string, type: ActivityType = "forward") => {
      const entry = { ...about, type, outcome: "dropped" as const, reason };
      const counts = { received, blocked: type === "forward" ? 0 : received };
      return carry.conclude(world, { alias, mail }, { status: "dropped", reason, entries: [entry], counts });
    };
    const hold = async (reason: string, because = reason, { leaving, also }: Informed = NOBODY) => {
      const entry = { ...about, type: "quarantine" as const, outcome: "held" as const, reason };
      const held = { status: "quarantined" as const, reason: because, found: await judging.describe(mail, report) };
      const end = { ...held, entries: [entry], counts: { received, blocked: received }, leaving, also };
      return carry.conclude(world, { alias, mail }, end);
    };
    if (!alias.active && alias.disabled_reason !== DESTINATION_BOUNCING) {
      return mail.released ? hold("alias_disabled") : stop("alias_disabled", "block");
    }
    // Who wants what was kept wants it whatever is asked for.
    const asked = await policyFor(world, alias.org_id, verdicts);
    if (asked === "reject" && !mail.released) return stop("dmarc", "block");
    const from = canonicalAddress(parsed.from[0]?.email ?? envelope.from).toLowerCase();
    if (await isLoop(world, findAddress, alias, { bytes, from, envelope_from: envelope.from })) return stop("loop");
    const isProven = isProvenOwn(destinations, { parsed, envelope_from: envelope.from }, verdicts);
    const own = isProven ? kindOfOwnMail(alias, destinations, parsed) : null;
    const wish = own === null ? null : stopOfSubject(world, alias, parsed.subject);
    if (wish !== null) return unsubscribe(world, { alias, mail }, wish);
    if (own === "answer" || own === "alone") return stop("own_destination");
    if (quarantine !== null && !mail.released) return hold("spam", quarantine);
    const unreachable = unreachableReason(context);
    if (unreachable !== null) return hold(unreachable);
    if (asked !== null && !mail.released && (await isKept(world, alias))) {
      const contact = await findContact(alias, contactDigest(world, alias.id, from));
      if (contact?.blocked) return stop("contact_blocked", "block");
      return hold("dmarc", "dmarc", await tellKept(world, ports, { alias, mail, from }, destinations));
    }
    const outsiders = await outside(world, findAddress, destinations);
    const ready = outsiders.filter(({ email }) => own === null || email.toLowerCase() !== from);
    if (ready.length === 0) return stop("loop");
    const mailboxes = destinations.map(({ email }) => email);
    const given = { parsed, bytes, envelope_from: envelope.from, mailboxes: isProven ? mailboxes : [] };
    const named = correspondents(alias, given);
    const addresses = everybody(named).map(({ email }) => email);
    const hidden = isProven ? [] : [...mailboxes, ...(await findSiblings(context, addresses))];
    const people = await introduce(world, findContact, alias, { ...named, mailboxes: hidden });
    if (people.author.blocked) return stop("contact_blocked", "block");
    if (!isProven && (await isToMark(world, alias.org_id, verdicts, asked))) people.from = unproven(people.from);
    const authentication = isProven ? null : (verdicts.header ?? null);
    const building = { bytes, parsed, mail, people, mailboxes, hidden, isOwn: isProven, authentication };
    const went = await forwardAll(world, ports, { alias, context, building, ready, about, finders });
    return "held" in went ? hold(went.held, went.held, went.notices) : went;
  };
}

function unproven({ name, email }: Person): Person {
  return { name: `${UNPROVEN} ${name ?? ""}`.trim(), email };
}

function findersOf(world: carry.CarryWorld) {
  const find = contextFinder(world);
  const findAddress = addressFinder(world);
  const findSiblings = siblingFinder(world, findAddress, find);
  return { find, findAddress, findContact: contactFinder(world), findSiblings, isWithin: windowCounter(world) };
}

/** What a mailbox asked its alias for by mail. */
function unsubscribe(world: carry.CarryWorld, about: { alias: AliasRow; mail: carry.ArrivedMail }, wish: Stop) {
  const also = (tx: Tx) => stopIn(world, tx, wish);
  const end = { status: "dropped" as const, reason: "unsubscribed", entries: [], counts: { received: 1 }, also };
  return carry.conclude(world, about, end);
}

async function isKept({ db }: Pick<carry.CarryWorld, "db">, { org_id }: AliasRow): Promise<boolean> {
  return (await maskedSettings(db, org_id)).forged_mail === "quarantine";
}

/** Notices, and what counts them in the transaction that queues them: one that is rolled back comes with the next try. */
type Informed = { leaving: carry.Leaving[]; also?: ((tx: Tx) => Promise<unknown>) | undefined };

const NOBODY: Informed = { leaving: [] };

/** Tells the mailboxes that a mail waits for their word, a few times a day. */
async function tellKept(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  { alias, mail, from }: { alias: AliasRow; mail: carry.ArrivedMail; from: string },
  destinations: readonly Destination[],
): Promise<Informed> {
  if (!(await isFree(world, alias, "quarantine_notice_day"))) return NOBODY;
  const ready = destinations.filter(({ status }) => status === "verified");
  const shown = shownName({ name: null, email: from });
  const { environment } = mail;
  const about = { environment, about_id: null, shown, link: releaseLink(world, mail) };
  const leaving = await Promise.all(
    ready.map(async ({ email: to }) => ({
      raw: await tellQuarantined(world, ports, alias, { to, ...about }),
      trace: { kind: "notice" as const },
    })),
  );
  return { leaving, also: (tx) => takeFree(world, tx, alias, "quarantine_notice_day") };
}

type About = { spf: string; dkim: string; dmarc: string; size: number; spam_score: number | null };
type Going = {
  alias: AliasRow;
  building: Building;
  ready: Destination[];
  about: About;
  context: AliasContext;
  finders: ReturnType<typeof findersOf>;
};

async function forwardAll(world: carry.CarryWorld, ports: carry.CarryPorts, going: Going) {
  const { alias, building, ready, about } = going;
  const { people, parsed, mail } = building;
  const leaving: carry.Leaving[] = [];
  const contact_id = people.author.id;
  const ids = writableIds(world, alias, mail, parsed);
  const threads = await threadsOf(world, alias, ids);
  const written = await writeAll(world, going, { threads, own_ids: ids });
  if (written === null) return { held: "too_complex", notices: NOBODY };
  const { built, sent, why } = written;
  const unsealed = ready.filter((_, at) => built[at]?.mime === null);
  const informed = await tellUnsealed(world, ports, going, unsealed);
  if (unsealed.length === ready.length) return { held: "key_unusable", notices: informed };
  for (const [at, destination] of ready.entries()) {
    const one = built[at];
    if (!one || one.mime === null) continue;
    const raw = await queued(world, ports, going, { ...one, mime: one.mime, recipient: destination.email });
    leaving.push({ raw, trace: { kind: "forward", destination_id: destination.id, contact_id } });
  }
  const gone = leaving.map(({ raw, trace }) => ({ id: raw.id, destination_id: trace.destination_id ?? null }));
  leaving.push(...informed.leaving);
  const warnings = (await isToWarn(world, alias.org_id, contact_id, why)) ? ready : [];
  for (const [at, { email: to }] of warnings.entries()) {
    const shown = people.from.name ?? people.from.email;
    const warned = { to, environment: mail.environment, about_id: `<${built[at]?.message_id}>`, shown, why };
    leaving.push({ raw: await warnOwner(world, ports, alias, warned), trace: { kind: "notice" } });
  }
  const { message_id } = parsed;
  const entry = {
    ...about,
    type: "forward" as const,
    contact_id,
    message_id: message_id?.includes(people.email) ? null : message_id,
  };
  const entries = [
    ...gone.map((one) => ({ ...entry, ...one, outcome: "sent" as const })),
    ...unsealed.map(({ id }) => ({
      ...{ ...entry, destination_id: id, outcome: "failed" as const, reason: "key_unusable" },
    })),
  ];
  return carry.conclude(
    world,
    { alias, mail },
    {
      status: "delivered",
      reason: null,
      entries,
      counts: { received: mail.released ? 0 : 1, forwarded: 1 },
      leaving,
      // An owner's own are shown to no contact.
      ids: building.isOwn
        ? pairOfIds(world, alias, ids.message_id)
        : sameIds(world, alias.id, [...ids.references, ...ids.in_reply_to, ids.message_id]),
      sent,
      contact: { id: contact_id, received: 1, sent: 0 },
      also: async (tx) => {
        await informed.also?.(tx);
        if (warnings.length > 0) await setWarnedAt(tx, alias.org_id, contact_id, new Date(world.clock.now()));
      },
    },
  );
}

/** Tells mailboxes that nothing can be encrypted for their key, each once a day; `going` is held, or went to the others. */
async function tellUnsealed(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  { alias, building: { mail, people }, ready }: Going,
  unsealed: readonly Destination[],
): Promise<Informed> {
  const link = unsealed.length === ready.length ? keyLink(world, mail) : null;
  const about = { environment: mail.environment, about_id: null, shown: people.from.name ?? people.from.email, link };
  const leaving: carry.Leaving[] = [];
  const counted: { org_id: string; id: string }[] = [];
  for (const { id, email: to } of unsealed) {
    const owner = { org_id: alias.org_id, id };
    if (!(await isFree(world, owner, "key_notice_day"))) continue;
    const raw = await tellKeyUnusable(world, ports, alias, { to, ...about });
    leaving.push({ raw, trace: { kind: "notice" } });
    counted.push(owner);
  }
  const also = async (tx: Tx) => {
    for (const owner of counted) await takeFree(world, tx, owner, "key_notice_day");
  };
  return counted.length === 0 ? NOBODY : { leaving, also };
}

const WARN_EVERY_MS = 30 * 86_400_000;

/** One warning a month for each contact; a time of the future is one of a clock that was wrong. */
async function isToWarn(
  { db, clock }: Pick<carry.CarryWorld, "db" | "clock">,
  orgId: string,
  contactId: string,
  why: Suspicious,
): Promise<boolean> {
  if (!isSuspicious(why)) return false;
  const ago = clock.now() - ((await findWarnedAt(db, orgId, contactId))?.getTime() ?? 0);
  return ago > WARN_EVERY_MS || ago < 0;
}

type Written = { threads: Ids; own_ids: Ids };
type Built = { mime: Buffer | null; message_id: string };

type Output = { built: Built[]; sent: ReturnType<typeof sentRows>; why: Suspicious };

/**
 * The forward for each mailbox, null where the mail is too much for a worker, or names too many addresses. A mail that names
 * a mailbox or another alias of it is written once more, with tokens in their place, and all the people it is from or for are
 * remembered to have that from itself.
 */
async function writeAll(world: carry.CarryWorld, going: Going, given: Written): Promise<Output | null> {
  const { alias, context, building, ready, finders } = going;
  const { people, mailboxes, hidden, isOwn, mail } = building;
  const key = sentKey(world, alias);
  const forwards = ready.map((destination) => orderFor(world, alias, { ...building, ...given, destination }));
  const linked = isOwn ? [] : await linkedTo(world, going);
  const write = async (tokens: Token[] | null) => {
    const cut_pixels = alias.tracking_pixels === "cut";
    const written = await mail.examination.forwards({ tokens, linked, key, cut_pixels, forwards });
    if (written.kind === "built") return written;
    // A worker that is busy or stops fails any mail; one that fails for so long fails because of this one.
    if (world.clock.now() - mail.received_at.getTime() > KEEP_BUILDING_MS) return null;
    throw new NotNow(`a forward waits, ${written.reason}`);
  };
  const first = await write(isOwn ? null : probingTokens(alias, mailboxes));
  if (first === null) return null;
  if (isOwn) return { built: first.forwards, sent: [], why: { is_named: false, addresses: 0 } };
  if (first.named.length >= NAMED_MAX) return null;
  const isMailbox = (email: string) => mailboxes.some((one) => isSameMailbox(one, email));
  const is_named = first.digests.length > 0 || people.owners.some(isMailbox);
  const why = { is_named, addresses: first.addresses };
  const all = new Set([...hidden, ...(await finders.findSiblings(context, first.named))]);
  if (!is_named && all.size === mailboxes.length) {
    return { built: first.forwards, sent: sentRows(people.shown_ids, first.linked, first.lines), why };
  }
  const second = await write(await tokensOf(world, finders.findContact, alias, [...all]));
  if (second === null) return null;
  const digests = [
    ...people.owners.flatMap((one) => [tokenDigest(key, one), personDigest(key, one)]),
    ...second.digests,
    ...second.linked,
  ];
  return { built: second.forwards, sent: sentRows(people.shown_ids, digests, second.lines), why };
}

/** Tokens of whom links of the mail name, but for the alias and its mailboxes. */
function linkedTo(
  world: carry.CarryWorld,
  { alias, building, finders: { findContact, isWithin } }: Going,
): Promise<Token[]> {
  const own = [addressOf(alias), ...building.mailboxes];
  const named = linkedAddresses(building.parsed.html ?? "");
  const others = named.filter((email) => !own.some((one) => isSameMailbox(one, email)));
  return linkedTokens(world, { find: findContact, isWithin }, alias, others);
}

/** The confirmed destinations that are no addresses of this service by now. */
async function outside(
  world: carry.CarryWorld,
  findAddress: ReturnType<typeof addressFinder>,
  all: readonly Destination[],
): Promise<Destination[]> {
  const verified = all.filter(({ status }) => status === "verified");
  const ours = await Promise.all(verified.map(({ email }) => findAddress(addressDigest(world, untagged(email)))));
  return verified.filter((_, at) => !ours[at]);
}

type People = {
  author: ContactRow;
  email: string;
  from: Person;
  to: Person[];
  cc: Person[];
  reply_to: Person[];
  /** Everybody's address, and the reverse address that stands for it. */
  reverse: Replacement[];
  /** The owner's mailboxes among them, as they are written. */
  owners: string[];
  /** The contacts whom an answer may reach. */
  shown_ids: string[];
};

/** Everybody the mail names, as a contact with a reverse address. */
async function introduce(
  world: carry.CarryWorld,
  find: FindContact,
  alias: AliasRow,
  { mailboxes, ...named }: Named & { mailboxes: readonly string[] },
): Promise<People> {
  const all = everybody(named);
  const rows = await ensureContacts(world, find, alias, all);
  const rowOf = ({ email }: Person) => rows.get(email.toLowerCase()) as ContactRow;
  const opened = new Map([...rows.values()].map((row) => [row, openContact(world, alias.org_id, row.sealed)]));
  const known = (person: Person) => {
    const { reply_local, email: kept } = opened.get(rowOf(person)) as ContactSecrets;
    return { kept, reverse: `${reply_local}@${alias.domain}` };
  };
  const isOwner = ({ email }: Person) => mailboxes.some((one) => isSameMailbox(one, email));
  const shown = (person: Person): Person => {
    const { reverse } = known(person);
    // An answer may quote this line, and shows words for the owner's address to nobody.
    return { name: isOwner(person) ? (plainName(person) ?? reverse) : shownName(person), email: reverse };
  };
  return {
    author: rowOf(named.from),
    email: named.from.email,
    from: shown(named.from),
    to: [{ name: null, email: addressOf(alias) }, ...named.to.map(shown)],
    cc: named.cc.map(shown),
    reply_to: named.reply_to.map(shown),
    reverse: all.map((person) => ({ from: person.email, to: known(person).reverse })),
    owners: all.filter(isOwner).flatMap((person) => [person.email, known(person).kept]),
    shown_ids: all.map((person) => rowOf(person).id),
  };
}

type Ids = { message_id: string; in_reply_to: string[]; references: string[] };

/** The mail's ids in a form that goes on; a mail without one of its own gets one, so that an answer to it finds its place. */
function writableIds(world: carry.CarryWorld, alias: AliasRow, { id }: carry.ArrivedMail, parsed: ParsedMail): Ids {
  const writable = (given: string) => writableId(world, alias, given);
  return {
    message_id: writable(parsed.message_id ?? id),
    in_reply_to: parsed.answered.map(writable),
    references: parsed.references.map(writable),
  };
}

/** The same, with what the mail answers as the mailbox knows it. */
async function threadsOf(world: carry.CarryWorld, alias: AliasRow, ids: Ids): Promise<Ids> {
  const known = (some: readonly string[]) => idsForMailbox(world, world.db, alias, some);
  const [in_reply_to, references] = await Promise.all([known(ids.in_reply_to), known(ids.references)]);
  return { ...ids, in_reply_to, references };
}

type Building = {
  people: People;
  bytes: Buffer;
  parsed: ParsedMail;
  mail: carry.ArrivedMail;
  /** All of the alias: each reads of itself where a calendar names one of them. */
  mailboxes: readonly string[];
  /** They, and the owner's other aliases among its people; none of the owner's own mail. */
  hidden: readonly string[];
  /** True if the author is one of the alias's mailboxes. */
  isOwn: boolean;
  /** What was found of the mail's origin, as a field; null for the owner's own. */
  authentication: string | null;
};
type Writing = Building & Written & { destination: Destination };

function orderFor(
  world: carry.CarryWorld,
  alias: AliasRow,
  { people, parsed, mail, threads, own_ids, mailboxes, isOwn, authentication, destination }: Writing,
): ForwardOrder {
  // What is the mailbox's own is known by its own id.
  const idsOf = (known: readonly string[], given: readonly string[]): GivenId[] =>
    known.map((id, at) => ({ id, is_given: id === given[at] }));
  const leaving = parsed.headers.find(({ name }) => name.toLowerCase() === "list-unsubscribe");
  const mailto = leaving ? mailtoToLeave(leaving.value) : null;
  const author = { id: people.author.id, email: people.email };
  return {
    ...{ from: people.from, to: people.to, cc: people.cc, reply_to: people.reply_to },
    in_reply_to: idsOf(threads.in_reply_to, own_ids.in_reply_to),
    references: idsOf(threads.references, own_ids.references),
    message_id: idsOf([threads.message_id], [own_ids.message_id])[0] as GivenId,
    received_ms: mail.received_at.getTime(),
    loop_mark: loopMark(world, alias),
    pgp: encryptingFor(world, alias.org_id, destination.pgp),
    authentication,
    unsubscribe_page: mailto === null ? null : unsubscribePage(world, alias, author, mailto),
    unsubscribe_own: isOwn ? [] : stopLinks(world, alias, author.id),
    calendar: [
      ...[addressOf(alias), ...(isOwn ? mailboxes : [])].map((from) => ({ from, to: destination.email })),
      ...people.reverse,
    ],
  };
}

async function queued(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  { alias, building: { mail, people } }: Going,
  built: Built & { mime: Buffer; recipient: string },
) {
  const outgoing = { id: world.random.uuid(), from: people.from.email, ...built };
  return carry.toRaw(world, ports, { alias, environment: mail.environment }, outgoing);
}
