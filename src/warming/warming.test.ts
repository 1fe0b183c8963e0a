// /v1/domains/{id}/warming as its users see it: every field, every status, every refusal.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, standingClock } from "../../test/support/moved-clock.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { countEvents } from "../stats/stats.ts";
import type { CountedEvent } from "../stats/types.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = "2026-11-05T10:00:30.000Z";
const NOBODY = "00000000-0000-7000-8000-00000000abcd";

let api: TestApi;
let dns: DnsServer;
let domain: { id: string; domain: string };
let count = 0;
const clock = standingClock(START);

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
});
after(async () => {
  await api.close();
  await dns.stop();
});
beforeEach(async () => {
  clock.set(START);
  count += 1;
  domain = await addVerifiedDomain(api, dns, `shop${count}.example`, { warm: false });
});

const warming = async (key = api.live_key) => api.ask("GET", `/v1/domains/${domain.id}/warming`, undefined, { key });
const act = (verb: string, body?: unknown, key = api.live_key) =>
  api.ask("POST", `/v1/domains/${domain.id}/warming/${verb}`, body, { key });
const send = (to: string[] = ["anna@customer.example"], more: object = {}, key = api.live_key) => {
  const body = { from: `shop@${domain.domain}`, to, subject: "s", text_body: "t", ...more };
  return api.ask("POST", "/v1/send", body, { key });
};
const ago = (ms: number): Date => new Date(clock.now() - ms);
const record = (events: Partial<CountedEvent>[]) =>
  api.world.db.transaction((tx) =>
    countEvents(
      tx,
      events.map((event) => ({
        org_id: api.org_id,
        event_type: "delivered",
        at: new Date(clock.now()),
        attempt: 1,
        isp: "google",
        class: null,
        enhanced_code: null,
        bounce_type: null,
        about: { domain_id: domain.id, environment: "live" as const },
        ...event,
      })),
    ),
  );

test("warming starts by itself in phase_1 when a domain that sends is verified, and its status has every field", async () => {
  const { status, body } = await warming();
  assert.equal(status, 200);
  assert.deepEqual(body, {
    domain_id: domain.id,
    domain: domain.domain,
    phase: "phase_1",
    paused: false,
    paused_reason: null,
    warming_started_at: "2026-11-05T10:00:30.000Z",
    phase_started_at: "2026-11-05T10:00:30.000Z",
    days_in_current_phase: 1,
    current_limits: { daily_limit: 50, hourly_limit: 5, per_minute_limit: 10 },
    today_sent: 0,
    this_hour_sent: 0,
    remaining_today: 50,
    remaining_this_hour: 5,
    delivery_rate: null,
    bounce_rate: null,
    complaint_rate: null,
    next_phase: "phase_2",
    next_phase_at: "2026-11-19T00:00:00.000Z",
    held_reason: null,
  });
});

test("a domain that was never verified has not started and has no limits", async () => {
  const created = await api.ask("POST", "/v1/domains", { domain: "fresh.example", type: "outbound" });
  const { status, body } = await api.ask("GET", `/v1/domains/${created.body.id}/warming`);
  assert.equal(status, 200);
  assert.deepEqual(body, {
    domain_id: created.body.id,
    domain: "fresh.example",
    phase: "not_started",
    paused: false,
    paused_reason: null,
    warming_started_at: null,
    phase_started_at: null,
    days_in_current_phase: 0,
    current_limits: { daily_limit: null, hourly_limit: null, per_minute_limit: null },
    today_sent: 0,
    this_hour_sent: 0,
    remaining_today: null,
    remaining_this_hour: null,
    delivery_rate: null,
    bounce_rate: null,
    complaint_rate: null,
    next_phase: "phase_1",
    next_phase_at: null,
    held_reason: null,
  });
});

test("with the automatic start turned off a verified domain sends without limits until it is started", async () => {
  const { org_id, live_key } = await api.organization();
  await api.world.db.execute("update organization set settings = $2 where id = $1", [
    org_id,
    JSON.stringify({ warming_auto_start: false }),
  ]);
  domain = await addVerifiedDomain(api, dns, "by-hand.example", { key: live_key, warm: false });
  assert.equal((await warming(live_key)).body.phase, "not_started");
  const many = Array.from({ length: 20 }, (_unused, index) => `u${index}@customer.example`);
  assert.equal((await send(many, {}, live_key)).status, 202);
  const started = await act("start", undefined, live_key);
  assert.deepEqual([started.status, started.body.phase], [200, "phase_1"]);
  assert.equal((await send(many, {}, live_key)).status, 202, "alone in its window");
  assert.equal((await send(many, {}, live_key)).status, 429);
});

test("a second verification does not begin again", async () => {
  await act("start", { phase: "phase_3" });
  await api.world.db.execute("update domain set status = 'degraded' where id = $1", [domain.id]);
  const verified = await api.ask("POST", `/v1/domains/${domain.id}/verify`);
  assert.equal(verified.body.status, "verified");
  assert.equal((await warming()).body.phase, "phase_3");
});

test("what was accepted counts in recipients, and remains are shown", async () => {
  assert.equal((await send(["a@customer.example", "b@customer.example"])).status, 202);
  clock.move(MINUTE);
  assert.equal((await send()).status, 202);
  const { body } = await warming();
  const { today_sent, this_hour_sent, remaining_today, remaining_this_hour } = body;
  assert.deepEqual([today_sent, this_hour_sent, remaining_today, remaining_this_hour], [3, 3, 47, 2]);
  clock.move(HOUR);
  const { body: later } = await warming();
  assert.deepEqual([later.today_sent, later.this_hour_sent, later.remaining_this_hour], [3, 0, 5]);
  clock.move(DAY);
  const { body: tomorrow } = await warming();
  assert.deepEqual([tomorrow.today_sent, tomorrow.remaining_today, tomorrow.days_in_current_phase], [0, 75, 2]);
});

test("what remains of the hour is never more than what remains of the day", async () => {
  const key = [api.org_id, domain.id, new Date("2026-11-05T00:00:00Z")];
  await api.world.db.execute("insert into allowance values ($1, $2, 'daily', $3, 48, 50)", key);
  const { body } = await warming();
  assert.deepEqual([body.remaining_today, body.remaining_this_hour], [2, 2]);
});

test("scheduled mail does not count when it is accepted, but when it leaves", async () => {
  const scheduled_at = new Date(clock.now() + 10 * DAY).toISOString();
  assert.equal((await send(undefined, { scheduled_at })).status, 202);
  assert.equal((await warming()).body.today_sent, 0);
});

test("test sends and suppressed recipients do not count", async () => {
  for (let n = 0; n < 4; n += 1) assert.equal((await send(undefined, {}, api.test_key)).status, 202);
  await api.ask("POST", "/v1/suppressions", { email: `gone${count}@customer.example` });
  const sent = await send(["a@customer.example", "b@customer.example", `gone${count}@customer.example`]);
  assert.deepEqual([sent.status, sent.body.suppressed.length], [202, 1]);
  assert.equal((await warming()).body.today_sent, 2);
});

test("rates are over the last three days; the bounce rate is that of hard bounces", async () => {
  const bounced = { event_type: "bounced" };
  await record([{}, {}, {}, { ...bounced, bounce_type: "hard" }, { ...bounced, bounce_type: "soft" }, {}]);
  await record([{ event_type: "complained", attempt: null }, { at: ago(3 * DAY) }]);
  const { body } = await warming();
  assert.deepEqual([body.delivery_rate, body.bounce_rate, body.complaint_rate], [0.6667, 0.1667, 0.1667]);
});

test("a start may begin at every phase up to warmed, on its first day, with its limits", async () => {
  const limits = { phase_1: 50, phase_2: 2_000, phase_3: 15_000, phase_4: 100_000, warmed: null };
  const next = { phase_1: "phase_2", phase_2: "phase_3", phase_3: "phase_4", phase_4: "warmed", warmed: null };
  clock.move(5 * DAY);
  for (const phase of ["phase_1", "phase_2", "phase_3", "phase_4", "warmed"] as const) {
    const { status, body } = await act("start", { phase });
    assert.equal(status, 200);
    assert.deepEqual([body.phase, body.days_in_current_phase, body.paused], [phase, 1, false]);
    assert.equal(body.current_limits.daily_limit, limits[phase]);
    assert.equal(body.next_phase, next[phase]);
    assert.equal(body.next_phase_at === null, phase === "warmed");
    assert.deepEqual([body.warming_started_at, body.phase_started_at], Array(2).fill("2026-11-10T10:00:30.000Z"));
    assert.deepEqual((await warming()).body, body);
  }
});

test("a warm domain shows what was handed to delivery, and no limits", async () => {
  await act("start", { phase: "warmed" });
  const many = Array.from({ length: 40 }, (_unused, index) => `u${index}@customer.example`);
  assert.equal((await send(many)).status, 202);
  await record([{}, {}, { at: ago(2 * HOUR) }, { at: ago(DAY) }]);
  const { body } = await warming();
  assert.deepEqual(body.current_limits, { daily_limit: null, hourly_limit: null, per_minute_limit: null });
  assert.deepEqual([body.today_sent, body.this_hour_sent], [3, 2]);
  assert.deepEqual([body.remaining_today, body.remaining_this_hour], [null, null]);
});

test("starting what has started is 409 unless a phase is named", async () => {
  const { status, body } = await act("start");
  assert.deepEqual([status, body.code], [409, "invalid_state"]);
  assert.match(body.error, /in phase_1 already; name the 'phase'/);
  await act("start", { phase: "warmed" });
  assert.equal((await act("start", {})).status, 409);
});

test("a domain that only receives cannot start", async () => {
  const inbound = await addVerifiedDomain(api, dns, "inbound.example", { type: "inbound" });
  const { status, body } = await api.ask("POST", `/v1/domains/${inbound.id}/warming/start`, { phase: "warmed" });
  assert.deepEqual([status, body.code], [409, "invalid_state"]);
  assert.match(body.error, /type inbound: it does not send/);
});

for (const [what, verb, body, field] of [
  ["not_started as a start", "start", { phase: "not_started" }, "phase"],
  ["an unknown phase", "start", { phase: "phase_5" }, "phase"],
  ["a phase that is no text", "start", { phase: 2 }, "phase"],
  ["an unknown field", "start", { phases: "phase_1" }, "phases"],
  ["an empty reason", "pause", { reason: "" }, "reason"],
  ["a reason that is too long", "pause", { reason: "x".repeat(301) }, "reason"],
  ["a reason with NUL", "pause", { reason: "a\0b" }, "reason"],
  ["a body where none is known", "resume", { force: true }, "force"],
] as [string, string, object, string][]) {
  test(`${what} is 400 and names the field`, async () => {
    const answer = await act(verb, body);
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", field]);
  });
}

test("pausing refuses all mail until resumed, and says why", async () => {
  const paused = await act("pause", { reason: "a list went wrong" });
  assert.equal(paused.status, 200);
  assert.deepEqual(
    [paused.body.paused, paused.body.paused_reason, paused.body.phase],
    [true, "a list went wrong", "phase_1"],
  );
  assert.deepEqual(paused.body.current_limits, { daily_limit: 0, hourly_limit: 0, per_minute_limit: 0 });
  assert.deepEqual([paused.body.remaining_today, paused.body.remaining_this_hour], [0, 0]);
  assert.deepEqual([paused.body.next_phase, paused.body.next_phase_at], ["phase_2", null]);
  const refused = await send();
  assert.equal(refused.status, 429);
  const { request_id, code, ...body } = refused.body;
  assert.equal(code, "rate_limit_exceeded");
  assert.deepEqual(body, {
    error: "rate_limit_exceeded",
    message: "sending from this domain is paused (a list went wrong) until POST /v1/domains/{id}/warming/resume",
    limit_type: "daily",
    limit: 0,
    used: 0,
    retry_after_seconds: 3_600,
    warming_phase: "phase_1",
  });
  assert.equal(typeof request_id, "string");
  assert.equal(refused.headers["retry-after"], "3600");
  const resumed = await act("resume");
  assert.deepEqual([resumed.status, resumed.body.paused, resumed.body.paused_reason], [200, false, null]);
  assert.equal((await send()).status, 202);
});

test("a pause without a reason says that it was asked for", async () => {
  assert.equal((await act("pause")).body.paused_reason, "paused by request");
});

test("mail accepted before a pause on the same day does not let more through", async () => {
  assert.equal((await send()).status, 202);
  await act("pause");
  const { status, body } = await send();
  assert.deepEqual([status, body.limit, body.used], [429, 0, 1]);
  assert.equal((await warming()).body.today_sent, 1);
});

test("a phase goes on after a pause with the day at which it was paused", async () => {
  clock.move(4 * DAY);
  assert.equal((await act("pause")).body.days_in_current_phase, 5);
  clock.move(20 * DAY);
  assert.equal((await warming()).body.days_in_current_phase, 5);
  const { body } = await act("resume");
  assert.deepEqual([body.days_in_current_phase, body.current_limits.daily_limit], [5, 200]);
  assert.deepEqual(
    [body.phase_started_at, body.next_phase_at],
    ["2026-11-05T10:00:30.000Z", "2026-12-09T00:00:00.000Z"],
  );
});

test("pausing what is not running and resuming what is not paused is 409", async () => {
  const fresh = await api.ask("POST", "/v1/domains", { domain: `later${count}.example`, type: "outbound" });
  const at = (id: string, verb: string) => api.ask("POST", `/v1/domains/${id}/warming/${verb}`);
  const refusals = [
    [await at(fresh.body.id, "pause"), /not running: it is not_started/],
    [await at(fresh.body.id, "resume"), /not paused: it is not_started/],
    [await act("resume"), /not paused: it is phase_1/],
  ] as const;
  for (const [{ status, body }, message] of refusals) {
    assert.deepEqual([status, body.code], [409, "invalid_state"]);
    assert.match(body.error, message);
  }
  await act("pause");
  assert.match((await act("pause")).body.error, /not running: it is paused/);
  await act("start", { phase: "warmed" });
  assert.match((await act("pause")).body.error, /not running: it is warmed/);
});

test("a start ends a pause", async () => {
  await act("pause");
  const { body } = await act("start", { phase: "phase_2" });
  assert.deepEqual([body.paused, body.paused_reason, body.phase], [false, null, "phase_2"]);
  assert.equal((await send()).status, 202);
});

test("history is empty until a day is over", async () => {
  const { status, body } = await api.ask("GET", `/v1/domains/${domain.id}/warming/history`);
  assert.deepEqual([status, body], [200, { history: [], total: 0, limit: 50, offset: 0 }]);
});

for (const query of ["limit=0", "limit=101", "offset=-1", "days=3"]) {
  test(`history refuses ?${query}`, async () => {
    const { status, body } = await api.ask("GET", `/v1/domains/${domain.id}/warming/history?${query}`);
    assert.deepEqual([status, body.field], [400, query.split("=")[0]]);
  });
}

test("test keys may look, and manage domains that test keys made", async () => {
  assert.equal((await warming(api.test_key)).status, 200);
  assert.equal((await act("start", { phase: "phase_2" }, api.test_key)).status, 403);
  const as = { key: api.test_key };
  const own = await addVerifiedDomain(api, dns, "of-a-test-key.example", { ...as, warm: false });
  for (const step of ["pause", "resume"]) {
    assert.equal((await api.ask("POST", `/v1/domains/${own.id}/warming/${step}`, undefined, as)).status, 200);
  }
});

test("the domain's name serves as well as its id", async () => {
  const { status, body } = await api.ask("GET", `/v1/domains/${domain.domain}/warming`);
  assert.deepEqual([status, body.domain_id], [200, domain.id]);
});

test("another organization's domain answers as one that does not exist", async () => {
  const other = await api.organization();
  const asks: [string, string, unknown][] = [
    ["GET", "warming", undefined],
    ["GET", "warming/history", undefined],
    ["POST", "warming/start", { phase: "warmed" }],
    ["POST", "warming/pause", undefined],
    ["POST", "warming/resume", undefined],
  ];
  for (const [method, path, body] of asks) {
    const foreign = await api.ask(method, `/v1/domains/${domain.id}/${path}`, body, { key: other.live_key });
    const nowhere = await api.ask(method, `/v1/domains/${NOBODY}/${path}`, body);
    assert.deepEqual([foreign.status, foreign.body.code], [404, "not_found"], path);
    assert.deepEqual([nowhere.status, nowhere.body.error], [404, foreign.body.error], path);
    assert.equal((await api.ask(method, `/v1/domains/${domain.id}/${path}`, body, { key: null })).status, 401);
  }
  assert.deepEqual([(await warming()).body.phase, (await warming()).body.paused], ["phase_1", false]);
  const rows = await api.world.db.asOrg(other.org_id, (tx) => tx.query("select 1 from warming"));
  assert.equal(rows.length, 0, "row-level security hides other organizations' warming");
});

test("a domain that is removed takes its warming with it", async () => {
  assert.equal((await api.ask("DELETE", `/v1/domains/${domain.id}?force=true`)).status, 200);
  const rows = await api.world.db.query("select 1 from warming where domain_id = $1", [domain.id]);
  assert.equal(rows.length, 0);
});
