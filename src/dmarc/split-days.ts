// Puts the messages of a report on days (UTC), pure. A report of up to 24 hours belongs to the day it begins on; a longer one
// is split by the share of its span on each day. Messages stay whole: what rounding takes from a day it gets back with the
// next record, so that a thousand records of one message spread as evenly as one of a thousand.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AggregateReport, ReportRecord } from "../mail/dmarc-report/types.ts";
import type { DayRow, DaySourceRow } from "./types.ts";

const DAY_S = 86_400;
const NAMES_MAX = 10;
const FORWARDED = new Set(["forwarded", "trusted_forwarder", "mailing_list"]);

const RECORDS_A_TURN = 2_000;

/** `counts`: for each record, how many of its messages are on each of the days. */
export type Split = { days: DayRow[]; counts: Uint32Array };

/** The sums of a report by day. A large report is some hundred thousand records: others run in between. */
export async function splitDays(report: AggregateReport): Promise<Split> {
  const shares = dayShares(report.begin_s, report.end_s);
  const days = shares.map(({ day }) => emptyDay(day));
  const counts = new Uint32Array(report.records.length * shares.length);
  const debts = new Map<string, number[]>();
  for (const [index, record] of report.records.entries()) {
    const kind = `${record.dkim} ${record.spf} ${record.disposition}`;
    const debt = debts.get(kind) ?? shares.map(() => 0);
    debts.set(kind, debt);
    const given = spread(record.count, shares, debt);
    counts.set(given, index * shares.length);
    for (const [at, count] of given.entries()) if (count > 0) addToDay(days[at]!, record, count);
    if (index % RECORDS_A_TURN === RECORDS_A_TURN - 1) await nextTurn();
  }
  return { days, counts };
}

/** The sums of one day by source: of a month they would not be held together. `at` is the day's place in `days`. */
export async function sourcesOfDay(report: AggregateReport, split: Split, at: number): Promise<DaySourceRow[]> {
  const { day } = split.days[at]!;
  const rows = new Map<string, DaySourceRow>();
  for (const [index, record] of report.records.entries()) {
    const count = split.counts[index * split.days.length + at]!;
    if (count > 0) addToSource(rows, day, { report, record, count });
    if (index % RECORDS_A_TURN === RECORDS_A_TURN - 1) await nextTurn();
  }
  return [...rows.values()];
}

type Share = { day: string; share: number };

/** The days of a span with the part of it that lies on each; the end is not part of it. */
export function dayShares(beginS: number, endS: number): Share[] {
  if (endS - beginS <= DAY_S) return [{ day: dayOf(beginS), share: 1 }];
  const shares: Share[] = [];
  for (let start = beginS; start < endS; ) {
    const end = Math.min(endS, (Math.floor(start / DAY_S) + 1) * DAY_S);
    shares.push({ day: dayOf(start), share: (end - start) / (endS - beginS) });
    start = end;
  }
  return shares;
}

/** The UTC day of a time in seconds as `2026-11-20`. */
export function dayOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(0, 10);
}

/** The Monday of the first whole week of the days from `from` to `to`, and the Monday behind the last; equal: there is none. */
export function wholeWeeks(
  { from, to }: { from: string; to: string },
  isLastWhole: boolean,
): { week: string; after: string } {
  const [first, last] = [dayNumber(from), dayNumber(to)];
  const week = mondayOf(first + 6);
  const after = isLastWhole ? mondayOf(last) + 7 : mondayOf(last + 1);
  const none = last + 1;
  return week < after ? { week: dayAt(week), after: dayAt(after) } : { week: dayAt(none), after: dayAt(none) };
}

function dayNumber(day: string): number {
  return Date.parse(day) / (DAY_S * 1_000);
}

function dayAt(number: number): string {
  return dayOf(number * DAY_S);
}

/** 1 January 1970 was a Thursday. */
function mondayOf(number: number): number {
  return number - ((number + 3) % 7);
}

/** Whole messages by day, together exactly `count`; `debt` is what each day is owed by earlier records. */
function spread(count: number, shares: Share[], debt: number[]): number[] {
  if (shares.length === 1) return [count];
  const given = shares.map(({ share }, at) => {
    const whole = Math.floor(count * share);
    debt[at]! += count * share - whole;
    return whole;
  });
  for (let left = count - given.reduce((sum, whole) => sum + whole, 0); left > 0; left -= 1) {
    const neediest = debt.indexOf(Math.max(...debt));
    given[neediest]! += 1;
    debt[neediest]! -= 1;
  }
  return given;
}

function emptyDay(day: string): DayRow {
  return {
    ...{ day, reports: 1, total: 0, pass_dkim: 0, pass_spf: 0, aligned: 0, both_aligned: 0 },
    ...{ disposition_none: 0, disposition_pass: 0, disposition_quarantine: 0, disposition_reject: 0 },
  };
}

function addToDay(row: DayRow, record: ReportRecord, count: number): void {
  const [dkim, spf] = [record.dkim === "pass", record.spf === "pass"];
  row.total += count;
  if (dkim) row.pass_dkim += count;
  if (spf) row.pass_spf += count;
  if (dkim || spf) row.aligned += count;
  if (dkim && spf) row.both_aligned += count;
  row[`disposition_${record.disposition}`] += count;
}

type Part = { report: AggregateReport; record: ReportRecord; count: number };

function addToSource(rows: Map<string, DaySourceRow>, day: string, { report, record, count }: Part): void {
  const row = rows.get(record.source_ip) ?? emptySource(day, record.source_ip, report.org_name);
  rows.set(record.source_ip, row);
  const [dkim, spf] = [record.dkim === "pass", record.spf === "pass"];
  row.total += count;
  if (dkim) row.pass_dkim += count;
  if (spf) row.pass_spf += count;
  if (dkim || spf) row.aligned += count;
  if (record.reasons.some(({ type }) => FORWARDED.has(type))) row.forwarded += count;
  for (const { domain, selector, result } of record.dkim_results) {
    addName(row.dkim_domains, domain);
    if (result === "pass" && selector !== null) addName(row.dkim_passed, `${selector}._domainkey.${domain}`);
  }
  for (const { domain, result } of record.spf_results) {
    addName(row.spf_domains, domain);
    if (result === "pass") addName(row.spf_passed, domain);
  }
}

function emptySource(day: string, source_ip: string, reporter: string): DaySourceRow {
  return {
    ...{ day, source_ip, total: 0, pass_dkim: 0, pass_spf: 0, aligned: 0, forwarded: 0 },
    ...{ dkim_domains: [], dkim_passed: [], spf_domains: [], spf_passed: [], reporters: [reporter] },
  };
}

function addName(names: string[], name: string): void {
  if (names.length < NAMES_MAX && !names.includes(name)) names.push(name);
}
