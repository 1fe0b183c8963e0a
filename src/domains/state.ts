// The states of a domain, pure: what a check's answers make of it, when it is looked at again, whether it may send.
// A check that could not ask (SERVFAIL, timeout) changes nothing that was proven before.
import type { DkimVerdict, DomainRow, DomainType, Purpose, RecordCheck, Requirement } from "./types.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A required record is believed gone when two looks at least this far apart do not find it: one may be a slip of the zone's editor. */
const LOSS_CONFIRMED_MS: number = 10 * MINUTE_MS;
/** A degraded domain goes on sending for this long. */
export const GRACE_MS: number = 72 * HOUR_MS;
/** A domain not verified for this long has failed; a good check still verifies it. */
export const FAILED_AFTER_MS: number = 14 * DAY_MS;

const WATCH_CLOSELY_MS = 2 * HOUR_MS;
const WATCH_HOURLY_MS = WATCH_CLOSELY_MS + 3 * DAY_MS;

/** What must be in DNS for a domain of this type to be verified. */
const REQUIRED: Record<DomainType, readonly Requirement[]> = {
  outbound: ["ownership", "spf", "dkim"],
  inbound: ["ownership", "mx"],
  alias: ["ownership", "mx"],
  both: ["ownership", "spf", "dkim", "mx"],
};

/** True if mail leaves under a domain of this type: then it needs SPF and DKIM. */
export function sends(type: DomainType): boolean {
  return REQUIRED[type].includes("spf");
}

/** True if mail arrives at a domain of this type: then it needs an MX. */
export function receives(type: DomainType): boolean {
  return REQUIRED[type].includes("mx");
}

/** True if the domain is verified or in its 72 hours of grace: the API's `verified`. */
export function isVerified(row: Pick<DomainRow, "status" | "unverified_since">, nowMs: number): boolean {
  if (row.status === "verified") return true;
  return row.status === "degraded" && nowMs < (row.unverified_since?.getTime() ?? 0) + GRACE_MS;
}

/** Wait until the next look: every 5 minutes for 2 hours after something began, hourly for 3 days, then daily. */
export function nextCheck(row: Pick<DomainRow, "watch_since" | "checks">, nowMs: number): Date {
  const watchedMs = nowMs - row.watch_since.getTime();
  if (watchedMs < WATCH_CLOSELY_MS) return new Date(nowMs + 5 * MINUTE_MS);
  const unasked = row.checks.some((check) => check.status === "error");
  return new Date(nowMs + (unasked || watchedMs < WATCH_HOURLY_MS ? HOUR_MS : DAY_MS));
}

/** A fact is what a check proved of a purpose; `conclusive` false means that it could not ask. */
type Fact = { ok: boolean; conclusive: boolean };
/** The authorization is the operator's record: it says nothing about the customer's domain. */
type Provable = Exclude<Purpose, "dmarc_authorization">;
type Flags = Pick<
  DomainRow,
  "ownership_verified" | "mx_verified" | "spf_verified" | "dkim_verified" | "dmarc_verified" | "return_path_verified"
>;

export type Checked = { checks: RecordCheck[]; dkim: DkimVerdict; at: Date };

/**
 * The row after a check. `mayVerify` false: another organization holds the domain, so that this one stays as it is
 * however good its records are.
 */
export function afterCheck(before: DomainRow, checked: Checked, mayVerify: boolean): DomainRow {
  const facts = factsOf(checked);
  const row = withFlags(before, facts, checked.at);
  row.has_active_key = checked.dkim.active;
  row.checks = mergeChecks(before.checks, checked.checks);
  row.last_dns_check = checked.at;
  moveStatus(row, facts, checked.at, mayVerify);
  releaseClaim(row, facts, checked.at);
  row.next_check_at = nextCheck(row, checked.at.getTime());
  if (row.status !== before.status) row.updated_at = checked.at;
  return row;
}

function factsOf(checked: Checked): Map<Provable, Fact> {
  const facts = new Map<Provable, Fact>();
  for (const { purpose, status } of checked.checks) {
    if (purpose !== "dkim" && purpose !== "dmarc_authorization")
      facts.set(purpose, { ok: status === "ok", conclusive: status !== "error" });
  }
  const { verified, conclusive } = checked.dkim;
  facts.set("dkim", { ok: verified, conclusive: verified || conclusive });
  return facts;
}

function withFlags(before: DomainRow, facts: Map<Provable, Fact>, at: Date): DomainRow {
  const row: DomainRow = { ...before, lost: { ...before.lost } };
  for (const [purpose, fact] of facts) {
    if (!fact.conclusive) continue;
    const flag: keyof Flags = `${purpose}_verified`;
    if (isRequirement(purpose)) {
      if (row[flag] && !fact.ok) {
        row.lost[purpose] = at.toISOString();
        row.watch_since = at;
      }
      if (fact.ok) delete row.lost[purpose];
    }
    row[flag] = fact.ok;
  }
  return row;
}

function isRequirement(purpose: Purpose): purpose is Requirement {
  return REQUIRED.both.includes(purpose as Requirement);
}

function mergeChecks(before: RecordCheck[], fresh: RecordCheck[]): RecordCheck[] {
  const seen = new Set(fresh.map((check) => `${check.purpose} ${check.name}`));
  return [...before.filter((check) => !seen.has(`${check.purpose} ${check.name}`)), ...fresh];
}

function moveStatus(row: DomainRow, facts: Map<Provable, Fact>, at: Date, mayVerify: boolean): void {
  if (hasAllRequired(row)) {
    if (row.status !== "verified" && mayVerify) setVerified(row, at);
  } else if (row.status === "verified" && isLossConfirmed(row, facts, at)) {
    setUnverified(row, "degraded", at);
  }
  failWhenLate(row, at);
}

/** True if every record that the type requires is verified. */
export function hasAllRequired(row: Flags & Pick<DomainRow, "type">): boolean {
  return REQUIRED[row.type].every((purpose) => row[`${purpose}_verified`]);
}

/** Names of the required records that are not verified. */
function missingRequirements(row: Flags & Pick<DomainRow, "type">): Requirement[] {
  return REQUIRED[row.type].filter((purpose) => !row[`${purpose}_verified`]);
}

function setVerified(row: DomainRow, at: Date): void {
  if (row.status !== "degraded") row.verified_at = at;
  row.status = "verified";
  row.claimed = true;
  row.unverified_since = null;
}

function setUnverified(row: DomainRow, status: "pending" | "degraded", at: Date): void {
  row.status = status;
  row.unverified_since = at;
  row.watch_since = at;
}

function failWhenLate(row: DomainRow, at: Date): void {
  if (row.status === "verified" || !row.unverified_since) return;
  if (at.getTime() - row.unverified_since.getTime() >= FAILED_AFTER_MS) row.status = "failed";
}

function isLossConfirmed(row: DomainRow, facts: Map<Provable, Fact>, at: Date): boolean {
  return missingRequirements(row).some(
    (purpose) => facts.get(purpose)?.conclusive && lostFor(row, purpose, at) >= LOSS_CONFIRMED_MS,
  );
}

function lostFor(row: DomainRow, purpose: Requirement, at: Date): number {
  const since = row.lost[purpose];
  return since === undefined ? 0 : at.getTime() - Date.parse(since);
}

/** A domain whose ownership record is gone as long as the grace lasts is free for another organization. */
function releaseClaim(row: DomainRow, facts: Map<Provable, Fact>, at: Date): void {
  if (!row.claimed || row.ownership_verified || !row.unverified_since) return;
  if (!facts.get("ownership")?.conclusive || lostFor(row, "ownership", at) < GRACE_MS) return;
  if (at.getTime() - row.unverified_since.getTime() >= GRACE_MS) row.claimed = false;
}

/**
 * The row with another type. Verified stays verified when all that the new type requires is there; a domain that sent
 * and goes on sending (outbound → both) has the grace of a degraded one to publish its MX; any other begins again.
 */
export function withType(before: DomainRow, type: DomainType, at: Date): DomainRow {
  const row: DomainRow = { ...before, type, lost: {} };
  // What the new type does not look at is not known from now on.
  if (!sends(type)) Object.assign(row, { spf_verified: false, return_path_verified: false });
  if (!receives(type)) row.mx_verified = false;
  const wasVerified = isVerified(before, at.getTime());
  if (row.claimed && hasAllRequired(row)) setVerified(row, at);
  else if (wasVerified && sends(before.type) && sends(type)) {
    if (row.status !== "degraded") setUnverified(row, "degraded", at);
  } else if (before.status !== "failed" || requiredDiffers(before.type, type)) setUnverified(row, "pending", at);
  row.watch_since = at;
  row.next_check_at = at;
  return row;
}

function requiredDiffers(a: DomainType, b: DomainType): boolean {
  return REQUIRED[a].join() !== REQUIRED[b].join();
}

const NAMES: Record<Requirement, string> = {
  ownership: "the ownership record",
  spf: "the SPF record",
  dkim: "a DKIM record",
  mx: "the MX record",
};

/** `the SPF record and a DKIM record`: requirements for a sentence. */
function inWords(requirements: readonly Requirement[]): string {
  const words = requirements.map((purpose) => NAMES[purpose]);
  return words.length < 2 ? (words[0] ?? "nothing") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** Why the domain is not to send, by its owner's own decision: a sentence, or null. */
export function switchedOffReason({
  domain,
  type,
  active,
}: Pick<DomainRow, "domain" | "type" | "active">): string | null {
  if (!sends(type)) return `the domain ${domain} is of type ${type}: set its type to outbound or both to send`;
  return active ? null : `the domain ${domain} is switched off (active is false)`;
}

/** Why the domain may not send now: a sentence, or null when it may. */
export function notReadyReason(
  row: Flags & Pick<DomainRow, "domain" | "type" | "active" | "status" | "unverified_since" | "has_active_key">,
  nowMs: number,
): string | null {
  const { domain } = row;
  const switchedOff = switchedOffReason(row);
  if (switchedOff) return switchedOff;
  if (isVerified(row, nowMs)) return row.has_active_key ? null : `the domain ${domain} has no active DKIM key`;
  if (hasAllRequired(row)) return `the domain ${domain} is not verified yet: call POST /v1/domains/${domain}/verify`;
  const missing = inWords(missingRequirements(row));
  if (row.status === "degraded") return `the domain ${domain} lost ${missing} and its 72 hours of grace are over`;
  return `the domain ${domain} is not verified: DNS does not show ${missing} yet (see GET /v1/domains/${domain}/dns)`;
}
