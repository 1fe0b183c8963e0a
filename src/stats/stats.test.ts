// /v1/domains/{id}/stats as its users see it, and the counters behind it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, standingClock } from "../../test/support/moved-clock.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { sweepStats } from "./background.ts";
import { countEvents, figuresBetween, suppressedCounter } from "./stats.ts";
import type { CountedEvent } from "./types.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ZERO = {
  total_sent: 0,
  total_delivered: 0,
  total_deferred: 0,
  total_bounced: 0,
  total_hard_bounce: 0,
  total_complaints: 0,
  total_suppressed: 0,
  total_failed: 0,
  delivery_rate: 0,
  bounce_rate: 0,
  hard_bounce_rate: 0,
  complaint_rate: 0,
};
const PATHS = ["stats", "stats/daily", "stats/hourly", "stats/isp"];

let api: TestApi;
let dns: DnsServer;
const clock = standingClock("2026-11-20T10:30:00.000Z");
let domain: { id: string; domain: string };

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
  domain = await addVerifiedDomain(api, dns, "shop.example");
});
after(async () => {
  await api.close();
  await dns.stop();
});

const get = async (path: string, options: { key?: string } = {}) =>
  api.ask("GET", `/v1/domains/${domain.id}/${path}`, undefined, options);

const event = (event_type: string, more: Partial<CountedEvent> = {}): CountedEvent => ({
  org_id: api.org_id,
  event_type,
  at: new Date(clock.now()),
  attempt: 1,
  isp: "google",
  class: null,
  enhanced_code: null,
  bounce_type: null,
  about: { domain_id: domain.id, environment: "live" },
  ...more,
});
const record = (events: CountedEvent[]) => api.world.db.transaction((tx) => countEvents(tx, events));
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const freshDomain = async (name: string) => {
  domain = await addVerifiedDomain(api, dns, name);
};

test("a domain without mail has every field, all zero", async () => {
  const { status, body } = await get("stats");
  assert.equal(status, 200);
  assert.deepEqual(body, {
    domain_id: domain.id,
    domain: "shop.example",
    period_days: 7,
    metrics: { period_days: 7, ...ZERO },
    today_sent: 0,
    this_hour_sent: 0,
  });
});

test("daily has one row a day, oldest first, 30 unless asked for others", async () => {
  const { body } = await get("stats/daily");
  assert.deepEqual([body.domain_id, body.domain, body.days, body.stats.length], [domain.id, "shop.example", 30, 30]);
  assert.deepEqual(body.stats[0], { date: "2026-10-22", ...ZERO });
  assert.deepEqual(body.stats[29], { date: "2026-11-20", ...ZERO });
  const { body: ninety } = await get("stats/daily?days=90");
  assert.deepEqual([ninety.days, ninety.stats.length], [90, 90]);
});

test("hourly has one row an hour, oldest first, 48 unless asked for others", async () => {
  const { body } = await get("stats/hourly");
  assert.deepEqual([body.domain_id, body.domain, body.hours, body.stats.length], [domain.id, "shop.example", 48, 48]);
  assert.deepEqual(body.stats[0], { hour: "2026-11-18T11:00:00.000Z", ...ZERO });
  assert.deepEqual(body.stats[47], { hour: "2026-11-20T10:00:00.000Z", ...ZERO });
  const { body: most } = await get("stats/hourly?hours=336");
  assert.deepEqual([most.hours, most.stats.length], [336, 336]);
});

test("what happened is counted in every answer", async () => {
  await freshDomain("counted.example");
  await record([
    ...times(6, () => event("delivered")),
    event("deferred", { isp: "microsoft", class: "greylisted" }),
    event("bounced", { bounce_type: "hard", class: "invalid_recipient", enhanced_code: "5.1.1" }),
    event("bounced", { isp: "microsoft", bounce_type: "soft", class: "blocked", enhanced_code: "5.7.1" }),
    event("failed", { isp: null }),
    event("complained", { attempt: null }),
  ]);
  const totals = {
    total_sent: 10,
    total_delivered: 6,
    total_deferred: 1,
    total_bounced: 2,
    total_hard_bounce: 1,
    total_complaints: 1,
    total_suppressed: 0,
    total_failed: 1,
    delivery_rate: 0.6,
    bounce_rate: 0.2,
    hard_bounce_rate: 0.1,
    complaint_rate: 0.1,
  };
  const { body: summary } = await get("stats");
  assert.deepEqual(summary.metrics, { period_days: 7, ...totals });
  assert.deepEqual([summary.today_sent, summary.this_hour_sent], [10, 10]);
  const { body: daily } = await get("stats/daily?days=2");
  assert.deepEqual(daily.stats, [
    { date: "2026-11-19", ...ZERO },
    { date: "2026-11-20", ...totals },
  ]);
  const { body: hourly } = await get("stats/hourly?hours=1");
  assert.deepEqual(hourly.stats, [{ hour: "2026-11-20T10:00:00.000Z", ...totals }]);
});

test("mail is grouped by the provider whose MX answered, the largest first, with what bounced there most", async () => {
  const { status, body } = await get("stats/isp");
  assert.equal(status, 200);
  assert.deepEqual([body.domain_id, body.domain, body.days], [domain.id, "counted.example", 7]);
  assert.deepEqual(
    body.isps.map((row: { isp: string; total_sent: number }) => [row.isp, row.total_sent]),
    [
      ["google", 7],
      ["microsoft", 2],
      ["other", 1],
    ],
  );
  const [google, microsoft, other] = body.isps;
  assert.deepEqual(google, {
    isp: "google",
    ...ZERO,
    total_sent: 7,
    total_delivered: 6,
    total_bounced: 1,
    total_hard_bounce: 1,
    total_complaints: 1,
    delivery_rate: 0.8571,
    bounce_rate: 0.1429,
    hard_bounce_rate: 0.1429,
    complaint_rate: 0.1429,
    top_bounce_reasons: [{ reason: "invalid_recipient", code: "5.1.1", count: 1 }],
  });
  assert.deepEqual(microsoft.top_bounce_reasons, [{ reason: "blocked", code: "5.7.1", count: 1 }]);
  assert.deepEqual(other.top_bounce_reasons, []);
});

test("the five most frequent reasons are shown, a missing code as null", async () => {
  await freshDomain("reasons.example");
  const bounces = ["a", "b", "c", "d", "e", "f"].flatMap((name, index) =>
    times(index + 1, () => event("bounced", { class: name, enhanced_code: index === 5 ? null : "5.0.0" })),
  );
  await record(bounces);
  const { body } = await get("stats/isp");
  assert.deepEqual(body.isps[0].top_bounce_reasons, [
    { reason: "f", code: null, count: 6 },
    { reason: "e", code: "5.0.0", count: 5 },
    { reason: "d", code: "5.0.0", count: 4 },
    { reason: "c", code: "5.0.0", count: 3 },
    { reason: "b", code: "5.0.0", count: 2 },
  ]);
});

test("days and hours end at their UTC boundary, and the period ends with today", async () => {
  await freshDomain("periods.example");
  const at = (text: string) => event("delivered", { at: new Date(text) });
  await record([at("2026-11-13T23:59:59.999Z"), at("2026-11-14T00:00:00.000Z"), at("2026-11-20T09:59:59.999Z")]);
  const { body: week } = await get("stats?days=7");
  assert.deepEqual([week.metrics.total_sent, week.today_sent, week.this_hour_sent], [2, 1, 0]);
  assert.equal((await get("stats?days=8")).body.metrics.total_sent, 3);
  assert.equal((await get("stats?days=1")).body.metrics.total_sent, 1);
  const { body: hours } = await get("stats/hourly?hours=2");
  assert.deepEqual(
    hours.stats.map((row: { hour: string; total_sent: number }) => [row.hour, row.total_sent]),
    [
      ["2026-11-20T09:00:00.000Z", 1],
      ["2026-11-20T10:00:00.000Z", 0],
    ],
  );
});

test("late bounces and complaints count when they come and take no delivery back", async () => {
  await freshDomain("late.example");
  await record(times(4, () => event("delivered", { at: new Date(clock.now() - DAY) })));
  await record([event("bounced", { attempt: null, bounce_type: "hard" }), event("complained", { attempt: null })]);
  const { body } = await get("stats/daily?days=2");
  const [yesterday, today] = body.stats;
  assert.deepEqual([yesterday.total_sent, yesterday.total_delivered, yesterday.total_bounced], [4, 4, 0]);
  assert.deepEqual([today.total_sent, today.total_bounced, today.total_complaints, today.bounce_rate], [0, 1, 1, 0]);
  const { body: week } = await get("stats");
  assert.deepEqual([week.metrics.hard_bounce_rate, week.metrics.complaint_rate], [0.25, 0.25]);
});

test("test sends never count, and a test key may read", async () => {
  await freshDomain("tested.example");
  await record([event("delivered", { about: { domain_id: domain.id, environment: "test" } })]);
  const { status, body } = await get("stats", { key: api.test_key });
  assert.deepEqual([status, body.metrics.total_sent], [200, 0]);
  assert.deepEqual((await get("stats/isp")).body.isps, []);
});

test("recipients left out of an accepted e-mail, and those of a refused one, are counted as suppressed", async () => {
  await freshDomain("partly.example");
  const send = (to: string[], key = api.live_key) =>
    api.ask("POST", "/v1/send", { from: `a@${domain.domain}`, to, subject: "s", text_body: "t" }, { key });
  for (const email of ["gone@x.example", "away@x.example"]) {
    assert.equal((await api.ask("POST", "/v1/suppressions", { email })).status, 201);
  }
  assert.equal((await send(["here@x.example", "gone@x.example", "away@x.example"])).status, 202);
  assert.equal((await get("stats")).body.metrics.total_suppressed, 2);
  assert.equal((await send(["gone@x.example"])).status, 422);
  assert.equal((await send(["gone@x.example"], api.test_key)).status, 422);
  assert.equal((await send(["here@x.example", "gone@x.example"], api.test_key)).status, 202);
  const { body } = await get("stats");
  assert.deepEqual([body.metrics.total_suppressed, body.metrics.total_sent], [3, 0]);
  const { body: byIsp } = await get("stats/isp");
  assert.deepEqual([byIsp.isps[0].isp, byIsp.isps[0].total_suppressed], ["other", 3]);
  assert.equal((await get("stats/hourly?hours=1")).body.stats[0].total_suppressed, 3);
});

test("a refusal is counted once for every request, however many come at the same moment", async () => {
  await freshDomain("many.example");
  const count = suppressedCounter(api.world);
  const about = { org_id: api.org_id, domain_id: domain.id, at: new Date(clock.now()) };
  await Promise.all(times(1_200, () => count({ ...about, recipients: 2 })));
  assert.equal((await get("stats")).body.metrics.total_suppressed, 2_400);
});

test("the domain's name serves as well as its id", async () => {
  for (const path of PATHS) {
    const { status, body } = await api.ask("GET", `/v1/domains/${domain.domain}/${path}`);
    assert.deepEqual([status, body.domain_id], [200, domain.id]);
  }
});

for (const query of ["days=0", "days=91", "days=x", "days=1.5", "hours=5", "unknown=1"]) {
  test(`?${query} is refused by the summary and names the parameter`, async () => {
    const { status, body } = await get(`stats?${query}`);
    assert.deepEqual([status, body.code, body.field], [400, "validation_error", query.split("=")[0]]);
  });
}

test("each answer has its own bounds", async () => {
  assert.equal((await get("stats/daily?days=91")).body.field, "days");
  assert.equal((await get("stats/hourly?hours=337")).body.field, "hours");
  assert.equal((await get("stats/hourly?hours=0")).body.field, "hours");
  assert.equal((await get("stats/isp?days=91")).body.field, "days");
});

test("free organizations are refused with 403 plan_limit_reached, every paid plan is not", async () => {
  const free = await api.organization("free");
  const own = await addVerifiedDomain(api, dns, "free.example", { key: free.live_key });
  for (const path of PATHS) {
    const { status, body } = await api.ask("GET", `/v1/domains/${own.id}/${path}`, undefined, { key: free.live_key });
    assert.deepEqual([status, body.code], [403, "plan_limit_reached"]);
    assert.match(body.error, /paid plan.*free/);
  }
  for (const plan of ["starter", "growth", "scale"] as const) {
    const { live_key } = await api.organization(plan);
    const paid = await addVerifiedDomain(api, dns, `${plan}.example`, { key: live_key });
    const { status } = await api.ask("GET", `/v1/domains/${paid.id}/stats`, undefined, { key: live_key });
    assert.equal(status, 200, plan);
  }
});

test("another organization's domain answers as one that does not exist, and its counters stay its own", async () => {
  const other = await api.organization();
  for (const path of PATHS) {
    const foreign = await get(path, { key: other.live_key });
    const nowhere = await api.ask("GET", `/v1/domains/00000000-0000-7000-8000-00000000abcd/${path}`);
    assert.deepEqual([foreign.status, foreign.body.error], [404, nowhere.body.error]);
    assert.equal(nowhere.body.code, "not_found");
  }
  await freshDomain("walls.example");
  const hers = await addVerifiedDomain(api, dns, "hers.example", { key: other.live_key });
  await record([
    event("delivered"),
    event("delivered", { org_id: other.org_id, about: { domain_id: hers.id, environment: "live" } }),
  ]);
  assert.equal((await get("stats")).body.metrics.total_sent, 1);
  const seen = await api.world.db.asOrg(api.org_id, (tx) =>
    tx.query("select 1 from stat where org_id <> $1", [api.org_id]),
  );
  assert.equal(seen.length, 0, "row-level security hides other organizations' counters");
});

test("writers at the same moment lose nothing, in either order of domains", async () => {
  await freshDomain("busy.example");
  const [first, second] = [domain.id, (await addVerifiedDomain(api, dns, "busier.example")).id];
  const batch = (ids: string[]) =>
    record(
      ids.flatMap((domain_id) => times(5, () => event("delivered", { about: { domain_id, environment: "live" } }))),
    );
  await Promise.all(times(40, () => 0).map((_zero, index) => batch(index % 2 ? [first, second] : [second, first])));
  assert.equal((await get("stats")).body.metrics.total_delivered, 200);
  assert.equal((await api.ask("GET", `/v1/domains/${second}/stats`)).body.metrics.total_delivered, 200);
});

test("counters share the fate of the transaction that records the events", async () => {
  await freshDomain("rolled.example");
  const failing = api.world.db.transaction(async (tx) => {
    await countEvents(tx, [event("delivered")]);
    throw new Error("the outcome was not recorded");
  });
  await assert.rejects(failing, /not recorded/);
  assert.equal((await get("stats")).body.metrics.total_sent, 0);
});

test("warming's figures are sums of whole hours", async () => {
  await freshDomain("figures.example");
  await record([
    event("delivered", { at: new Date("2026-11-20T08:59:59.000Z") }),
    event("delivered", { at: new Date("2026-11-20T09:00:00.000Z") }),
    event("bounced", { bounce_type: "hard" }),
    event("bounced", { bounce_type: "soft" }),
    event("complained", { attempt: null }),
  ]);
  const between = (from: string, to: string) =>
    api.world.db.asOrg(api.org_id, (tx) =>
      figuresBetween(tx, api.org_id, domain.id, { from: new Date(from), to: new Date(to) }),
    );
  const figures = await between("2026-11-20T09:00:00Z", "2026-11-20T11:00:00Z");
  assert.deepEqual(figures, { sent: 3, delivered: 1, bounced: 2, hard_bounced: 1, complained: 1 });
  assert.equal((await between("2026-11-20T09:00:00Z", "2026-11-20T10:00:00Z")).sent, 1);
});

test("merging changes no answer, leaves one row for each span that is over, and forgets what nobody can ask for", async () => {
  await freshDomain("merged.example");
  const bounce = { bounce_type: "hard", class: "invalid_recipient", enhanced_code: "5.1.1" } as const;
  const old = (daysAgo: number) => ({ at: new Date(clock.now() - daysAgo * DAY) });
  await Promise.all(
    times(12, () =>
      record(
        [2, 3, 101].flatMap((days) => [event("delivered", old(days)), event("bounced", { ...bounce, ...old(days) })]),
      ),
    ),
  );
  const shown = async () =>
    Promise.all(
      ["stats", "stats/daily", "stats/hourly?hours=100", "stats/isp"].map(async (path) => (await get(path)).body),
    );
  const earlier = await shown();
  assert.equal(earlier[0].metrics.total_sent, 48);
  await sweepStats(api.world);
  await sweepStats(api.world);
  assert.deepEqual(await shown(), earlier);
  const rows = await api.world.db.query<{ days: number; shard: number; total_sent: number }>(
    `select extract(day from $2::timestamptz - starts_at)::int as days, shard, total_sent from stat
      where domain_id = $1 and span = 'day' order by starts_at`,
    [domain.id, new Date(clock.now())],
  );
  assert.deepEqual(rows, [
    { days: 3, shard: 0, total_sent: 24 },
    { days: 2, shard: 0, total_sent: 24 },
  ]);
});
