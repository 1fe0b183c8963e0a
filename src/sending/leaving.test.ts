// Mail counts in the windows of the time at which it leaves: scheduled mail does not pass by warming, what does not fit waits
// for the next window and says so, and the counters of that day are what left.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../../test/support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../../test/support/smtp-sink.ts";
import { receiveAt } from "../../test/support/stories.ts";
import { until } from "../../test/support/until.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;
let clock: MovedClock;
let domain: { id: string; domain: string };
let made = 0;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
});

beforeEach(async () => {
  clock = runningClock("2026-11-05T10:00:10.000Z");
  made += 1;
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) }, byClock(clock));
  domain = await addVerifiedDomain(api, dns, `fresh${made}.example`, { warm: false });
});

afterEach(async () => {
  await api?.close();
});

after(async () => {
  await sink?.stop();
  await dns?.stop();
});

async function send(change: Record<string, unknown> = {}): Promise<string> {
  const mail = { from: `a@${domain.domain}`, to: ["b@recipient.example"], subject: "s", text_body: "t", ...change };
  const { status, body } = await api.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

type Shown = { status: string; recipients: { status: string; attempts: number; next_attempt_at: string | null }[] };
const show = async (id: string): Promise<Shown> => (await api.ask("GET", `/v1/emails/${id}`)).body.email;
const warming = async () => (await api.ask("GET", `/v1/domains/${domain.id}/warming`)).body;

/** Until nothing of these is as it was when it waited for its time. */
async function settled(ids: string[]): Promise<{ delivered: string[]; waiting: string[] }> {
  const sorted = { delivered: [] as string[], waiting: [] as string[] };
  await until("each was sent or deferred", async () => {
    const shown = await Promise.all(ids.map(show));
    const [delivered, waiting] = ["delivered", "deferred"].map((status) =>
      ids.filter((_, n) => shown[n]?.status === status),
    );
    Object.assign(sorted, { delivered, waiting });
    return sorted.delivered.length + sorted.waiting.length === ids.length;
  });
  return sorted;
}

test("mail scheduled for one second of tomorrow leaves no faster than warming allows, and says why it waits", async () => {
  const scheduled_at = "2026-11-06T10:00:00.000Z";
  const ids: string[] = [];
  for (let n = 0; n < 15; n += 1) ids.push(await send({ scheduled_at, subject: `scheduled ${n}` }));
  assert.equal((await warming()).today_sent, 0, "nothing has left today");
  await api.startMta();
  clock.set(scheduled_at);
  const { delivered, waiting } = await settled(ids);
  const { today_sent, this_hour_sent, current_limits } = await warming();
  assert.deepEqual([current_limits.hourly_limit, delivered.length, today_sent, this_hour_sent], [7, 7, 7, 7]);
  const { events } = (await api.ask("GET", `/v1/emails/${waiting[0]}/events`)).body;
  const last = events.at(-1);
  assert.deepEqual([last.event_type, last.attempt], ["deferred", null]);
  assert.match(last.message, /waits for the next window: the hourly limit .*\(7\)/);
  const hours = (await Promise.all(waiting.map(show))).map(({ recipients }) =>
    recipients[0]?.next_attempt_at?.slice(0, 16),
  );
  assert.deepEqual(hours.sort(), [...Array(7).fill("2026-11-06T11:00"), "2026-11-06T12:00"]);
  clock.set("2026-11-06T11:00:01.000Z");
  await until("the next hour's have left", async () => (await settled(ids)).delivered.length === 14);
  clock.set("2026-11-06T12:00:01.000Z");
  await until("all have left", async () => (await settled(ids)).delivered.length === 15);
  assert.equal((await warming()).today_sent, 15);
});

test("scheduled mail to several people counts once, and a message that is alone in its window passes whole", async () => {
  const scheduled_at = "2026-11-06T10:00:00.000Z";
  const to = Array.from({ length: 12 }, (_, n) => `person${n}@recipient.example`);
  const id = await send({ scheduled_at, to });
  await api.startMta();
  clock.set(scheduled_at);
  await until("it is delivered", async () => (await show(id)).status === "delivered");
  const { today_sent, this_hour_sent } = await warming();
  assert.deepEqual([today_sent, this_hour_sent], [12, 12]);
});

test("the recipients of one message wait for one window and leave in it together, and each window is used", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  const to = Array.from({ length: 5 }, (_, n) => `person${n}@recipient.example`);
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await send({ scheduled_at, to }));
  await api.startMta();
  clock.set(scheduled_at);
  const { delivered, waiting } = await settled(ids);
  assert.equal(delivered.length, 1, "five in an hour");
  const planned = async (): Promise<(string | undefined)[][]> =>
    (await Promise.all(waiting.map(show))).map(({ recipients }) =>
      recipients.map(({ next_attempt_at }) => next_attempt_at?.slice(0, 13)),
    );
  await until("each recipient waits", async () => (await planned()).flat().every((at) => at && at > "2026-11-05T12"));
  const hours = (await planned()).map((ofOne) => [...new Set(ofOne)].join());
  assert.deepEqual(hours.sort(), ["2026-11-05T13", "2026-11-05T14", "2026-11-05T15"]);
  for (const [n, hour] of ["13", "14", "15"].entries()) {
    clock.set(`2026-11-05T${hour}:00:01.000Z`);
    await until("one more has left", async () => (await settled(ids)).delivered.length === n + 2);
    const { today_sent, this_hour_sent } = await warming();
    assert.deepEqual([today_sent, this_hour_sent], [(n + 2) * 5, 5]);
  }
});

test("while warming is paused scheduled mail waits, and it leaves once it is resumed", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  const id = await send({ scheduled_at });
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`, { reason: "too many bounces" });
  await api.startMta();
  clock.set(scheduled_at);
  assert.deepEqual((await settled([id])).waiting, [id]);
  const { events } = (await api.ask("GET", `/v1/emails/${id}/events`)).body;
  assert.match(events.at(-1).message, /paused \(too many bounces\)/);
  await api.ask("POST", `/v1/domains/${domain.id}/warming/resume`);
  clock.move(HOUR);
  await until("it is delivered", async () => (await show(id)).status === "delivered");
});

test("what waits leaves as soon as the limits are lifted, and mail that is scheduled for later keeps its time", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  const ids: string[] = [];
  for (let n = 0; n < 9; n += 1) ids.push(await send({ scheduled_at }));
  const later = await send({ scheduled_at: "2026-11-05T14:00:00.000Z" });
  await api.startMta();
  clock.set(scheduled_at);
  assert.equal((await settled(ids)).waiting.length, 4);
  const lifted = await api.ask("POST", `/v1/domains/${domain.id}/warming/start`, { phase: "warmed" });
  assert.equal(lifted.status, 200);
  await until("all have left", async () => (await settled(ids)).delivered.length === 9);
  assert.ok(clock.now() < Date.parse("2026-11-05T12:30:00.000Z"), "in the same hour");
  assert.equal((await show(later)).status, "scheduled");
});

test("what waits for a resume, or for its domain to be switched on, leaves then", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  await api.startMta();
  const paused = await send({ scheduled_at });
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`);
  clock.set(scheduled_at);
  await settled([paused]);
  await api.ask("POST", `/v1/domains/${domain.id}/warming/resume`);
  await until("it is delivered", async () => (await show(paused)).status === "delivered");
  const off = await send({ scheduled_at: "2026-11-05T12:10:00.000Z" });
  await api.ask("PUT", `/v1/domains/${domain.id}`, { active: false });
  clock.set("2026-11-05T12:10:00.000Z");
  await settled([off]);
  const on = await api.ask("PUT", `/v1/domains/${domain.id}`, { active: true });
  assert.equal(on.status, 200, JSON.stringify(on.body));
  await until("it is delivered", async () => (await show(off)).status === "delivered");
  assert.ok(clock.now() < Date.parse("2026-11-05T12:14:00.000Z"), "before the next look");
});

test("mail that waits because its domain is switched off was not attempted: it is canceled, leaves later, or says that the domain is gone", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  const ids = [await send({ scheduled_at }), await send({ scheduled_at })];
  await api.ask("PUT", `/v1/domains/${domain.id}`, { active: false });
  await api.startMta();
  clock.set(scheduled_at);
  assert.deepEqual((await settled(ids)).waiting, ids);
  const [canceled, kept] = ids as [string, string];
  assert.deepEqual(
    (await Promise.all(ids.map(show))).map(({ recipients }) => recipients[0]?.attempts),
    [0, 0],
  );
  const waits = Date.parse((await show(kept)).recipients[0]?.next_attempt_at ?? "") - clock.now();
  assert.ok(waits > 3 * MINUTE && waits <= 6 * MINUTE, `looked at again in ${waits} ms`);
  const cancel = await api.ask("POST", `/v1/emails/${canceled}/cancel`);
  assert.deepEqual([cancel.status, cancel.body.email?.status], [200, "canceled"]);
  await api.ask("DELETE", `/v1/domains/${domain.id}?force=true`);
  clock.move(HOUR);
  await until("it has failed", async () => (await show(kept)).status === "failed");
  const { recipients } = (await api.ask("GET", `/v1/emails/${kept}`)).body.email;
  assert.deepEqual([recipients[0].attempts, recipients[0].diag_message], [0, "the sender's domain was removed"]);
  assert.equal(sink.messages.filter(({ from }) => from.endsWith(domain.domain)).length, 0);
});

test("mail that waits for a window does not run out of time, unless its sender set the time", async () => {
  const scheduled_at = "2026-11-06T10:00:00.000Z";
  const [patient, hasty] = [
    await send({ scheduled_at }),
    await send({ scheduled_at, expires_at: "2026-11-06T10:30:00.000Z" }),
  ];
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`);
  await api.startMta();
  clock.set(scheduled_at);
  await until("one is expired", async () => {
    clock.move(10 * MINUTE);
    return (await show(hasty)).status === "expired";
  });
  for (let n = 0; n < 4; n += 1) {
    clock.move(DAY);
    await until("it was deferred again", async () => {
      const at = (await show(patient)).recipients[0]?.next_attempt_at;
      return at != null && Date.parse(at) > clock.now();
    });
  }
  assert.equal((await show(patient)).status, "deferred");
});

test("mail that was accepted and held back counts when it leaves, in the windows that it is not counted in", async () => {
  const id = await send();
  assert.equal((await warming()).this_hour_sent, 1);
  clock.move(3 * HOUR);
  await api.startMta();
  await until("it is delivered", async () => (await show(id)).status === "delivered");
  const { today_sent, this_hour_sent } = await warming();
  assert.deepEqual([today_sent, this_hour_sent], [1, 1]);
});

test("a retry after a server's 451 is not counted again", async () => {
  const id = await send({ to: ["later@recipient.example"] });
  await api.world.db.execute("update delivery set attempts = 1 where message_id = $1", [id]);
  clock.move(3 * HOUR);
  await api.startMta();
  await until("it is delivered", async () => (await show(id)).status === "delivered");
  assert.deepEqual([(await warming()).today_sent, (await warming()).this_hour_sent], [1, 0]);
});

test("mail that waits for its window can be canceled", async () => {
  const scheduled_at = "2026-11-05T12:00:00.000Z";
  const id = await send({ scheduled_at });
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`);
  await api.startMta();
  clock.set(scheduled_at);
  await settled([id]);
  const canceled = await api.ask("POST", `/v1/emails/${id}/cancel`);
  assert.deepEqual([canceled.status, canceled.body.email.status], [200, "canceled"]);
});

test("the schedules of a batch count when they leave", async () => {
  const scheduled_at = "2026-11-06T10:00:00.000Z";
  const mail = { from: `a@${domain.domain}`, to: ["b@recipient.example"], subject: "s", text_body: "t", scheduled_at };
  const { status, body } = await api.ask("POST", "/v1/send/batch", Array(20).fill(mail));
  assert.deepEqual([status, body.accepted], [202, 20]);
  await api.startMta();
  clock.set(scheduled_at);
  const { delivered } = await settled(body.results.map(({ id }: { id: string }) => id));
  assert.equal(delivered.length, 7);
});
