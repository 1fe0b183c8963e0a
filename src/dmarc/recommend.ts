// Which policy a domain can publish next, pure: none → quarantine → reject, one step at a time, when enough mail over enough
// time passes and no source that may be the domain's own fails.

import { POLICIES, type Policy, type PublishedPolicy } from "../mail/dmarc-report/types.ts";
import type { Classification } from "./types.ts";

/** Between the first and the last day with reports: what is sent every other week should have been seen. */
const DAYS_MIN = 14;
const MESSAGES_MIN = 100;
/** The share of the mail that must be aligned, without what forwarders broke. */
const ALIGNED_MIN = 0.98;
/** A source that fails for more than this share of all mail stands in the way. */
const BLOCKING_SHARE = 0.005;
const BLOCKING_MAX = 20;

export type Observed = {
  policy: PublishedPolicy | null;
  total: number;
  aligned: number;
  /** Days from the first to the last that has reports. */
  days: number;
  /** Sources with mail that did not pass. */
  failing: { source_ip: string; failed: number; classification: Classification }[];
};

export type Recommendation = { next_policy: Policy | null; reason: string; blocking_sources: string[] };

/** The policy to publish next (the present one when nothing is to change), why, and what stands in the way. */
export function recommend(observed: Observed): Recommendation {
  const current = observed.policy?.p ?? null;
  const stay = (reason: string, blocking_sources: string[] = []) => ({
    next_policy: current,
    reason,
    blocking_sources,
  });
  if (observed.total === 0) return stay("No counted report yet: nothing is known about the mail of this domain.");
  if (current === null) return stay("The reports do not say which policy the domain publishes.");
  const forwarded = sum(observed.failing.filter(isForwarder));
  const considered = observed.total - forwarded;
  const share = considered > 0 ? observed.aligned / considered : 0;
  const blocking = observed.failing.filter((one) => !isForwarder(one) && one.failed > observed.total * BLOCKING_SHARE);
  const ips = blocking.slice(0, BLOCKING_MAX).map(({ source_ip }) => source_ip);
  if (current === "reject" && !isWeakened(observed.policy))
    return stay("The domain publishes the strictest policy.", ips);
  if (observed.days < DAYS_MIN || observed.total < MESSAGES_MIN) return stay(tooLittle(observed), ips);
  if (blocking.length > 0) return stay(inTheWay(blocking), ips);
  if (share < ALIGNED_MIN) {
    return stay(`${percent(share)} of the mail passes; below ${percent(ALIGNED_MIN)} a stricter policy loses mail.`);
  }
  const seen = `${percent(share)} of ${considered} messages in ${observed.days} days pass`;
  if (isWeakened(observed.policy)) {
    return stay(`${seen}: let p=${current} apply to all mail (remove pct= and t=y) before a stricter policy.`);
  }
  const next_policy = POLICIES[POLICIES.indexOf(current) + 1] as Policy;
  return { next_policy, reason: `${seen}, and no source stands in the way.`, blocking_sources: [] };
}

function isForwarder({ classification }: Observed["failing"][number]): boolean {
  return classification === "forwarder";
}

/** Asked for of a part of the mail only (RFC 7489 pct=), or as a test (RFC 9990 t=y). */
function isWeakened(policy: PublishedPolicy | null): boolean {
  if (policy?.p === "none") return false;
  return policy?.testing === true || (policy?.pct !== null && policy?.pct !== undefined && policy.pct < 100);
}

function sum(failing: Observed["failing"]): number {
  return failing.reduce((total, { failed }) => total + failed, 0);
}

function tooLittle({ total, days }: Observed): string {
  const seen = `${total} ${total === 1 ? "message" : "messages"} in ${days} ${days === 1 ? "day" : "days"}`;
  return `Too little to judge by: ${seen}; at least ${MESSAGES_MIN} messages in ${DAYS_MIN} days are needed.`;
}

function inTheWay(blocking: Observed["failing"]): string {
  const own = blocking.filter(({ classification }) => classification !== "unknown").length;
  const what = `${blocking.length} ${blocking.length === 1 ? "source sends" : "sources send"} mail that does not pass`;
  return own > 0
    ? `${what}, ${own} of them known to be yours: set up DKIM or SPF for them.`
    : `${what}: set up DKIM or SPF for those that are yours; a stricter policy stops the others.`;
}

function percent(share: number): string {
  return `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;
}
