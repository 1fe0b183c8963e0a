// Mail arrives for an alias or for a reverse address: the decision at RCPT, and the look at the whole message in session.
// What a stranger must not do is refused here, while the one who sends can still be told, so that nothing is bounced later.
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { Path } from "../mail/smtp-server/command.ts";
import { withPartitions } from "../platform/partitions.ts";
import type { World } from "../platform/world.ts";
import { recordActivity } from "./activity.ts";
import { addressDigest, contactDigest, REPLY_LOCAL } from "./addresses.ts";
import { addressOf, correspondents, everybody, type Named, usable } from "./correspondents.ts";
import {
  type AliasContext,
  addressFinder,
  contactFinder,
  contextFinder,
  type FindContact,
  type FindContext,
} from "./lookups.ts";
import { countNewContacts, findContacts } from "./people-queries.ts";
import type { FoundAddress } from "./queries.ts";
import { mayReply, type Proof } from "./sender-proof.ts";
import type { AliasRow, Destination } from "./types.ts";
import { type IsWithin, takeReply, windowCounter } from "./windows.ts";

export type ArrivalWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

export type Refused = { kind: "refuse"; code: number; enhanced: string; text: string };

/** Where the mail goes, as receiving keeps it. */
export type MaskedRoute = {
  kind: "masked" | "reverse";
  org_id: string;
  domain_id: string | null;
  alias_id: null;
  tag: string | null;
  detail: { alias_id: string; contact_id: string | null; environment: string };
};

export type ArrivalPorts = {
  /** The domain that receives under this name, of whichever organization. */
  findReceiver(domain: string): Promise<{ id: string; org_id: string } | undefined>;
};

const refuse = (code: number, enhanced: string, text: string): Refused => ({ kind: "refuse", code, enhanced, text });
const UNKNOWN = refuse(550, "5.1.1", "no such mailbox here");
const LATER = refuse(450, "4.7.1", "too much mail for this address; try later");
const STRANGERS = refuse(450, "4.7.1", "too many new correspondents of this address today; try later");
const CROWD = refuse(450, "4.5.3", "a reply has at most 10 recipients");
const NO_ANSWER = refuse(451, "4.4.3", "the sender could not be looked up; try later");
const UNREAD = refuse(451, "4.3.0", "the message could not be read; try later");
const POLICY = refuse(550, "5.7.1", "the author's domain asks to refuse this (DMARC)");

const NEW_CONTACTS_DAY_MAX = 200;
export const REPLY_RECIPIENTS_MAX = 10;
const DAY_MS = 86_400_000;

/** Decides about aliases and reverse addresses; null for every other address. Header fields never route. */
export function maskedDecider(world: ArrivalWorld, ports: ArrivalPorts) {
  const findAddress = addressFinder(world);
  const findContext = contextFinder(world);
  return async ({ to }: { to: Path }): Promise<{ kind: "accept"; route: MaskedRoute } | Refused | null> => {
    if (to.domain === null) return null;
    const plus = to.local.indexOf("+");
    const bare = plus > 0 ? to.local.slice(0, plus) : to.local;
    const found = await findAddress(addressDigest(world, `${bare}@${to.domain}`));
    // A forgotten reverse address must not fall to a catch-all.
    if (!found) return REPLY_LOCAL.test(bare.toLowerCase()) && (await ports.findReceiver(to.domain)) ? UNKNOWN : null;
    const { alias } = (await findContext(found.org_id, found.alias_id)) ?? {};
    if (!alias || alias.deleted_at !== null) return UNKNOWN;
    if (alias.domain_id !== null && (await ports.findReceiver(to.domain))?.id !== alias.domain_id) return null;
    if (found.kind === "reverse" && !(await isContact(world, found))) return UNKNOWN;
    if (found.kind === "alias" && !alias.active && alias.on_disabled === "reject") return UNKNOWN;
    const tag = plus > 0 ? to.local.slice(plus + 1) || null : null;
    return { kind: "accept", route: routeTo(alias, found.kind === "alias" ? null : found.contact_id, tag) };
  };
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

/** What the check needs of a message; the shape of receiving's Incoming and Examination. */
export type Arriving = {
  environment: "live" | "test";
  envelope: { from: string };
  bytes: Buffer;
  recipients: readonly { route: { kind: string } }[];
};
export type Examined = {
  verdicts(): Promise<Proof & { dmarc: { result: string; applied: string | null } }>;
  parsed(): Promise<{ kind: "parsed"; mail: ParsedMail } | { kind: "failed" }>;
};

/**
 * Looks at mail for aliases and reverse addresses before it is taken: forged senders, policy, floods. A message to several
 * recipients has one answer: it is put off when one of them asks for that, and refused when all of them do; otherwise each
 * is judged again when it is handled.
 */
export function maskedCheck(world: ArrivalWorld) {
  const find = contextFinder(world);
  const findContact = contactFinder(world);
  const isWithin = windowCounter(world);
  return async (incoming: Arriving, examination: Examined): Promise<Refused | null> => {
    const answers: (Refused | null)[] = [];
    const counted = new Set<string>();
    for (const { route } of incoming.recipients) {
      const isOurs = route.kind === "masked" || route.kind === "reverse";
      const checked = { incoming, examination, route: route as MaskedRoute, counted, find, findContact, isWithin };
      answers.push(isOurs ? await checkOne(world, checked) : null);
    }
    const later = answers.find((answer) => answer !== null && answer.code < 500);
    return later ?? (answers.every((answer) => answer !== null) ? (answers[0] ?? null) : null);
  };
}

/** `counted`: the aliases whose windows this message was counted in. */
type Checked = {
  incoming: Arriving;
  examination: Examined;
  route: MaskedRoute;
  counted: Set<string>;
  find: FindContext;
  findContact: FindContact;
  isWithin: IsWithin;
};

async function checkOne(world: ArrivalWorld, checked: Checked): Promise<Refused | null> {
  const { incoming, route } = checked;
  const { detail, org_id } = route;
  if (detail.environment === "test" && incoming.environment === "live") return UNKNOWN;
  const context = await checked.find(org_id, detail.alias_id);
  if (!context) return UNKNOWN;
  return route.kind === "reverse" ? checkReply(world, checked, context) : checkForward(world, checked, context.alias);
}

async function checkForward(world: ArrivalWorld, checked: Checked, alias: AliasRow): Promise<Refused | null> {
  const { incoming, examination, counted, isWithin } = checked;
  const verdicts = await examination.verdicts();
  if (isRefusedByPolicy(verdicts)) {
    await noteRefusal(world, checked, verdicts, "dmarc");
    return POLICY;
  }
  if (!counted.has(alias.id) && !(await isWithin(alias, "forward_minute"))) return LATER;
  counted.add(alias.id);
  const parsed = await examination.parsed();
  if (parsed.kind === "failed" || !alias.active) return null;
  const named = { parsed: parsed.mail, bytes: incoming.bytes, envelope_from: incoming.envelope.from };
  return (await isCrowd(world, checked.findContact, alias, correspondents(alias, named))) ? STRANGERS : null;
}

/** Does the author's domain ask to refuse this mail? */
export function isRefusedByPolicy({ dmarc }: { dmarc: { result: string; applied: string | null } }): boolean {
  return dmarc.result === "fail" && dmarc.applied === "reject";
}

/** Would the mail bring more new contacts than a day may? */
async function isCrowd(world: ArrivalWorld, find: FindContact, alias: AliasRow, named: Named): Promise<boolean> {
  const emails = [...new Set(everybody(named).map(({ email }) => email.toLowerCase()))];
  const found = await Promise.all(emails.map((email) => find(alias, contactDigest(world, alias.id, email))));
  const fresh = found.filter((contact) => !contact).length;
  if (fresh === 0) return false;
  const since = new Date(world.clock.now() - DAY_MS);
  return (await countNewContacts(world.db, alias.org_id, alias.id, since)) + fresh > NEW_CONTACTS_DAY_MAX;
}

async function checkReply(world: ArrivalWorld, checked: Checked, context: AliasContext): Promise<Refused | null> {
  const { alias, destinations } = context;
  const { incoming, examination, counted } = checked;
  const [verdicts, parsed] = await Promise.all([examination.verdicts(), examination.parsed()]);
  // Nobody may be refused for good because our parser is busy.
  if (parsed.kind === "failed") return UNREAD;
  const { mail } = parsed;
  const permission = mayReply(
    {
      from: mail.from.map(({ email }) => email),
      envelope_from: incoming.envelope.from,
      destinations: writersOf(destinations),
    },
    verdicts,
  );
  if (permission.kind === "unknown") return NO_ANSWER;
  if (permission.kind === "refused") {
    await noteRefusal(world, checked, verdicts, "unauthorised_sender");
    return refuse(550, "5.7.1", `you may not write through this address: ${permission.reason}`);
  }
  if (!alias.active || !alias.reply_enabled) {
    await noteRefusal(world, checked, verdicts, "reply_disabled");
    return refuse(550, "5.7.1", "you may not write through this address: replies are switched off for this alias");
  }
  if (countRecipients(alias, mail) > REPLY_RECIPIENTS_MAX) return CROWD;
  if (counted.has(alias.id)) return null;
  counted.add(alias.id);
  return (await takeReply(checked.isWithin, alias)) ? null : LATER;
}

/** Who may write from an alias: the mailboxes that were ever confirmed. */
export function writersOf(destinations: readonly Destination[]): string[] {
  return destinations.filter(({ status }) => status !== "pending").map(({ email }) => email);
}

/** To and Cc without the alias and the author. */
export function countRecipients(alias: AliasRow, mail: Pick<ParsedMail, "from" | "to" | "cc">): number {
  const own = [addressOf(alias), mail.from[0]?.email?.toLowerCase()];
  const all = usable([...mail.to, ...mail.cc], Number.POSITIVE_INFINITY);
  return all.filter(({ email }) => !own.includes(email.toLowerCase())).length;
}

/** In bounds, so that nobody fills the activity by being refused. */
async function noteRefusal(world: ArrivalWorld, { incoming, route, isWithin }: Checked, proof: Proof, reason: string) {
  const { detail, org_id } = route;
  if (!(await isWithin({ org_id, id: detail.alias_id }, "refusal_hour"))) return;
  await withPartitions(world, () =>
    world.db.asOrg(org_id, (tx) =>
      recordActivity(world, tx, {
        org_id,
        alias_id: detail.alias_id,
        contact_id: detail.contact_id,
        type: route.kind === "reverse" ? "reply" : "block",
        outcome: "failed",
        reason,
        size: incoming.bytes.length,
        spf: proof.spf.result,
        dkim: proof.dkim.from_aligned ? "pass" : "fail",
        dmarc: proof.dmarc.result,
      }),
    ),
  );
}
