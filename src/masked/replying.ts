// D → R → C: a mail from a confirmed destination to a reverse address leaves from the alias. Who may was decided in session
// and is decided again here, because verdicts and settings may have changed since; then everything is built anew, and the
// leak gate has the last word.

import type { Replacement } from "../mail/masked/replace-addresses.ts";
import { buildReply } from "../mail/masked/reply.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { Tx } from "../platform/db.ts";
import { addressDigest, openContact } from "./addresses.ts";
import * as carry from "./carry.ts";
import { countMail, findContacts } from "./people-queries.ts";
import { findAddresses } from "./queries.ts";
import { mayReply } from "./sender-proof.ts";
import { mapIds, rememberPair } from "./thread-ids.ts";
import type { AliasRow, ContactSecrets } from "./types.ts";

const RECIPIENTS_MAX = 10;

/** The handler of mail for reverse addresses. */
export function replyHandler(world: carry.CarryWorld, ports: carry.CarryPorts) {
  return async (mail: carry.ArrivedMail) => {
    const context = await carry.loadContext(world, mail);
    if (!context) return carry.outcomeOf("dropped", "the alias was deleted");
    const { alias, route } = context;
    const [verdicts, parsed] = await Promise.all([mail.examination.verdicts(), mail.examination.parsed()]);
    const contact_id = route.detail.contact_id;
    const about = { ...carry.verdictsOf(verdicts), size: mail.size, contact_id };
    const stop = (outcome: "failed" | "dropped" | "held", reason: string, type: "reply" | "auto_reply" = "reply") =>
      carry.outcomeOf(outcome === "dropped" ? "dropped" : "failed", reason, {
        also: carry.noting(world, alias, [{ ...about, type, outcome, reason }], {}),
      });
    if (parsed.kind === "failed") return stop("failed", "unreadable");
    const permission = mayReply(
      {
        from: parsed.mail.from.map(({ email }) => email),
        envelope_from: mail.envelope.from,
        destinations: context.destinations.filter(({ status }) => status !== "pending").map(({ email }) => email),
      },
      verdicts,
    );
    if (permission.kind !== "allowed") return stop("failed", "unauthorised_sender");
    if (!alias.active || !alias.reply_enabled) return stop("failed", "reply_disabled");
    // RFC 3834 §2: two responders must not talk to each other through us.
    if (parsed.mail.auto_submitted) return stop("dropped", "auto_reply", "auto_reply");
    const people = await readPeople(world, alias, contact_id, parsed.mail);
    if (typeof people === "string") return stop("failed", people);
    const built = await build(world, context, mail, { parsed: parsed.mail, people, author: permission.email });
    if (built.kind === "refused") return stop("failed", built.reason);
    if (built.kind === "held") return stop("held", `leak: ${built.leaks[0]?.where ?? "the message"}`);
    const { id, outer } = built;
    const own = `${alias.local_part}@${alias.domain}`;
    const outgoing = { id, message_id: outer, from: own, recipient: people.contact.email, mime: built.bytes };
    const forwards = [await carry.toRaw(world, ports, { alias, mail }, outgoing)];
    const entry = { ...about, type: "reply" as const, outcome: "sent" as const, redactions: built.redactions };
    const note = carry.noting(world, alias, [{ ...entry, message_id: `<${outer}>` }], { replied: 1 });
    return carry.outcomeOf("delivered", null, {
      forwards,
      also: async (tx: Tx) => {
        const at = new Date(world.clock.now());
        const inner = parsed.mail.message_id;
        const side = { org_id: alias.org_id, alias_id: alias.id };
        if (inner !== null) await rememberPair(world, tx, side, { inner, outer: `<${outer}>`, at });
        await countMail(tx, alias.org_id, contact_id as string, { received: 0, sent: 1, at });
        await note(tx);
      },
    });
  };
}

type Person = { name: string | null; email: string };
type People = { contact: ContactSecrets; to: Person[]; cc: Person[]; replacements: Replacement[] };

/** The contacts behind To and Cc; a reason when somebody there is neither a contact nor the alias. */
async function readPeople(
  world: carry.CarryWorld,
  alias: AliasRow,
  contactId: string | null,
  parsed: ParsedMail,
): Promise<People | string> {
  const own = `${alias.local_part}@${alias.domain}`;
  const from = parsed.from[0]?.email?.toLowerCase();
  const listed = carry.usable([...parsed.to, ...parsed.cc], RECIPIENTS_MAX + 2);
  const others = listed.filter(({ email }) => email.toLowerCase() !== own && email.toLowerCase() !== from);
  if (others.length > RECIPIENTS_MAX) return "too_many_recipients";
  const found = await findAddresses(
    world.db,
    others.map(({ email }) => addressDigest(world, email)),
  );
  const ours = found.filter(({ alias_id, kind }) => alias_id === alias.id && kind === "reverse");
  if (ours.length !== others.length) return "foreign_recipient";
  const ids = [...ours.map(({ contact_id }) => contact_id), contactId].filter((id) => id !== null);
  const rows = await world.db.asOrg(alias.org_id, (tx) => findContacts(tx, alias.org_id, ids));
  const opened = rows.map((row) => ({ id: row.id, ...openContact(world, alias.org_id, row.sealed) }));
  const contact = opened.find(({ id }) => id === contactId);
  if (!contact) return "unknown_contact";
  const byReply = new Map(opened.map((one) => [`${one.reply_local}@${alias.domain}`, one]));
  const shown = (list: ParsedMail["to"]) =>
    carry.usable(list, RECIPIENTS_MAX).flatMap(({ email }) => {
      const known = byReply.get(email.toLowerCase());
      return known ? [{ name: known.name, email: known.email }] : [];
    });
  const to = shown(parsed.to);
  const cc = shown(parsed.cc);
  if (to.length + cc.length === 0) to.push({ name: contact.name, email: contact.email });
  const replacements = [...byReply].map(([reply, one]) => ({ from: reply, to: one.email }));
  return { contact, to, cc, replacements };
}

type Building = { parsed: ParsedMail; people: People; author: string };

async function build(
  world: carry.CarryWorld,
  { alias, destinations }: carry.Context,
  mail: carry.ArrivedMail,
  { parsed, people, author }: Building,
) {
  const id = world.random.uuid();
  const outer = `${id}@${alias.domain}`;
  const own = `${alias.local_part}@${alias.domain}`;
  const side = { org_id: alias.org_id, alias_id: alias.id };
  const [in_reply_to, references] = await world.db.asOrg(alias.org_id, async (tx) => [
    await mapIds(world, tx, side, { ids: parsed.in_reply_to ? [parsed.in_reply_to] : [], unknown: "drop" }),
    await mapIds(world, tx, side, { ids: parsed.references, unknown: "drop" }),
  ]);
  const hidden = [...new Set([author, ...destinations.map(({ email }) => email)])];
  const built = buildReply(await mail.examination.bytes(), {
    from: { name: alias.display_name, email: own },
    to: people.to,
    cc: people.cc,
    date_ms: world.clock.now(),
    message_id: outer,
    in_reply_to,
    references,
    replacements: [...hidden.map((email) => ({ from: email, to: own })), ...people.replacements],
    secrets: [...hidden, ...people.replacements.map(({ from }) => from)],
    token: () => world.random.token(20),
  });
  return { ...built, id, outer };
}
