// All SQL on dmarc_report, dmarc_record and tls_report.

import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax } from "../platform/database/totals.ts";
import type { RecordRow, ReportRow, TlsReportRow } from "./types.ts";

const COLUMNS = `id, status, reason, via, sender_domain, received_at, org_name, email, extra_contact_info, report_id,
  generator, schema, policy_domain, published_policy, begin_at, end_at, first_day, last_day, total_messages, pass_dkim,
  pass_spf, aligned, both_aligned, disposition, record_count, rejected_records, defects, errors`;

type Of = { domain_id: string };

/** Nothing returned: the domain has a report of this fingerprint. */
export function insertReport(tx: Tx, orgId: string, of: Of & { fingerprint: Buffer }, row: ReportRow) {
  return tx.query<ReportRow>(
    `insert into dmarc_report (org_id, domain_id, fingerprint, ${COLUMNS})
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
       $25, $26, $27, $28, $29, $30, $31)
     on conflict (org_id, domain_id, fingerprint) do nothing returning ${COLUMNS}`,
    [orgId, of.domain_id, of.fingerprint, ...valuesOf(row)],
  );
}

function valuesOf(row: ReportRow): unknown[] {
  return [
    ...[row.id, row.status, row.reason, row.via, row.sender_domain, row.received_at, row.org_name, row.email],
    ...[row.extra_contact_info, row.report_id, row.generator, row.schema, row.policy_domain],
    ...[row.published_policy && JSON.stringify(row.published_policy), row.begin_at, row.end_at],
    ...[row.first_day, row.last_day, row.total_messages, row.pass_dkim, row.pass_spf, row.aligned, row.both_aligned],
    ...[JSON.stringify(row.disposition), row.record_count, row.rejected_records, row.defects, row.errors],
  ];
}

/** Index: dmarc_report_fingerprint. The row is locked until the transaction ends. */
export function lockByFingerprint(tx: Tx, orgId: string, of: Of & { fingerprint: Buffer }) {
  return tx.query<ReportRow>(
    `select ${COLUMNS} from dmarc_report where org_id = $1 and domain_id = $2 and fingerprint = $3 for update`,
    [orgId, of.domain_id, of.fingerprint],
  );
}

/** Its records go with it. */
export function deleteReport(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from dmarc_report where org_id = $1 and id = $2", [orgId, id]);
}

export function insertRecords(tx: Tx, orgId: string, reportId: string, records: RecordRow[]) {
  return tx.execute(
    `insert into dmarc_record (org_id, report_id, position, source_ip, count, disposition, dkim, spf, header_from,
       envelope_from, envelope_to, reasons, dkim_results, spf_results)
     select $1::uuid, $2::uuid, r.* from jsonb_to_recordset($3::jsonb) as r (position integer, source_ip inet, count bigint,
       disposition text, dkim text, spf text, header_from text, envelope_from text, envelope_to text, reasons jsonb,
       dkim_results jsonb, spf_results jsonb)
     returning 1`,
    [orgId, reportId, JSON.stringify(records)],
  );
}

/** Newest first. Index: dmarc_report_by_domain. */
export function listReports(tx: Tx, orgId: string, domainId: string, page: Page) {
  return tx.query<ReportRow>(
    `select ${COLUMNS} from dmarc_report where org_id = $1 and domain_id = $2 and id < $5 order by id desc limit $3 offset $4`,
    [orgId, domainId, page.limit, page.offset, page.below],
  );
}

export function countReports(tx: Tx, orgId: string, domainId: string) {
  return countUpToMax(tx, "dmarc_report where org_id = $1 and domain_id = $2", [orgId, domainId]);
}

export function findReport(tx: Tx, orgId: string, of: Of & { id: string }) {
  return tx.query<ReportRow>(`select ${COLUMNS} from dmarc_report where org_id = $1 and domain_id = $2 and id = $3`, [
    orgId,
    of.domain_id,
    of.id,
  ]);
}

/** The newest report that its reporter gave this id. */
export function findByReportId(tx: Tx, orgId: string, of: Of & { report_id: string }) {
  return tx.query<ReportRow>(
    `select ${COLUMNS} from dmarc_report where org_id = $1 and domain_id = $2 and report_id = $3
      order by id desc limit 1`,
    [orgId, of.domain_id, of.report_id],
  );
}

/** What came after `since` (an id). Index: dmarc_report_by_domain. */
export function countSince(tx: Tx, orgId: string, of: Of & { since: string }) {
  return tx.query<{ reports: number; records: number }>(
    `select count(*) as reports, coalesce(sum(record_count), 0) as records from dmarc_report
      where org_id = $1 and domain_id = $2 and id > $3`,
    [orgId, of.domain_id, of.since],
  );
}

/** Index: primary key. */
export function listRecords(tx: Tx, orgId: string, reportId: string, page: { limit: number; offset: number }) {
  return tx.query<RecordRow>(
    `select position, host(source_ip) as source_ip, count, disposition, dkim, spf, header_from, envelope_from, envelope_to,
       reasons, dkim_results, spf_results
     from dmarc_record where org_id = $1 and report_id = $2 and position >= $4 order by position limit $3`,
    [orgId, reportId, page.limit, page.offset],
  );
}

type Span = { domain_id: string; from: string; to: string };

/** Who reported in these days, most messages first, and of how many reports in all. Index: dmarc_report_by_day. */
export function listReporters(tx: Tx, orgId: string, span: Span, limit: number) {
  return tx.query<{ org_name: string; reports: number; messages: number; report_count: number }>(
    `select org_name, count(*) as reports, sum(total_messages) as messages, sum(count(*)) over () as report_count
       from dmarc_report
      where org_id = $1 and domain_id = $2 and status = 'counted' and last_day >= $3 and first_day <= $4
      group by org_name order by messages desc, org_name limit $5`,
    [orgId, span.domain_id, span.from, span.to, limit],
  );
}

/** The newest published policy that reports of these days tell of; the domain's own before those of names below it. */
export function findPolicy(tx: Tx, orgId: string, span: Span & { domain: string }) {
  return tx.query<Pick<ReportRow, "published_policy">>(
    `select published_policy from dmarc_report
      where org_id = $1 and domain_id = $2 and status = 'counted' and last_day >= $3 and first_day <= $4
      order by policy_domain = $5 desc, end_at desc, id desc limit 1`,
    [orgId, span.domain_id, span.from, span.to, span.domain],
  );
}

/** Reports of all organizations that came before `before`, oldest first. Index: dmarc_report_age. */
export function purgeReports(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from dmarc_report where (org_id, id) in (
       select org_id, id from dmarc_report where received_at < $1 order by received_at limit $2)`,
    [before, limit],
  );
}

/** Zero rows: it was there already. */
export function insertTlsReport(tx: Tx, orgId: string, of: Of & { fingerprint: Buffer }, row: TlsReportRow) {
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  return tx.execute(
    `insert into tls_report (org_id, domain_id, fingerprint, id, authenticated, sender_domain, received_at,
       organization_name, contact_info, report_id, begin_at, end_at, successful_sessions, failed_sessions, policies)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
     on conflict (org_id, domain_id, fingerprint) do update
       set authenticated = true, sender_domain = excluded.sender_domain
       where excluded.authenticated and not tls_report.authenticated`,
    [
      ...[orgId, of.domain_id, of.fingerprint, row.id, row.arrival.authenticated, row.arrival.sender_domain],
      ...[row.received_at, row.organization_name, row.contact_info, row.report_id],
      ...[new Date(row.begin_ms), new Date(row.end_ms)],
      sum(row.policies.map((policy) => policy.total_successful_session_count)),
      sum(row.policies.map((policy) => policy.total_failure_session_count)),
      JSON.stringify(row.policies),
    ],
  );
}

/** Index: tls_report_age. */
export function purgeTlsReports(db: Query, before: Date, limit: number) {
  return db.execute(
    `delete from tls_report where (org_id, id) in (
       select org_id, id from tls_report where received_at < $1 order by received_at limit $2)`,
    [before, limit],
  );
}
