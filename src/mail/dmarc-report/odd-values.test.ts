// Values that reporters write otherwise than their RFC says, and that can only mean one thing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readReport } from "./read-report.ts";
import { reportXml } from "./report.fixture.ts";

test("the dates of an aggregate report may be RFC 3339", async () => {
  const span = async (begin_s: string, end_s: string) => {
    const read = await readReport(Buffer.from(reportXml({ begin_s, end_s })));
    return read.kind === "aggregate" ? [read.report.begin_s, read.report.end_s] : read.kind;
  };
  assert.deepEqual(await span("1700000000.0", "1700086399"), [1_700_000_000, 1_700_086_399]);
  assert.deepEqual(await span("2023-11-14T22:13:20Z", "2023-11-15 23:13:19.5+01:00"), [1_700_000_000, 1_700_086_399]);
  for (const wrong of ["2023-11-14", "2023-13-14T22:13:20Z", "1960-01-01T00:00:00Z", "yesterday"]) {
    assert.equal(await span(wrong, "1700086399"), "refused", wrong);
  }
});

test("the sessions of a TLS report may be texts", async () => {
  const report = (sessions: unknown) => ({
    "organization-name": "x",
    "date-range": { "start-datetime": "2023-11-14T00:00:00Z", "end-datetime": "2023-11-14T23:59:59Z" },
    "report-id": "1",
    policies: [{ policy: { "policy-type": "sts" }, summary: { "total-successful-session-count": sessions } }],
  });
  const counted = async (sessions: unknown) => {
    const read = await readReport(Buffer.from(JSON.stringify(report(sessions))));
    return read.kind === "tls" ? read.report.policies[0]?.total_successful_session_count : read.kind;
  };
  assert.equal(await counted("5326"), 5_326);
  for (const wrong of ["-1", "1e3", "", "many", null, 1.5]) assert.equal(await counted(wrong), 0, String(wrong));
});
