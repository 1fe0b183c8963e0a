// DMARC aggregate reports on customers' domains: collected by mail and by upload, kept, summed up, and made into the next
// step of the policy. Face of the feature. Not here: judging mail by DMARC (mail/auth), the domain's own record (domains).
import { requireDomain } from "../domains/domains.ts";
import { isUuid } from "../platform/database/db.ts";
import { notFound } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import type { RecordRow, ReportRow } from "./types.ts";

export { getReportAddress } from "./address.ts";
export { listDaily, listSources, summarize } from "./figures.ts";
export { findReportAddress, takeReportMail, takeUnparsable, uploadReport } from "./intake.ts";

type Page = { limit: number; offset: number };

/** One page of the reports on a domain, newest first, those that do not count too; or 404. */
export async function listReports(world: Pick<World, "db">, orgId: string, ask: Page & { id: string; below: string }) {
  const { id, ...page } = ask;
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, id);
    const reports = await queries.listReports(tx, orgId, domain.id, page);
    const total = await queries.countReports(tx, orgId, domain.id);
    return { reports, ...total, ...page };
  });
}

/** A report by our id or by the reporter's, with a page of its records; or 404. */
export async function getReport(
  world: Pick<World, "db">,
  orgId: string,
  ask: Page & { id: string; report_id: string },
): Promise<ReportRow & { records: RecordRow[] }> {
  return world.db.asOrg(orgId, async (tx) => {
    const { id: domain_id } = await requireDomain(tx, orgId, ask.id);
    const id = ask.report_id.toLowerCase();
    const [byId] = isUuid(id) ? await queries.findReport(tx, orgId, { domain_id, id }) : [];
    const report = byId ?? (await queries.findByReportId(tx, orgId, { domain_id, report_id: ask.report_id }))[0];
    if (!report) throw notFound("report");
    return { ...report, records: await queries.listRecords(tx, orgId, report.id, ask) };
  });
}
