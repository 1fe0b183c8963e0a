// Mail under other domains' TLS policies, over real sockets: DANE through unbound and a zone signed for the test, MTA-STS
// from a web server with a certificate, and what is opportunistic. A server's certificate counts only where a policy says so.
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createSecureContext, getCACertificates, setDefaultCACertificates } from "node:tls";
import { publicKeyOf } from "../../src/mail/dane.ts";
import type { FetchRequest } from "../../src/platform/net/safe-fetch.ts";
import type { World } from "../../src/platform/world.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { signZone, type ZoneRecord } from "../support/signed-zone.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { type CertificateAuthority, type IssuedCertificate, makeCertificateAuthority } from "../support/tls.ts";
import { hasUnbound, startUnbound, type Unbound } from "../support/unbound.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const APEX = "dane.test";
const HOUR_MS = 3_600_000;
const dir = mkdtempSync(join(tmpdir(), "postern-tls-"));

let dns: DnsServer;
let unbound: Unbound | null = null;
let trusted: CertificateAuthority;
let stranger: CertificateAuthority;
let sink: SmtpSink;
let clear: SmtpSink;
let web: Server;
let api: TestApi;
let clock: MovedClock;
const policies = new Map<string, string>();

before(async () => {
  trusted = makeCertificateAuthority(dir);
  stranger = makeCertificateAuthority(dir);
  setDefaultCACertificates([...getCACertificates("bundled"), trusted.ca]);
  dns = await startDnsServer();
  await startServers();
  if (hasUnbound()) unbound = await startUnbound({ [APEX]: signZone(APEX, zone(), BOGUS) }, dns);
  clock = runningClock(new Date().toISOString());
  api = await testApi(
    {
      POSTERN_DNS: unbound?.address ?? dns.address,
      POSTERN_DNS_VALIDATING: unbound ? "1" : "0",
      POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    },
    (world) => byClock(clock)(policiesFromTest(world)),
  );
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  for (const server of [sink, clear, unbound, dns]) await server?.stop();
  web?.close();
  web?.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
});

/** One port, two addresses: 127.0.0.1 has TLS with a certificate for each name, 127.0.0.2 none at all. */
async function startServers(): Promise<void> {
  const sni = (host: string) => context(certificates.get(host) ?? stranger.issue([host]));
  const { key, cert } = stranger.issue(["default.example"]);
  sink = await startSmtpSink({ key, cert, SNICallback: (host, done) => done(null, sni(host)) });
  clear = await startSmtpSink({}, { host: "127.0.0.2", port: sink.port });
  const webSni = (host: string) => context((host.includes("badweb") ? stranger : trusted).issue([host]));
  web = createServer({ key, cert, SNICallback: (host, done) => done(null, webSni(host)) }, (request, response) => {
    const text = policies.get(request.headers.host?.replace(/^mta-sts\.|:\d+$/g, "") ?? "");
    response.writeHead(text ? 200 : 404, { "content-type": "text/plain" }).end(text);
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
}

const certificates = new Map<string, IssuedCertificate>();

function context({ key, cert, ca }: IssuedCertificate) {
  return createSecureContext({ key, cert: cert + ca });
}

/** Policies are fetched from port 443, which is not ours to open: the request goes to the test's server instead. */
function policiesFromTest(world: World): World {
  const { port } = web.address() as { port: number };
  const fetch = (request: FetchRequest) =>
    world.fetch({ ...request, url: request.url.replace(/^(https:\/\/mta-sts\.[^/]+)\//, `$1:${port}/`) });
  return { ...world, fetch: Object.assign(fetch, { close: world.fetch.close }) };
}

type Event = Record<"event_type" | "message" | "tls" | "mx_host" | "enhanced_code", string | null> & {
  event_type: string;
};

/** Sends one mail and gives what the timeline says of its last attempt. */
async function attemptOn(domain: string, change: Record<string, unknown> = {}): Promise<Event> {
  const sent = await api.ask("POST", "/v1/send", {
    from: "hello@sender.example",
    to: [`anna@${domain}`],
    subject: "Hello",
    text_body: "Hello",
    ...change,
  });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await emailWithStatus(api, sent.body.id, ["delivered", "deferred", "bounced"], 20_000);
  const { body } = await api.ask("GET", `/v1/emails/${sent.body.id}/events`);
  return body.events.at(-1);
}

const delivered = (event: Event, tls: RegExp | null) => {
  assert.equal(event.event_type, "delivered", JSON.stringify(event));
  if (tls) assert.match(event.tls ?? "null", tls);
  else assert.equal(event.tls, null);
};

const deferred = (event: Event, enhanced: string, message: RegExp) => {
  assert.equal(event.event_type, "deferred", JSON.stringify(event));
  assert.equal(event.enhanced_code, enhanced, JSON.stringify(event));
  assert.match(event.message ?? "", message);
};

/** What is to be stored for reports by the end, as `policy result`, by domain. */
const awaited = new Map<string, string[]>();

type TlsResult = Record<"result" | "mx_host" | "mx_ip" | "policy_type" | "policy_domain", string> & {
  sessions: number;
  detail: string | null;
  policy_strings: string[];
};
const TLS_RESULTS = `select * from tls_result r join tls_policy_text t using (policy_hash)
   where r.domain = $1 order by r.day, r.policy_hash, r.result, r.mx_host, r.mx_ip, r.source_ip`;

/** What was stored for reports, of whichever day: the hours that the clock is moved by may end one. */
async function results(domain: string, atLeast: number) {
  return until(`${atLeast} results of ${domain}`, async () => {
    const rows = await api.world.db.query<TlsResult>(TLS_RESULTS, [domain]);
    return rows.length >= atLeast && rows;
  });
}

// --- DANE -----------------------------------------------------------------------------------------------------------------

const BOGUS = [`_25._tcp.mx.bogus.${APEX} TLSA`];

/** `name.dane.test` has its mail server at `mx.name.dane.test`, and what is said of that in the list. */
function zone(): ZoneRecord[] {
  const unusable = ["unusable", "enforced", "stolen"];
  const names = ["right", "anchor", "wrong", "none", "clear", "bogus", "malformed", "mixed", ...unusable];
  const hosts = names.flatMap((name) => receiving(`${name}.${APEX}`, name === "clear" ? "127.0.0.2" : "127.0.0.1"));
  const right = (name: string) => digest(`mx.${name}.${APEX}`);
  const tlsa = (name: string, usage: number, data: Buffer): ZoneRecord => ({
    name: `_25._tcp.mx.${name}.${APEX}`,
    type: "TLSA",
    usage,
    selector: 1,
    matching_type: 1,
    data,
  });
  const announced = ["wrong", "enforced", "stolen"].flatMap((name): ZoneRecord[] => [
    { name: `_mta-sts.${name}.${APEX}`, type: "TXT", text: "v=STSv1; id=1" },
    { name: `mta-sts.${name}.${APEX}`, type: "A", address: "127.0.0.1" },
  ]);
  return [
    ...hosts,
    ...announced,
    tlsa("right", 3, right("right")),
    tlsa("anchor", 2, keyDigest(stranger.ca)),
    tlsa("wrong", 3, Buffer.alloc(32, 7)),
    tlsa("clear", 3, Buffer.alloc(32, 7)),
    tlsa("bogus", 3, right("bogus")),
    tlsa("malformed", 3, Buffer.alloc(3)),
    ...unusable.map((name) => tlsa(name, 1, Buffer.alloc(32, 7))),
    tlsa("mixed", 3, Buffer.alloc(32, 7)),
    { name: `mixed.${APEX}`, type: "MX", preference: 20, exchange: `mx.right.${APEX}` },
    ...["leaving", "astray"].flatMap((name): ZoneRecord[] => [
      { name: `${name}.${APEX}`, type: "MX", preference: 10, exchange: `mx.${name}.${APEX}` },
      { name: `mx.${name}.${APEX}`, type: "CNAME", target: "mx.outside.example" },
    ]),
    tlsa("leaving", 3, right("leaving")),
    tlsa("astray", 3, Buffer.alloc(32, 7)),
    { name: `alias.${APEX}`, type: "MX", preference: 10, exchange: `smtp.alias.${APEX}` },
    { name: `smtp.alias.${APEX}`, type: "CNAME", target: `mx.right.${APEX}` },
  ];
}

function receiving(domain: string, address: string): ZoneRecord[] {
  return [
    { name: domain, type: "MX", preference: 10, exchange: `mx.${domain}` },
    { name: `mx.${domain}`, type: "A", address },
  ];
}

/** Of the key in the certificate that the server has under this name, from an authority that nobody trusts. */
function digest(host: string): Buffer {
  const issued = certificates.get(host) ?? stranger.issue([host]);
  certificates.set(host, issued);
  return keyDigest(issued.cert);
}

function keyDigest(pem: string): Buffer {
  const key = publicKeyOf(Buffer.from(new X509Certificate(pem).raw)) as Buffer;
  return createHash("sha256").update(key).digest();
}

describe("DANE", { skip: hasUnbound() ? false : "unbound is not installed" }, () => {
  it("delivers to the certificate that the signed zone names, whoever issued it", async () => {
    delivered(await attemptOn(`right.${APEX}`), /^TLSv1\.3 TLS_\w+ dane$/);
    delivered(await attemptOn(`anchor.${APEX}`), / dane$/);
  });

  it("finds the records of a host that is an alias under the name it leads to (RFC 7672 §2.2.2)", async () => {
    const event = await attemptOn(`alias.${APEX}`);
    delivered(event, / dane$/);
    assert.equal(event.mx_host, `smtp.alias.${APEX}`);
  });

  it("counts for a host that is an alias of one in a zone without signatures", async () => {
    dns.set("mx.outside.example", "A", ["127.0.0.1"]);
    delivered(await attemptOn(`leaving.${APEX}`), / dane$/);
    deferred(await attemptOn(`astray.${APEX}`), "4.7.5", /_25\._tcp\.mx\.astray\.dane\.test.*not one of those/);
  });

  it("keeps mail back from another certificate, and from a server without TLS", async () => {
    const before = sink.messages.length;
    deferred(
      await attemptOn(`wrong.${APEX}`),
      "4.7.5",
      /TLSA records \(DANE\) are not met: .*not one of those in the TLSA/,
    );
    deferred(await attemptOn(`clear.${APEX}`), "4.7.10", /\(DANE\) are not met: .*does not offer STARTTLS/);
    assert.deepEqual([sink.messages.length, clear.messages.length], [before, 0]);
  });

  it("keeps mail back when records are bogus or malformed", async () => {
    deferred(await attemptOn(`bogus.${APEX}`), "4.7.5", /could not be looked up: servfail/);
    deferred(await attemptOn(`malformed.${APEX}`), "4.7.5", /malformed: TLSA 3 1 1 has 3 bytes instead of 32/);
  });

  it("passes over a server whose records do not match for one whose do", async () => {
    const event = await attemptOn(`mixed.${APEX}`);
    delivered(event, / dane$/);
    assert.equal(event.mx_host, `mx.right.${APEX}`);
  });

  it("demands TLS, and no more, for records of kinds that SMTP does not use (RFC 7672 §2.2)", async () => {
    delivered(await attemptOn(`unusable.${APEX}`), / dane-unauthenticated$/);
  });

  it("has no say where there are no records, or the domain's own zone is not signed (§2.2.1)", async () => {
    delivered(await attemptOn(`none.${APEX}`), /^TLSv1\.3 TLS_\w+$/);
    dns.set("unsigned.example", "MX", [{ exchange: `mx.wrong.${APEX}`, preference: 10 }]);
    delivered(await attemptOn("unsigned.example"), /^TLSv1\.3 TLS_\w+$/);
  });

  it("goes before MTA-STS", async () => {
    publishPolicy(`wrong.${APEX}`, { mode: "enforce", certificate: trusted.issue([`mx.wrong.${APEX}`]) });
    deferred(await attemptOn(`wrong.${APEX}`), "4.7.5", /DANE/);
  });
});

// --- MTA-STS --------------------------------------------------------------------------------------------------------------

type Given = { mode: string; mx?: string; max_age?: number; host?: string; certificate?: IssuedCertificate | null };

/** A domain with a policy; `certificate` null is a server without TLS. */
function publishPolicy(domain: string, given: Given): void {
  const host = given.host ?? `mx.${domain}`;
  receiveAt(dns, domain, host);
  if (given.certificate === null) dns.set(host, "A", ["127.0.0.2"]);
  else if (!certificates.has(host)) certificates.set(host, given.certificate ?? trusted.issue([host]));
  dns.set(`_mta-sts.${domain}`, "TXT", ["v=STSv1; id=1"]);
  dns.set(`mta-sts.${domain}`, "A", ["127.0.0.1"]);
  const { mode, mx = host, max_age = 86_400 } = given;
  policies.set(domain, `version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: ${max_age}\r\n`);
}

describe("MTA-STS", () => {
  it("delivers to a named server with a valid certificate", async () => {
    publishPolicy("enforce.example", { mode: "enforce" });
    delivered(await attemptOn("enforce.example"), /^TLSv1\.3 TLS_\w+ sts$/);
    publishPolicy("star.example", { mode: "enforce", mx: "*.star.example" });
    delivered(await attemptOn("star.example"), / sts$/);
  });

  it("keeps mail back from a server with a bad certificate, with another name's, with an expired one", async () => {
    const bad: [string, IssuedCertificate, RegExp, string][] = [
      ["untrusted", stranger.issue(["mx.untrusted.example"]), /not valid for mx\.untrusted/, "certificate-not-trusted"],
      [
        "othername",
        trusted.issue(["mx.elsewhere.example"]),
        /it is for other names \(mx\.elsewhere\.example\)$/,
        "certificate-host-mismatch",
      ],
      [
        "expired",
        trusted.issue(["mx.expired.example"], { from_days: -9, until_days: -1 }),
        /it has expired$/,
        "certificate-expired",
      ],
    ];
    for (const [name, certificate, message, result] of bad) {
      publishPolicy(`${name}.example`, { mode: "enforce", certificate });
      const event = await attemptOn(`${name}.example`);
      deferred(event, "4.7.5", /the MTA-STS policy of \w+\.example is not met/);
      assert.match(event.message ?? "", message);
      awaited.set(`${name}.example`, [`sts ${result}`]);
    }
  });

  it("keeps mail back where TLS has been stripped, and says nothing in clear", async () => {
    publishPolicy("stripped.example", { mode: "enforce", certificate: null });
    deferred(await attemptOn("stripped.example"), "4.7.10", /does not offer STARTTLS/);
    assert.equal(clear.messages.length, 0);
  });

  it("keeps mail back from servers that the policy does not name", async () => {
    publishPolicy("hijacked.example", { mode: "enforce", mx: "mx.honest.example" });
    deferred(await attemptOn("hijacked.example"), "4.7.5", /policy of hijacked\.example does not name this server/);
  });

  it("in testing mode delivers all the same, and tells the report what was wrong", async () => {
    publishPolicy("good-test.example", { mode: "testing" });
    delivered(await attemptOn("good-test.example"), / sts-testing$/);
    publishPolicy("bad-test.example", { mode: "testing", certificate: stranger.issue(["mx.bad-test.example"]) });
    delivered(await attemptOn("bad-test.example"), / sts-testing-failed$/);
    publishPolicy("clear-test.example", { mode: "testing", certificate: null });
    delivered(await attemptOn("clear-test.example"), null);
    awaited.set("good-test.example", ["sts success"]);
    awaited.set("bad-test.example", ["sts certificate-not-trusted"]);
    awaited.set("clear-test.example", ["sts starttls-not-supported"]);
  });

  it("in testing mode tells of a server that the policy does not name, whatever its certificate", async () => {
    publishPolicy("unnamed-test.example", { mode: "testing", mx: "mx.honest.example" });
    delivered(await attemptOn("unnamed-test.example"), / sts-testing-failed$/);
    awaited.set("unnamed-test.example", ["sts validation-failure"]);
  });

  it("in testing mode judges the certificate, also where a session without a policy is open", async () => {
    publishPolicy("shared-test.example", { mode: "testing", host: "mx.common.example" });
    receiveAt(dns, "no-policy.example", "mx.common.example");
    const before = sink.connections;
    delivered(await attemptOn("no-policy.example"), /^TLSv1\.3 TLS_\w+$/);
    delivered(await attemptOn("shared-test.example"), / sts-testing$/);
    delivered(await attemptOn("no-policy.example"), /^TLSv1\.3 TLS_\w+$/);
    assert.equal(sink.connections - before, 2);
    awaited.set("shared-test.example", ["sts success"]);
  });

  it("goes for servers whose TLSA records are of kinds that SMTP does not use", {
    skip: hasUnbound() ? false : "unbound is not installed",
  }, async () => {
    const domain = `enforced.${APEX}`;
    publishPolicy(domain, { mode: "enforce" });
    delivered(await attemptOn(domain), / sts$/);
    publishPolicy(`stolen.${APEX}`, { mode: "enforce", certificate: stranger.issue([`mx.stolen.${APEX}`]) });
    deferred(await attemptOn(`stolen.${APEX}`), "4.7.5", /the MTA-STS policy of stolen\.dane\.test is not met/);
    awaited.set(domain, ["sts success"]);
  });

  it("that cannot be had does not stop mail, and is reported", async () => {
    publishPolicy("badweb.example", { mode: "enforce", certificate: stranger.issue(["mx.badweb.example"]) });
    delivered(await attemptOn("badweb.example"), /^TLSv1\.3 TLS_\w+$/);
    awaited.set("badweb.example", ["no-policy-found success", "sts sts-webpki-invalid"]);
  });

  it("holds for its own domain alone, also when others have the same mail server", async () => {
    receiveAt(dns, "lax.example", "mx.shared.example");
    const certificate = stranger.issue(["mx.shared.example"]);
    publishPolicy("strict.example", { mode: "enforce", host: "mx.shared.example", certificate });
    delivered(await attemptOn("lax.example"), /^TLSv1\.3 TLS_\w+$/);
    deferred(await attemptOn("strict.example"), "4.7.5", /strict\.example is not met/);
    delivered(await attemptOn("lax.example"), /^TLSv1\.3 TLS_\w+$/);
    deferred(await attemptOn("strict.example"), "4.7.5", /strict\.example is not met/);
  });

  it("lets domains with one mail server share a session that was proven", async () => {
    publishPolicy("one.example", { mode: "enforce", host: "mx.pair.example" });
    publishPolicy("two.example", { mode: "enforce", host: "mx.pair.example" });
    const before = sink.connections;
    delivered(await attemptOn("one.example"), / sts$/);
    delivered(await attemptOn("two.example"), / sts$/);
    assert.equal(sink.connections - before, 1);
    awaited.set("two.example", ["sts success"]);
  });

  it("counts until it expires, by the wall clock", async () => {
    publishPolicy("later.example", {
      mode: "enforce",
      max_age: 7_200,
      certificate: stranger.issue(["mx.later.example"]),
    });
    deferred(await attemptOn("later.example"), "4.7.5", /later\.example is not met/);
    dns.remove("_mta-sts.later.example");
    clock.move(HOUR_MS);
    deferred(await attemptOn("later.example"), "4.7.5", /later\.example is not met/);
    clock.move(HOUR_MS);
    delivered(await attemptOn("later.example"), /^TLSv1\.3 TLS_\w+$/);
  });
});

// --- nobody's policy --------------------------------------------------------------------------------------------------------

describe("without a policy", () => {
  it("TLS is used where it is offered, and clear text where it is not", async () => {
    receiveAt(dns, "plain.example");
    delivered(await attemptOn("plain.example"), /^TLSv1\.3 TLS_\w+$/);
    receiveAt(dns, "old.example");
    dns.set("mx.old.example", "A", ["127.0.0.2"]);
    delivered(await attemptOn("old.example"), null);
    awaited.set("old.example", ["no-policy-found starttls-not-supported"]);
  });

  it("a message that requires TLS waits for it, although others went in clear", async () => {
    deferred(
      await attemptOn("old.example", { require_tls: true }),
      "4.7.10",
      /requires TLS: .*does not offer STARTTLS/,
    );
    delivered(await attemptOn("old.example"), null);
    delivered(await attemptOn("plain.example", { require_tls: true }), /^TLSv1\.3 TLS_\w+$/);
  });

  it("all mail of a sender domain with tls_policy require waits for TLS", async () => {
    await addVerifiedDomain(api, dns, "careful.example");
    assert.equal((await api.ask("PUT", "/v1/domains/careful.example", { tls_policy: "require" })).status, 200);
    deferred(await attemptOn("old.example", { from: "hello@careful.example" }), "4.7.10", /requires TLS/);
    delivered(await attemptOn("old.example"), null);
  });

  it("mail never goes to a server that is only another domain's, though both hide behind one provider", async () => {
    dns.set("mx.l.google.com", "A", ["127.0.0.1"]);
    receiveAt(dns, "honest.example", "mx.l.google.com");
    delivered(await attemptOn("honest.example"), /TLS/);
    // The first host exists only as a name, so that the provider's path would lead to the second.
    dns.set("evil.example", "MX", [
      { exchange: "nowhere.google.com", preference: 1 },
      { exchange: "mx.evil.example", preference: 2 },
    ]);
    dns.set("mx.evil.example", "A", ["127.0.0.2"]);
    const evil = await attemptOn("evil.example");
    assert.equal(evil.mx_host, "mx.evil.example");
    assert.equal((await attemptOn("honest.example")).mx_host, "mx.l.google.com");
  });
});

// --- results --------------------------------------------------------------------------------------------------------------

describe("results for reports", () => {
  it("are counted by domain and policy", async () => {
    for (const [domain, expected] of awaited) {
      const rows = await results(domain, expected.length);
      assert.deepEqual(
        [...new Set(rows.map(({ policy_type, result }) => `${policy_type} ${result}`))].sort(),
        expected,
      );
    }
    const [row] = await results("untrusted.example", 1);
    assert.deepEqual([row?.mx_host, row?.mx_ip], ["mx.untrusted.example", "127.0.0.1"]);
    // The hours that the clock was moved by bring retries.
    assert.ok((row?.sessions ?? 0) >= 1, `${row?.sessions} sessions`);
    assert.match(row?.detail ?? "", /not valid for mx\.untrusted\.example/);
    assert.deepEqual(row?.policy_strings, [
      "version: STSv1",
      "mode: enforce",
      "mx: mx.untrusted.example",
      "max_age: 86400",
    ]);
  });

  it("of DANE stand under the name of the records", {
    skip: hasUnbound() ? false : "unbound is not installed",
  }, async () => {
    const [right] = await results(`right.${APEX}`, 1);
    assert.deepEqual(
      [right?.policy_type, right?.policy_domain, right?.result, right?.sessions],
      ["tlsa", `mx.right.${APEX}`, "success", 1],
    );
    assert.deepEqual(right?.policy_strings, [`3 1 1 ${digest(`mx.right.${APEX}`).toString("hex")}`]);
    const [malformed] = await results(`malformed.${APEX}`, 1);
    assert.deepEqual([malformed?.policy_type, malformed?.result], ["tlsa", "tlsa-invalid"]);
    const [bogus] = await results(`bogus.${APEX}`, 1);
    assert.equal(bogus?.result, "dnssec-invalid");
  });
});
