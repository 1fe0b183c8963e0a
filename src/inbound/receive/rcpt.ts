// The decision at RCPT, in session, so that nothing is accepted only to be bounced: exact alias → addresses of plugged-in
// kinds on customers' domains (masked, reverse) → globs and patterns of masked aliases, by fixed characters → catch-all → our own
// addresses (return path, feedback, rewritten senders, reports, the operator's) → 550. Mail for domains that nobody here holds is relaying and refused.
// An alias of a test key takes live mail only where nothing live takes it, so no test key leads mail away.
import type { AliasMatch, FindAlias } from "../../aliases/aliases.ts";
import { domainOfReturnPath, findDomain, receivesMail } from "../../domains/domains.ts";
import type { ReceivingDomain } from "../../domains/types.ts";
import type { Path } from "../../mail/smtp-server/command.ts";
import { readSrs } from "../../mail/srs.ts";
import type { World } from "../../platform/world.ts";
import type { RcptDecider, RcptDecision, RcptQuestion, Refused, Route, WideDecider } from "../types.ts";
import { isOurHost, operatorDecider, tokenDecider, UNKNOWN } from "./own-addresses.ts";

export type PolicyWorld = Pick<World, "db" | "clock" | "config" | "seal">;

export type PolicyPorts = {
  findReceiver(domain: string): Promise<ReceivingDomain | undefined>;
  findAlias: FindAlias;
  /** True if any organization has a domain. Absent: one has. */
  hasDomains?(): Promise<boolean>;
  /** Addresses that are exact, wherever they are; asked before globs and catch-alls. */
  exact: readonly RcptDecider[];
  /** Asked beside globs, before a catch-all; `environment`: whose it asks for, live without it. */
  wide?: WideDecider;
  environment?: "live" | "test";
  /** True if another Postern behind the same door holds the domain. Null where that cannot be known now. */
  isElsewhere?(domain: string): Promise<boolean | null>;
  /** Addresses on our own hosts. */
  own: readonly RcptDecider[];
};

export const SRS_CONTEXT = "srs";

/** Nothing is set up yet, or the database is not the one it should be: no mail is turned away for good (rule 24). */
const NOT_SET_UP: Refused = {
  kind: "refuse",
  code: 451,
  enhanced: "4.3.5",
  text: "no domain is set up here yet; try again later",
};
/** As if there were too many: the sender tries this recipient again by itself (RFC 5321 §4.5.3.1.10), and the door finds its cell. */
const ANOTHER_CELL: Refused = {
  kind: "refuse",
  code: 452,
  enhanced: "4.5.3",
  text: "this recipient is served elsewhere; send to it in a mail of its own",
};
const CELL_UNKNOWN: Refused = {
  kind: "refuse",
  code: 451,
  enhanced: "4.3.0",
  text: "where this recipient is served cannot be found out at the moment, try again later",
};
const RELAY: Refused = { kind: "refuse", code: 550, enhanced: "5.7.1", text: "relaying denied" };

/** The policy of this process. The decider throws only when the database cannot be asked. */
export function createRcptPolicy(
  world: PolicyWorld,
  ports: PolicyPorts,
): (question: RcptQuestion) => Promise<RcptDecision> {
  const operator = operatorDecider(world);
  const own = [tokenDecider(world), srsDecider(world, ports), ...ports.own, operator];
  return async (question) => {
    const decision = await decide(question);
    const isFinal = decision.kind === "refuse" && decision.code >= 500;
    return isFinal && ports.hasDomains && !(await ports.hasDomains()) ? NOT_SET_UP : decision;
  };

  async function decide(question: RcptQuestion): Promise<RcptDecision> {
    const { domain } = question.to;
    if (domain === null) return (await operator(question, "live")) ?? RELAY;
    const receiver = await ports.findReceiver(domain);
    const decided =
      (await askCustomer(ports, receiver, question)) ??
      (await askInTurn(own, question, ports.environment)) ??
      (receiver ? UNKNOWN : null);
    if (decided) return decided;
    if (isOurHost(world, domain)) return UNKNOWN;
    return notHere(await ports.isElsewhere?.(domain));
  }
}

function notHere(isElsewhere: boolean | null | undefined): Refused {
  if (isElsewhere === null) return CELL_UNKNOWN;
  return isElsewhere ? ANOTHER_CELL : RELAY;
}

async function askCustomer(
  ports: PolicyPorts,
  receiver: ReceivingDomain | undefined,
  question: RcptQuestion,
): Promise<RcptDecision | null> {
  const { environment = "live" } = ports;
  const match = receiver ? await ports.findAlias(receiver, question.to.local, environment === "live") : null;
  const isTrial = environment === "live" && match?.alias.environment === "test";
  if (receiver && match && !match.alias.is_glob && !isTrial) return fromAlias(receiver, match);
  const exact = await askInTurn(ports.exact, question, environment);
  if (exact || !receiver) return exact;
  const fixed = match && !isTrial ? match.alias.local_part.replace(/[*?]/g, "").length : null;
  const patterned = await ports.wide?.(question, { receiver, environment, fixed });
  if (patterned) return patterned;
  // On a domain of live keys its catch-all is live, too.
  const isLast = isTrial && receiver.environment === "live" && receiver.catch_all_enabled;
  const wide =
    match && !isLast
      ? fromAlias(receiver, match)
      : receiver.catch_all_enabled
        ? fromCatchAll(receiver, question.to)
        : null;
  return wide && asksToRelay(question.to) ? RELAY : wide;
}

async function askInTurn(
  deciders: readonly RcptDecider[],
  question: RcptQuestion,
  environment: "live" | "test" = "live",
): Promise<RcptDecision | null> {
  for (const decide of deciders) {
    const decision = await decide(question, environment);
    if (decision) return decision;
  }
  return null;
}

/** `user%elsewhere@here`, `elsewhere!user@here`, `"user@elsewhere"@here`: routes of old, which only abuse still asks for. */
function asksToRelay(to: Path): boolean {
  return /[%!@]/.test(to.local);
}

function fromAlias(receiver: ReceivingDomain, { alias, tag }: AliasMatch): RcptDecision {
  if (!alias.active) return UNKNOWN;
  const route: Route = {
    kind: "alias",
    org_id: receiver.org_id,
    domain_id: receiver.id,
    alias_id: alias.id,
    tag,
    domain: receiver.domain,
    action: alias.action,
    forward_to: alias.forward_to,
    forward_mode: alias.forward_mode,
    webhook_ids: alias.webhook_ids,
    domain_webhook_ids: receiver.catch_all_webhook_ids,
  };
  return { kind: "accept", route };
}

function fromCatchAll(receiver: ReceivingDomain, to: Path): RcptDecision {
  const plus = to.local.indexOf("+");
  const route: Route = {
    kind: "catch_all",
    org_id: receiver.org_id,
    domain_id: receiver.id,
    alias_id: null,
    tag: plus > 0 ? to.local.slice(plus + 1) || null : null,
    domain: receiver.domain,
    domain_webhook_ids: receiver.catch_all_webhook_ids,
  };
  return { kind: "accept", route };
}

/** `SRS0=…@pt-bounces.<domain>`: a bounce of what we forwarded, for the sender we forwarded it for. */
function srsDecider(world: PolicyWorld, ports: PolicyPorts): RcptDecider {
  const mac = (text: string) => world.seal.hash(text, SRS_CONTEXT);
  return async ({ from, to }) => {
    const domain = domainOfReturnPath(to.domain ?? "");
    if (!/^srs[01]/i.test(to.local) || domain === null) return null;
    const read = readSrs(to.local, { mac, now_ms: world.clock.now() });
    if (read.kind !== "sender") return UNKNOWN;
    // Only bounces come back to a rewritten sender: anything else would make us an open relay for whoever saw it.
    if (from.text !== "") return RELAY;
    const receiver = await ports.findReceiver(domain);
    if (!receiver) return UNKNOWN;
    const { org_id, id: domain_id } = receiver;
    const route: Route = { kind: "srs", org_id, domain_id, alias_id: null, tag: null, domain, sender: read.sender };
    return { kind: "accept", route };
  };
}

/** The organization's own domain by name, whether or not its DNS is there. For the decision at RCPT. */
export function ownReceiver(world: Pick<World, "db">, orgId: string) {
  return async (name: string) => {
    const row = await findDomain(world.db, orgId, name);
    return row?.active && receivesMail(row.type) ? row : undefined;
  };
}
