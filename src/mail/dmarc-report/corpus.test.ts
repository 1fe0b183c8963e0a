// The published reports of four projects, in every packing they came in, against sums calculated by another reader.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parseMessage } from "../mime/parse-message.ts";
import { type ReadReport, readReport } from "./read-report.ts";
import { findReports } from "./report-mail.ts";
import type { AggregateReport } from "./types.ts";
import { makeZip } from "./zip.fixture.ts";

const DATA = resolve(dirname(), "../../../../shared/data");
const REPORTS = join(DATA, "dmarc-aggregate-reports");
const skip = existsSync(REPORTS) ? false : `${REPORTS} is not there`;

function dirname(): string {
  return fileURLToPath(new URL(".", import.meta.url));
}

type Expected = Record<string, unknown> & { reference_reader_failed?: string };
const expected = skip
  ? {}
  : (JSON.parse(readFileSync(join(REPORTS, "expected-summary.json"), "utf8")) as Record<string, Expected>);

async function readAny(name: string): Promise<AggregateReport> {
  const bytes = readFileSync(join(REPORTS, name));
  if (!name.endsWith(".eml")) {
    const read = await readReport(bytes);
    assert.equal(read.kind, "aggregate", `${name}: ${JSON.stringify(read)}`);
    return (read as { report: AggregateReport }).report;
  }
  const [first] = await readMail(bytes);
  assert.equal(first?.kind, "aggregate", `${name}: ${JSON.stringify(first)}`);
  return (first as { report: AggregateReport }).report;
}

async function readMail(bytes: Buffer): Promise<ReadReport[]> {
  const found = findReports(parseMessage(bytes));
  assert.equal(found.kind, "files", JSON.stringify(found));
  const read: ReadReport[] = [];
  if (found.kind === "files") for (const file of found.files) read.push(await readReport(file, found.allowance));
  return read;
}

function sumsOf(report: AggregateReport): Record<string, unknown> {
  const { records, policy } = report;
  const messages = (some: typeof records) => some.reduce((sum, { count }) => sum + count, 0);
  const words = new Set(records.map(({ disposition }) => disposition));
  return {
    org_name: report.org_name,
    report_id: report.report_id,
    begin: report.begin_s,
    end: report.end_s,
    domain: policy.domain,
    adkim: policy.adkim,
    aspf: policy.aspf,
    p: policy.p,
    sp: policy.sp,
    pct: policy.pct,
    records: records.length,
    messages: messages(records),
    by_disposition: Object.fromEntries(
      [...words].map((word) => [word, messages(records.filter(({ disposition }) => disposition === word))]),
    ),
    dkim_aligned_messages: messages(records.filter(({ dkim }) => dkim === "pass")),
    spf_aligned_messages: messages(records.filter(({ spf }) => spf === "pass")),
    distinct_source_ips: new Set(records.map(({ source_ip }) => source_ip)).size,
  };
}

function numbersOf(want: Expected): Record<string, unknown> {
  const number = (value: unknown) => (value === null ? null : Math.floor(Number(value)));
  return { ...want, begin: number(want.begin), end: number(want.end), pct: number(want.pct) };
}

describe("the published aggregate reports", { skip }, () => {
  for (const [name, want] of Object.entries(expected)) {
    if (!existsSync(join(REPORTS, name))) continue;
    if (want.reference_reader_failed) {
      it(`recovers what the strict reader could not read: ${name}`, async () => {
        const report = await readAny(name);
        assert.equal(report.records.length, 1);
        assert.equal(report.records[0]?.count, 1);
      });
      continue;
    }
    it(`sums up ${name}`, async () => assert.deepEqual(sumsOf(await readAny(name)), numbersOf(want)));
  }

  it("reads the same report from XML, gzip and ZIP", async () => {
    const name = "opendmarc/good.com!example.com!1337270400!1337356799.xml";
    const xml = readFileSync(join(REPORTS, name));
    const plain = await readReport(xml);
    assert.equal(plain.kind, "aggregate");
    assert.deepEqual(await readReport(gzipSync(xml)), plain);
    assert.deepEqual(await readReport(makeZip([{ name: "report.xml", content: xml }])), plain);
  });

  it("reads what has line ends behind it, packed or not", async () => {
    const xml = readFileSync(join(REPORTS, "opendmarc/good.com!example.com!1337270400!1337356799.xml"));
    const plain = await readReport(xml);
    for (const packed of [gzipSync(xml), makeZip([{ name: "report.xml", content: xml }])]) {
      for (const end of ["\n", "\r\n", "\r\n\r\n"]) {
        assert.deepEqual(await readReport(Buffer.concat([packed, Buffer.from(end)])), plain, JSON.stringify(end));
      }
    }
  });

  it("tells the two generations of the schema apart", async () => {
    const report = await readAny("parsedmarc/rfc9990-example.net!example.com!1700000000!1700086399.xml");
    assert.equal(report.schema, "rfc9990");
    assert.deepEqual(report.policy, {
      ...{ domain: "example.com", p: "reject", sp: "quarantine", np: "reject", adkim: "s", aspf: "s", pct: null },
      ...{ fo: "1", testing: true, discovery_method: "treewalk" },
    });
    assert.equal((await readAny("mail-auth/003.xml")).schema, "rfc7489");
  });
});

describe("failure reports and TLS reports", { skip }, () => {
  const failures = join(DATA, "dmarc-failure-reports");
  const names = [
    "DMARC Failure Report for domain.de (mail-from=sharepoint@domain.de, ip=10.10.10.10).eml",
    "[Netease DMARC Failure Report] Rent Reminder.eml",
  ];
  for (const name of names) {
    it(`takes no aggregate report for ${name.slice(0, 40)}`, async () => {
      const mail = findReports(parseMessage(readFileSync(join(failures, name))));
      assert.deepEqual(mail, { kind: "failure_report" });
    });
  }

  it("finds no report in a failure report of plain text", async () => {
    const bytes = readFileSync(join(failures, "exim_plain_text_only_no_arf_part.eml"));
    assert.deepEqual(findReports(parseMessage(bytes)), {
      kind: "refused",
      reason: "the mail holds no report",
    });
  });

  for (const name of ["mail-auth/rpt01.eml", "mail-auth/rpt02.eml", "mox/example.eml"]) {
    it(`recognises the TLS report in ${name}`, async () => {
      const read = await readMail(readFileSync(join(DATA, "tls-rpt", name)));
      assert.deepEqual(
        read.map(({ kind }) => kind),
        ["tls"],
      );
    });
  }

  it("reads the example of RFC 8460 field by field", async () => {
    const read = await readReport(readFileSync(join(DATA, "tls-rpt/parsedmarc/rfc8460.json")));
    assert.equal(read.kind, "tls");
    if (read.kind !== "tls") return;
    assert.equal(read.report.organization_name, "Company-X");
    assert.equal(read.report.report_id, "5065427c-23d3-47ca-b6e0-946ea0e8c4be");
    assert.equal(new Date(read.report.begin_ms).toISOString(), "2016-04-01T00:00:00.000Z");
    const [policy] = read.report.policies;
    assert.equal(policy?.policy_domain, "company-y.example");
    assert.deepEqual(policy?.mx_host, ["*.mail.company-y.example"]);
    assert.equal(policy?.total_successful_session_count, 5326);
    assert.equal(policy?.total_failure_session_count, 303);
    assert.deepEqual(
      policy?.failure_details.map((failure) => [failure.result_type, failure.failed_session_count]),
      [
        ["certificate-expired", 100],
        ["starttls-not-supported", 200],
        ["validation-failure", 3],
      ],
    );
  });
});
