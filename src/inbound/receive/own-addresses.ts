// Addresses on our own hosts, decided at RCPT: return paths (`b+<token>`, what VERP is), feedback addresses (`f+<token>`,
// the CFBL-Address of RFC 9477), both believed only if we signed the token; and the mailboxes that every mail host must
// have (RFC 5321 §4.5.1, RFC 2142), which are the operator's.
import { domainOfReturnPath } from "../../domains/domains.ts";
import { readToken } from "../../mail/bounce-token.ts";
import type { Path } from "../../mail/smtp-server/command.ts";
import { NO_SUCH_MAILBOX } from "../../mail/smtp-server/reply.ts";
import { TOKEN_CONTEXT } from "../../outbound/outbound.ts";
import { uuidTime } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import { findMessageOwner } from "../../sending/sending.ts";
import { FEEDBACK_AGE_MS_MAX, RETURN_PATH_AGE_MS_MAX, UNTIL_DELIVERED_MS_MAX } from "../limits.ts";
import type { RcptDecider, RcptDecision, Refused } from "../types.ts";

type AddressWorld = Pick<World, "db" | "clock" | "config" | "seal">;

/** Stands for the operator where mail names its organization. No organization has this id, so none can read it. */
export const OPERATOR_ORG_ID = "00000000-0000-7000-8000-0000000005e5";

/** The answer to every address that takes nothing, whatever the reason: it tells nobody what else there is. */
export const UNKNOWN: Refused = { kind: "refuse", ...NO_SUCH_MAILBOX };
export const OPERATOR_MAILBOXES = ["postmaster", "abuse", "feedback", "fbl", "hostmaster", "security"] as const;

/** True for one of the service's own names, as against a customer's domain. */
export function isOurHost({ config }: Pick<World, "config">, domain: string): boolean {
  const { hostname, mx_host, bounce_host, report_domain, masked_domain } = config;
  return [hostname, mx_host, bounce_host, report_domain, masked_domain].includes(domain);
}

/** `b+<token>@` and `f+<token>@` the bounce host, or a customer's name for it. */
export function tokenDecider(world: AddressWorld): RcptDecider {
  const mac = (text: string) => world.seal.hash(text, TOKEN_CONTEXT);
  return async ({ to }) => {
    const isOurs = to.domain === world.config.bounce_host || domainOfReturnPath(to.domain ?? "") !== null;
    // Of mail that left another cell, before its organization came here.
    const mayBeOurs = isOurs || world.config.cells_door !== null;
    const [, letter = "", token = ""] = /^([bf])\+([a-z2-7]+)$/i.exec(to.local) ?? [];
    if (!mayBeOurs || token === "") return null;
    const named = readToken(token, mac);
    if (!named && !isOurs) return null;
    const kind = letter.toLowerCase() === "b" ? "return_path" : "feedback";
    const ageMsMax = kind === "return_path" ? RETURN_PATH_AGE_MS_MAX : FEEDBACK_AGE_MS_MAX;
    const oldest = world.clock.now() - ageMsMax;
    // A message may wait for its time before it leaves; only then does its age begin.
    if (!named || uuidTime(named.message_id) < oldest - UNTIL_DELIVERED_MS_MAX) return UNKNOWN;
    const [owner] = await findMessageOwner(world.db, named.message_id, named.position);
    if (!owner || owner.sent_at.getTime() < oldest) return UNKNOWN;
    const { org_id, domain_id } = owner;
    return { kind: "accept", route: { kind, org_id, domain_id, alias_id: null, tag: null, ...named } };
  };
}

/** The operator's mailboxes, at each of our names; postmaster also without a name or at our address literal. */
export function operatorDecider(world: Pick<World, "config">): RcptDecider {
  return async ({ to }) => {
    const isOurs = to.domain === null ? to.local.toLowerCase() === "postmaster" : isOurHost(world, to.domain);
    return isOurs ? operatorMailbox(to) : null;
  };
}

function operatorMailbox(to: Path): RcptDecision | null {
  const plus = to.local.indexOf("+");
  const mailbox = (plus > 0 ? to.local.slice(0, plus) : to.local).toLowerCase();
  if (!OPERATOR_MAILBOXES.some((one) => one === mailbox)) return null;
  const owner = { org_id: OPERATOR_ORG_ID, domain_id: null, alias_id: null, tag: null };
  return { kind: "accept", route: { kind: "operator", ...owner, mailbox } };
}
