// Mail arrives for an alias or for a reverse address: the decision at RCPT, and the look at the whole message in session.
// What a stranger must not do is refused here, while the one who sends can still be told, so that nothing is bounced later.
import type { Path } from "../mail/smtp-server/command.ts";
import { withPartitions } from "../platform/partitions.ts";
import type { World } from "../platform/world.ts";
import { recordActivity } from "./activity.ts";
import { addressDigest, openText, REPLY_LOCAL } from "./addresses.ts";
import { findContacts } from "./people-queries.ts";
import * as queries from "./queries.ts";
import { mayReply, type Proof } from "./sender-proof.ts";
import type { AliasRow } from "./types.ts";

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

const UNKNOWN: Refused = { kind: "refuse", code: 550, enhanced: "5.1.1", text: "no such mailbox here" };
const NOT_YOU: Refused = {
  kind: "refuse",
  code: 550,
  enhanced: "5.7.1",
  text: "you may not write through this address: send from a confirmed destination that passes DKIM or SPF",
};
const LATER: Refused = {
  kind: "refuse",
  code: 450,
  enhanced: "4.7.1",
  text: "too much mail for this address; try later",
};
const NO_ANSWER: Refused = {
  kind: "refuse",
  code: 451,
  enhanced: "4.4.3",
  text: "the sender could not be looked up; try later",
};
const POLICY: Refused = {
  kind: "refuse",
  code: 550,
  enhanced: "5.7.1",
  text: "the author's domain asks to refuse this (DMARC)",
};

const FORWARDS_MINUTE_MAX = 30;
const REPLIES_HOUR_MAX = 20;
const REPLIES_DAY_MAX = 100;

/** Decides about aliases and reverse addresses; null for every other address. Header fields never route. */
export function maskedDecider(world: ArrivalWorld, ports: ArrivalPorts) {
  return async ({ to }: { to: Path }): Promise<{ kind: "accept"; route: MaskedRoute } | Refused | null> => {
    if (to.domain === null) return null;
    const plus = to.local.indexOf("+");
    const bare = plus > 0 ? to.local.slice(0, plus) : to.local;
    const digest = addressDigest(world, `${bare}@${to.domain}`);
    const [found] = await queries.findAddresses(world.db, [digest]);
    // A forgotten reverse address must not fall to a catch-all.
    if (!found) return REPLY_LOCAL.test(bare.toLowerCase()) && (await ports.findReceiver(to.domain)) ? UNKNOWN : null;
    const [alias] = await queries.findAlias(world.db, found.org_id, found.alias_id);
    if (!alias || alias.deleted_at !== null) return UNKNOWN;
    if (alias.domain_id !== null && (await ports.findReceiver(to.domain))?.id !== alias.domain_id) return null;
    if (found.kind === "reverse" && !(await isContact(world, found))) return UNKNOWN;
    if (found.kind === "alias" && !alias.active && alias.on_disabled === "reject") return UNKNOWN;
    const { org_id, domain_id, environment } = alias;
    const detail = { alias_id: alias.id, contact_id: found.contact_id, environment };
    const kind = found.kind === "alias" ? "masked" : "reverse";
    const tag = plus > 0 ? to.local.slice(plus + 1) || null : null;
    return { kind: "accept", route: { kind, org_id, domain_id, alias_id: null, tag, detail } };
  };
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
  parsed(): Promise<
    { kind: "parsed"; mail: { from: { email: string | null }[]; message_id: string | null } } | { kind: "failed" }
  >;
};

/** Looks at mail for aliases and reverse addresses before it is taken: forged senders, policy, floods. */
export function maskedCheck(world: ArrivalWorld) {
  return async (incoming: Arriving, examination: Examined): Promise<Refused | null> => {
    for (const { route } of incoming.recipients) {
      if (route.kind !== "masked" && route.kind !== "reverse") continue;
      const refused = await checkOne(world, { incoming, examination, route: route as MaskedRoute });
      if (refused) return refused;
    }
    return null;
  };
}

type Checked = { incoming: Arriving; examination: Examined; route: MaskedRoute };

async function checkOne(world: ArrivalWorld, { incoming, examination, route }: Checked): Promise<Refused | null> {
  const { detail, org_id } = route;
  if (detail.environment === "test" && incoming.environment === "live") return UNKNOWN;
  const [alias] = await queries.findAlias(world.db, org_id, detail.alias_id);
  if (!alias) return UNKNOWN;
  if (route.kind === "reverse") return checkReply(world, { incoming, examination, route }, alias);
  const verdicts = await examination.verdicts();
  if (verdicts.dmarc.result === "fail" && verdicts.dmarc.applied === "reject") return POLICY;
  const minute = { alias_id: alias.id, kind: "forward_minute" as const, span_ms: 60_000, max: FORWARDS_MINUTE_MAX };
  return (await isWithin(world, org_id, minute)) ? null : LATER;
}

async function checkReply(world: ArrivalWorld, checked: Checked, alias: AliasRow): Promise<Refused | null> {
  const { incoming, examination } = checked;
  const [verdicts, parsed] = await Promise.all([examination.verdicts(), examination.parsed()]);
  const rows = await queries.findAliasDestinations(world.db, alias.org_id, [alias.id]);
  const confirmed = rows.filter(({ status }) => status !== "pending");
  const permission = mayReply(
    {
      from: parsed.kind === "parsed" ? parsed.mail.from.map(({ email }) => email) : [],
      envelope_from: incoming.envelope.from,
      destinations: confirmed.map(({ sealed }) => openText(world, alias.org_id, sealed)),
    },
    verdicts,
  );
  if (permission.kind === "unknown") return NO_ANSWER;
  const isOff = !alias.active || !alias.reply_enabled;
  if (permission.kind === "refused" || isOff) {
    const reason = permission.kind === "refused" ? "unauthorised_sender" : "reply_disabled";
    await noteRefusal(world, checked, verdicts, reason);
    return NOT_YOU;
  }
  const windows = [
    { alias_id: alias.id, kind: "reply_hour" as const, span_ms: 3_600_000, max: REPLIES_HOUR_MAX },
    { alias_id: alias.id, kind: "reply_day" as const, span_ms: 86_400_000, max: REPLIES_DAY_MAX },
  ];
  for (const window of windows) if (!(await isWithin(world, alias.org_id, window))) return LATER;
  return null;
}

async function noteRefusal(world: ArrivalWorld, { incoming, route }: Checked, proof: Proof, reason: string) {
  const { org_id, detail } = route;
  await withPartitions(world, () =>
    world.db.asOrg(org_id, (tx) =>
      recordActivity(world, tx, {
        org_id,
        alias_id: detail.alias_id,
        contact_id: detail.contact_id,
        type: "reply",
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
  const used = await world.db.asOrg(orgId, (tx) => queries.useWindow(tx, orgId, { alias_id, kind, starts_at }));
  return used <= max;
}
