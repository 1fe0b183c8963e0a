// The limits of warming as sends meet them: three windows, exact on any number of servers, one domain apart from another.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type Answer, otherProcess, type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, standingClock } from "../../test/support/moved-clock.ts";
import { addVerifiedDomain, publish } from "../../test/support/verified-domain.ts";
import type { HttpServer } from "../api/server.ts";
import type { World } from "../platform/world.ts";
import { buildWorld } from "../world.ts";

const MINUTE = 60_000;
const START = "2026-11-05T10:00:30.000Z";

let api: TestApi;
let dns: DnsServer;
let second: { world: World; server: HttpServer };
let count = 0;
let domain: { id: string; domain: string };
const clock = standingClock(START);

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
  const world = byClock(clock)(buildWorld(api.config, api.world.log, api.database_url));
  second = { world, server: await otherProcess(world) };
});
after(async () => {
  await second.server.stop();
  await second.world.db.close();
  await api.close();
  await dns.stop();
});
beforeEach(async () => {
  clock.set(START);
  domain = await fresh();
});

const fresh = () => {
  count += 1;
  return addVerifiedDomain(api, dns, `limits${count}.example`, { warm: false });
};
const start = (phase: string) => api.ask("POST", `/v1/domains/${domain.id}/warming/start`, { phase });
const email = (from: string, recipients = 1) => ({
  from: `shop@${from}`,
  to: Array.from({ length: recipients }, (_unused, index) => `u${index}@customer.example`),
  subject: "s",
  text_body: "t",
});
const send = (recipients = 1, from = domain.domain) => api.ask("POST", "/v1/send", email(from, recipients));
const sendToSecond = async (recipients = 1): Promise<Pick<Answer, "status" | "body">> => {
  const { statusCode, json } = await second.server.app.inject({
    method: "POST",
    url: "/v1/send",
    headers: { authorization: `Bearer ${api.live_key}` },
    payload: email(domain.domain, recipients),
  });
  return { status: statusCode, body: json() };
};
const accepted = (answers: { status: number }[]): number => answers.filter(({ status }) => status === 202).length;
const stored = async (): Promise<number> =>
  (
    await api.world.db.query<{ total: number }>(
      "select count(*) as total from recipient r join message m on m.id = r.message_id where m.domain_id = $1",
      [domain.id],
    )
  )[0]?.total ?? -1;

/** The body of the 429 of a full window, checked for every field of the contract. */
async function refusal(): Promise<Record<string, unknown>> {
  const { status, body, headers } = await send();
  assert.equal(status, 429, JSON.stringify(body));
  const names = ["error", "limit", "limit_type", "message", "retry_after_seconds", "used", "warming_phase"];
  for (const name of names) assert.ok(name in body, name);
  assert.equal(body.error, "rate_limit_exceeded");
  assert.equal(headers["retry-after"], String(body.retry_after_seconds));
  const { limit_type, limit, used, retry_after_seconds, warming_phase } = body;
  return { limit_type, limit, used, retry_after_seconds, warming_phase };
}

test("the minute, the hour and the day each refuse with their own numbers, and open again", async () => {
  await start("phase_2");
  assert.equal((await send(8)).status, 202);
  assert.equal(accepted([await send(), await send()]), 2);
  assert.deepEqual(await refusal(), {
    limit_type: "per_minute",
    limit: 10,
    used: 10,
    retry_after_seconds: 30,
    warming_phase: "phase_2",
  });
  clock.set("2026-11-05T10:01:00.000Z");
  assert.equal((await send()).status, 202);
  await start("phase_1");
  const warming_phase = "phase_1";
  clock.set("2026-11-05T11:02:00.000Z");
  await api.world.db.execute("update allowance set used = 20 where scope_id = $1 and kind = 'daily'", [domain.id]);
  assert.equal((await send(5)).status, 202);
  assert.deepEqual(await refusal(), {
    limit_type: "hourly",
    limit: 5,
    used: 5,
    retry_after_seconds: 58 * 60,
    warming_phase,
  });
  await api.world.db.execute("update allowance set used = 50 where scope_id = $1 and kind = 'daily'", [domain.id]);
  clock.set("2026-11-05T12:00:00.000Z");
  assert.deepEqual(await refusal(), {
    limit_type: "daily",
    limit: 50,
    used: 50,
    retry_after_seconds: 12 * 3600,
    warming_phase,
  });
  clock.set("2026-11-06T00:00:00.000Z");
  assert.equal((await send()).status, 202);
});

test("an e-mail to several people counts them all, and is refused whole when they do not all fit", async () => {
  assert.equal((await send(2)).status, 202);
  clock.move(MINUTE);
  assert.equal((await send()).status, 202);
  const { status, body } = await send(3);
  assert.deepEqual([status, body.limit_type, body.used], [429, "hourly", 3]);
  assert.equal(await stored(), 3);
});

test("an e-mail that is alone in its windows passes whatever the number of its recipients, and fills them", async () => {
  assert.equal((await send(12)).status, 202);
  assert.deepEqual(await refusal(), {
    limit_type: "hourly",
    limit: 5,
    used: 12,
    retry_after_seconds: 3_570,
    warming_phase: "phase_1",
  });
  clock.move(60 * MINUTE);
  assert.equal((await send()).status, 202);
  const { status, body } = await send(12);
  assert.deepEqual([status, body.limit_type, body.limit, body.used], [429, "hourly", 5, 1]);
  assert.match(body.message, /with 12 recipients this e-mail leaves when nothing else has left in that time/);
  assert.equal(await stored(), 13);
});

test("two e-mails that would each be alone do not both pass", async () => {
  const answers = await Promise.all([send(12), sendToSecond(12), send(12), sendToSecond(12)]);
  assert.equal(accepted(answers), 1);
  assert.equal(await stored(), 12);
});

test("an e-mail that is alone in its window does not pass while the domain is paused", async () => {
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`);
  assert.equal((await send(3)).status, 429);
});

test("the refusal says what lifts the limits of a domain that has sent before, and that does", async () => {
  assert.equal((await send(5)).status, 202);
  const { body } = await send();
  assert.match(body.message, /hourly limit .*\(5\).*warming\/start \{"phase":"warmed"\}/);
  await start("warmed");
  assert.equal((await send(20)).status, 202);
});

test("a replay under the same Idempotency-Key counts once", async () => {
  const once = () =>
    api.ask("POST", "/v1/send", email(domain.domain), { headers: { "idempotency-key": `key-${domain.id}` } });
  const [first, again] = [await once(), await once()];
  assert.deepEqual([first.status, again.status, again.headers["idempotent-replayed"]], [202, 202, "true"]);
  const { body } = await api.ask("GET", `/v1/domains/${domain.id}/warming`);
  assert.equal(body.today_sent, 1);
});

test("a new phase, a pause and a start hold from the next request on, on every server", async () => {
  assert.equal(accepted([await send(3), await send(2)]), 2);
  assert.equal((await sendToSecond()).status, 429);
  await start("phase_4");
  assert.equal((await sendToSecond(50)).status, 202);
  await api.ask("POST", `/v1/domains/${domain.id}/warming/pause`);
  const paused = await sendToSecond();
  assert.deepEqual([paused.status, paused.body.limit, paused.body.warming_phase], [429, 0, "phase_4"]);
  await start("phase_1");
  const back = await sendToSecond();
  assert.deepEqual([back.status, back.body.limit_type, back.body.limit, back.body.used], [429, "daily", 50, 55]);
  await start("warmed");
  assert.equal((await sendToSecond(50)).status, 202);
});

test("two servers at once never exceed a minute, an hour or a day by one", async () => {
  const totals: number[] = [];
  for (let hour = 0; hour < 11; hour += 1) {
    let ofHour = 0;
    for (let minute = 0; minute < 3; minute += 1) {
      const at = `2026-11-05T${String(10 + hour).padStart(2, "0")}:0${minute}:10.000Z`;
      clock.set(at);
      const answers = await Promise.all(Array.from({ length: 10 }, (_unused, n) => (n % 2 ? send() : sendToSecond())));
      const taken = accepted(answers);
      assert.ok(taken <= 5, `${taken} in one minute`);
      assert.equal(taken + answers.filter(({ status }) => status === 429).length, 10);
      ofHour += taken;
    }
    totals.push(ofHour);
  }
  assert.deepEqual(totals, [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 0]);
  assert.equal(await stored(), 50);
  const used = await api.world.db.query<{ used: number }>(
    "select used from allowance where scope_id = $1 and kind = 'daily'",
    [domain.id],
  );
  assert.deepEqual(used, [{ used: 50 }]);
});

test("e-mails of several recipients fill a limit on two servers without exceeding it", async () => {
  await start("phase_2");
  const sizes = Array.from({ length: 40 }, (_unused, n) => (n % 3) + 1);
  const answers = await Promise.all(sizes.map((size, n) => (n % 2 ? send(size) : sendToSecond(size))));
  const taken = sizes.reduce((sum, size, n) => sum + (answers[n]?.status === 202 ? size : 0), 0);
  assert.ok(taken <= 10 && taken >= 8, `${taken} of 10: what is left is less than the largest e-mail`);
  assert.equal(await stored(), taken);
});

test("a domain at its limit blocks no other domain, even in the same moment", async () => {
  const other = await fresh();
  await api.ask("POST", `/v1/domains/${other.id}/warming/start`, { phase: "warmed" });
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_unused, n) => send(1, n % 2 ? domain.domain : other.domain)),
  );
  const limited = answers.filter((_answer, n) => n % 2);
  assert.equal(accepted(answers) - accepted(limited), 30);
  assert.equal(accepted(limited), 5);
});

test("another organization's domain of the same name has windows of its own", async () => {
  const other = await api.organization();
  const own = await addVerifiedDomain(api, dns, "elsewhere.example", { key: other.live_key, warm: false });
  assert.equal(accepted([await send(3), await send(2)]), 2);
  const { status } = await api.ask("POST", "/v1/send", email(own.domain, 2), { key: other.live_key });
  assert.equal(status, 202);
});

test("a domain that has sent mail before begins without limits when it is added so", async () => {
  const created = await api.ask("POST", "/v1/domains", {
    domain: "known.example",
    type: "outbound",
    warming: "warmed",
  });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  assert.equal(created.body.warming.phase, "warmed");
  const { records } = (await api.ask("GET", `/v1/domains/${created.body.id}/dns`)).body;
  publish(dns, records);
  const verified = await api.ask("POST", `/v1/domains/${created.body.id}/verify`);
  assert.deepEqual([verified.body.status, verified.body.warming.phase], ["verified", "warmed"]);
  assert.doesNotMatch(verified.body.summary, /[Ww]arming/);
  assert.equal((await send(30, "known.example")).status, 202);
  assert.equal((await send(30, "known.example")).status, 202);
  const wrong = await api.ask("POST", "/v1/domains", { domain: "other.example", warming: "hot" });
  assert.deepEqual([wrong.status, wrong.body.field], [400, "warming"]);
});

test("the check of a new domain and its record tell its limits and what lifts them", async () => {
  const verified = (await api.ask("POST", `/v1/domains/${domain.id}/verify`)).body;
  assert.match(verified.summary, /50 recipients today, 5 an hour and 10 a minute.*warming\/start \{"phase":"warmed"\}/);
  const { warming } = (await api.ask("GET", `/v1/domains/${domain.id}`)).body;
  const { hint, ...limits } = warming;
  assert.deepEqual(limits, { phase: "phase_1", daily_limit: 50, hourly_limit: 5, per_minute_limit: 10 });
  assert.match(hint, /"phase":"warmed"/);
  await start("warmed");
  const { body } = await api.ask("GET", "/v1/domains");
  const shown = body.domains.find(({ id }: { id: string }) => id === domain.id);
  assert.deepEqual([shown.warming.phase, shown.warming.hint], ["warmed", null]);
});
