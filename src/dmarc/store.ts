// Keeps reports: the row, its records and, when it counts, its messages in the sums, in one transaction. The same report
// counts once, however often and by whichever way it comes; one whose sender we know takes the place of one that anybody
// could have sent, so that nobody can keep a reporter's word out by guessing its report id first.
import { createHash } from "node:crypto";
import type { AggregateReport } from "../mail/dmarc-report/types.ts";
import type { TlsReport } from "../mail/tls-report/read-report.ts";
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import * as dayQueries from "./day-queries.ts";
import * as queries from "./queries.ts";
import { dayOf, dayShares, type Split, sourcesOfDay, splitDays } from "./split-days.ts";
import type { Arrival, DomainOfReport, RecordRow, ReportRow } from "./types.ts";

const CHUNK = 2_000;

type StoreWorld = Pick<World, "db" | "clock" | "random">;

export type Stored = { report: ReportRow; duplicate: boolean };

/** Keeps a report of the domain; a duplicate changes nothing and gives the one that is there. */
export async function storeReport(
  world: StoreWorld,
  domain: DomainOfReport,
  report: AggregateReport,
  arrival: Arrival,
): Promise<Stored> {
  const row = toRow(world, report, arrival);
  const fingerprint = digest([
    report.org_name.toLowerCase(),
    report.report_id,
    report.policy.domain,
    report.begin_s,
    report.end_s,
  ]);
  const of = { domain_id: domain.id, fingerprint };
  const split = row.status === "counted" ? await splitDays(report) : null;
  return world.db.asOrg(domain.org_id, async (tx) => {
    let [stored] = await queries.insertReport(tx, domain.org_id, of, row);
    if (!stored) {
      const [there] = await queries.lockByFingerprint(tx, domain.org_id, of);
      if (there && (there.status === "counted" || row.status !== "counted")) return { report: there, duplicate: true };
      if (there) await queries.deleteReport(tx, domain.org_id, there.id);
      [stored] = await queries.insertReport(tx, domain.org_id, of, row);
    }
    if (!stored) throw new Error("a report was neither new nor there");
    await storeRecords(tx, domain.org_id, stored.id, report);
    if (split) await addSums(tx, domain, report, split);
    return { report: stored, duplicate: false };
  });
}

async function storeRecords(tx: Tx, orgId: string, id: string, report: AggregateReport): Promise<void> {
  for (let at = 0; at < report.records.length; at += CHUNK) {
    const rows: RecordRow[] = report.records
      .slice(at, at + CHUNK)
      .map((record, index) => ({ ...record, position: at + index }));
    await queries.insertRecords(tx, orgId, id, rows);
  }
}

// The rows of the days are locked first, in their order and until the end: whoever holds a day's row is alone with its
// sources, so that theirs need no order.
async function addSums(tx: Tx, domain: DomainOfReport, report: AggregateReport, split: Split): Promise<void> {
  await dayQueries.addDays(tx, domain.org_id, domain.id, split.days);
  await dayQueries.lockWeeks(tx, domain.org_id, domain.id);
  for (let day = 0; day < split.days.length; day += 1) {
    const sources = await sourcesOfDay(report, split, day);
    for (let at = 0; at < sources.length; at += CHUNK) {
      await dayQueries.addSources(tx, domain.org_id, domain.id, sources.slice(at, at + CHUNK));
    }
  }
}

function digest(parts: (string | number)[]): Buffer {
  return createHash("sha256").update(JSON.stringify(parts)).digest();
}

function toRow(world: StoreWorld, report: AggregateReport, arrival: Arrival): ReportRow {
  const shares = dayShares(report.begin_s, report.end_s);
  const messages = (holds: (record: AggregateReport["records"][number]) => boolean) =>
    report.records.reduce((sum, record) => (holds(record) ? sum + record.count : sum), 0);
  const disposed = (word: string) => messages(({ disposition }) => disposition === word);
  return {
    ...arrived(world, arrival),
    status: arrival.authenticated ? "counted" : "unauthenticated",
    reason: arrival.authenticated ? null : "the sender of the mail it came in is not authenticated",
    org_name: report.org_name,
    email: report.email,
    extra_contact_info: report.extra_contact_info,
    report_id: report.report_id,
    generator: report.generator,
    schema: report.schema,
    policy_domain: report.policy.domain,
    published_policy: report.policy,
    begin_at: new Date(report.begin_s * 1_000),
    end_at: new Date(report.end_s * 1_000),
    first_day: shares[0]?.day ?? dayOf(report.begin_s),
    last_day: shares.at(-1)?.day ?? dayOf(report.begin_s),
    total_messages: messages(() => true),
    pass_dkim: messages(({ dkim }) => dkim === "pass"),
    pass_spf: messages(({ spf }) => spf === "pass"),
    aligned: messages(({ dkim, spf }) => dkim === "pass" || spf === "pass"),
    both_aligned: messages(({ dkim, spf }) => dkim === "pass" && spf === "pass"),
    disposition: {
      none: disposed("none"),
      pass: disposed("pass"),
      quarantine: disposed("quarantine"),
      reject: disposed("reject"),
    },
    record_count: report.records.length,
    rejected_records: report.rejected_records,
    defects: report.defects,
    errors: report.errors,
  };
}

function arrived(world: StoreWorld, { via, sender_domain }: Arrival) {
  return { id: world.random.uuid(), via, sender_domain, received_at: new Date(world.clock.now()) };
}

/** Keeps the fact that something came which cannot be counted, with the reason; once for each origin. */
export async function storeUnreadable(
  world: StoreWorld,
  domain: DomainOfReport,
  arrival: Arrival,
  reason: string,
): Promise<void> {
  const none = {
    org_name: null,
    email: null,
    extra_contact_info: null,
    report_id: null,
    generator: null,
    schema: null,
  };
  const row: ReportRow = {
    ...arrived(world, arrival),
    ...{ status: "unreadable", reason, ...none, policy_domain: null, published_policy: null },
    ...{ begin_at: null, end_at: null, first_day: null, last_day: null },
    ...{ total_messages: 0, pass_dkim: 0, pass_spf: 0, aligned: 0, both_aligned: 0 },
    ...{ disposition: { none: 0, pass: 0, quarantine: 0, reject: 0 }, record_count: 0, rejected_records: 0 },
    ...{ defects: [], errors: [] },
  };
  const of = { domain_id: domain.id, fingerprint: digest(["unreadable", arrival.origin_id, reason]) };
  await world.db.asOrg(domain.org_id, (tx) => queries.insertReport(tx, domain.org_id, of, row));
}

/** Keeps an SMTP TLS report; the same one once. */
export async function storeTlsReport(
  world: StoreWorld,
  domain: DomainOfReport,
  report: TlsReport,
  arrival: Arrival,
): Promise<void> {
  const fingerprint = digest([
    report.organization_name.toLowerCase(),
    report.report_id,
    report.begin_ms,
    report.end_ms,
  ]);
  const row = { ...report, id: world.random.uuid(), arrival, received_at: new Date(world.clock.now()) };
  await world.db.asOrg(domain.org_id, (tx) =>
    queries.insertTlsReport(tx, domain.org_id, { domain_id: domain.id, fingerprint }, row),
  );
}
