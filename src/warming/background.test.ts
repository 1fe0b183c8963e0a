// Warming over weeks, with a moved clock: what the clock role decides at the end of each day, and in the middle of one.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, standingClock } from "../../test/support/moved-clock.ts";
import { until } from "../../test/support/until.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { warmingPorts } from "../ports.ts";
import { countEvents } from "../stats/stats.ts";
import { lookAtDue, startWarmingWork, sweepWarming } from "./background.ts";
import type { DayRow, WarmingPorts } from "./types.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = "2026-11-02T09:00:00.000Z";

let api: TestApi;
let dns: DnsServer;
let ports: WarmingPorts;
let domain: { id: string; domain: string };
let count = 0;
const clock = standingClock(START);

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
  ports = warmingPorts(api.world);
});
after(async () => {
  await api.close();
  await dns.stop();
});
beforeEach(async () => {
  clock.set(START);
  await api.world.db.execute("delete from warming");
  domain = await fresh();
});

const fresh = () => {
  count += 1;
  return addVerifiedDomain(api, dns, `weeks${count}.example`, { warm: false });
};
const status = async () => (await api.ask("GET", `/v1/domains/${domain.id}/warming`)).body;
const history = async (query = "limit=100"): Promise<{ history: DayRow[]; total: number }> =>
  (await api.ask("GET", `/v1/domains/${domain.id}/warming/history?${query}`)).body;
const act = async (verb: string, body?: unknown) =>
  (await api.ask("POST", `/v1/domains/${domain.id}/warming/${verb}`, body)).body;
const look = () => lookAtDue(api.world, ports);

type Mail = { delivered?: number; soft?: number; hard?: number; complained?: number };
/** Lets the outcomes of mail be recorded `agoMs` ago. */
async function mail({ delivered = 0, soft = 0, hard = 0, complained = 0 }: Mail, agoMs = 0): Promise<void> {
  const one = (event_type: string, attempt: number | null, bounce_type: "hard" | "soft" | null = null) => ({
    org_id: api.org_id,
    event_type,
    at: new Date(clock.now() - agoMs),
    attempt,
    isp: "google",
    class: null,
    enhanced_code: null,
    bounce_type,
    about: { domain_id: domain.id, environment: "live" as const },
  });
  const times = <T>(many: number, make: () => T): T[] => Array.from({ length: many }, make);
  const events = [
    ...times(delivered, () => one("delivered", 1)),
    ...times(soft, () => one("bounced", 1, "soft")),
    ...times(hard, () => one("bounced", 1, "hard")),
    ...times(complained, () => one("complained", null)),
  ];
  await api.world.db.transaction((tx) => countEvents(tx, events));
}
const GOOD: Mail = { delivered: 98, soft: 1, hard: 1 };

/** A day with this mail, and the decision at its end. */
async function day(of: Mail): Promise<void> {
  await mail(of);
  clock.nextDay(MINUTE);
  await look();
}

test("with good figures a domain walks from phase_1 to warmed in fourteen days each, its limits rising daily", async () => {
  const limits: (number | null)[] = [];
  const phases: string[] = [];
  for (let n = 0; n < 56; n += 1) {
    const { phase, current_limits } = await status();
    phases.push(phase);
    limits.push(current_limits.daily_limit);
    await day(GOOD);
  }
  assert.deepEqual(
    phases,
    ["phase_1", "phase_2", "phase_3", "phase_4"].flatMap((phase) => Array(14).fill(phase)),
  );
  assert.deepEqual(
    [limits[0], limits[13], limits[14], limits[28], limits[42], limits[55]],
    [50, 1_500, 2_000, 15_000, 100_000, 200_000],
  );
  assert.ok(limits.every((limit, n) => n === 0 || Number(limit) >= Number(limits[n - 1])));
  const { phase, phase_started_at, warming_started_at, next_phase, held_reason } = await status();
  assert.deepEqual(
    { phase, phase_started_at, warming_started_at, next_phase, held_reason },
    {
      phase: "warmed",
      phase_started_at: "2026-12-28T00:00:00.000Z",
      warming_started_at: START,
      next_phase: null,
      held_reason: null,
    },
  );
  const { history: days, total } = await history();
  assert.equal(total, 56);
  assert.deepEqual(
    days.filter(({ decision }) => decision === "advanced").map(({ date }) => date),
    ["2026-12-27", "2026-12-13", "2026-11-29", "2026-11-15"],
  );
  assert.deepEqual(days[0], {
    date: "2026-12-27",
    phase: "phase_4",
    daily_limit: 200_000,
    sent: 100,
    delivered: 98,
    bounced: 2,
    hard_bounced: 1,
    complained: 0,
    decision: "advanced",
    reason: null,
  });
});

test("history comes in pages, newest first", async () => {
  for (let n = 0; n < 5; n += 1) await day(GOOD);
  const page = await history("limit=2&offset=1");
  assert.deepEqual([page.total, page.history.map(({ date }) => date)], [5, ["2026-11-05", "2026-11-04"]]);
});

test("a phase with bad figures is held with the reason, and goes on once three days are good", async () => {
  for (let n = 0; n < 13; n += 1) await day(GOOD);
  await day({ delivered: 80, soft: 20 });
  const held = await status();
  assert.deepEqual([held.phase, held.days_in_current_phase, held.current_limits.daily_limit], ["phase_1", 15, 1_500]);
  assert.match(held.held_reason, /deliveries are 92 % of 300 recipients in the last 3 days, less than 95 %/);
  assert.deepEqual([held.next_phase, held.next_phase_at], ["phase_2", "2026-11-17T00:00:00.000Z"]);
  assert.deepEqual(
    [(await history()).history[0]?.decision, (await history()).history[0]?.reason],
    ["held", held.held_reason],
  );
  await day(GOOD);
  assert.match((await status()).held_reason, /deliveries are 92 %/);
  await day(GOOD);
  await day(GOOD);
  const { phase, held_reason, days_in_current_phase } = await status();
  assert.deepEqual([phase, held_reason, days_in_current_phase], ["phase_2", null, 1]);
});

test("a phase without mail in its last days is held", async () => {
  for (let n = 0; n < 11; n += 1) await day(GOOD);
  for (let n = 0; n < 3; n += 1) await day({});
  const { phase, held_reason } = await status();
  assert.equal(phase, "phase_1");
  assert.match(held_reason, /no mail was sent in the last 3 days/);
});

test("hard bounces beyond 5 % pause the domain within minutes; a resume begins to judge again", async () => {
  await mail({ delivered: 37, hard: 3 });
  clock.move(4 * MINUTE);
  assert.equal(await look(), 0, "not due yet");
  clock.move(MINUTE);
  assert.equal(await look(), 1);
  const paused = await status();
  assert.equal(paused.paused, true);
  assert.match(paused.paused_reason, /hard bounces are 7\.5 % of 40 recipients in the last 3 days, more than 5 %/);
  const body = { from: `a@${domain.domain}`, to: ["b@customer.example"], subject: "s", text_body: "t" };
  const refused = await api.ask("POST", "/v1/send", body);
  assert.deepEqual([refused.status, refused.body.limit, refused.body.warming_phase], [429, 0, "phase_1"]);
  assert.match(refused.body.message, /paused \(hard bounces are 7\.5 %/);
  await act("resume");
  for (let n = 0; n < 3; n += 1) {
    clock.move(HOUR);
    await look();
    assert.equal((await status()).paused, false, "what led to the pause does not lead to the next one");
  }
  await mail({ hard: 30 });
  clock.move(5 * MINUTE);
  await look();
  assert.equal((await status()).paused, true);
});

test("complaints beyond 0.3 % pause the domain, and its days stand still until it is resumed", async () => {
  for (let n = 0; n < 3; n += 1) await day(GOOD);
  await day({ delivered: 100, complained: 4 });
  const { paused, paused_reason, days_in_current_phase, next_phase_at } = await status();
  assert.deepEqual([paused, days_in_current_phase, next_phase_at], [true, 5, null]);
  assert.match(paused_reason, /complaints are 1\.33 % of 300/);
  for (let n = 0; n < 6; n += 1) await day({});
  const days = (await history()).history;
  assert.deepEqual(
    days.map(({ decision }) => decision),
    [...Array(7).fill("paused"), ...Array(3).fill("continued")],
  );
  assert.equal((await act("resume")).days_in_current_phase, 5);
});

test("a warm domain is not paused by its figures, and its days are not noted", async () => {
  await act("start", { phase: "warmed" });
  await day({ delivered: 10, hard: 90, complained: 9 });
  const { phase, paused } = await status();
  assert.deepEqual([phase, paused, (await history()).total], ["warmed", false, 0]);
});

test("after thirty idle days a warm domain steps back one phase, and again after thirty more", async () => {
  await act("start", { phase: "warmed" });
  await day(GOOD);
  for (let n = 0; n < 29; n += 1) await day({});
  assert.equal((await status()).phase, "warmed");
  await day({});
  const back = await status();
  assert.deepEqual([back.phase, back.days_in_current_phase, back.current_limits.daily_limit], ["phase_4", 1, 100_000]);
  const [first] = (await history()).history;
  assert.deepEqual([first?.decision, first?.phase, first?.daily_limit], ["stepped_back", "warmed", null]);
  for (let n = 0; n < 30; n += 1) await day({});
  assert.equal((await status()).phase, "phase_3");
});

test("days that were missed are decided one after the other, as if each had been on time", async () => {
  for (let n = 0; n < 20; n += 1) await mail(GOOD, -n * DAY);
  clock.move(20 * DAY);
  assert.equal(await look(), 1);
  assert.equal(await look(), 0);
  const { phase, phase_started_at, days_in_current_phase, current_limits } = await status();
  assert.deepEqual([phase, phase_started_at], ["phase_2", "2026-11-16T00:00:00.000Z"]);
  assert.deepEqual([days_in_current_phase, current_limits.daily_limit], [7, 4_500]);
  assert.equal((await history()).total, 20);
});

test("a hundred missed days are caught up with in bounded steps", async () => {
  await act("start", { phase: "warmed" });
  clock.move(100 * DAY);
  let looks = 0;
  while ((await look()) > 0) looks += 1;
  assert.equal(looks, 3);
  const { phase, phase_started_at } = await status();
  assert.deepEqual([phase, phase_started_at], ["phase_2", "2027-01-31T00:00:00.000Z"]);
});

test("any number of workers decide each day of each domain once", async () => {
  await api.world.db.execute("delete from warming");
  const ids: string[] = [];
  for (let n = 0; n < 8; n += 1) {
    domain = await fresh();
    ids.push(domain.id);
  }
  clock.nextDay(MINUTE);
  const looked = await Promise.all([look(), look(), look(), look()]);
  assert.equal(
    looked.reduce((sum, many) => sum + many, 0),
    8,
  );
  const rows = await api.world.db.query<{ domain_id: string }>("select domain_id from warming_day");
  assert.deepEqual(rows.map((row) => row.domain_id).sort(), ids.sort());
});

test("a domain that cannot be decided holds up no other and is tried again", async () => {
  const broken = domain.id;
  const other = await fresh();
  clock.nextDay(MINUTE);
  const failing: WarmingPorts = {
    ...ports,
    figures: async (tx, orgId, domainId, period) => {
      if (domainId === broken) throw new Error("figures of this one cannot be read");
      return ports.figures(tx, orgId, domainId, period);
    },
  };
  assert.equal(await lookAtDue(api.world, failing), 2);
  assert.equal((await history()).total, 0);
  domain = other;
  assert.equal((await history()).total, 1);
  domain = { id: broken, domain: "" };
  clock.move(10 * MINUTE);
  await look();
  assert.equal((await history()).total, 1);
});

test("the clock role's loop decides what is due, and stops", async () => {
  const work = startWarmingWork(api.world, ports);
  clock.nextDay(MINUTE);
  await until("a day is decided", async () => (await history()).total > 0);
  await work.stop();
  assert.equal((await history()).total, 1);
});

test("windows are forgotten after three days, history after four hundred", async () => {
  await day(GOOD);
  clock.move(2 * DAY);
  await api.world.db.execute("insert into allowance values ($1, $2, 'daily', $3, 1, 50)", [
    api.org_id,
    domain.id,
    new Date(START),
  ]);
  await sweepWarming(api.world, ports);
  const windows = () => api.world.db.query("select 1 from allowance where scope_id = $1", [domain.id]);
  assert.equal((await windows()).length, 1);
  clock.move(DAY);
  await sweepWarming(api.world, ports);
  assert.deepEqual([(await windows()).length, (await history()).total], [0, 1]);
  clock.move(398 * DAY);
  await sweepWarming(api.world, ports);
  assert.equal((await history()).total, 0);
});
