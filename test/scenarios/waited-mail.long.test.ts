// Mail that waited, for its time or for a server: who must not get it any more does not, and while its organization is
// suspended it stays where it is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { keepSuspended } from "../../src/outbound/queue/suspended.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;
let clock: MovedClock;
/** How often suppressions were asked for. */
let looks = 0;
/** What the engine last learned of who is suspended. */
let suspended: unknown[] = [];

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
  clock = runningClock("2026-05-04T10:00:00Z");
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  const { query } = api.world.db;
  api.world.db.query = async (text, ...values) => {
    if (text.includes("join suppression s")) looks += 1;
    const rows = await query(text, ...values);
    if (text.includes("state <> 'active'")) suspended = rows.map((row) => (row as { id?: string }).id);
    return rows as never;
  };
  await addVerifiedDomain(api, dns, "sender.example");
  await api.startMta();
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

async function send(to: string[], change: Record<string, unknown> = {}): Promise<string> {
  const request = { from: "a@sender.example", to, subject: "x", text_body: "x", ...change };
  const { status, body } = await api.ask("POST", "/v1/send", request);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

const suppress = (email: string, scope: object = {}) => api.ask("POST", "/v1/suppressions", { email, ...scope });
const later = (ms: number): string => new Date(clock.now() + ms).toISOString();
const inAnHour = (): string => later(HOUR_MS);
const recipientsOf = (): string[] => sink.messages.flatMap(({ to }) => to);

async function suppressedCount(): Promise<number> {
  const [row] = await api.world.db.query<{ count: number }>(
    "select coalesce(sum(total_suppressed), 0)::int as count from stat where span = 'day'",
  );
  return row?.count ?? 0;
}

test("who was suppressed since a scheduled mail was accepted does not get it, the others do", async () => {
  const id = await send(["anna@recipient.example", "Bob@recipient.example"], { scheduled_at: inAnHour() });
  assert.equal((await suppress("ANNA@recipient.example")).status, 201);
  const counted = await suppressedCount();
  clock.move(HOUR_MS);
  const email = await emailWithStatus(api, id, ["delivered"]);
  const byEmail = new Map<string, Record<string, unknown>>(
    email.recipients.map((one: { email: string }) => [one.email, one]),
  );
  const anna = byEmail.get("anna@recipient.example");
  assert.deepEqual([anna?.status, anna?.attempts, anna?.bounce_type], ["suppressed", 0, null]);
  assert.ok(!recipientsOf().some((to) => to.startsWith("anna@")));
  assert.equal(await suppressedCount(), counted + 1);
  const { events } = (await api.ask("GET", `/v1/emails/${id}/events`)).body;
  const reported = events.filter(({ recipient }: { recipient: string }) => recipient === "anna@recipient.example");
  assert.deepEqual(
    reported.map((one: { event_type: string; attempt: number | null }) => [one.event_type, one.attempt]),
    [
      ["scheduled", null],
      ["suppressed", null],
    ],
  );
});

test("nor does who was suppressed since a mail was scheduled for a few minutes later", async () => {
  const id = await send(["gus@recipient.example"], { scheduled_at: later(5 * MINUTE_MS) });
  assert.equal((await suppress("gus@recipient.example")).status, 201);
  clock.move(5 * MINUTE_MS);
  await emailWithStatus(api, id, ["suppressed"]);
  assert.ok(!recipientsOf().includes("gus@recipient.example"));
});

test("who left the list of a mail that was deferred gets it no more, and other mail still", async () => {
  sink.onMessage(() => ({ code: 451, text: "4.3.0 Try later" }));
  const unsubscribe = { list: "news", one_click: true };
  const news = await send(["carl@recipient.example"], { unsubscribe });
  const order = await send(["carl@recipient.example"]);
  for (const id of [news, order]) await emailWithStatus(api, id, ["deferred"]);
  sink.onMessage(() => null);
  assert.equal((await suppress("carl@recipient.example", { scope_type: "list", scope_id: "news" })).status, 201);
  clock.move(11 * MINUTE_MS);
  const email = await emailWithStatus(api, news, ["suppressed"]);
  const { attempts, diag_code, next_attempt_at } = email.recipients[0];
  assert.deepEqual([attempts, diag_code, next_attempt_at], [1, "4.3.0", null]);
  await emailWithStatus(api, order, ["delivered"]);
});

test("mail that leaves at once is looked up once, when it is accepted", async () => {
  looks = 0;
  await emailWithStatus(api, await send(["dora@recipient.example"]), ["delivered"]);
  assert.equal(looks, 1);
});

test("mail that waited for a domain that was removed fails without an attempt; nothing is sent for it", async () => {
  const { id: domain } = await addVerifiedDomain(api, dns, "removed.example");
  const id = await send(["ida@recipient.example"], { from: "a@removed.example", scheduled_at: inAnHour() });
  assert.equal((await api.ask("DELETE", `/v1/domains/${domain}`)).status, 409);
  assert.equal((await api.ask("DELETE", `/v1/domains/${domain}?force=true`)).status, 200);
  clock.move(HOUR_MS);
  const email = await emailWithStatus(api, id, ["failed"]);
  const { attempts, diag_message } = email.recipients[0];
  assert.deepEqual([attempts, diag_message], [0, "the sender's domain was removed"]);
  assert.ok(!recipientsOf().includes("ida@recipient.example"));
});

test("mail of a domain that was switched off, or only receives by now, waits until it may send again", async () => {
  for (const [off, on] of [
    [{ active: false }, { active: true }],
    [{ type: "inbound" }, { type: "both" }],
  ]) {
    const name = `off-${Object.keys(off as object)[0]}.example`;
    const { id: domain } = await addVerifiedDomain(api, dns, name, { type: "both" });
    const to = "karl@recipient.example";
    const id = await send([to], { from: `a@${name}`, scheduled_at: inAnHour() });
    const before = recipientsOf().filter((one) => one === to).length;
    assert.equal((await api.ask("PUT", `/v1/domains/${domain}`, off)).status, 200);
    clock.move(HOUR_MS);
    const waiting = await emailWithStatus(api, id, ["deferred"]);
    assert.match(waiting.recipients[0].diag_message, new RegExp(`^the domain ${name} is `));
    assert.equal(recipientsOf().filter((one) => one === to).length, before);
    assert.equal((await api.ask("PUT", `/v1/domains/${domain}`, on)).status, 200);
    clock.move(HOUR_MS);
    await emailWithStatus(api, id, ["delivered"]);
  }
});

for (const state of ["suspended", "pending_review"]) {
  test(`while an organization is ${state} its mail waits, and no other's; then it goes on`, async () => {
    const other = await api.organization();
    const name = `${state.slice(0, 4)}.example`;
    await addVerifiedDomain(api, dns, name, { key: other.live_key });
    const [own, theirs] = [`emil.${state}@recipient.example`, `fred.${state}@recipient.example`];
    const id = await send([own], { scheduled_at: inAnHour() });
    const mail = { from: `a@${name}`, to: [theirs], subject: "x", text_body: "x", scheduled_at: inAnHour() };
    const sent = await api.ask("POST", "/v1/send", mail, { key: other.live_key });
    assert.equal(sent.status, 202, JSON.stringify(sent.body));

    const setState = (to: string) =>
      api.world.db.query("update organization set state = $2 where id = $1", [api.org_id, to]);
    await setState(state);
    await until("the engine knows it", () => suspended.includes(api.org_id));
    clock.move(HOUR_MS);
    await until("the other's mail arrives", () => recipientsOf().includes(theirs));
    // A claim that was under way when the engine learned it gives the mail back.
    const row = await until("its mail is in the queue", async () => {
      const [found] = await api.world.db.query("select owner, attempts from delivery where message_id = $1", [id]);
      return found?.owner === null && found;
    });
    assert.equal(row.attempts, 0);
    assert.ok(!recipientsOf().includes(own));

    await setState("active");
    await emailWithStatus(api, id, ["delivered"]);
  });
}

test("mail that waited for its organization longer than mail is kept leaves when it is active again", async () => {
  const id = await send(["gina@recipient.example"], { scheduled_at: inAnHour() });
  const own = await send(["hans@recipient.example"], {
    scheduled_at: inAnHour(),
    expires_at: new Date(clock.now() + 5 * HOUR_MS).toISOString(),
  });
  const setState = (state: string) =>
    api.world.db.query("update organization set state = $2 where id = $1", [api.org_id, state]);
  await setState("suspended");
  await until("the engine knows it", () => suspended.includes(api.org_id));
  clock.move(90 * HOUR_MS);
  await keepSuspended(api.world);
  await setState("active");
  await emailWithStatus(api, id, ["delivered"], 15_000);
  await emailWithStatus(api, own, ["expired"], 15_000);
  assert.ok(!recipientsOf().includes("hans@recipient.example"));
});
