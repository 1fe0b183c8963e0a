// SMTP TLS reports (RFC 8460) mailed to the report address of the domain they are about: kept beside, whole, and taken
// for nothing else: no customer's mail, no DMARC report, no bounce, and no event. Bare JSON goes as RFC 8460 §5.3 sends it,
// plain and as gzip.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import pg from "pg";
import { readReport } from "../../src/mail/dmarc-report/read-report.ts";
import { findReports } from "../../src/mail/dmarc-report/report-mail.ts";
import { corpusFiles } from "../../src/mail/mime/parse-corpora.fixture.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import type { TlsReport } from "../../src/mail/tls-report.ts";
import { type MxStage, mxStage } from "./mx-stage.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

const KEPT_WITHIN_MS = 15_000;

/** Every mail and every JSON. */
export const tlsRpt: Corpus = {
  name: "tls-rpt",
  async run(dir) {
    const tally = createTally();
    const stage = await mxStage();
    const database = new pg.Client({
      connectionString: stage.settings.env.DATABASE_URL ?? "",
      options: "-c postern.scope=system",
    });
    try {
      await database.connect();
      for (const file of corpusFiles("**/*.{eml,json}", `${dir}/`)) {
        await judgeFile({ stage, database, tally }, file, readFileSync(join(dir, file)));
      }
    } finally {
      await database.end();
    }
    return tally;
  },
};

type Bench = { stage: MxStage; database: pg.Client; tally: Tally };

async function judgeFile(bench: Bench, file: string, bytes: Buffer): Promise<void> {
  if (file.endsWith(".eml")) return judgeMail(bench, file, { mail: bytes, source: null });
  await judgeMail(bench, `${file} (plain)`, { mail: reportMail("json", bytes), source: bytes });
  await judgeMail(bench, `${file} (gzip)`, { mail: reportMail("gzip", gzipSync(bytes)), source: bytes });
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

type Sent = { mail: Buffer; source: Buffer | null };

async function judgeMail({ stage, database, tally }: Bench, name: string, { mail, source }: Sent): Promise<void> {
  // Only to know which domain to have.
  const domain = await domainOf(mail, source);
  if (domain === null) return tally.judge(name, "a TLS report about a domain", null);
  const made = await stage.ask("POST", "/v1/domains", { domain, type: "outbound" });
  if (made.status !== 201) return tally.judge(name, 201, made);
  const path = `/v1/domains/${made.body.id}`;
  try {
    const address = String((await stage.ask("GET", `${path}/dmarc/address`)).body.address);
    const bytes = Buffer.from(mail.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
    const before = await countOthers(stage, path);
    const { code, text } = await stage.send({ bytes, mail_from: "tlsrpt@reporter.corpus.example", recipient: address });
    const kept = code === 250 ? await keptReport(database, String(made.body.id)) : `${code} ${text}`;
    const elsewhere = await countOthers(stage, path);
    const expected = { kept: source ? sourceOf(source) : true, elsewhere: before };
    tally.judge(name, expected, { kept: source ? kept : kept !== null, elsewhere });
  } finally {
    await stage.ask("DELETE", path);
  }
}

async function domainOf(mail: Buffer, source: Buffer | null): Promise<string | null> {
  const found = findReports(parseMessage(mail));
  const file = source ?? (found.kind === "files" ? found.files[0] : undefined);
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

/** The same from the JSON itself. */
function sourceOf(source: Buffer): Kept {
  const report = JSON.parse(source.toString().replace(/^\ufeff/, ""));
  const sum = (field: string) =>
    report.policies.reduce(
      (all: number, { summary }: { summary: Record<string, number> }) => all + (summary?.[field] ?? 0),
      0,
    );
  const sessions = [sum("total-successful-session-count"), sum("total-failure-session-count")];
  return { report_id: report["report-id"], sessions, policies: report.policies.length };
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
