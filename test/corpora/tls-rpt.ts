// SMTP TLS reports (RFC 8460) mailed to the report address of the domain they are about: kept beside, whole, and taken
// for nothing else: no customer's mail, no DMARC report, no bounce, and no event. Bare JSON goes as RFC 8460 §5.3 sends it,
// plain and as gzip.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import pg from "pg";
import { readReport } from "../../src/mail/dmarc-report/read-report.ts";
import { findReports } from "../../src/mail/dmarc-report/report-mail.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import type { TlsReport } from "../../src/mail/tls-report/read-report.ts";
import { answerTo, caseFiles } from "./case-files.ts";
import { type MxStage, mxStage } from "./mx-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

const KEPT_WITHIN_MS = 15_000;
/** Of mail that is no report. */
const SOME_DOMAIN = "no-report.corpus.example";

/** Every mail and every JSON. */
export const tlsRpt: Corpus = {
  name: "tls-rpt",
  slow: true,
  async run(dir, tally) {
    const stage = await mxStage();
    const database = new pg.Client({
      connectionString: stage.settings.env.DATABASE_URL ?? "",
      options: "-c postern.scope=system",
    });
    try {
      await database.connect();
      for (const file of [...caseFiles(dir), ...globSync("**/*.json", { cwd: dir }).sort()]) {
        await tally.attempt(file, () => judgeFile({ stage, database, tally }, file, readFileSync(join(dir, file))));
      }
    } finally {
      await database.end();
    }
  },
};

type Bench = { stage: MxStage; database: pg.Client; tally: Tally };

async function judgeFile(bench: Bench, file: string, bytes: Buffer): Promise<void> {
  if (!file.endsWith(".json")) return judgeMail(bench, file, { mail: bytes, source: null });
  const source = readSource(bytes);
  if (source === null) {
    bench.tally.notes.push(`${file}: no TLS report, not played`);
    return;
  }
  await judgeMail(bench, `${file} (plain)`, { mail: reportMail("json", bytes), source });
  await judgeMail(bench, `${file} (gzip)`, { mail: reportMail("gzip", gzipSync(bytes)), source });
}

/** RFC 8460 §5.3. */
function reportMail(form: "json" | "gzip", content: Buffer): Buffer {
  const body = content.toString("base64").replace(/.{76}/g, "$&\r\n");
  return Buffer.from(
    "From: tlsrpt@reporter.corpus.example\r\nSubject: Report Domain: x Submitter: y Report-ID: <z>\r\nTLS-Report-Submitter: y\r\n" +
      'MIME-Version: 1.0\r\nContent-Type: multipart/report; report-type="tlsrpt"; boundary=b\r\n\r\n' +
      "--b\r\nContent-Type: text/plain\r\n\r\nThis is an aggregate TLS report.\r\n" +
      `--b\r\nContent-Type: application/tlsrpt+${form}; name="report.json"\r\nContent-Transfer-Encoding: base64\r\n\r\n${body}\r\n--b--\r\n`,
  );
}

/** `source`: what the JSON itself says. */
type Sent = { mail: Buffer; source: Source | null };

async function judgeMail({ stage, database, tally }: Bench, name: string, { mail, source }: Sent): Promise<void> {
  const isReport = source !== null || /tlsrpt/i.test(mail.toString("latin1"));
  // Only to know which domain to have.
  const about = source ? source.domain : await domainOf(mail);
  if (isReport && about === null) return tally.judge(name, "a TLS report about a domain", null);
  const made = await stage.ask("POST", "/v1/domains", { domain: about ?? SOME_DOMAIN, type: "outbound" });
  if (made.status !== 201) return tally.judge(name, 201, made);
  const path = `/v1/domains/${made.body.id}`;
  try {
    const address = String((await stage.ask("GET", `${path}/dmarc/address`)).body.address);
    const bytes = Buffer.from(mail.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
    const before = await countOthers(stage, path);
    const { code, text } = await stage.send({ bytes, mail_from: "tlsrpt@reporter.corpus.example", recipient: address });
    // Nobody says what the mail is that is no report: it is taken, and no customer's.
    if (!isReport) return tally.judge(name, answerTo(bytes), String(code));
    const kept = code === 250 ? await keptReport(database, String(made.body.id)) : `${code} ${text}`;
    const elsewhere = await countOthers(stage, path);
    const shown = source || typeof kept === "string" ? kept : kept !== null;
    tally.judge(name, { kept: source ? source.kept : true, elsewhere: before }, { kept: shown, elsewhere });
  } finally {
    await stage.ask("DELETE", path);
  }
}

async function domainOf(mail: Buffer): Promise<string | null> {
  const found = findReports(parseMessage(mail));
  const file = found.kind === "files" ? found.files[0] : undefined;
  const read = file && (await readReport(file));
  const policies = read?.kind === "tls" ? (read.report as TlsReport).policies : [];
  return policies.find(({ policy_domain }) => policy_domain !== null)?.policy_domain ?? null;
}

type Kept = { report_id: string; sessions: number[]; policies: number };

async function keptReport(database: pg.Client, domainId: string): Promise<Kept | null> {
  const until = Date.now() + KEPT_WITHIN_MS;
  for (;;) {
    const { rows } = await database.query(
      `select report_id, successful_sessions::float8 as passed, failed_sessions::float8 as failed, policies
         from tls_report where domain_id = $1`,
      [domainId],
    );
    const [row] = rows;
    if (row && rows.length === 1) {
      return { report_id: row.report_id, sessions: [row.passed, row.failed], policies: row.policies.length };
    }
    if (Date.now() > until) return null;
    await new Promise((done) => setTimeout(done, 20));
  }
}

type Source = { domain: string | null; kept: Kept };
type Policy = { policy?: { "policy-domain"?: string }; summary?: Record<string, number> };

/** Null when the JSON is no report. */
function readSource(bytes: Buffer): Source | null {
  const report = JSON.parse(bytes.toString().replace(/^\ufeff/, ""));
  if (!Array.isArray(report?.policies)) return null;
  const policies = report.policies as Policy[];
  const sum = (field: string) => policies.reduce((all, { summary }) => all + (summary?.[field] ?? 0), 0);
  const sessions = [sum("total-successful-session-count"), sum("total-failure-session-count")];
  const domain = policies.map(({ policy }) => policy?.["policy-domain"]).find((one) => one !== undefined) ?? null;
  return { domain, kept: { report_id: report["report-id"], sessions, policies: policies.length } };
}

/** Customers' mail, DMARC reports of any state, suppressions: what a TLS report must not become. */
async function countOthers(stage: MxStage, path: string): Promise<unknown[]> {
  const [emails, reports, suppressions] = await Promise.all([
    stage.ask("GET", "/v1/inbound-emails"),
    stage.ask("GET", `${path}/dmarc/reports`),
    stage.ask("GET", "/v1/suppressions"),
  ]);
  return [emails, reports, suppressions].map(({ body }) => body.total);
}
