// C → A → D: a mail to an alias goes on to every confirmed destination, each with its own message, its author as a reverse
// address. What is not forwarded is told in the activity, never to the one who wrote.
import { buildForward } from "../mail/masked/forward.ts";
import type { Replacement } from "../mail/masked/replace-addresses.ts";
import { isSameMailbox } from "../mail/masked/spellings.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import { addressDigest, openContact, untagged } from "./addresses.ts";
import { isOwnMail, isRefusedByPolicy, unreachableReason } from "./arrival.ts";
import * as carry from "./carry.ts";
import { ensureContacts } from "./contacts.ts";
import { addressOf, correspondents, everybody, type Named, type Person } from "./correspondents.ts";
import { addressFinder, contactFinder, contextFinder, type FindContact } from "./lookups.ts";
import { isLoop, loopMark } from "./loops.ts";
import { readParts } from "./parts.ts";
import { canonicalAddress, verdictsOf } from "./sender-proof.ts";
import { shownName } from "./shown-name.ts";
import { idsForMailbox, pairOfIds, sameIds, writableId } from "./thread-ids.ts";
import { type ActivityType, type AliasRow, type ContactRow, DESTINATION_BOUNCING, type Destination } from "./types.ts";
import { unsubscribePage } from "./unsubscribing.ts";

/** Receiving's judgement on spam, and what it shows of a mail that is kept because of it. */
export type Judging<M, R extends { score: number | null }, F> = {
  spam(mail: M): Promise<{ report: R; quarantine: string | null }>;
  describe(mail: M, report: R): Promise<F>;
};

/** The handler of mail for aliases. What is answered 250 goes on, is blocked by somebody's wish, or waits in quarantine. */
export function forwardHandler<M extends carry.ArrivedMail, R extends { score: number | null }, F>(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  judging: Judging<M, R, F>,
) {
  const find = contextFinder(world);
  const findAddress = addressFinder(world);
  const findContact = contactFinder(world);
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
    const hold = async (reason: string, because = reason) => {
      const entry = { ...about, type: "quarantine" as const, outcome: "held" as const, reason };
      const held = { status: "quarantined" as const, reason: because, found: await judging.describe(mail, report) };
      return carry.conclude(
        world,
        { alias, mail },
        { ...held, entries: [entry], counts: { received, blocked: received } },
      );
    };
    if (!alias.active && alias.disabled_reason !== DESTINATION_BOUNCING) {
      return mail.released ? hold("alias_disabled") : stop("alias_disabled", "block");
    }
    if (isRefusedByPolicy(verdicts)) return stop("dmarc", "block");
    const from = canonicalAddress(parsed.from[0]?.email ?? envelope.from).toLowerCase();
    if (await isLoop(world, findAddress, alias, { bytes, from, envelope_from: envelope.from })) return stop("loop");
    const own = isOwnMail(alias, destinations, parsed);
    if (own === "answer" || own === "alone") return stop("own_destination");
    if (quarantine !== null && !mail.released) return hold("spam", quarantine);
    const unreachable = unreachableReason(context);
    if (unreachable !== null) return hold(unreachable);
    const outsiders = await outside(world, findAddress, destinations);
    const ready = outsiders.filter(({ email }) => email.toLowerCase() !== from);
    if (ready.length === 0) return stop("loop");
    const mailboxes = destinations.map(({ email }) => email);
    const named = correspondents(alias, { parsed, bytes, envelope_from: envelope.from, mailboxes });
    const people = await introduce(world, findContact, alias, named);
    if (people.author.blocked) return stop("contact_blocked", "block");
    return forwardAll(world, ports, {
      alias,
      building: { bytes, parsed, mail, people, mailboxes },
      ready,
      about,
    });
  };
}

type About = { spf: string; dkim: string; dmarc: string; size: number; spam_score: number | null };
type Going = { alias: AliasRow; building: Building; ready: Destination[]; about: About };

async function forwardAll(world: carry.CarryWorld, ports: carry.CarryPorts, { alias, building, ready, about }: Going) {
  const { people, parsed, mail } = building;
  const leaving: carry.Leaving[] = [];
  const contact_id = people.author.id;
  const ids = writableIds(world, alias, mail, parsed);
  const threads = await threadsOf(world, alias, ids);
  for (const destination of ready) {
    const raw = await forwardTo(world, ports, alias, { ...building, threads, destination });
    leaving.push({ raw, trace: { kind: "forward", destination_id: destination.id, contact_id } });
  }
  const { message_id } = parsed;
  const entries = ready.map(({ id }, at) => ({
    ...about,
    id: leaving[at]?.raw.id as string,
    type: "forward" as const,
    outcome: "sent" as const,
    contact_id,
    destination_id: id,
    message_id: message_id?.includes(people.email) ? null : message_id,
  }));
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
      ids: building.mailboxes.some((one) => isSameMailbox(one, people.email))
        ? pairOfIds(world, alias, ids.message_id)
        : sameIds(world, alias.id, [...ids.references, ...ids.in_reply_to, ids.message_id]),
      contact: { id: contact_id, received: 1, sent: 0 },
    },
  );
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
};

/** Everybody the mail names, as a contact with a reverse address. */
async function introduce(world: carry.CarryWorld, find: FindContact, alias: AliasRow, named: Named): Promise<People> {
  const all = everybody(named);
  const rows = await ensureContacts(world, find, alias, all);
  const shown = (person: Person): Person => {
    const row = rows.get(person.email.toLowerCase()) as ContactRow;
    const { reply_local } = openContact(world, alias.org_id, row.sealed);
    return { name: shownName(person), email: `${reply_local}@${alias.domain}` };
  };
  return {
    author: rows.get(named.from.email.toLowerCase()) as ContactRow,
    email: named.from.email,
    from: shown(named.from),
    to: [{ name: null, email: addressOf(alias) }, ...named.to.map(shown)],
    cc: named.cc.map(shown),
    reply_to: named.reply_to.map(shown),
    reverse: all.map((person) => ({ from: person.email, to: shown(person).email })),
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
};

async function forwardTo(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { people, bytes, mail, threads, mailboxes, destination }: Building & { threads: Ids; destination: Destination },
) {
  const id = world.random.uuid();
  const message_id = threads.message_id.slice(1, -1);
  const mime = buildForward(bytes, {
    from: people.from,
    to: people.to,
    cc: people.cc,
    reply_to: people.reply_to,
    ...threads,
    message_id,
    received_ms: mail.received_at.getTime(),
    loop_mark: loopMark(world, alias),
    unsubscribe_page: (mailto) => unsubscribePage(world, alias, people.author.id, mailto),
    calendar: [...people.reverse, ...[addressOf(alias), ...mailboxes].map((from) => ({ from, to: destination.email }))],
  });
  const outgoing = { id, message_id, from: people.from.email, recipient: destination.email, mime };
  return carry.toRaw(world, ports, { alias, environment: mail.environment }, outgoing);
}
