import assert from "node:assert/strict";
import { test } from "node:test";
import { readReport } from "../mail/dmarc-report/read-report.ts";
import { type GivenReport, reportXml } from "../mail/dmarc-report/report.fixture.ts";
import { dayShares, sourcesOfDay, splitDays } from "./split-days.ts";

const DAY = 86_400;
const MONDAY = Date.parse("2026-11-16T00:00:00Z") / 1_000;

async function split(given: GivenReport) {
  const read = await readReport(Buffer.from(reportXml(given)));
  assert.equal(read.kind, "aggregate", JSON.stringify(read));
  const { report } = read as Extract<typeof read, { kind: "aggregate" }>;
  const days = await splitDays(report);
  const sources = await Promise.all(days.days.map((_, at) => sourcesOfDay(report, days, at)));
  return { days: days.days, sources: sources.flat() };
}

test("a report of up to 24 hours belongs to the day it begins on", () => {
  assert.deepEqual(dayShares(MONDAY, MONDAY + DAY), [{ day: "2026-11-16", share: 1 }]);
  assert.deepEqual(dayShares(MONDAY + 3_600, MONDAY + 3_600 + DAY), [{ day: "2026-11-16", share: 1 }]);
});

test("a longer report is split by its share of each day", () => {
  const shares = dayShares(MONDAY + DAY / 2, MONDAY + 2 * DAY);
  assert.deepEqual(
    shares.map(({ day }) => day),
    ["2026-11-16", "2026-11-17"],
  );
  assert.deepEqual(
    shares.map(({ share }) => Math.round(share * 3)),
    [1, 2],
  );
});

test("messages stay whole, and their sum exact", async () => {
  const { days } = await split({ begin_s: MONDAY, end_s: MONDAY + 3 * DAY, records: [{ count: 100 }] });
  assert.deepEqual(
    days.map(({ total }) => total),
    [34, 33, 33],
  );
});

test("a thousand records of one message spread as evenly as one of a thousand", async () => {
  const records = Array.from({ length: 999 }, (_, at) => ({
    ip: `192.0.2.${at % 250}`,
    dkim: at % 2 ? "pass" : "fail",
  }));
  const { days, sources } = await split({ begin_s: MONDAY, end_s: MONDAY + 3 * DAY, records });
  // Rounded for each kind of result apart, and there are two.
  for (const day of days) assert.ok(Math.abs(day.total - 333) <= 2 && day.reports === 1, String(day.total));
  for (const day of days) assert.ok(Math.abs(day.pass_dkim - 499 / 3) < 1.5, String(day.pass_dkim));
  assert.equal(
    sources.reduce((sum, { total }) => sum + total, 0),
    999,
  );
});

test("a source has the names of its records, ten of each", async () => {
  const dkim_results = Array.from({ length: 15 }, (_, at) => ({
    domain: `d${at}.example`,
    result: at ? "fail" : "pass",
  }));
  const { sources } = await split({
    records: [{ dkim_results, spf_domain: "bounce.example", reason: "mailing_list" }],
  });
  const [source] = sources;
  assert.equal(source?.dkim_domains.length, 10);
  assert.deepEqual(source?.dkim_passed, ["s1._domainkey.d0.example"]);
  assert.deepEqual(source?.spf_passed, ["bounce.example"]);
  assert.deepEqual(source?.reporters, ["reporter.example"]);
  assert.equal(source?.forwarded, 1);
});
