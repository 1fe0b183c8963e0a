// Reports on their way in: which domain they are about, whether they may be about it, and whether they count. By mail to the
// address of a domain, or uploaded with a key of the organization.
import { protectLive } from "../accounts/accounts.ts";
import { findByReportToken, findDomain } from "../domains/domains.ts";
import type { Account } from "../http/http.ts";
import { readReport } from "../mail/dmarc-report/read-report.ts";
import { findReports } from "../mail/dmarc-report/report-mail.ts";
import type { AggregateReport } from "../mail/dmarc-report/types.ts";
import { type Allowance, UNPACKED_BYTES_MAX } from "../mail/dmarc-report/unpack.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { TlsReport } from "../mail/tls-report/read-report.ts";
import type { Tx } from "../platform/database/db.ts";
import { createFairGate } from "../platform/fair/fair-gate.ts";
import { uuidFloor } from "../platform/random.ts";
import { invalid, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import { countRead, isReadEnough } from "./read-budget.ts";
import { type Stored, storeReport, storeTlsReport, storeUnreadable } from "./store.ts";
import type { Arrival, DomainOfReport } from "./types.ts";

/** Reports tell of the past; so much may the clocks of reporters be ahead, and days end later elsewhere. */
const AHEAD_MS_MAX = 2 * 86_400_000;
const PARENTS_MAX = 10;
/**
 * By mail, on one domain in 24 hours: its address stands in DNS, so anybody may write there. The largest senders have some
 * hundred reporters.
 */
const REPORTS_PER_DAY_MAX = 2_000;
const RECORDS_PER_DAY_MAX = 500_000;
const DAY_MS = 86_400_000;
const TOO_MANY = "too many reports on this domain came within 24 hours";
const TOKEN = /^[0-9a-f]{32}$/;

type IntakeWorld = Pick<World, "db" | "clock" | "random" | "config">;

/**
 * One report of this process at a time, from its first byte to its last row, whichever way it came and whoever's it is: the
 * records of a large one take 200 MB.
 */
const reading = createFairGate(1);

/** The domain whose reports go to this address; null when it is not ours. */
export async function findReportAddress(
  world: Pick<World, "db" | "config">,
  address: { local: string; domain: string | null },
): Promise<DomainOfReport | null> {
  const token = address.local.toLowerCase();
  if (address.domain !== world.config.report_domain || !TOKEN.test(token)) return null;
  const row = await findByReportToken(world, token);
  return row ? { org_id: row.org_id, id: row.id, domain: row.domain } : null;
}

/** What became of a mail to a report address. An unreadable one is listed among the reports, with the reason. */
export type Taken = { kind: "kept" } | { kind: "ignored" | "unreadable"; reason: string };

/** Takes the reports of a mail. Any number of times: what is there already is not counted again. */
export async function takeReportMail(
  world: IntakeWorld,
  domain: DomainOfReport,
  mail: Pick<ParsedMail, "attachments" | "text">,
  arrival: Arrival,
): Promise<Taken> {
  if (isReadEnough(domain.id, world.clock.now())) return { kind: "ignored", reason: TOO_MANY };
  const refusal = await world.db.asOrg(domain.org_id, (tx) => whyNotNow(world, tx, domain));
  if (refusal !== null) return { kind: "ignored", reason: refusal };
  const found = findReports(mail);
  if (found.kind === "failure_report") {
    return {
      kind: "ignored",
      reason: "a DMARC failure report, which quotes other people's mail and is not collected",
    };
  }
  if (found.kind === "refused") return takeNothing(world, domain, arrival, found.reason);
  const outcomes: Outcome[] = [];
  for (const file of found.files) {
    const packed = { file, allowance: found.allowance };
    outcomes.push(await reading(domain.org_id, () => takeFile(world, domain, packed, arrival)));
  }
  countRead(domain.id, UNPACKED_BYTES_MAX - found.allowance.bytes_left, world.clock.now());
  if (outcomes.some(({ kind }) => kind === "kept")) return { kind: "kept" };
  // A TLS report on another domain is no DMARC report that could not be read.
  const dmarc = outcomes.filter(({ kind }) => kind !== "other_tls");
  const reported = dmarc.find(({ kind }) => kind === "mismatch") ?? dmarc.at(-1) ?? outcomes.at(-1);
  const { reason } = reported as Exclude<Outcome, { kind: "kept" }>;
  return dmarc.length === 0 ? { kind: "ignored", reason } : takeNothing(world, domain, arrival, reason);
}

type Outcome = { kind: "kept" } | { kind: "mismatch" | "other_tls" | "refused"; reason: string };

async function takeFile(
  world: IntakeWorld,
  domain: DomainOfReport,
  { file, allowance }: { file: Buffer; allowance: Allowance },
  arrival: Arrival,
): Promise<Outcome> {
  const read = await readReport(file, allowance);
  if (read.kind === "refused") return read;
  const reason = read.kind === "tls" ? tlsMismatch(read.report, domain) : mismatch(world, read.report, domain);
  if (reason !== null) return { kind: read.kind === "tls" ? "other_tls" : "mismatch", reason };
  if (read.kind === "tls") await storeTlsReport(world, domain, read.report, arrival);
  else await storeReport(world, domain, read.report, arrival);
  return { kind: "kept" };
}

async function whyNotNow(world: IntakeWorld, tx: Tx, domain: DomainOfReport): Promise<string | null> {
  if (!(await findDomain(tx, domain.org_id, domain.id))) return "the domain was removed";
  const since = uuidFloor(world.clock.now() - DAY_MS);
  const [came] = await queries.countSince(tx, domain.org_id, { domain_id: domain.id, since });
  const isFull = came && (came.reports >= REPORTS_PER_DAY_MAX || came.records >= RECORDS_PER_DAY_MAX);
  return isFull ? TOO_MANY : null;
}

async function takeNothing(
  world: IntakeWorld,
  domain: DomainOfReport,
  arrival: Arrival,
  reason: string,
): Promise<Taken> {
  await storeUnreadable(world, domain, arrival, reason);
  return { kind: "unreadable", reason };
}

/** As takeReportMail, for a mail that could not even be parsed. */
export function takeUnparsable(world: IntakeWorld, domain: DomainOfReport, arrival: Arrival, reason: string) {
  return takeNothing(world, domain, arrival, `the mail could not be read: ${reason}`);
}

function mismatch(world: Pick<World, "clock">, report: AggregateReport, { domain }: DomainOfReport): string | null {
  if (!isWithin(report.policy.domain, domain))
    return `the report is about ${report.policy.domain}, not about ${domain}`;
  return isAhead(world, report) ? "the report is about days to come" : null;
}

function tlsMismatch({ policies }: TlsReport, { domain }: DomainOfReport): string | null {
  const isOurs = policies.some(({ policy_domain }) => policy_domain !== null && isWithin(policy_domain, domain));
  // RFC 8460 §1.1: DANE is a mail server's, so that such a report names the server, wherever it is, and nobody's domain.
  const isOfServers = policies.length > 0 && policies.every(({ policy_type }) => policy_type === "tlsa");
  return isOurs || isOfServers ? null : `the TLS report is not about ${domain}`;
}

function isWithin(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}

function isAhead(world: Pick<World, "clock">, report: AggregateReport): boolean {
  return report.end_s * 1_000 > world.clock.now() + AHEAD_MS_MAX;
}

type Uploader = Pick<Account, "org_id" | "acts_on_live">;

/** Takes an uploaded file of the organization; its key vouches for it. 400 for what is no report, 403 for others' domains. */
export function uploadReport(world: IntakeWorld, account: Uploader, file: Buffer): Promise<Stored> {
  return reading(account.org_id, () => takeUpload(world, account, file));
}

async function takeUpload(world: IntakeWorld, account: Uploader, file: Buffer): Promise<Stored> {
  const read = await readReport(file);
  if (read.kind === "refused") throw invalid("file", `the 'file' field is no DMARC report: ${read.reason}`);
  if (read.kind === "tls") {
    throw invalid("file", "the 'file' field is an SMTP TLS report; only DMARC aggregate reports can be uploaded");
  }
  const { report } = read;
  if (isAhead(world, report)) throw invalid("file", "the 'file' field is a report about days to come");
  const domain = await world.db.asOrg(account.org_id, (tx) => findDomainOf(tx, account.org_id, report.policy.domain));
  if (!domain) {
    const message = `the report is about ${report.policy.domain}, which is not a domain of this organization`;
    throw new Refusal("domain_not_owned", message, { field: "file" });
  }
  await protectLive(account, "add to the figures of a live domain", async () => domain.environment);
  return storeReport(world, domain, report, { via: "upload", authenticated: true, sender_domain: null, origin_id: "" });
}

/** The organization's domain that the name is, or the nearest above it. */
async function findDomainOf(tx: Tx, orgId: string, name: string) {
  const labels = name.split(".");
  for (let from = Math.max(0, labels.length - PARENTS_MAX - 1); from < labels.length - 1; from += 1) {
    const row = await findDomain(tx, orgId, labels.slice(from).join("."));
    if (row) return { org_id: row.org_id, id: row.id, domain: row.domain, environment: row.environment };
  }
  return null;
}
