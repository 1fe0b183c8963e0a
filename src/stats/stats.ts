// Statistics of sender domains: counters raised with the events, answers added up from some thousand rows whatever the
// number of events. Face of the feature. Days and hours are UTC. Not here: what each event means for the recipient.
import { requireDomain } from "../domains/domains.ts";
import type { Tx } from "../platform/database/db.ts";
import { coalesce } from "../platform/fair/coalesce.ts";
import type { World } from "../platform/world.ts";
import { dayOf, hourOf, type Rates, ratesOf, sumCounts, sumReasons, zeroCounters } from "./counting.ts";
import * as queries from "./queries.ts";
import type { CountedEvent, Counters, Figures, SuppressedCount } from "./types.ts";

export { addSuppressed, insertSuppressed, SUPPRESSED } from "./queries.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const REASONS_PER_ISP = 5;
const KEYS_MAX = 500;

type Core = Pick<World, "db" | "clock">;

/** Raises the counters of these events. Must run in the transaction that records them. */
export async function countEvents(tx: Tx, events: readonly CountedEvent[]): Promise<void> {
  const counts = sumCounts(events);
  if (counts.length > 0) await queries.addCounts(tx, counts);
  const reasons = sumReasons(events);
  if (reasons.length > 0) await queries.addReasons(tx, reasons);
}

/**
 * Counts recipients of mail that was refused because all of them are suppressed: nothing else is stored of it, so there
 * is no transaction to share. Many calls of the same moment share a statement.
 */
export function suppressedCounter(world: Pick<World, "db">): (count: SuppressedCount) => Promise<void> {
  const add = coalesce<SuppressedCount, true>({
    keys_max: KEYS_MAX,
    lanes: 1,
    load: async (counts) => {
      await queries.addSuppressed(world.db, counts);
      return new Map(counts.map((count) => [count, true]));
    },
  });
  return async (count) => {
    await add(count);
  };
}

/** What became of a domain's mail from `from` until before `to` (whole hours), for warming to judge by. */
export async function figuresBetween(
  tx: Tx,
  orgId: string,
  domainId: string,
  period: { from: Date; to: Date },
): Promise<Figures> {
  const [row] = await queries.figures(tx, orgId, { domain_id: domainId, ...period });
  return row as Figures;
}

/** Counters with their rates: the row shape of all four answers. */
export type Metrics = Counters & Rates;

function withRates(counters: Counters): Metrics {
  return { ...counters, ...ratesOf(counters) };
}

/** The last `days` days, today included, in one row; 404 for a domain that is not the organization's. */
export async function summarize(world: Core, orgId: string, idOrName: string, days: number) {
  const { day, hour, end } = today(world);
  return world.db.asOrg(orgId, async (tx) => {
    const { id, domain } = await requireDomain(tx, orgId, idOrName);
    const period = { domain_id: id, from: back(day, days), to: end };
    const rows = await queries.sumBySpan(tx, orgId, "day", period);
    const [thisHour] = await queries.sumBySpan(tx, orgId, "hour", { ...period, from: hour });
    const last = rows.at(-1);
    return {
      domain_id: id,
      domain,
      period_days: days,
      metrics: { period_days: days, ...withRates(rows.reduce(add, zeroCounters())) },
      today_sent: last?.starts_at.getTime() === day.getTime() ? last.total_sent : 0,
      this_hour_sent: thisHour?.total_sent ?? 0,
    };
  });
}

function today({ clock }: Pick<World, "clock">) {
  const nowMs = clock.now();
  const day = dayOf(nowMs);
  return { day, hour: hourOf(nowMs), end: new Date(day.getTime() + DAY_MS) };
}

/** The first of the `days` days that end with `day`. */
function back(day: Date, days: number): Date {
  return new Date(day.getTime() - (days - 1) * DAY_MS);
}

function add(sum: Counters, row: Counters): Counters {
  const total = { ...sum };
  for (const name of Object.keys(sum) as (keyof Counters)[]) total[name] += row[name];
  return total;
}

/** One row a day, oldest first, days without mail too. */
export async function listDaily(world: Core, orgId: string, idOrName: string, days: number) {
  const { day, end } = today(world);
  const { from, ...named } = await readSpans(world, orgId, idOrName, { span: "day", from: back(day, days), to: end });
  const stats = fill(from, days, DAY_MS, named.rows).map(({ starts_at, ...row }) => ({
    date: starts_at.toISOString().slice(0, 10),
    ...row,
  }));
  return { domain_id: named.domain_id, domain: named.domain, days, stats };
}

/** One row an hour, oldest first, hours without mail too. */
export async function listHourly(world: Core, orgId: string, idOrName: string, hours: number) {
  const { hour } = today(world);
  const first = new Date(hour.getTime() - (hours - 1) * HOUR_MS);
  const to = new Date(hour.getTime() + HOUR_MS);
  const { from, ...named } = await readSpans(world, orgId, idOrName, { span: "hour", from: first, to });
  const stats = fill(from, hours, HOUR_MS, named.rows).map(({ starts_at, ...row }) => ({ hour: starts_at, ...row }));
  return { domain_id: named.domain_id, domain: named.domain, hours, stats };
}

type Spans = { span: "hour" | "day"; from: Date; to: Date };

async function readSpans(world: Core, orgId: string, idOrName: string, { span, from, to }: Spans) {
  return world.db.asOrg(orgId, async (tx) => {
    const { id, domain } = await requireDomain(tx, orgId, idOrName);
    const rows = await queries.sumBySpan(tx, orgId, span, { domain_id: id, from, to });
    return { domain_id: id, domain, from, rows };
  });
}

function fill(
  from: Date,
  count: number,
  everyMs: number,
  rows: (Counters & { starts_at: Date })[],
): (Metrics & { starts_at: Date })[] {
  const known = new Map(rows.map((row) => [row.starts_at.getTime(), row]));
  return Array.from({ length: count }, (_unused, index) => {
    const starts_at = new Date(from.getTime() + index * everyMs);
    return { ...withRates(known.get(starts_at.getTime()) ?? zeroCounters()), starts_at };
  });
}

/** One row a mailbox provider, recognised by the MX that answered; the largest first, with what bounced there most. */
export async function listIsps(world: Core, orgId: string, idOrName: string, days: number) {
  const { day, end } = today(world);
  return world.db.asOrg(orgId, async (tx) => {
    const { id, domain } = await requireDomain(tx, orgId, idOrName);
    const period = { domain_id: id, from: back(day, days), to: end };
    const rows = await queries.sumByIsp(tx, orgId, period);
    const reasons = Map.groupBy(await queries.topReasons(tx, orgId, period, REASONS_PER_ISP), ({ isp }) => isp);
    const isps = rows.map(({ isp, ...counters }) => ({
      isp,
      ...withRates(counters),
      top_bounce_reasons: (reasons.get(isp) ?? []).map(({ isp: _isp, ...reason }) => reason),
    }));
    return { domain_id: id, domain, days, isps };
  });
}
