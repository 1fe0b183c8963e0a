// The figures of a domain over the last days, made of the sums that were written with the reports.
import { requireDomain } from "../domains/domains.ts";
import type { DomainRow } from "../domains/types.ts";
import type { PublishedPolicy } from "../mail/dmarc-report/types.ts";
import type { Tx } from "../platform/database/db.ts";
import type { World } from "../platform/world.ts";
import { classify } from "./classify.ts";
import type { WeekSpan } from "./day-queries.ts";
import * as dayQueries from "./day-queries.ts";
import * as queries from "./queries.ts";
import { type Recommendation, recommend } from "./recommend.ts";
import { findSenders } from "./senders.ts";
import { dayOf, wholeWeeks } from "./split-days.ts";
import type { Classification, Counts, DayRow, Dispositions, DmarcPorts, SourceRow } from "./types.ts";

const DAY_MS = 86_400_000;
const REPORTERS_MAX = 50;
/** The least that a recommendation looks back, however few days are asked for: it needs two weeks of mail. */
const RECOMMENDED_DAYS_MIN = 30;
/** Sources that fail, looked at for the recommendation: a hundred of half a percent each would be half of all mail. */
const FAILING_MAX = 100;

type FigureWorld = Pick<World, "db" | "clock" | "resolver" | "config">;
type Span = { domain_id: string; from: string; to: string };
type Ask = { id: string; days: number };

export type Reporter = { org_name: string; reports: number; messages: number };

export type Summary = {
  domain: string;
  days: number;
  from: string;
  to: string;
  total_messages: number;
  pass_dkim: number;
  pass_spf: number;
  aligned: number;
  both_aligned: number;
  dkim_rate: number;
  spf_rate: number;
  alignment_rate: number;
  report_count: number;
  reporters: Reporter[];
  disposition: Dispositions;
  published_policy: PublishedPolicy | null;
  recommendation: Recommendation;
};

/** A part of a whole as 0…1 with four decimals; 0 of nothing. */
function rate(part: number, whole: number): number {
  return whole <= 0 ? 0 : Math.round((part / whole) * 10_000) / 10_000;
}

function spanOf(world: Pick<World, "clock">, domainId: string, days: number): Span {
  const now = world.clock.now();
  return { domain_id: domainId, from: dayOf((now - (days - 1) * DAY_MS) / 1_000), to: dayOf(now / 1_000) };
}

/** What all counted reports of the last days say together, or 404. */
export async function summarize(world: FigureWorld, ports: DmarcPorts, orgId: string, ask: Ask): Promise<Summary> {
  const read = await world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, ask.id);
    const span = spanOf(world, domain.id, ask.days);
    const longer = spanOf(world, domain.id, Math.max(ask.days, RECOMMENDED_DAYS_MIN));
    const seen = await dayQueries.listDays(tx, orgId, longer);
    const policyIn = async (of: Span) =>
      (await queries.findPolicy(tx, orgId, { ...of, domain: domain.domain }))[0]?.published_policy ?? null;
    return {
      ...{ domain, span, seen, days: seen.filter(({ day }) => day >= span.from) },
      reporters: await queries.listReporters(tx, orgId, span, REPORTERS_MAX),
      ...{ policy: await policyIn(span), latest: await policyIn(longer) },
      failing: await withNames(tx, orgId, await inWeeks(tx, orgId, longer), {
        by: "failed",
        limit: FAILING_MAX,
        offset: 0,
      }),
    };
  });
  const counts = sumDays(read.days);
  return {
    domain: read.domain.domain,
    ...{ days: ask.days, from: read.span.from, to: read.span.to },
    total_messages: counts.total,
    pass_dkim: counts.pass_dkim,
    pass_spf: counts.pass_spf,
    aligned: counts.aligned,
    both_aligned: counts.both_aligned,
    dkim_rate: rate(counts.pass_dkim, counts.total),
    spf_rate: rate(counts.pass_spf, counts.total),
    alignment_rate: rate(counts.aligned, counts.total),
    report_count: read.reporters[0]?.report_count ?? 0,
    reporters: read.reporters.map(({ report_count: _all, ...reporter }) => reporter),
    disposition: sumDispositions(read.days),
    published_policy: read.policy,
    recommendation: await recommendation(world, ports, read),
  };
}

type Seen = { domain: DomainRow; seen: DayRow[]; latest: PublishedPolicy | null; failing: SourceRow[] };

async function recommendation(world: FigureWorld, ports: DmarcPorts, read: Seen): Promise<Recommendation> {
  const { total, aligned } = sumDays(read.seen);
  const failing = await classified(world, ports, read.domain, read.failing);
  return recommend({
    ...{ policy: read.latest, total, aligned, days: daysBetween(read.seen) },
    failing: failing.map((source) => ({ ...source, failed: source.total - source.aligned })),
  });
}

function sumDays(days: DayRow[]): Counts {
  const sum = (field: keyof Counts) => days.reduce((total, day) => total + day[field], 0);
  return {
    total: sum("total"),
    pass_dkim: sum("pass_dkim"),
    pass_spf: sum("pass_spf"),
    aligned: sum("aligned"),
    both_aligned: sum("both_aligned"),
  };
}

function sumDispositions(days: DayRow[]): Dispositions {
  const sums = { none: 0, pass: 0, quarantine: 0, reject: 0 };
  for (const day of days) {
    sums.none += day.disposition_none;
    sums.pass += day.disposition_pass;
    sums.quarantine += day.disposition_quarantine;
    sums.reject += day.disposition_reject;
  }
  return sums;
}

/** How many days there are from the first to the last one with mail, both counted. */
function daysBetween(days: DayRow[]): number {
  const [first, last] = [days[0], days.at(-1)];
  return first && last ? (Date.parse(last.day) - Date.parse(first.day)) / DAY_MS + 1 : 0;
}

// --- sources ------------------------------------------------------------------------------------------------------------

export type Source = Omit<SourceRow, "dkim_passed" | "spf_passed" | "aligned" | "forwarded"> & {
  aligned: number;
  dkim_rate: number;
  spf_rate: number;
  classification: Classification;
};

/** One page of the sources of mail, most messages first, or 404. */
export async function listSources(
  world: FigureWorld,
  ports: DmarcPorts,
  orgId: string,
  ask: Ask & { limit: number; offset: number },
) {
  const { id, days, limit, offset } = ask;
  const read = await world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, id);
    const span = spanOf(world, domain.id, days);
    const weeks = await inWeeks(tx, orgId, span);
    const rows = await withNames(tx, orgId, weeks, { by: "total", limit, offset });
    return { domain, rows, total: await dayQueries.countSources(tx, orgId, weeks) };
  });
  const sources = await classified(world, ports, read.domain, read.rows);
  return { sources: sources.map(toSource), ...read.total, limit, offset, days };
}

type Page = { by: "total" | "failed"; limit: number; offset: number };

const NO_NAMES = { dkim_domains: [], dkim_passed: [], spf_domains: [], spf_passed: [], reporters: [] };

async function withNames(tx: Tx, orgId: string, span: WeekSpan, page: Page): Promise<SourceRow[]> {
  const rows = await dayQueries.listSources(tx, orgId, span, page);
  if (rows.length === 0) return [];
  const ips = rows.map(({ source_ip }) => source_ip);
  const names = new Map((await dayQueries.listNames(tx, orgId, span, ips)).map((row) => [row.source_ip, row]));
  return rows.map((row) => ({ ...row, ...(names.get(row.source_ip) ?? NO_NAMES) }));
}

/** The week under way counts as whole, unless there is mail in it behind the last day. */
async function inWeeks(tx: Tx, orgId: string, span: Span): Promise<WeekSpan> {
  const isLastWhole = !(await dayQueries.hasDaysBehind(tx, orgId, span.domain_id, span.to));
  return { ...span, ...wholeWeeks(span, isLastWhole) };
}

/** Asks name servers, so never within a transaction. */
async function classified(world: FigureWorld, ports: DmarcPorts, domain: DomainRow, rows: SourceRow[]) {
  if (rows.length === 0) return [];
  const ips = rows.map(({ source_ip }) => source_ip);
  const known = await findSenders(world, ports, domain, ips);
  return rows.map((row) => ({ ...row, classification: classify(row, known) }));
}

function toSource(row: SourceRow & { classification: Classification }): Source {
  const { dkim_passed: _keys, spf_passed: _hosts, forwarded: _forwarded, ...shown } = row;
  return { ...shown, dkim_rate: rate(row.pass_dkim, row.total), spf_rate: rate(row.pass_spf, row.total) };
}

// --- days ---------------------------------------------------------------------------------------------------------------

/** Every day of the last days, the oldest first, also those without reports; or 404. */
export async function listDaily(world: Pick<World, "db" | "clock">, orgId: string, { id, days }: Ask) {
  const { span, rows } = await world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, id);
    const of = spanOf(world, domain.id, days);
    return { span: of, rows: await dayQueries.listDays(tx, orgId, of) };
  });
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const first = Date.parse(span.from) / 1_000;
  const daily = Array.from({ length: days }, (_, at) => toDaily(dayOf(first + (at * DAY_MS) / 1_000), byDay));
  return { daily, days };
}

function toDaily(date: string, byDay: ReadonlyMap<string, DayRow>) {
  const row = byDay.get(date);
  const { total = 0, pass_dkim = 0, pass_spf = 0, aligned = 0, reports = 0 } = row ?? {};
  const disposition = sumDispositions(row ? [row] : []);
  return { date, total, pass_dkim, pass_spf, aligned, alignment_rate: rate(aligned, total), disposition, reports };
}
