// Reports on TLS (RFC 8460) that Postern sends, over real sockets: a day's mail to domains with and without a policy, then the
// report by mail and by HTTPS, as the day's sessions were.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createSecureContext, getCACertificates, setDefaultCACertificates } from "node:tls";
import { gunzipSync } from "node:zlib";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import PostalMime from "postal-mime";
import { parseTlsReport, type TlsReport } from "../../src/mail/tls-report/read-report.ts";
import { maskedDomain } from "../../src/masked/addresses/service-domain.ts";
import { pauseRestored, resumeSending } from "../../src/outbound/guard/guard.ts";
import { sendReports } from "../../src/outbound/tls-reports/tls-reports.ts";
import type { FetchRequest } from "../../src/platform/net/safe-fetch.ts";
import type { World } from "../../src/platform/world.ts";
import { reportPorts } from "../../src/ports.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type Received, type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { type CertificateAuthority, makeCertificateAuthority } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const HOUR_MS = 3_600_000;
const SERVICE = "masked.postern.test";
const dir = mkdtempSync(join(tmpdir(), "postern-tls-reports-"));

type Post = { path: string; type: string; body: Buffer };

let dns: DnsServer;
let trusted: CertificateAuthority;
let sink: SmtpSink;
let web: Server;
let api: TestApi;
let clock: MovedClock;
const posts: Post[] = [];
let answer = 503;

before(async () => {
  trusted = makeCertificateAuthority(dir);
  const stranger = makeCertificateAuthority(dir);
  setDefaultCACertificates([...getCACertificates("bundled"), trusted.ca]);
  dns = await startDnsServer();
  // A certificate that nobody trusts: no policy in force is met.
  sink = await startSmtpSink(stranger.issue(["mx.example"]));
  await startWeb();
  clock = runningClock("2026-03-10T12:00:00Z");
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) }, (world) =>
    byClock(clock)(policiesFromTest(world)),
  );
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
  web?.close();
  web?.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
});

/** Serves policies that demand TLS for every domain, and takes reports. */
async function startWeb(): Promise<void> {
  const sni = (host: string) => {
    const { key, cert, ca } = trusted.issue([host]);
    return createSecureContext({ key, cert: cert + ca });
  };
  const { key, cert } = trusted.issue(["default.example"]);
  web = createServer({ key, cert, SNICallback: (host, done) => done(null, sni(host)) }, async (request, response) => {
    if (request.method === "GET") {
      const domain = request.headers.host?.replace(/^mta-sts\.|:\d+$/g, "");
      const policy = `version: STSv1\r\nmode: enforce\r\nmx: mx.${domain}\r\nmax_age: 604800\r\n`;
      response.writeHead(200, { "content-type": "text/plain" }).end(policy);
      return;
    }
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    posts.push({
      path: request.url ?? "",
      type: request.headers["content-type"] ?? "",
      body: Buffer.concat(pieces),
    });
    response.writeHead(answer).end();
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
}

/** Policies are fetched from port 443, which is not ours to open. */
function policiesFromTest(world: World): World {
  const { port } = web.address() as AddressInfo;
  const fetch = (request: FetchRequest) =>
    world.fetch({ ...request, url: request.url.replace(/^(https:\/\/mta-sts\.[^/]+)\//, `$1:${port}/`) });
  return { ...world, fetch: Object.assign(fetch, { close: world.fetch.close }) };
}

function demandTls(domain: string): void {
  receiveAt(dns, domain);
  dns.set(`_mta-sts.${domain}`, "TXT", ["v=STSv1; id=1"]);
  dns.set(`mta-sts.${domain}`, "A", ["127.0.0.1"]);
}

function wantReports(domain: string, ...rua: string[]): void {
  dns.set(`_smtp._tls.${domain}`, "TXT", [`v=TLSRPTv1; rua=${rua.join(",")}`]);
}

/** The service's own domain as the operator publishes it: before that nothing is sent from it. */
async function publishService(): Promise<void> {
  for (const { type, name, value } of (await maskedDomain(api.world)).records) {
    if (type === "TXT") dns.set(name, "TXT", [value]);
  }
}

async function send(domain: string, status: "delivered" | "deferred"): Promise<void> {
  const body = { from: "hello@sender.example", to: [`anna@${domain}`], subject: "Hello", text_body: "Hello" };
  const sent = await api.ask("POST", "/v1/send", body);
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await emailWithStatus(api, sent.body.id, [status], 20_000);
}

/** What the clock role does once a minute. */
const round = () => sendReports(api.world, reportPorts(api.world, api.engine));

const counted = async (domain: string): Promise<number> => {
  const [row] = await api.world.db.query<{ sessions: number }>(
    "select coalesce(sum(sessions), 0)::int as sessions from tls_result where domain = $1",
    [domain],
  );
  return row?.sessions ?? 0;
};

const mailed = (to: string): Received[] => sink.messages.filter((message) => message.to.includes(to));

function open(packed: Uint8Array): TlsReport {
  const report = parseTlsReport(gunzipSync(packed).toString("utf8"));
  assert.ok(typeof report === "object", String(report));
  return report;
}

test("nothing is sent before the day is over", async () => {
  for (const domain of ["strict.example", "posted.example", "quiet.example", "twice.example"]) demandTls(domain);
  receiveAt(dns, "plain.example");
  const { port } = web.address() as AddressInfo;
  dns.set("collect.example", "A", ["127.0.0.1"]);
  demandTls("reports.example");
  wantReports("strict.example", "mailto:tls@reports.example");
  wantReports("plain.example", "mailto:tls@reports.example");
  wantReports("posted.example", `https://collect.example:${port}/tls`);
  dns.set("_smtp._tls.twice.example", "TXT", [
    "v=TLSRPTv1; rua=mailto:a@x.example",
    "v=TLSRPTv1; rua=mailto:b@x.example",
  ]);
  await send("plain.example", "delivered");
  for (const domain of ["strict.example", "posted.example", "quiet.example", "twice.example"])
    await send(domain, "deferred");
  for (const domain of ["strict.example", "posted.example", "quiet.example", "twice.example", "plain.example"]) {
    await until(`a count of ${domain}`, async () => (await counted(domain)) > 0);
  }
  await publishService();
  await round();
  assert.deepEqual([mailed("tls@reports.example"), posts], [[], []]);
});

test("nor while sending is paused, as in a copy of the database", async () => {
  await pauseRestored(api.world.db, "restored for this test");
  clock.nextDay(HOUR_MS);
  await round();
  clock.move(5 * HOUR_MS);
  await round();
  assert.deepEqual([mailed("tls@reports.example"), posts], [[], []]);
  await resumeSending(api.world);
});

test("nor where the operator has turned reports off", async () => {
  const config = { ...api.config, tls_reports: false };
  await sendReports({ ...api.world, config }, reportPorts(api.world, api.engine));
  assert.deepEqual([mailed("tls@reports.example"), posts], [[], []]);
});

test("then each domain that asked for it gets its report by mail, signed, although the policy of its mail server is not met", async () => {
  await round();
  const mails = await until("two reports", () => {
    const found = mailed("tls@reports.example");
    return found.length >= 2 && found;
  });
  const byDomain = new Map<string, Received>();
  for (const mail of mails) {
    const read = await PostalMime.parse(mail.bytes);
    byDomain.set(read.headers.find(({ key }) => key === "tls-report-domain")?.value ?? "", mail);
  }
  assert.deepEqual([...byDomain.keys()].sort(), ["plain.example", "strict.example"]);
  const { bytes } = byDomain.get("strict.example") as Received;
  const read = await PostalMime.parse(bytes);
  const field = (name: string) => read.headers.find(({ key }) => key === name)?.value;
  assert.equal(field("tls-report-submitter"), SERVICE);
  assert.match(field("content-type") ?? "", /^multipart\/report; report-type="tlsrpt"/);
  assert.equal(
    read.subject,
    `Report Domain: strict.example Submitter: ${SERVICE} Report-ID: <2026-03-10.strict.example@${SERVICE}>`,
  );
  const [file] = read.attachments;
  assert.equal(file?.mimeType, "application/tlsrpt+gzip");
  assert.equal(file?.filename, `${SERVICE}!strict.example!1773100800!1773187199.json.gz`);

  const { results } = await dkimVerify(bytes, { resolver: nodeStyleResolver(api.world.resolver) } as never);
  assert.deepEqual(
    results.map(({ signingDomain, status }) => [signingDomain, status.result]),
    [[SERVICE, "pass"]],
  );

  const report = open(new Uint8Array(file?.content as ArrayBuffer));
  assert.deepEqual(
    [report.organization_name, report.contact_info, report.begin_ms, report.end_ms],
    ["postern.test", "postmaster@postern.test", Date.parse("2026-03-10T00:00:00Z"), Date.parse("2026-03-10T23:59:59Z")],
  );
  const [policy, ...more] = report.policies;
  assert.deepEqual(more, []);
  assert.deepEqual(
    [policy?.policy_type, policy?.policy_domain, policy?.mx_host, policy?.total_successful_session_count],
    ["sts", "strict.example", ["mx.strict.example"], 0],
  );
  const failures = policy?.failure_details ?? [];
  assert.deepEqual(
    failures.map(({ result_type, receiving_mx_hostname, receiving_ip }) => [
      result_type,
      receiving_mx_hostname,
      receiving_ip,
    ]),
    [["certificate-not-trusted", "mx.strict.example", "127.0.0.1"]],
  );
  assert.equal(policy?.total_failure_session_count, failures[0]?.failed_session_count);

  const plain = await PostalMime.parse((byDomain.get("plain.example") as Received).bytes);
  const [none] = open(new Uint8Array(plain.attachments[0]?.content as ArrayBuffer)).policies;
  assert.deepEqual(
    [none?.policy_type, none?.total_successful_session_count, none?.total_failure_session_count],
    ["no-policy-found", 1, 0],
  );
});

test("or by HTTPS, again until it is taken, and then no more", async () => {
  assert.deepEqual(
    posts.map(({ path, type }) => [path, type]),
    [["/tls", "application/tlsrpt+gzip"]],
  );
  answer = 201;
  for (const expected of [2, 2]) {
    clock.move(HOUR_MS);
    await round();
    assert.equal(posts.length, expected);
  }
  const [first, second] = posts.map(({ body }) => open(body));
  assert.equal(first?.policies[0]?.policy_domain, "posted.example");
  assert.deepEqual(second, first);
});

test("domains that ask for none, or not as they must, get none, and no report is mailed twice", () => {
  assert.deepEqual([mailed("a@x.example"), mailed("b@x.example")], [[], []]);
  assert.equal(mailed("tls@reports.example").length, 2);
});

test("the mail of reports is not in the next report, nor in the list of e-mails", async () => {
  receiveAt(dns, "later.example");
  await send("later.example", "delivered");
  await until("the count of a later mail", async () => (await counted("later.example")) > 0);
  assert.equal(await counted("reports.example"), 0);
  const { body } = await api.ask("GET", "/v1/emails");
  assert.ok(body.emails.length > 0);
  assert.deepEqual(
    body.emails.filter(({ subject }: { subject: string }) => subject.startsWith("Report Domain")),
    [],
  );
});
