// Mail to the simulator's addresses: everything but the network is real, and nobody's figures or lists know of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ConnectFailure } from "../../src/mail/smtp/session.ts";
import type { MailSession } from "../../src/outbound/outside.ts";
import { SLOW_MS, withSimulator } from "../../src/outbound/simulator/simulator.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, runningClock } from "../support/moved-clock.ts";
import { emailWithStatus } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const HOST = "simulator.postern.test";
const OUTBOUND = ["email.delivered", "email.bounced", "email.deferred", "email.complained"];
const clock = runningClock(new Date().toISOString());

type Reported = { email_id: string; event: string; tags: string[]; bounce_code?: string; diag_code?: string };

let api: TestApi;
let dns: DnsServer;
let domain: string;
let hook: string;
/** Events are read from here on. */
let start: string;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
  domain = (await api.ask("GET", "/v1/domains/sender.example")).body.id;
  const made = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/out", events: OUTBOUND });
  hook = made.body.webhook.id;
  start = (await api.ask("GET", "/v1/events")).body.next;
});

after(async () => {
  await api.close();
  await dns.stop();
});

async function send(to: string[], more: object = {}) {
  const mail = { from: "shop@sender.example", to, subject: "An order", text_body: "Hello", ...more };
  const { status, body } = await api.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return body;
}

/** The event bodies about an e-mail, once there are `count`. */
async function eventsOf(id: string, count: number): Promise<Reported[]> {
  return until(`${count} events of ${id}`, async () => {
    const { body } = await api.ask("GET", `/v1/events?limit=100&after=${start}`);
    const reported = body.events.map((event: { body: string }) => JSON.parse(event.body) as Reported);
    const own: Reported[] = reported.filter(({ email_id }: Reported) => email_id === id);
    return own.length >= count && own;
  });
}

const figures = async () => ({
  usage: (await api.ask("GET", "/v1/usage")).body.quota_used,
  stats: (await api.ask("GET", `/v1/domains/${domain}/stats`)).body.metrics,
  warming: (await api.ask("GET", `/v1/domains/${domain}/warming`)).body.today_sent,
  suppressions: (await api.ask("GET", "/v1/suppressions")).body.total,
});

test("each address ends as its name says, with the events and webhook deliveries of real mail and no trace in figures", async () => {
  const before = await figures();
  const cases = [
    { to: "delivered+a", status: "delivered", events: ["email.delivered"] },
    { to: "bounced+b", status: "bounced", events: ["email.bounced"], bounce: ["hard", "550", "5.1.1"] },
    { to: "soft-bounced", status: "bounced", events: ["email.bounced"], bounce: ["soft", "552", "5.2.2"] },
    { to: "Complained+c", status: "complained", events: ["email.delivered", "email.complained"] },
    { to: "nobody", status: "bounced", events: ["email.bounced"], bounce: ["hard", "550", "5.1.1"] },
  ];
  for (const { to, status, events, bounce } of cases) {
    const sent = await send([`${to}@${HOST}`], { tags: [to] });
    assert.equal(sent.quota_used, before.usage);
    const email = await emailWithStatus(api, sent.id, [status]);
    const [seen] = email.recipients;
    if (bounce) assert.deepEqual([seen.bounce_type, seen.bounce_code, seen.diag_code], bounce, to);
    const reported = await eventsOf(sent.id, events.length);
    assert.deepEqual(reported.map(({ event }) => event).sort(), [...events].sort(), to);
    assert.deepEqual(reported[0]?.tags, [to]);
  }
  const { body } = await api.ask("GET", `/v1/webhooks/${hook}/deliveries`);
  assert.equal(
    body.total,
    cases.reduce((sum, { events }) => sum + events.length, 0),
  );
  assert.deepEqual(await figures(), before);
});

test("the deferred one is reported, waits as after greylisting, and is taken at its second attempt", async () => {
  const { id } = await send([`deferred+x@${HOST}`]);
  const email = await emailWithStatus(api, id, ["deferred"]);
  const [first] = await eventsOf(id, 1);
  assert.deepEqual([first?.event, first?.bounce_code, first?.diag_code], ["email.deferred", "450", "4.7.1"]);
  clock.move(new Date(email.recipients[0].next_attempt_at).getTime() - clock.now() + 1_000);
  api.engine.outbound?.wake();
  await emailWithStatus(api, id, ["delivered"], 20_000);
});

test("mail to both counts its real recipients only, sent now, in a batch or by a schedule", async () => {
  const before = await figures();
  const both = [`delivered@${HOST}`, `bounced@${HOST}`, "real@recipient.example"];
  assert.equal((await send(both)).quota_used, before.usage + 1);
  const later = new Date(clock.now() + 86_400_000).toISOString();
  const scheduled = await send([`delivered@${HOST}`], { scheduled_at: later });
  assert.equal(scheduled.status, "scheduled");
  const item = { from: "shop@sender.example", to: both, subject: "s", text_body: "t" };
  const batch = await api.ask("POST", "/v1/send/batch", [item, item]);
  assert.equal(batch.body.accepted, 2, JSON.stringify(batch.body));
  assert.equal((await figures()).usage, before.usage + 3);
});

test("mail that requires TLS is taken, and what was softly bounced can be retried", async () => {
  const strict = await send([`delivered+tls@${HOST}`], { require_tls: true });
  await emailWithStatus(api, strict.id, ["delivered"]);
  const { id } = await send([`soft-bounced+again@${HOST}`]);
  await emailWithStatus(api, id, ["bounced"]);
  const { usage } = await figures();
  const retried = await api.ask("POST", `/v1/emails/${id}/retry`);
  assert.equal(retried.status, 200, JSON.stringify(retried.body));
  assert.equal((await eventsOf(id, 2)).length, 2);
  assert.equal((await figures()).usage, usage);
});

test("a test key stays silent at the simulator as well", async () => {
  const mail = { from: "shop@sender.example", to: [`delivered@${HOST}`], subject: "s", text_body: "t" };
  const { body } = await api.ask("POST", "/v1/send", mail, { key: api.test_key });
  assert.deepEqual([body.status, body.quota_used], ["simulated", 0]);
});

test("slow answers late, and a session that is not simulated goes where it went", async () => {
  const waits: number[] = [];
  const failure = { kind: "failure" } as unknown as ConnectFailure;
  const open = withSimulator(
    async () => failure,
    async (ms) => void waits.push(ms),
  );
  const options = { address: "192.0.2.1", ehlo_name: "a", tls: { mode: "none" } } as const;
  const slow = (await open({ ...options, host: `slow.${HOST}`, port: 0 })) as MailSession;
  const envelope = { from: "a@b.example", to: `slow@${HOST}`, smtputf8: false, size: 1, require8bit: false };
  assert.equal((await slow.send(envelope, [])).kind, "delivered");
  assert.deepEqual(waits, [SLOW_MS]);
  assert.equal((await slow.send(envelope, [], { beforeEnd: () => false })).kind, "broken");
  assert.equal(slow.usable, false);
  assert.equal(await open({ ...options, host: `slow.${HOST}`, port: 25 }), failure);
});
