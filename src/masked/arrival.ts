// Mail arrives for an alias or for a reverse address: the decision at RCPT, and the look at the whole message in session.
// What a stranger must not do is refused here, while the one who sends can still be told, so that nothing is bounced later.
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { Path } from "../mail/smtp-server/command.ts";
import { withPartitions } from "../platform/partitions.ts";
import type { World } from "../platform/world.ts";
import { recordActivity } from "./activity.ts";
import { addressDigest, contactDigest, REPLY_LOCAL } from "./addresses.ts";
import { addressOf, correspondents, everybody, type Named, usable } from "./correspondents.ts";
import { type AliasContext, addressFinder, contextFinder, type FindContext } from "./lookups.ts";
import { countNewContacts, findContacts, findContactsByDigest } from "./people-queries.ts";
import * as queries from "./queries.ts";
import { mayReply, type Proof } from "./sender-proof.ts";
import type { AliasRow, Destination } from "./types.ts";

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

const FORWARDS_MINUTE_MAX = 30;
const REPLIES_HOUR_MAX = 20;
const REPLIES_DAY_MAX = 100;
const REFUSALS_HOUR_MAX = 60;
const NEW_CONTACTS_DAY_MAX = 200;
export const REPLY_RECIPIENTS_MAX = 10;
const HOUR_MS = 3_600_000;
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

async function isContact(world: ArrivalWorld, found: queries.FoundAddress): Promise<boolean> {
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
  return async (incoming: Arriving, examination: Examined): Promise<Refused | null> => {
    const answers: (Refused | null)[] = [];
    const counted = new Set<string>();
    for (const { route } of incoming.recipients) {
      const isOurs = route.kind === "masked" || route.kind === "reverse";
      const checked = { incoming, examination, route: route as MaskedRoute, counted, find };
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
  const { incoming, examination, counted } = checked;
  const verdicts = await examination.verdicts();
  if (isRefusedByPolicy(verdicts)) {
    await noteRefusal(world, checked, verdicts, "dmarc");
    return POLICY;
  }
  const minute = { alias_id: alias.id, kind: "forward_minute" as const, span_ms: 60_000, max: FORWARDS_MINUTE_MAX };
  if (!counted.has(alias.id) && !(await isWithin(world, alias.org_id, minute))) return LATER;
  counted.add(alias.id);
  const parsed = await examination.parsed();
  if (parsed.kind === "failed" || !alias.active) return null;
  const named = { parsed: parsed.mail, bytes: incoming.bytes, envelope_from: incoming.envelope.from };
  return (await isCrowd(world, alias, correspondents(alias, named))) ? STRANGERS : null;
}

/** Does the author's domain ask to refuse this mail? */
export function isRefusedByPolicy({ dmarc }: { dmarc: { result: string; applied: string | null } }): boolean {
  return dmarc.result === "fail" && dmarc.applied === "reject";
}

/** Would the mail bring more new contacts than a day may? */
async function isCrowd(world: ArrivalWorld, alias: AliasRow, named: Named): Promise<boolean> {
  const emails = [...new Set(everybody(named).map(({ email }) => email.toLowerCase()))];
  const digests = emails.map((email) => contactDigest(world, alias.id, email));
  const known = await findContactsByDigest(world.db, alias.org_id, alias.id, digests);
  const fresh = emails.length - known.length;
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
  return (await takeReply(world, alias)) ? null : LATER;
}

/** Counts one more mail that leaves from the alias by its owner's wish; false when it may send no more for now. */
export async function takeReply(world: ArrivalWorld, alias: Pick<AliasRow, "org_id" | "id">): Promise<boolean> {
  const windows = [
    { alias_id: alias.id, kind: "reply_hour" as const, span_ms: HOUR_MS, max: REPLIES_HOUR_MAX },
    { alias_id: alias.id, kind: "reply_day" as const, span_ms: DAY_MS, max: REPLIES_DAY_MAX },
  ];
  for (const window of windows) if (!(await isWithin(world, alias.org_id, window))) return false;
  return true;
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
async function noteRefusal(world: ArrivalWorld, { incoming, route }: Checked, proof: Proof, reason: string) {
  const { detail, org_id } = route;
  const hour = { alias_id: detail.alias_id, kind: "refusal_hour" as const, span_ms: HOUR_MS, max: REFUSALS_HOUR_MAX };
  if (!(await isWithin(world, org_id, hour))) return;
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

type Window = { alias_id: string; kind: queries.WindowKind; span_ms: number; max: number };

async function isWithin(world: ArrivalWorld, orgId: string, { alias_id, kind, span_ms, max }: Window) {
  const starts_at = new Date(Math.floor(world.clock.now() / span_ms) * span_ms);
  const used = await queries.useWindow(world.db, orgId, { alias_id, kind, starts_at });
  return used <= max;
}
