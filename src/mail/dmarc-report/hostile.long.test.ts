// Hostile and broken files: every limit has a case beyond it, and nothing throws.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { createReportBuilder, RECORDS_MAX } from "./build-report.ts";
import { readReport } from "./read-report.ts";
import { reportXml } from "./report.fixture.ts";
import type { AggregateReport } from "./types.ts";
import { UNPACKED_BYTES_MAX, unpack } from "./unpack.ts";
import { makeZip } from "./zip.fixture.ts";

const MIB = 1024 * 1024;

async function reasonOf(bytes: Buffer | string): Promise<string> {
  const read = await readReport(Buffer.from(bytes as string));
  assert.equal(read.kind, "refused", `was read: ${JSON.stringify(read).slice(0, 200)}`);
  return (read as { reason: string }).reason;
}

async function reportOf(bytes: Buffer | string): Promise<AggregateReport> {
  const read = await readReport(Buffer.from(bytes as string));
  assert.equal(read.kind, "aggregate", JSON.stringify(read));
  return (read as { report: AggregateReport }).report;
}

describe("packings that do harm", () => {
  it("stops a gzip bomb at 100 MiB, without holding what it unpacks to", async () => {
    const bomb = gzipSync(Buffer.alloc(110 * MIB, " "));
    const before = process.memoryUsage().rss;
    let taken = 0;
    const reason = await unpack(bomb, { bytes_left: UNPACKED_BYTES_MAX }, (piece) => {
      taken += piece.length;
      return null;
    });
    assert.equal(reason, "the file unpacks to more than 100 MiB");
    assert.ok(taken > 99 * MIB && taken <= 100 * MIB, String(taken));
    assert.ok(process.memoryUsage().rss - before < 64 * MIB);
    assert.match(await reasonOf(gzipSync(Buffer.concat([Buffer.from("<feedback>"), Buffer.alloc(MIB)]))), /too long/);
  });

  it("has one allowance for all files of a mail", async () => {
    const packed = gzipSync(reportXml());
    const allowance = { bytes_left: Buffer.byteLength(reportXml()) * 2 + 10 };
    assert.equal((await readReport(packed, allowance)).kind, "aggregate");
    assert.equal((await readReport(Buffer.from(reportXml()), allowance)).kind, "aggregate");
    assert.deepEqual(await readReport(packed, allowance), {
      kind: "refused",
      reason: "the file unpacks to more than 100 MiB",
    });
  });

  it("takes a large report that is packed very well, and keeps what its records share once", async () => {
    const record = "<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>";
    const many = reportXml({ records: [] }).replace("</feedback>", `${record.repeat(60_000)}</feedback>`);
    const packed = gzipSync(many);
    assert.ok(many.length > packed.length * 200, "is no test of the ratio");
    assert.equal((await reportOf(packed)).records.length, 60_000);
  });

  it("refuses what is much and no record: 100 KB can unpack to 25,000,000 elements", async () => {
    const full = (junk: string, records: number) =>
      gzipSync(
        reportXml({ records: Array.from({ length: records }, () => ({})) }).replace(
          "</feedback>",
          `${junk}</feedback>`,
        ),
      );
    for (const junk of ["<a/>", "<!---->", "<?a b?>", "<![CDATA[]]>", "<record><row/></record>"]) {
      assert.equal(
        await reasonOf(full(junk.repeat(20_000), 1)),
        "the report holds too much that is not a record",
        junk,
      );
    }
    assert.equal((await reportOf(full("<a/>".repeat(9_000), 1))).records.length, 1);
    assert.equal((await reportOf(full("<extension/>".repeat(15_000), 100))).records.length, 100);
  });

  it("refuses an archive whose member is larger than it says", async () => {
    const content = Buffer.from(reportXml() + " ".repeat(10_000));
    assert.match(
      await reasonOf(makeZip([{ name: "a.xml", content, claimed_size: 100 }])),
      /ZIP archive cannot be read/,
    );
  });

  it("refuses archives of two files and of ten thousand", async () => {
    const content = Buffer.from(reportXml());
    const two = ["a.xml", "b.xml"].map((name) => ({ name, content }));
    assert.equal(await reasonOf(makeZip(two)), "the archive holds more than one file");
    const many = Array.from({ length: 10_000 }, (_, at) => ({ name: `${at}.xml`, content: Buffer.from("x") }));
    assert.equal(await reasonOf(makeZip(many)), "the archive holds more than one file");
  });

  it("does not count folders and what macOS adds", async () => {
    const members = [
      { name: "reports/", content: Buffer.alloc(0) },
      { name: "reports/a.xml", content: Buffer.from(reportXml()) },
      { name: "__MACOSX/reports/._a.xml", content: Buffer.from("x") },
    ];
    assert.equal((await reportOf(makeZip(members))).records.length, 1);
  });

  it("refuses a path that leads out of its folder", async () => {
    const member = { name: "../../etc/x.xml", content: Buffer.from(reportXml()) };
    assert.match(await reasonOf(makeZip([member])), /ZIP archive cannot be read/);
  });

  it("does not open an archive within an archive", async () => {
    const inner = makeZip([{ name: "a.xml", content: Buffer.from(reportXml()) }]);
    const nested = makeZip([{ name: "a.zip", content: inner }]);
    assert.equal(await reasonOf(nested), "this is neither an XML nor a JSON report");
    assert.equal(await reasonOf(gzipSync(gzipSync(reportXml()))), "this is neither an XML nor a JSON report");
  });

  it("refuses what is cut off or damaged, however it is packed", async () => {
    const packed = gzipSync(reportXml());
    assert.match(await reasonOf(packed.subarray(0, -20)), /damaged or cut off/);
    assert.match(
      await reasonOf(Buffer.from(packed.with(Math.floor(packed.length / 2), 0xff))),
      /damaged|badly|cut off|XML|report/,
    );
    const zip = makeZip([{ name: "a.xml", content: Buffer.from(reportXml()) }]);
    assert.match(await reasonOf(zip.subarray(0, -30)), /ZIP archive cannot be read/);
    assert.equal(await reasonOf(reportXml().slice(0, -30)), "the report is cut off");
    assert.equal(await reasonOf(""), "the file is empty");
  });

  it("takes 25 MiB and not a byte more", async () => {
    const xml = reportXml();
    const full = xml.replace("</feedback>", `${"<!-- filler -->\n".repeat(100)}</feedback>`);
    const padded = Buffer.concat([Buffer.from(full), Buffer.alloc(25 * MIB - full.length + 1, "\n")]);
    assert.equal(await reasonOf(padded), "the file is larger than 25 MiB");
  });
});

describe("XML that does harm", () => {
  const body = reportXml().split("?>")[1]!;
  const hostile = new Map([
    ["an external entity", `<?xml version="1.0"?><!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]>${body}`],
    ["a parameter entity", `<!DOCTYPE f [<!ENTITY % x SYSTEM "http://127.0.0.1/x.dtd"> %x;]>${body}`],
    ["an external DTD", `<!DOCTYPE feedback SYSTEM "http://127.0.0.1/x.dtd">${body}`],
    ["a public DTD", `<!DOCTYPE feedback PUBLIC "-//X//Y" "http://127.0.0.1/x.dtd">${body}`],
    [
      "a billion laughs",
      `<!DOCTYPE f [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>${body.replace("r-1", "&c;")}`,
    ],
    ["a quadratic blow-up", `<!DOCTYPE f [<!ENTITY a "${"a".repeat(20_000)}">]>${body}`],
  ]);
  for (const [what, xml] of hostile) {
    it(`refuses ${what}`, async () => assert.match(await reasonOf(xml), /document type/));
  }

  it("never expands an entity that nobody declared", async () => {
    const report = await reportOf(reportXml({ org: "a&xxe;b" }));
    assert.equal(report.org_name, "a&xxe;b");
    assert.match(report.defects.join(), /badly formed/);
  });

  it("reads a bare ampersand as what it is, wherever it stands and whatever follows", async () => {
    const comment = "seen at https://reporter.example/?a=1&b=2; R&D & more; &";
    const records = [{ reason: "other" }, { ip: "192.0.2.2", count: 7 }];
    const xml = reportXml({ org: "Smith & Co", records }).replace("as asked", comment);
    const report = await reportOf(xml);
    assert.equal(report.org_name, "Smith & Co");
    assert.equal(report.records[0]?.reasons[0]?.comment, comment);
    assert.deepEqual(
      report.records.map(({ source_ip, count }) => [source_ip, count]),
      [
        ["192.0.2.1", 1],
        ["192.0.2.2", 7],
      ],
    );
    assert.deepEqual(report.defects, ["the XML is badly formed in 5 places"]);
    const section = await reportOf(reportXml({ org: "C &amp; D &#38; <![CDATA[A & B]]>" }));
    assert.deepEqual([section.org_name, section.defects.length], ["C & D & A & B", 1]);
    // Pieces of the file end anywhere, within a reference too.
    for (let fill = 32_700; fill < 32_780; fill += 1) {
      const padded = reportXml({ org: "A & B &amp; C&D" }).replace(
        "<feedback>",
        `<!--${"x".repeat(fill - 170)}--><feedback>`,
      );
      assert.equal((await reportOf(padded)).org_name, "A & B & C&D", String(fill));
    }
  });

  it("refuses a document that nests deeper than 20 levels", async () => {
    assert.match(await reasonOf(`<feedback>${"<a>".repeat(30)}`), /deeper than 20 levels/);
    assert.match(await reasonOf(`<feedback>${"<a>".repeat(1_000_000)}`), /deeper than 20 levels/);
  });

  it("refuses an endless text, name, attribute, comment and CDATA section", async () => {
    const long = "x".repeat(2 * MIB);
    for (const xml of [
      `<feedback><a>${long}`,
      `<feedback><${long}`,
      `<feedback><a b="${long}`,
      `<feedback><!--${long}`,
    ]) {
      assert.match(await reasonOf(xml), /too long/, xml.slice(0, 20));
    }
    assert.match(await reasonOf(`<feedback><![CDATA[${long}`), /too long/);
    assert.match(await reasonOf(`<!DOCTYPE ${long}`), /too long|document type/);
    assert.match(await reasonOf(`<feedback><a ${"b='' ".repeat(200)}>`), /too many attributes|not XML/);
  });

  it("refuses one record more than 400,000, valid or not", () => {
    const builder = createReportBuilder();
    for (let at = 0; at < RECORDS_MAX; at += 1) {
      assert.equal(builder.open("record"), null);
      if (at % 2 === 0) builder.close("record/row/source_ip", "192.0.2.1");
      builder.close("record/row/count", "1");
      assert.equal(builder.close("record", ""), null);
    }
    assert.equal(builder.open("record"), "the report holds more than 400000 records");
  });

  it("refuses what would not fit into memory, whatever it is made of", () => {
    const builder = createReportBuilder();
    const comment = "x".repeat(200);
    let refused: string | null = null;
    let records = 0;
    for (; refused === null && records < RECORDS_MAX; records += 1) {
      builder.open("record");
      builder.close("record/row/source_ip", "192.0.2.1");
      builder.close("record/row/count", "1");
      for (let group = 0; group < 20; group += 1) {
        builder.open("record/auth_results/dkim");
        builder.close("record/auth_results/dkim/domain", "a.example");
        builder.close("record/auth_results/dkim/human_result", `${comment}${records}.${group}`);
      }
      refused = builder.close("record", "");
    }
    assert.equal(refused, "the report holds too much");
    assert.ok(records > 10_000 && records < 40_000, String(records));
  });

  it("keeps the event loop free while it reads a large report", async () => {
    const records = Array.from({ length: 15_000 }, (_, at) => ({
      ip: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
    }));
    const xml = Buffer.from(reportXml({ records }));
    let longest = 0;
    let turn = startProcessorTime();
    const timer = setInterval(() => {
      longest = Math.max(longest, turn());
      turn = startProcessorTime();
    }, 1);
    assert.equal((await reportOf(gzipSync(xml))).records.length, 15_000);
    clearInterval(timer);
    assert.ok(longest < 250, `one turn of the event loop took ${longest} ms of the processor`);
  });

  it("refuses what is no report at all", async () => {
    assert.equal(await reasonOf("hello"), "this is neither an XML nor a JSON report");
    assert.match(await reasonOf("<html><body>hello</body></html>"), /no <feedback>/);
    assert.match(await reasonOf('{"a": 1}'), /no SMTP TLS report/);
    assert.equal(await reasonOf(`{"a": ${"[".repeat(5_000)}`), "the TLS report holds too much");
    for (const unit of ["{},", "1,", "[[],[]],"]) {
      const tls = `{"report-id":"1","policies":[${unit.repeat(100_000)}0]}`;
      assert.equal(await reasonOf(gzipSync(tls)), "the TLS report holds too much", unit);
    }
    assert.match(await reasonOf(`<${"<".repeat(5_000)}`), /not XML|no <feedback>/);
  });
});

describe("values that make no sense", () => {
  it("leaves out records with impossible counts and addresses, and keeps the others", async () => {
    const records = [
      ...["-1", "1e9", "1".repeat(31), "", "0x10", "2147483648"].map((count) => ({ count })),
      ...["999.1.1.1", "localhost", "", "fe80::1%eth0", "1.2.3"].map((ip) => ({ ip })),
      { ip: "192.0.2.7", count: 5 },
    ];
    const report = await reportOf(reportXml({ records }));
    assert.deepEqual(
      report.records.map(({ source_ip, count }) => [source_ip, count]),
      [["192.0.2.7", 5]],
    );
    assert.equal(report.rejected_records, 11);
    assert.deepEqual(report.defects, [
      "left out 6 of the records: each has no valid count",
      "left out 5 of the records: each has no valid source_ip",
    ]);
  });

  it("writes an address in one form", async () => {
    const records = [{ ip: "2001:DB8:0:0:0:0:0:1" }, { ip: "::ffff:192.0.2.1" }];
    const report = await reportOf(reportXml({ records }));
    assert.deepEqual(
      report.records.map(({ source_ip }) => source_ip),
      ["2001:db8::1", "192.0.2.1"],
    );
  });

  it("knows a domain by its name with a final dot, in a DMARC report and in a TLS report", async () => {
    assert.equal((await reportOf(reportXml({ domain: "Example.COM." }))).policy.domain, "example.com");
    const tls = {
      "report-id": "1",
      "date-range": { "start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z" },
      policies: [{ policy: { "policy-type": "sts", "policy-domain": "Example.COM." } }],
    };
    const read = await readReport(Buffer.from(JSON.stringify(tls)));
    assert.equal(read.kind === "tls" && read.report.policies[0]?.policy_domain, "example.com");
  });

  it("refuses a report without identity or with an impossible span", async () => {
    assert.match(await reasonOf(reportXml({ id: "" })), /no report_id/);
    assert.match(await reasonOf(reportXml({ domain: "not a domain" })), /domain of the policy/);
    assert.match(await reasonOf(reportXml({ begin_s: "99999999999", end_s: 5 })), /cannot be read/);
    assert.match(await reasonOf(reportXml({ begin_s: 253_402_300_799 })), /cannot be read/);
    assert.match(await reasonOf(reportXml({ begin_s: 1_700_000_000, end_s: 1_600_000_000 })), /up to 32 days/);
    assert.match(await reasonOf(reportXml({ begin_s: 1_700_000_000, end_s: 1_710_000_000 })), /up to 32 days/);
  });

  it("understands results in upper case, an empty reason and namespaces with a prefix", async () => {
    const shouted = await reportOf(reportXml({ records: [{ dkim: "PASS", spf: "FAIL", disposition: "REJECT" }] }));
    const [record] = shouted.records;
    assert.deepEqual([record?.dkim, record?.spf, record?.disposition], ["pass", "fail", "reject"]);
    const empty = await reportOf(reportXml().replace("</spf>", "</spf><reason/>"));
    assert.deepEqual(empty.records[0]?.reasons, []);
    const prefixed = reportXml()
      .replace(/<(\/?)([a-z])/g, "<$1d:$2")
      .replace("<d:feedback", '<d:feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0"');
    assert.equal((await reportOf(prefixed)).schema, "rfc9990");
  });

  it("keeps texts short, on one line and without control characters", async () => {
    const report = await reportOf(reportXml({ org: `a&#10;b\u0000\u202e${"x".repeat(5_000)}` }));
    assert.ok(report.org_name.length <= 255);
    assert.match(report.org_name, /^a b[^\p{Cc}\p{Cf}]+$/u);
  });

  it("reads UTF-16 and Latin-1 by their marks", async () => {
    const xml = reportXml({ org: "Zürich" });
    const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(xml, "utf16le")]);
    assert.equal((await reportOf(utf16)).org_name, "Zürich");
    const unmarked = Buffer.from(xml.replace("UTF-8", "UTF-16"), "utf16le");
    assert.equal((await reportOf(unmarked)).org_name, "Zürich");
    assert.equal((await reportOf(Buffer.from(unmarked).swap16())).org_name, "Zürich");
    const latin = Buffer.from(xml.replace("UTF-8", "ISO-8859-1"), "latin1");
    assert.equal((await reportOf(latin)).org_name, "Zürich");
    const wrong = Buffer.from(xml, "latin1");
    assert.equal((await reportOf(wrong)).org_name, "Z\ufffdrich");
  });

  it("reads every one-byte set by its name, and what names none that there is as UTF-8", async () => {
    const named = (label: string) => reportOf(reportXml({ org: "plain" }).replace("UTF-8", label));
    const parts = Array.from({ length: 20 }, (_, at) => at);
    const labels = [
      ...parts.map((at) => `iso-8859-${at}`),
      ...parts.map((at) => `windows-${1250 + at}`),
      "ISO-8859-99",
    ];
    for (const label of [...labels, "windows-874", "us-ascii", "latin1", "koi8-r", "koi8-u", "utf-16", "hex", "x"]) {
      assert.equal((await named(label)).org_name, "plain", label);
    }
    const cyrillic = Buffer.from(reportXml({ org: "\xcf" }).replace("UTF-8", "windows-1251"), "latin1");
    assert.equal((await reportOf(cyrillic)).org_name, "П");
  });
});
