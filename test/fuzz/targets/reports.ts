// Files and mails that machines send us: DMARC and TLS reports in their packings, bounces, complaints, suppression lists.
import assert from "node:assert/strict";
import { isIP } from "node:net";
import { gzipSync } from "node:zlib";
import { parse as parseCsv } from "csv-parse/sync";
import { parseAddress } from "../../../src/mail/address.ts";
import { complaintRecipientsMax, parseComplaint, reportedMax } from "../../../src/mail/arf/arf.ts";
import { RECORDS_MAX } from "../../../src/mail/dmarc-report/build-report.ts";
import { readReport } from "../../../src/mail/dmarc-report/read-report.ts";
import { reportXml } from "../../../src/mail/dmarc-report/report.fixture.ts";
import { UNPACKED_BYTES_MAX, unpack } from "../../../src/mail/dmarc-report/unpack.ts";
import { makeZip } from "../../../src/mail/dmarc-report/zip.fixture.ts";
import { parseBounce } from "../../../src/mail/dsn/dsn.ts";
import { recipientsMax } from "../../../src/mail/dsn/recipients.ts";
import { parseTlsReport } from "../../../src/mail/tls-report/read-report.ts";
import { createCsvReader, FIELDS_MAX } from "../../../src/suppressions/import/csv.ts";
import { createImportReader, type ImportRow } from "../../../src/suppressions/import/import-reader.ts";
import { createJsonReader, type JsonRecord, RECORD_CHARS_MAX } from "../../../src/suppressions/import/json-records.ts";
import { chanceOf } from "../../faults/seeded.ts";
import { drawFrom, randomBytes } from "../draw.ts";
import { assertOneLine, assertSameBytes, assertStorable, assertStorableAll, assertUnpolluted } from "../invariants.ts";
import type { Target } from "../target.ts";

const XML_WORDS = [
  ...[
    "<record>",
    "</record>",
    "<row>",
    "<count>1</count>",
    "<source_ip>",
    "<feedback>",
    '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
  ],
  ...[
    "&b;",
    "&#x0;",
    "&lt;",
    "<![CDATA[",
    "]]>",
    '<?xml version="1.0" encoding="UTF-16"?>',
    "<!--",
    "-->",
    '<a:b xmlns:a="c">',
    "<p>reject</p>",
  ],
];

const dmarcXml: Target = {
  name: "dmarc-xml",
  holds:
    "a report is refused in a sentence or has bounded records with real addresses and counts; no entity is ever expanded",
  seeds: { files: ["dmarc"], shared: ["dmarc-aggregate-reports/**/*.xml"] },
  words: XML_WORDS,
  bytes_max: 256 * 1_024,
  async check(input) {
    const read = await readReport(input);
    if (read.kind === "refused") {
      assertOneLine("reason", read.reason);
      assert.ok(read.reason.length <= 500);
      return read.reason.replace(/\d+|'.*'/g, "").slice(0, 60);
    }
    assertStorableAll("report", read.report);
    if (read.kind === "tls") return "tls";
    const { report } = read;
    assert.ok(!/<!ENTITY/i.test(input.toString("latin1")) || !JSON.stringify(report).includes("root:"));
    assert.ok(report.records.length <= RECORDS_MAX && report.begin_s <= report.end_s);
    for (const record of report.records) {
      assert.notEqual(isIP(record.source_ip), 0);
      assert.ok(Number.isSafeInteger(record.count) && record.count >= 0);
    }
    return `${report.schema} ${report.defects.sort().join(" ").slice(0, 100)} ${Math.min(report.records.length, 3)}`;
  },
};

const packing: Target = {
  name: "report-packing",
  holds: "gzip and ZIP give back what was packed, and damaged or lying archives what deflate can hold at most",
  seeds: { files: ["packed"], shared: ["dmarc-aggregate-reports/**/*.{gz,zip}", "tls-rpt/**/*.gz"] },
  words: ["PK\x03\x04", "PK\x01\x02", "PK\x05\x06", "\x1f\x8b\x08", "\0\0\0\0", "\xff\xff\xff\xff"],
  bytes_max: 32_768,
  async check(input) {
    const taken = await unpackAll(input);
    assert.ok(taken.bytes.length <= input.length * 1_032 + 65_536);
    if (input.length > 0) {
      assertSameBytes("gzip", (await unpackAll(gzipSync(input))).bytes, input);
      assertSameBytes("zip", (await unpackAll(makeZip([{ name: "a.xml", content: input }]))).bytes, input);
    }
    const lying = await unpackAll(makeZip([{ name: "a.xml", content: input, claimed_size: input.length + 1 }]));
    assert.notEqual(lying.reason, null, "an archive that lies about its size is taken");
    return (taken.reason ?? "whole").replace(/\d+|0x[0-9a-f]+/g, "").slice(0, 80);
  },
};

async function unpackAll(packed: Buffer): Promise<{ reason: string | null; bytes: Buffer }> {
  const pieces: Buffer[] = [];
  const reason = await unpack(packed, { bytes_left: UNPACKED_BYTES_MAX }, (piece) => {
    pieces.push(Buffer.from(piece));
    return null;
  });
  return { reason, bytes: Buffer.concat(pieces) };
}

const dmarcBuild: Target = {
  name: "dmarc-report",
  holds: "a well-formed report comes out with the sources, counts and results that were written",
  seeds: {},
  bytes_max: 512,
  generate: (chance) => randomBytes(chance, 200),
  async check(input) {
    const draw = drawFrom(input);
    const records = draw.list(6, () => ({
      ip: draw.pick(["192.0.2.1", "2001:db8::1", "198.51.100.255"]),
      count: draw.between(1, 60_000),
      dkim: draw.pick(["pass", "fail"]),
      spf: draw.pick(["pass", "fail"]),
      disposition: draw.pick(["none", "quarantine", "reject"]),
    }));
    const read = await readReport(Buffer.from(reportXml({ records, p: draw.pick(["none", "quarantine", "reject"]) })));
    if (records.length === 0) return read.kind;
    assert.equal(read.kind, "aggregate");
    assert.ok(read.kind === "aggregate");
    const found = read.report.records.map(({ source_ip, count, dkim, spf, disposition }) => ({
      ip: source_ip,
      count,
      dkim,
      spf,
      disposition,
    }));
    assert.deepEqual(found, records);
    return `${records.length}`;
  },
};

const tlsReport: Target = {
  name: "tls-rpt",
  holds:
    "a TLS report is refused in a sentence or has bounded lists, counts that are numbers and texts that can be stored",
  seeds: { files: ["tls-rpt"], shared: ["tls-rpt/**/*.json"] },
  words: [
    '"policies":[',
    '"report-id":"x"',
    '"date-range":{',
    "1e400",
    "-1",
    "null",
    "[[[[",
    '"__proto__":{"polluted":1}',
    "2024-01-01T00:00:00Z",
  ],
  bytes_max: 128 * 1_024,
  check(input) {
    const report = parseTlsReport(input.toString("utf8"));
    if (typeof report === "string") return report.slice(0, 50);
    assertStorableAll("report", report);
    assert.ok(report.policies.length <= 100 && report.end_ms - report.begin_ms <= 32 * 86_400_000);
    for (const policy of report.policies) {
      const counts = [policy.total_failure_session_count, policy.total_successful_session_count];
      assert.ok(counts.every((count) => Number.isSafeInteger(count) && count >= 0));
      assert.ok(policy.failure_details.length <= 500);
    }
    assertUnpolluted();
    return `${Math.min(3, report.policies.length)} ${report.contact_info === null}`;
  },
};

const BOUNCE_WORDS = [
  ...[
    "Final-Recipient: rfc822; a@b.example\r\n",
    "Action: failed\r\n",
    "Status: 5.1.1\r\n",
    "Diagnostic-Code: smtp; 550 no such user\r\n",
  ],
  ...[
    "Content-Type: message/delivery-status\r\n\r\n",
    "Content-Type: text/rfc822-headers\r\n\r\n",
    "550 5.1.1 ",
    "4.2.2",
    "\r\n\r\n",
    "--b\r\n",
  ],
  ...[
    "Feedback-Type: abuse\r\n",
    "Content-Type: message/feedback-report\r\n\r\n",
    "Source-IP: 192.0.2.1\r\n",
    "Original-Rcpt-To: a@b.example\r\n",
  ],
  ...[
    "X-Postern-Id: ",
    "could not be delivered to",
    ">>> RCPT TO:<",
    "<<< 550 ",
    "mailbox full",
    '{"notificationType":"Bounce",',
    "__proto__: x\r\n",
  ],
];

const dsn: Target = {
  name: "dsn",
  holds:
    "a bounce names a bounded number of addresses, suppresses none on a temporary status, and all of it can be stored",
  seeds: { files: ["dsn"], shared: ["bounce-sisimai/**/*.eml", "bounce-flufl/**/*", "dsn-misc/**/*.{eml,txt}"] },
  words: BOUNCE_WORDS,
  bytes_max: 128 * 1_024,
  check(input) {
    const read = parseBounce(input);
    assertStorableAll("bounce", read);
    if (read.kind !== "bounce") return `${read.kind} ${read.reason}`;
    assert.ok(read.recipients.length >= 1 && read.recipients.length <= recipientsMax);
    for (const one of read.recipients) {
      assertOneLine("diagnostic", one.diagnostic);
      assertStorable("diagnostic", one.diagnostic, 1_000);
      if (one.status !== null) assert.match(one.status, /^[245]\.\d{1,3}\.\d{1,3}$/);
      if (one.suppress) assert.ok(one.bounce_type === "hard" && !one.status?.startsWith("4"), "suppressed for a while");
      if (one.action === "delayed") assert.ok(!one.suppress && !one.permanent, "a warning taken for a bounce");
    }
    assertUnpolluted();
    const [first] = read.recipients;
    return `${first?.class} ${first?.action} ${first?.suppress} ${Math.min(3, read.recipients.length)}`;
  },
};

const arf: Target = {
  name: "arf",
  holds: "a complaint has bounded lists of texts that can be stored and a source that is an address",
  seeds: { files: ["arf"], shared: ["arf-feedback/**/*.{eml,txt}"] },
  words: BOUNCE_WORDS,
  bytes_max: 128 * 1_024,
  check(input) {
    const report = parseComplaint(input);
    if (report === null) return "none";
    assertStorableAll("complaint", report);
    assert.ok(report.recipients.length <= complaintRecipientsMax && report.reported_domains.length <= reportedMax);
    assert.ok(report.source_ip === null || isIP(report.source_ip) !== 0);
    assert.ok(report.incidents >= 1 && report.incidents <= 1_000_000);
    return `${report.format} ${report.meaning} ${report.feedback_type.slice(0, 10)}`;
  },
};

/** Cuts at random places, the same for the same input. */
function cut<T extends { length: number; slice(from: number, to?: number): T }>(whole: T): T[] {
  const chance = chanceOf(whole.length);
  const pieces: T[] = [];
  for (let at = 0; at < whole.length; ) {
    const length = chance.pick([1, 2, 5, 100, 4_096]);
    pieces.push(whole.slice(at, at + length));
    at += length;
  }
  return pieces;
}

const csv: Target = {
  name: "csv",
  holds: "records do not depend on how the text is cut, and well-formed text gives csv-parse's fields",
  seeds: { files: ["csv"], shared: ["suppression-csv/**/*.csv"] },
  words: [",", ";", '"', '""', "\r\n", "\n", "\r", "email,reason\r\n", '","', '"a\nb"', "sep=;\n"],
  bytes_max: 48 * 1_024,
  check(input) {
    const text = input.toString("utf8");
    const read = (pieces: readonly string[]) => {
      const reader = createCsvReader(",");
      return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()];
    };
    const records = read([text]);
    assert.deepEqual(read(cut(text)), records, "cutting the text changed the records");
    for (const record of records) {
      if ("fields" in record) assert.ok(record.fields.length <= FIELDS_MAX);
      else assert.ok(record.raw.length <= 200);
    }
    const draw = drawFrom(input);
    const rows = draw.list(5, () => [
      "x",
      ...draw.list(4, () => draw.text(8, ["a", ",", '"', "\n", "\r\n", " ", "é", ";"]).toWellFormed()),
    ]);
    const written = rows.map((row) => row.map((field) => `"${field.replaceAll('"', '""')}"`).join(",")).join("\r\n");
    const theirs = parseCsv(written, { relax_column_count: true, record_delimiter: ["\r\n"] }) as string[][];
    assert.deepEqual(
      read([written]).map((record) => ("fields" in record ? record.fields : record)),
      theirs,
    );
    return `${Math.min(records.length, 5)} ${records.some((record) => "defect" in record && record.defect)}`;
  },
};

const csvImport: Target = {
  name: "suppression-import",
  holds: "every row of any file is an address that can be stored or an error, in order, however the bytes are cut",
  seeds: { files: ["csv"], shared: ["suppression-csv/**/*.{csv,json,txt}"] },
  words: [
    "\ufeff",
    "\xff\xfe",
    "email",
    "reason",
    '{"items":[',
    '{"email":"a@b.example"}\n',
    "a@b.example",
    ",",
    ";",
    "\t",
    "\r\n",
    '"',
    "bounce",
  ],
  bytes_max: 64 * 1_024,
  check(input) {
    const read = (pieces: readonly Buffer[]): ImportRow[] => {
      const reader = createImportReader({ provider: null, filename: "list.csv", now_ms: 1_763_000_000_000 });
      return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()];
    };
    const rows = read([input]);
    // What is said of a row that is none depends on how much of a file without a format was there.
    const kinds = (all: readonly ImportRow[]) => all.map((row) => ("message" in row ? row.row : row));
    assert.deepEqual(kinds(read(cut(input))), kinds(rows), "cutting the bytes changed the rows");
    let last = 0;
    for (const row of rows) {
      assert.ok(row.row >= last, "rows are out of order");
      last = row.row;
      assertStorableAll("row", row);
      if ("email" in row) assert.ok(parseAddress(row.email).ok, `${row.email} is no address`);
    }
    const errors = rows.filter((row) => "message" in row).length;
    return `${Math.min(4, rows.length - errors)} ${Math.min(3, errors)} ${input[0]}`;
  },
};

/** How much of a broken document is quoted depends on how much of it was there. */
function withoutRaw(records: readonly JsonRecord[]): unknown[] {
  return records.map((record) => ("values" in record ? [...record.values] : record.defect));
}

const jsonRecords: Target = {
  name: "json-records",
  holds: "records of JSON do not depend on how the text is cut, keep their limits, and names stay names",
  seeds: { lines: "json-records.jsonl", shared: ["suppression-csv/**/*.json"] },
  words: [
    '{"email":"a@b.example"}',
    "\n",
    "[",
    "]",
    "{",
    "}",
    ",",
    '"__proto__":{"polluted":1}',
    '"a":{"b":',
    "\\u0000",
    "\\ud800",
    "[[[[[[[[",
  ],
  bytes_max: 64 * 1_024,
  check(input) {
    const text = input.toString("utf8");
    const read = (pieces: readonly string[]) => {
      const reader = createJsonReader(text.slice(0, 16_384), (raw) => raw);
      return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()];
    };
    const records = read([text]);
    // A record longer than the limit is given up as soon as it is seen to be.
    if (text.length < RECORD_CHARS_MAX) {
      assert.deepEqual(withoutRaw(read(cut(text))), withoutRaw(records), "cutting the text changed the records");
    }
    for (const record of records) if ("values" in record) assert.ok(record.values.size <= 200);
    assertUnpolluted();
    return `${Math.min(4, records.length)} ${records.some((record) => "defect" in record)}`;
  },
};

export const REPORT_TARGETS: readonly Target[] = [
  ...[dmarcXml, packing, dmarcBuild, tlsReport, dsn, arf, csv, csvImport, jsonRecords],
];
