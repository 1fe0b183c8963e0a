// C → A → D: a mail to an alias goes on to every confirmed destination, each with its own message, its author as a reverse
// address. What is not forwarded is told in the activity, never to the one who wrote.
import { buildForward, LOOP_FIELD } from "../mail/masked/forward.ts";
import { headerValues, splitMessage } from "../mail/mime/parse-head.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import { openContact, REPLY_LOCAL } from "./addresses.ts";
import * as carry from "./carry.ts";
import { ensureContact } from "./contacts.ts";
import { countMail, countNewContacts } from "./people-queries.ts";
import { mapIds, rememberIds } from "./thread-ids.ts";
import type { AliasRow, ContactRow } from "./types.ts";

const DAY_MS = 86_400_000;
const NEW_CONTACTS_DAY_MAX = 200;
const PEOPLE_MAX = 30;

export type Spam = (mail: never) => Promise<{ report: { score: number | null }; quarantine: string | null }>;

/** The handler of mail for aliases. `spam` is receiving's step. */
export function forwardHandler(world: carry.CarryWorld, ports: carry.CarryPorts, spam: Spam) {
  return async (mail: carry.ArrivedMail) => {
    const context = await carry.loadContext(world, mail);
    if (!context) return carry.outcomeOf("dropped", "the alias was deleted");
    const { alias } = context;
    const [bytes, verdicts, parsed] = await Promise.all([
      mail.examination.bytes(),
      mail.examination.verdicts(),
      mail.examination.parsed(),
    ]);
    const { report, quarantine } = await spam(mail as never);
    const about = { ...carry.verdictsOf(verdicts), size: mail.size, spam_score: report.score };
    const stop = (reason: string, type: "forward" | "block" | "quarantine" = "forward") => {
      const outcome = type === "quarantine" ? "held" : "dropped";
      const counts = { received: 1, blocked: type === "forward" ? 0 : 1 };
      const also = carry.noting(world, alias, [{ ...about, type, outcome, reason }], counts);
      return carry.outcomeOf("dropped", reason, { also });
    };
    if (!alias.active) return stop("alias_disabled", "block");
    if (parsed.kind === "failed") return stop("unreadable");
    const why = refusalOf(world, context, mail, { bytes, parsed: parsed.mail });
    if (why) return stop(why);
    if (quarantine !== null) return stop("spam", "quarantine");
    const people = await introduce(world, alias, mail, parsed.mail);
    if (people === "too_many") return stop("rate_limited", "block");
    if (people.author.blocked) return stop("contact_blocked", "block");
    const ready = context.destinations.filter(({ status }) => status === "verified");
    if (ready.length === 0) return stop("destination_unconfirmed");
    const built = { people, bytes, parsed: parsed.mail, mail };
    const forwards = [];
    for (const { email } of ready)
      forwards.push(await forwardTo(world, ports, alias, { ...built, destination: email }));
    const message_id = parsed.mail.message_id;
    const entries = ready.map(({ id }) => ({
      ...about,
      type: "forward" as const,
      outcome: "sent" as const,
      contact_id: people.author.id,
      destination_id: id,
      message_id,
    }));
    const note = carry.noting(world, alias, entries, { received: 1, forwarded: 1 });
    return carry.outcomeOf("delivered", null, {
      forwards,
      also: async (tx) => {
        const at = new Date(world.clock.now());
        const { in_reply_to, references } = parsed.mail;
        const ids = [...references, in_reply_to, message_id].filter((id) => id !== null);
        await rememberIds(world, tx, { org_id: alias.org_id, alias_id: alias.id }, { ids, at });
        await countMail(tx, alias.org_id, people.author.id, { received: 1, sent: 0, at });
        await note(tx);
      },
    });
  };
}

/** Loops, and mail of the destination itself. */
function refusalOf(
  world: carry.CarryWorld,
  { alias, destinations }: carry.Context,
  mail: carry.ArrivedMail,
  { bytes, parsed }: { bytes: Buffer; parsed: ParsedMail },
): string | null {
  const marks = headerValues(splitMessage(bytes).headers, LOOP_FIELD);
  if (marks.some((mark) => mark.trim() === loopMark(world, alias))) return "loop";
  const from = parsed.from[0]?.email?.toLowerCase() ?? mail.envelope.from.toLowerCase();
  const at = from.lastIndexOf("@");
  if (REPLY_LOCAL.test(from.slice(0, at)) || from === `${alias.local_part}@${alias.domain}`) return "loop";
  if (destinations.some(({ email }) => email.toLowerCase() === from)) return "own_destination";
  return null;
}

function loopMark({ seal }: Pick<carry.CarryWorld, "seal">, { id }: Pick<AliasRow, "id">): string {
  return seal.hash(id, "masked-loop").toString("hex").slice(0, 32);
}

type Person = { name: string | null; email: string };
type People = { author: ContactRow; from: Person; to: Person[]; cc: Person[]; reply_to: Person[] };

/** Everybody the mail names, as a contact with a reverse address. */
async function introduce(
  world: carry.CarryWorld,
  alias: AliasRow,
  mail: carry.ArrivedMail,
  parsed: ParsedMail,
): Promise<People | "too_many"> {
  const own = `${alias.local_part}@${alias.domain}`;
  const others = (list: ParsedMail["to"]) =>
    carry.usable(list, PEOPLE_MAX).filter(({ email }) => email.toLowerCase() !== own);
  const [author] = carry.usable([...parsed.from, { name: null, email: mail.envelope.from }], 1);
  const since = new Date(world.clock.now() - DAY_MS);
  return world.db.asOrg(alias.org_id, async (tx) => {
    if ((await countNewContacts(tx, alias.org_id, alias.id, since)) >= NEW_CONTACTS_DAY_MAX) return "too_many";
    const known = async (person: Person) => {
      const { row } = await ensureContact(world, tx, alias, { ...person, source: "inbound" });
      const { reply_local } = openContact(world, alias.org_id, row.sealed);
      return { row, shown: { name: shownName(person), email: `${reply_local}@${alias.domain}` } };
    };
    const all = async (list: Person[]) => {
      const shown: Person[] = [];
      for (const person of list) shown.push((await known(person)).shown);
      return shown;
    };
    const from = await known(author ?? { name: "unknown sender", email: "unknown@invalid.invalid" });
    const to = [{ name: null, email: own }, ...(await all(others(parsed.to)))];
    const result = { author: from.row, from: from.shown, to, cc: await all(others(parsed.cc)) };
    return { ...result, reply_to: await all(others(parsed.reply_to)) };
  });
}

/** `Shop (shop at example.com)`: who it is, though the address is another. */
function shownName({ name, email }: Person): string {
  const readable = email.replace("@", " at ");
  const clean = (name ?? "")
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}]+/gu, " ")
    .slice(0, 100)
    .toWellFormed()
    .trim();
  return clean === "" || clean.toLowerCase() === email.toLowerCase() ? readable : `${clean} (${readable})`;
}

type Forwarding = { people: People; bytes: Buffer; parsed: ParsedMail; mail: carry.ArrivedMail; destination: string };

async function forwardTo(world: carry.CarryWorld, ports: carry.CarryPorts, alias: AliasRow, given: Forwarding) {
  const { people, bytes, parsed, mail, destination } = given;
  const id = world.random.uuid();
  const own = `${alias.local_part}@${alias.domain}`;
  const author = openContact(world, alias.org_id, people.author.sealed);
  const side = { org_id: alias.org_id, alias_id: alias.id };
  const [in_reply_to, references] = await world.db.asOrg(alias.org_id, async (tx) => [
    await mapIds(world, tx, side, { ids: parsed.in_reply_to ? [parsed.in_reply_to] : [], unknown: "keep" }),
    await mapIds(world, tx, side, { ids: parsed.references, unknown: "keep" }),
  ]);
  const mime = buildForward(bytes, {
    from: people.from,
    to: people.to,
    cc: people.cc,
    reply_to: people.reply_to,
    in_reply_to,
    references,
    fallback_id: `${id}@${alias.domain}`,
    loop_mark: loopMark(world, alias),
    unsubscribe_page: null,
    calendar: [
      { from: author.email, to: people.from.email },
      { from: own, to: destination },
    ],
  });
  const message_id = parsed.message_id?.slice(1, -1) ?? `${id}@${alias.domain}`;
  return carry.toRaw(
    world,
    ports,
    { alias, mail },
    { id, message_id, from: people.from.email, recipient: destination, mime },
  );
}
