// DMARC aggregate reports through the product: each by mail and by upload, in every packing there is (XML also as gzip and
// ZIP), soon after the days it is about, and read back through all six endpoints. The sums are another reader's. What that
// strict reader could not read is recovered or stored as unreadable, never passed over.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { readReport } from "../../src/mail/dmarc-report/read-report.ts";
import { findReports } from "../../src/mail/dmarc-report/report-mail.ts";
import type { AggregateReport } from "../../src/mail/dmarc-report/types.ts";
import { makeZip } from "../../src/mail/dmarc-report/zip.fixture.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import { answerTo, caseFiles, noteAbsent, readSide } from "./case-files.ts";
import { type MxStage, mxStage, SOME_CLIENT } from "./mx-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

type Expected = {
  org_name: string | null;
  report_id: string;
  begin: string;
  end: string;
  domain: string;
  adkim: string | null;
  aspf: string | null;
  p: string | null;
  sp: string | null;
  pct: string | null;
  records: number;
  messages: number;
  by_disposition: Record<string, number>;
  dkim_aligned_messages: number;
  spf_aligned_messages: number;
  distinct_source_ips: number;
};
type Summary = Expected | { reference_reader_failed: string };

/** How a report comes: an upload or the mail that carries it. */
type Way = { name: string; upload?: Buffer; mail?: Buffer };

const DAY_MS = 86_400_000;
const DAYS_MAX = 400;
const PAGE_MAX = 100;
const LISTED_WITHIN_MS = 15_000;
const REPORTER = "reporter.corpus.example";

/** What nobody could read, and files that `expected-summary.json` does not name. */
const UNREAD: Summary = { reference_reader_failed: "nobody says what is in it" };
/** Of what tells of no domain. */
const SOME_DOMAIN = "unread.corpus.example";

/** Every file, every way. */
export const dmarcAggregateReports: Corpus = {
  name: "dmarc-aggregate-reports",
  slow: true,
  async run(dir, tally) {
    const all = readSide<Record<string, Summary>>(tally, join(dir, "expected-summary.json")) ?? {};
    const files = caseFiles(dir);
    noteAbsent(tally, files, Object.keys(all));
    if (files.length === 0) return;
    const stage = await mxStage();
    try {
      for (const file of files) {
        await tally.attempt(file, () => judgeFile(stage, tally, { dir, file, expected: all[file] ?? UNREAD }));
      }
    } finally {
      await stage.moveTime(null);
    }
  },
};

type File = { dir: string; file: string; expected: Summary };

async function judgeFile(stage: MxStage, tally: Tally, { dir, file, expected }: File): Promise<void> {
  const bytes = readFileSync(join(dir, file));
  // Only to know which domain to have, and when: what is expected is the other reader's.
  const known = await aboutOf(bytes, expected);
  for (const way of waysOf(bytes)) {
    const name = `${file} (${way.name})`;
    await tally.attempt(name, () => judgeWay(stage, tally, { name, way, known, expected, whole: wholeOf(dir, file) }));
  }
}

type About = { domain: string; end_s: number };

async function aboutOf(bytes: Buffer, expected: Summary): Promise<About | null> {
  if (!("reference_reader_failed" in expected)) {
    return { domain: expected.domain.toLowerCase(), end_s: Math.floor(Number(expected.end)) };
  }
  const found = isMail(bytes) ? findReports(parseMessage(bytes)) : null;
  const file = found?.kind === "files" ? found.files[0] : found === null ? bytes : undefined;
  const read = file && (await readReport(file));
  if (read?.kind !== "aggregate") return null;
  return { domain: read.report.policy.domain, end_s: read.report.end_s };
}

/** A mail as it is; a file as it is and packed, by upload and by mail. */
function waysOf(bytes: Buffer): Way[] {
  if (isMail(bytes)) return [{ name: "mail", mail: bytes }];
  const isXml = /^(?:\xef\xbb\xbf)?\s*</.test(bytes.toString("latin1", 0, 200));
  const packed: [name: string, content: Buffer][] = isXml
    ? [
        ["xml", bytes],
        ["gzip", gzipSync(bytes)],
        ["zip", makeZip([{ name: "report.xml", content: bytes }])],
      ]
    : [["as it is", bytes]];
  return packed.flatMap(([name, content]) => [
    { name: `upload, ${name}`, upload: content },
    { name: `mail, ${name}`, mail: mailWith(`report.${name === "as it is" ? "bin" : name}`, content) },
  ]);
}

/** A field name, or the line that begins a mail in an mbox. */
function isMail(bytes: Buffer): boolean {
  return /^(?:From |[A-Za-z][A-Za-z0-9-]*:[ \t\r\n])/.test(bytes.toString("latin1", 0, 200));
}

function mailWith(filename: string, content: Buffer): Buffer {
  const body = content.toString("base64").replace(/.{76}/g, "$&\r\n");
  return Buffer.from(
    `From: dmarc@${REPORTER}\r\nSubject: Report Domain: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n` +
      `--b\r\nContent-Type: text/plain\r\n\r\nSee the attachment.\r\n--b\r\nContent-Type: application/octet-stream; name="${filename}"\r\n` +
      `Content-Disposition: attachment; filename="${filename}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${body}\r\n--b--\r\n`,
  );
}

// --- one report, one way -------------------------------------------------------------------------------------------------

/** `known`: null when even we find no report in it. */
type Played = { name: string; way: Way; known: About | null; expected: Summary; whole: Whole | null };

async function judgeWay(stage: MxStage, tally: Tally, { name, way, known, expected, whole }: Played): Promise<void> {
  await stage.moveTime(known ? known.end_s * 1_000 + DAY_MS : null);
  const made = await stage.ask("POST", "/v1/domains", { domain: known?.domain ?? SOME_DOMAIN, type: "outbound" });
  if (made.status !== 201) return tally.judge(name, 201, made);
  const path = `/v1/domains/${made.body.id}`;
  try {
    const answer = await bring(stage, path, way);
    if ("reference_reader_failed" in expected) {
      const [wanted, got] = await becameOf(stage, path, { way, known, answer });
      return tally.judge(name, wanted, got);
    }
    const [report] = answer.code === 201 || answer.code === 250 ? await listed(stage, path) : [];
    if (!report) return tally.judge(name, "a report", answer);
    const got = await readBack(stage, path, report.id);
    const reason = isLeftOut(expected, got.sums, report.rejected_records) ? LEFT_OUT : null;
    tally.judge(name, wanted(expected), got.sums, reason);
    if (whole) tally.judge(`${name}: record by record`, whole, got.whole);
  } finally {
    await stage.ask("DELETE", path);
  }
}

const LEFT_OUT = "records whose numbers or addresses make no sense are left out";

type Figures = "totals" | "dkim" | "spf" | "ips" | "dispositions" | "days_dispositions" | "summary_dispositions";
type Rest = Omit<ReturnType<typeof wanted>, Figures>;

/** Some records and their figures, and nothing else of the report. */
function isLeftOut(expected: Expected, got: Rest, rejected: number): boolean {
  const ofReport = ({ status, org_name, report_id, span, domain, policy, pct, reports }: Rest) =>
    JSON.stringify([status, org_name, report_id, span, domain, policy, pct, reports]);
  const isSo = got.records.every((count) => count > 0 && count + rejected === expected.records);
  return rejected > 0 && isSo && ofReport(got) === ofReport(wanted(expected));
}

type Brought = { way: Way; known: About | null; answer: Answer };

/**
 * What the reference could not read: a mail is taken like any other, and what it carries is listed, counted or not; an
 * upload is counted, or answered 400. What should be and what is.
 */
async function becameOf(stage: MxStage, path: string, { way, known, answer }: Brought): Promise<[unknown, unknown]> {
  const { code, text } = answer;
  if (way.mail) {
    const due = Number(answerTo(withCrlf(way.mail)));
    const carries = findReports(parseMessage(way.mail)).kind === "files";
    if (code !== due || code !== 250 || !carries) return [due, code === due ? code : answer];
  } else if (known === null || code !== 201) {
    return ["400", known === null && code === 400 ? "400" : `${code} ${text}`];
  }
  const [report] = await listed(stage, path);
  const isKept = known ? report?.status === "counted" : report?.status === "unreadable";
  return ["kept", isKept ? "kept" : { answer, report }];
}

type Answer = { code: number; text: string };

async function bring(stage: MxStage, path: string, way: Way): Promise<Answer> {
  if (way.upload) {
    const { status, body } = await upload(stage, way.upload);
    return { code: status, text: JSON.stringify(body) };
  }
  const bytes = withCrlf(way.mail as Buffer);
  const author = authorOf(bytes);
  // These reporters' keys are gone from DNS: what makes their mail theirs here is SPF.
  stage.dns.set(author, "TXT", [`v=spf1 ip4:${SOME_CLIENT} -all`]);
  const address = String((await stage.ask("GET", `${path}/dmarc/address`)).body.address);
  return stage.send({ bytes, mail_from: `dmarc@${author}`, recipient: address });
}

async function upload(stage: MxStage, file: Buffer): Promise<{ status: number; body: unknown }> {
  const { base_url, live_key } = stage.settings;
  const headers = { authorization: `Bearer ${live_key}`, "content-type": "application/octet-stream" };
  const response = await fetch(`${base_url}/v1/dmarc/reports`, { method: "POST", headers, body: new Uint8Array(file) });
  return { status: response.status, body: await response.json() };
}

function authorOf(bytes: Buffer): string {
  const { from } = parseMessage(bytes);
  return from[0]?.email?.split("@")[1]?.toLowerCase() ?? REPORTER;
}

function withCrlf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely; the expectations are the check
async function listed(stage: MxStage, path: string): Promise<any[]> {
  const until = Date.now() + LISTED_WITHIN_MS;
  for (;;) {
    const { body } = await stage.ask("GET", `${path}/dmarc/reports`);
    const reports = body.reports as unknown as unknown[];
    if (reports.length > 0 || Date.now() > until) return reports;
    await new Promise((done) => setTimeout(done, 20));
  }
}

// --- what is expected and what the endpoints say ---------------------------------------------------------------------------

function wanted(expected: Expected) {
  const dispositions = { none: 0, pass: 0, quarantine: 0, reject: 0 };
  for (const [word, count] of Object.entries(expected.by_disposition)) {
    const name = word.trim().toLowerCase() as keyof typeof dispositions;
    dispositions[name] = (dispositions[name] ?? 0) + count;
  }
  const {
    messages: total,
    dkim_aligned_messages: dkim,
    spf_aligned_messages: spf,
    distinct_source_ips: ips,
  } = expected;
  const lower = (word: string | null) => word?.trim().toLowerCase() || null;
  return {
    status: "counted",
    org_name: onOneLine(expected.org_name),
    report_id: onOneLine(expected.report_id),
    span: [expected.begin, expected.end].map((at) => new Date(Math.floor(Number(at)) * 1_000).toISOString()),
    domain: expected.domain.toLowerCase(),
    policy: [expected.adkim, expected.aspf, expected.p, expected.sp].map(lower),
    pct: expected.pct === null ? null : Number(expected.pct),
    dispositions,
    // Of the report, its records, the summary, the sources and the days.
    totals: [total, total, total, total, total],
    dkim: [dkim, dkim, dkim, dkim, dkim],
    spf: [spf, spf, spf, spf, spf],
    records: [expected.records, expected.records],
    ips: [ips, ips],
    days_dispositions: dispositions,
    summary_dispositions: dispositions,
    reports: 1,
  };
}

/** Texts are kept on one line. */
function onOneLine(text: string | null): string | null {
  return text?.replace(/\s+/g, " ").trim() || null;
}

async function readBack(stage: MxStage, path: string, id: string) {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const get = async (what: string): Promise<any> => (await stage.ask("GET", `${path}/dmarc/${what}`)).body;
  const { report } = await get(`reports/${id}`);
  const summary = await get(`summary?days=${DAYS_MAX}`);
  const { daily } = await get(`daily?days=${DAYS_MAX}`);
  const sources = await allSources(get);
  const records = report.records.map((one: Sums & Counted) => ({ ...one, total: one.count }));
  const sum = (rows: Sums[], field: string) => rows.reduce((all, row) => all + Number(row[field]), 0);
  const passed = (rows: Sums[], field: "dkim" | "spf") =>
    sum(
      rows.filter((row) => row[field] === "pass"),
      "total",
    );
  const { adkim, aspf, p, sp, pct } = report.published_policy;
  return {
    whole: wholeOfRecords(report.records),
    sums: {
      status: report.status,
      org_name: report.org_name,
      report_id: report.report_id,
      span: [report.begin_at, report.end_at],
      domain: report.policy_domain,
      policy: [adkim, aspf, p, sp],
      pct,
      dispositions: report.disposition,
      totals: [
        report.total_messages,
        sum(records, "total"),
        summary.total_messages,
        sum(sources, "total"),
        sum(daily, "total"),
      ],
      dkim: [
        report.pass_dkim,
        passed(records, "dkim"),
        summary.pass_dkim,
        sum(sources, "pass_dkim"),
        sum(daily, "pass_dkim"),
      ],
      spf: [
        report.pass_spf,
        passed(records, "spf"),
        summary.pass_spf,
        sum(sources, "pass_spf"),
        sum(daily, "pass_spf"),
      ],
      records: [report.record_count, records.length],
      ips: [new Set(records.map(({ source_ip }: Sums) => source_ip)).size, sources.length],
      days_dispositions: sumDispositions(daily.map(({ disposition }: Counted) => disposition)),
      summary_dispositions: summary.disposition,
      reports: summary.report_count,
    },
  };
}

type Sums = Record<string, unknown>;
type Counted = { count: number; disposition: Record<string, number> };

function sumDispositions(all: Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = { none: 0, pass: 0, quarantine: 0, reject: 0 };
  for (const one of all) for (const [word, count] of Object.entries(one)) sums[word] = (sums[word] ?? 0) + count;
  return sums;
}

// biome-ignore lint/suspicious/noExplicitAny: as above
async function allSources(get: (what: string) => Promise<any>): Promise<Sums[]> {
  const all: Sums[] = [];
  for (;;) {
    const { sources, total } = await get(`sources?days=${DAYS_MAX}&limit=${PAGE_MAX}&offset=${all.length}`);
    all.push(...sources);
    if (sources.length === 0 || all.length >= total) return all;
  }
}

// --- the whole parse beside some files (mail-auth, in the words of a Rust library) -----------------------------------------

type Whole = unknown[];
type RustRecord = {
  row: { source_ip: string; count: number; policy_evaluated: { disposition: string; dkim: string; spf: string } };
  identifiers: { envelope_from: string | null; header_from: string | null };
  auth_results: {
    dkim: { domain: string; selector: string; result: string }[];
    spf: { domain: string; result: string }[];
  };
};

function wholeOf(dir: string, file: string): Whole | null {
  const path = join(dir, file.replace(/\.(?:eml|xml)$/, ".json"));
  if (!path.endsWith(".json") || !existsSync(path)) return null;
  const { record } = JSON.parse(readFileSync(path, "utf8")) as { record?: RustRecord[] };
  return (
    record?.map(({ row, auth_results }) => ({
      ...{ source_ip: row.source_ip, count: row.count },
      evaluated: [row.policy_evaluated.disposition, row.policy_evaluated.dkim, row.policy_evaluated.spf].map(word),
      dkim: auth_results.dkim.map(({ domain, selector, result }) => `${domain} ${selector ?? ""} ${word(result)}`),
      spf: auth_results.spf.map(({ domain, result }) => `${domain} ${word(result)}`),
    })) ?? null
  );
}

function wholeOfRecords(records: AggregateReport["records"]): Whole {
  return records.map(({ source_ip, count, disposition, dkim, spf, dkim_results, spf_results }) => ({
    ...{ source_ip, count, evaluated: [disposition, dkim, spf] },
    dkim: dkim_results.map(({ domain, selector, result }) => `${domain} ${selector ?? ""} ${result}`),
    spf: spf_results.map(({ domain, result }) => `${domain} ${result}`),
  }));
}

/** `SoftFail` → `softfail`; what the library has no word for is none or a fail here. */
function word(rust: string): string {
  return rust.toLowerCase();
}
