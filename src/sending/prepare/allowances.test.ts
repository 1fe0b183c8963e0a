// The monthly quota, and plans, as sends meet them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { byClock, standingClock } from "../../../test/support/moved-clock.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { PLANS } from "../../accounts/plans.ts";
import { forgetWindows, usedOf } from "./allowances.ts";

let api: TestApi;
let dns: DnsServer;
let count = 0;
const clock = standingClock("2026-11-30T23:59:00.000Z");

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
});
after(async () => {
  await api.close();
  await dns.stop();
});

async function customer(plan: keyof typeof PLANS, quota: number | null) {
  const { org_id, live_key, test_key } = await api.organization(plan);
  await api.world.db.execute("update organization set monthly_quota = $2 where id = $1", [org_id, quota]);
  count += 1;
  const { domain } = await addVerifiedDomain(api, dns, `quota${count}.example`, { key: live_key });
  const send = (recipients: number, key = live_key) => {
    const to = Array.from({ length: recipients }, (_unused, n) => `u${n}@customer.example`);
    return api.ask("POST", "/v1/send", { from: `a@${domain}`, to, subject: "s", text_body: "t" }, { key });
  };
  return { org_id, live_key, test_key, send };
}

test("the quota counts accepted recipients and is shown in every answer", async () => {
  const { send } = await customer("starter", 10);
  const { body } = await send(3);
  assert.deepEqual([body.quota_limit, body.quota_used, body.quota_remaining], [10, 3, 7]);
  assert.equal((await send(7)).body.quota_remaining, 0);
});

test("suppressed recipients use no quota", async () => {
  const { send, live_key } = await customer("starter", 10);
  await api.ask("POST", "/v1/suppressions", { email: "u0@customer.example" }, { key: live_key });
  assert.equal((await send(3)).body.quota_used, 2);
});

test("mail beyond the quota is refused whole with the contract's body, until the month is over", async () => {
  clock.set("2026-11-30T23:59:00.000Z");
  const { send } = await customer("starter", 5);
  assert.equal((await send(4)).status, 202);
  const { status, body, headers } = await send(2);
  assert.equal(status, 429);
  const { request_id: _id, code, ...rest } = body;
  assert.equal(code, "rate_limit_exceeded");
  assert.deepEqual(rest, {
    error: "rate_limit_exceeded",
    message: "the monthly quota of this organization (5) is exceeded",
    limit_type: "monthly_quota",
    limit: 5,
    used: 4,
    retry_after_seconds: 60,
    warming_phase: "",
  });
  assert.equal(headers["retry-after"], "60");
  assert.equal((await send(1)).status, 202);
  clock.set("2026-12-01T00:00:00.000Z");
  const next = await send(2);
  assert.deepEqual([next.status, next.body.quota_used], [202, 2]);
});

test("test sends use no quota, show zeros, and are accepted when it is used up", async () => {
  const { send, test_key } = await customer("starter", 1);
  assert.equal((await send(1)).status, 202);
  const { status, body } = await send(1, test_key);
  assert.deepEqual([status, body.quota_limit, body.quota_used, body.quota_remaining], [202, 0, 0, 0]);
});

test("many requests at once never exceed the quota by one", async () => {
  const { send } = await customer("scale", 25);
  const answers = await Promise.all(Array.from({ length: 60 }, () => send(1)));
  assert.equal(answers.filter(({ status }) => status === 202).length, 25);
  assert.ok(answers.every(({ status, body }) => status === 202 || body.limit_type === "monthly_quota"));
});

test("without one of its own an organization has the quota of its plan", async () => {
  for (const plan of ["free", "starter", "growth", "scale", "enterprise"] as const) {
    const { send } = await customer(plan, null);
    assert.equal((await send(1)).body.quota_limit, PLANS[plan].monthly_quota, plan);
  }
  assert.equal((await api.ask("GET", "/v1/api-keys")).headers["ratelimit-limit"], "5000", "the first is enterprise");
});

test("requests beyond the plan's rate are refused with the contract's body", async () => {
  const { live_key } = await api.organization("starter");
  const ask = () => api.ask("GET", "/v1/api-keys", undefined, { key: live_key });
  const answers = await Promise.all(Array.from({ length: 15 }, ask));
  const refused = answers.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 1 && refused.length <= 5, `${refused.length} of 15 refused`);
  const { request_id: _id, code: _code, message, ...body } = refused[0]?.body ?? {};
  assert.match(message, /more than 10 requests per second/);
  assert.deepEqual(body, {
    error: "rate_limit_exceeded",
    limit_type: "requests_per_second",
    limit: 10,
    used: 10,
    retry_after_seconds: 1,
    warming_phase: "",
  });
  assert.equal(refused[0]?.headers["retry-after"], "1");
});

test("windows of domains are forgotten when they are old, months are not", async () => {
  const org = api.world.random.uuid();
  const scope_id = api.world.random.uuid();
  const at = (text: string): Date => new Date(text);
  const windows = [
    { scope_id, kind: "monthly_quota", starts_at: at("2026-11-01T00:00:00Z") },
    { scope_id, kind: "daily", starts_at: at("2026-11-28T00:00:00Z") },
    { scope_id, kind: "daily", starts_at: at("2026-11-29T00:00:00Z") },
    { scope_id, kind: "per_minute", starts_at: at("2026-11-28T23:59:00Z") },
  ] as const;
  for (const { kind, starts_at } of windows) {
    await api.world.db.execute("insert into allowance values ($1, $2, $3, $4, 7, 9)", [org, scope_id, kind, starts_at]);
  }
  await forgetWindows(api.world, at("2026-11-29T00:00:00Z"));
  const used = await api.world.db.asOrg(org, (tx) => usedOf(tx, org, [...windows]));
  assert.deepEqual(used, [7, 0, 7, 0]);
});
