// Mail that leaves through a customer's relay, over real sockets: login and TLS, what a relay may refuse, what happens to
// mail that waits, and the fall-back while nobody's port 25 can be reached.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { SMTPServerAuthentication } from "smtp-server";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { makeCertificateAuthority } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const LOGIN = { username: "postern", password: "s3cret pässword" };
const MINUTE_MS = 60_000;
const dir = mkdtempSync(join(tmpdir(), "postern-relay-"));

let dns: DnsServer;
let direct: SmtpSink;
let relay: SmtpSink;
let implicit: SmtpSink;
let impostor: SmtpSink;
let logins: string[];
let clock: MovedClock;
let aheadMs = 0;

before(async () => {
  const trusted = makeCertificateAuthority(dir);
  const stranger = makeCertificateAuthority(dir);
  setDefaultCACertificates([...getCACertificates("bundled"), trusted.ca]);
  dns = await startDnsServer();
  for (const host of ["relay", "implicit", "impostor"]) dns.set(`${host}.example`, "A", ["127.0.0.1"]);
  dns.set("inside.example", "A", ["10.0.0.1"]);
  direct = await startSmtpSink();
  relay = await startSmtpSink(withLogin(trusted.issue(["relay.example"])));
  implicit = await startSmtpSink({ ...withLogin(trusted.issue(["implicit.example"])), secure: true });
  impostor = await startSmtpSink(withLogin(stranger.issue(["impostor.example"])));
  logins = [];
  clock = { ...runningClock(new Date().toISOString()), monotonic: () => performance.now() + aheadMs };
});

after(async () => {
  for (const server of [direct, relay, implicit, impostor, dns]) await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** A relay that takes nobody without the right login. */
function withLogin({ key, cert }: { key: string; cert: string }) {
  return {
    key,
    cert,
    disabledCommands: [],
    authOptional: false,
    onAuth(
      { username = "", password }: SMTPServerAuthentication,
      _session: unknown,
      done: (error: Error | null, answer?: { user: string }) => void,
    ) {
      logins.push(username);
      if (username === LOGIN.username && password === LOGIN.password) done(null, { user: username });
      else done(Object.assign(new Error("5.7.8 wrong user name or password"), { responseCode: 535 }));
    },
  };
}

async function start(port: number): Promise<TestApi> {
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(port) };
  const api = await testApi(env, byClock(clock));
  await api.startMta();
  return api;
}

async function setRelay(api: TestApi, domain: string, settings: Record<string, unknown>): Promise<void> {
  const { status, body } = await api.ask("PUT", `/v1/domains/${domain}/relay`, { ...LOGIN, ...settings });
  assert.equal(status, 200, JSON.stringify(body));
}

async function send(api: TestApi, from: string, to: string, change: object = {}): Promise<string> {
  const mail = { from: `hello@${from}`, to: [`anna@${to}`], subject: "Hello", text_body: "Hello", ...change };
  const sent = await api.ask("POST", "/v1/send", mail);
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  return sent.body.id;
}

/** The last entry of the timeline, once the e-mail has come to one of the statuses. */
async function lastEvent(api: TestApi, id: string, ...statuses: string[]) {
  await emailWithStatus(api, id, statuses, 15_000);
  return (await api.ask("GET", `/v1/emails/${id}/events`)).body.events.at(-1);
}

/** What processes remember of relays, they remember for two seconds by the monotonic clock. */
function forget(): void {
  aheadMs += 2_050;
}

describe("a relay that is always used", () => {
  let api: TestApi;
  before(async () => {
    api = await start(direct.port);
    receiveAt(dns, "recipient.example");
  });
  after(() => api.close());

  it("gets the mail over a checked certificate with its login, and the timeline says so", async () => {
    await addVerifiedDomain(api, dns, "one.example");
    await setRelay(api, "one.example", { host: "relay.example", port: relay.port });
    const event = await lastEvent(api, await send(api, "one.example", "recipient.example"), "delivered");
    assert.deepEqual([event.event_type, event.mx_host, event.mx_ip], ["delivered", "relay.example", "127.0.0.1"]);
    assert.match(event.tls, /^TLSv1\.3 TLS_\w+ verified$/);
    const [got] = relay.messages;
    assert.deepEqual([got?.user, got?.secure, got?.to], ["postern", true, ["anna@recipient.example"]]);
    assert.match(got?.from ?? "", /^b\+\w+@pt-bounces\.one\.example$/);
    assert.equal(direct.messages.length, 0);
  });

  it("is reached once for many recipients' domains", async () => {
    const before = { connections: relay.connections, messages: relay.messages.length };
    for (const name of ["a", "b", "c"]) await send(api, "one.example", `${name}.example`);
    await relay.waitFor(before.messages + 3);
    assert.ok(
      relay.connections - before.connections <= 2,
      `${relay.connections - before.connections} more connections`,
    );
  });

  it("may speak TLS from the first byte", async () => {
    await addVerifiedDomain(api, dns, "two.example");
    await setRelay(api, "two.example", { host: "implicit.example", port: implicit.port, tls: "implicit" });
    const event = await lastEvent(api, await send(api, "two.example", "recipient.example"), "delivered");
    assert.deepEqual([event.mx_host, implicit.messages[0]?.user], ["implicit.example", "postern"]);
  });

  it("never hears the login if its certificate is not valid, nor mail: that waits", async () => {
    await addVerifiedDomain(api, dns, "three.example");
    await setRelay(api, "three.example", { host: "impostor.example", port: impostor.port });
    logins = [];
    const event = await lastEvent(api, await send(api, "three.example", "recipient.example"), "deferred");
    assert.match(event.message, /impostor\.example: the relay's TLS is not accepted: .*not valid for impostor/);
    assert.deepEqual([logins, impostor.messages], [[], []]);
  });

  it("that refuses the login makes mail wait, and its answer is shown without the password", async () => {
    await addVerifiedDomain(api, dns, "four.example");
    await setRelay(api, "four.example", { host: "relay.example", port: relay.port, password: "wrong" });
    const event = await lastEvent(api, await send(api, "four.example", "recipient.example"), "deferred");
    assert.deepEqual([event.smtp_code, event.mx_host], ["535", "relay.example"]);
    assert.match(event.message, /wrong user name or password/);
  });

  it("that refuses the login hears no second one until it is set right, and gets then what waits", async () => {
    await addVerifiedDomain(api, dns, "four-too.example");
    await setRelay(api, "four-too.example", { host: "relay.example", port: relay.port, password: "wrong" });
    logins = [];
    await lastEvent(api, await send(api, "four-too.example", "recipient.example"), "deferred");
    const later = await send(api, "four-too.example", "recipient.example");
    await until("its lane sleeps", async () => {
      const [lane] = await api.world.db.query<{ waiting: number }>(
        `select (select count(*) from delivery where lane_id = l.id and message_id = $1 and owner is null) as waiting
           from lane l join domain d on d.id = l.relay_domain_id
          where d.domain = 'four-too.example' and paused_until > $2`,
        [later, new Date(clock.now())],
      );
      return lane?.waiting === 1;
    });
    assert.equal(logins.length, 1, "each further one brings the account nearer to being locked");
    await setRelay(api, "four-too.example", { host: "relay.example", port: relay.port });
    await lastEvent(api, later, "delivered");
    assert.equal(logins.length, 2);
  });

  it("that wants a login it was not given makes mail wait, and gets it once it has one", async () => {
    await addVerifiedDomain(api, dns, "anonymous.example");
    const place = { host: "relay.example", port: relay.port };
    await setRelay(api, "anonymous.example", { ...place, username: null, password: null });
    const id = await send(api, "anonymous.example", "recipient.example");
    const refused = await lastEvent(api, id, "deferred", "bounced");
    assert.deepEqual([refused.event_type, refused.smtp_code], ["deferred", "530"]);
    await setRelay(api, "anonymous.example", place);
    forget();
    clock.move(10 * MINUTE_MS);
    assert.equal((await lastEvent(api, id, "delivered", "bounced")).event_type, "delivered");
  });

  it("that cannot be found, or lies inside, makes mail wait and never bounces it", async () => {
    const cases: [string, string, RegExp][] = [
      ["five.example", "gone.example", /the relay gone\.example: it has no address on the public internet$/],
      ["five-too.example", "inside.example", /the relay inside\.example: it has no address on the public internet$/],
    ];
    for (const [domain, host, message] of cases) {
      await addVerifiedDomain(api, dns, domain);
      await setRelay(api, domain, { host });
      const id = await send(api, domain, "recipient.example");
      assert.match((await lastEvent(api, id, "deferred", "bounced")).message, message);
    }
  });

  it("that is set later takes what waits, and what waits goes directly once it is gone", async () => {
    await addVerifiedDomain(api, dns, "six.example");
    dns.set("down.example", "MX", [{ exchange: "mx.down.example", preference: 1 }]);
    dns.set("mx.down.example", "A", ["127.0.0.66"]);
    const id = await send(api, "six.example", "down.example");
    assert.equal((await lastEvent(api, id, "deferred")).mx_host, "mx.down.example");
    await setRelay(api, "six.example", { host: "relay.example", port: relay.port });
    forget();
    clock.move(6 * MINUTE_MS);
    assert.equal((await lastEvent(api, id, "delivered")).mx_host, "relay.example");
    const lanes = await api.world.db.query<{ relay_domain_id: string | null }>(
      "select relay_domain_id from lane where domain = 'down.example' order by relay_domain_id nulls first",
    );
    assert.deepEqual(
      lanes.map(({ relay_domain_id }) => relay_domain_id !== null),
      [false, true],
    );
    await api.ask("DELETE", "/v1/domains/six.example/relay");
    forget();
    const later = await lastEvent(api, await send(api, "six.example", "recipient.example"), "delivered");
    assert.equal(later.mx_host, "mx.recipient.example");
  });

  it("may be on this machine, without TLS and login, in tests", async () => {
    await addVerifiedDomain(api, dns, "seven.example");
    const settings = { host: "127.0.0.1", port: direct.port, tls: "none", username: null, password: null };
    await setRelay(api, "seven.example", settings);
    const event = await lastEvent(api, await send(api, "seven.example", "elsewhere.example"), "delivered");
    assert.deepEqual([event.mx_host, event.tls], ["127.0.0.1", null]);
    const strict = await lastEvent(
      api,
      await send(api, "seven.example", "x.example", { require_tls: true }),
      "deferred",
    );
    assert.match(strict.message, /127\.0\.0\.1: .*does not offer STARTTLS/);
  });
});

describe("a relay to fall back on", () => {
  let api: TestApi;
  before(async () => {
    api = await start(direct.port);
    // Nothing is made of dead sites in the first minute.
    aheadMs += MINUTE_MS;
    await addVerifiedDomain(api, dns, "sender.example");
    await addVerifiedDomain(api, dns, "without.example");
    await setRelay(api, "sender.example", { host: "relay.example", port: relay.port, mode: "fallback" });
    for (const name of ["p", "q", "r", "s"]) {
      dns.set(`${name}.example`, "MX", [{ exchange: `mx.${name}.example`, preference: 1 }]);
      dns.set(`mx.${name}.example`, "A", ["127.0.0.66"]);
    }
  });
  after(() => api.close());

  it("is left alone while it is a site that is down, and used once the way out is closed", async () => {
    for (const name of ["p", "q"]) {
      const event = await lastEvent(api, await send(api, "sender.example", `${name}.example`), "deferred");
      assert.equal(event.mx_host, `mx.${name}.example`);
    }
    const shown = async () => (await api.ask("GET", "/v1/domains/sender.example/relay")).body.relay.in_use;
    assert.equal(await shown(), false);
    const third = await send(api, "sender.example", "r.example");
    assert.equal((await lastEvent(api, third, "delivered")).mx_host, "relay.example", "the third that fails");
    const fourth = await send(api, "sender.example", "s.example");
    assert.equal((await lastEvent(api, fourth, "delivered")).mx_host, "relay.example");
    assert.equal(await shown(), true);
  });

  it("takes what waits for a site as well, but nothing of a domain without a relay", async () => {
    const before = relay.messages.length;
    clock.move(6 * MINUTE_MS);
    await relay.waitFor(before + 2);
    const event = await lastEvent(api, await send(api, "without.example", "s.example"), "deferred");
    assert.equal(event.mx_host, "mx.s.example");
  });

  it("is left again with the first server that can be reached", async () => {
    receiveAt(dns, "up.example");
    const first = await lastEvent(api, await send(api, "without.example", "up.example"), "delivered");
    assert.equal(first.mx_host, "mx.up.example");
    const event = await lastEvent(api, await send(api, "sender.example", "up.example"), "delivered");
    assert.equal(event.mx_host, "mx.up.example");
    assert.equal((await api.ask("GET", "/v1/domains/sender.example/relay")).body.relay.in_use, false);
  });
});
