// What the operator may set, and that a running API goes by it from the next request on. The command line itself:
// test/scenarios/organizations.long.test.ts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { until } from "../../test/support/until.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { changeOrganization, createOrganization, listOrganizations, type OrganizationOptions } from "./accounts.ts";

let api: TestApi;
let dns: DnsServer;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

const set = (options: OrganizationOptions) => changeOrganization(api.world, api.org_id, options);

const send = (key: string = api.live_key) =>
  api.ask("POST", "/v1/send", { from: "a@sender.example", to: ["b@c.example"], subject: "x", text_body: "x" }, { key });

test("a request rate of its own holds, and the plan's holds again when it is taken back", async () => {
  assert.deepEqual((await set({ requestsPerSecond: "2" })).own, ["requests_per_second"]);
  // What this process has drawn before may be used up for a second.
  const refused = await until("a request is beyond it", async () => {
    const answer = await api.ask("GET", "/v1/api-keys");
    return answer.status === 429 && answer;
  });
  assert.deepEqual([refused.body.limit_type, refused.body.limit], ["requests_per_second", 2]);
  const back = await set({ requestsPerSecond: "default" });
  assert.deepEqual([back.requests_per_second, back.own], [5000, []]);
  await until("it is served again", async () => (await api.ask("GET", "/v1/api-keys")).status === 200);
  const answers = await Promise.all(Array.from({ length: 20 }, () => api.ask("GET", "/v1/api-keys")));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
});

test("a quota below what was used refuses the next send, a change of plan leaves it, and the plan's holds again", async () => {
  assert.equal((await send()).status, 202);
  await set({ monthlyQuota: "1" });
  const over = await send();
  assert.deepEqual([over.status, over.body.limit_type, over.body.limit], [429, "monthly_quota", 1]);
  const moved = await set({ plan: "starter" });
  assert.deepEqual([moved.plan, moved.monthly_quota, moved.requests_per_second], ["starter", 1, 10]);
  assert.deepEqual(moved.own, ["monthly_quota"]);
  await set({ monthlyQuota: "default" });
  const { status, body } = await send();
  assert.deepEqual([status, body.quota_limit, body.quota_used], [202, 50_000, 2]);
  await set({ plan: "enterprise" });
});

test("states count at once: in review live sends are refused and test keys work, suspended no sends", async () => {
  await set({ state: "pending_review" });
  assert.equal((await send()).body.code, "organization_in_review");
  assert.equal((await send(api.test_key)).status, 202);
  await set({ state: "suspended" });
  assert.equal((await send()).body.code, "organization_suspended");
  assert.equal((await send(api.test_key)).body.code, "organization_suspended");
  assert.equal((await api.ask("GET", "/v1/emails")).status, 200, "it sees what it has");
  await set({ state: "active" });
  assert.equal((await send()).status, 202);
});

test("a new organization is on the enterprise plan and active by default, and may have limits of its own", async () => {
  const { organization } = await createOrganization(api.world, { name: "  Ann  " });
  assert.deepEqual([organization.name, organization.plan, organization.state], ["Ann", "enterprise", "active"]);
  const reported = { name: "Ben", plan: "free", state: "pending_review", requestsPerSecond: "7", monthlyQuota: "0" };
  const { organization: other } = await createOrganization(api.world, reported);
  const { id, created_at, ...rest } = other;
  assert.deepEqual(rest, {
    name: "Ben",
    plan: "free",
    state: "pending_review",
    requests_per_second: 7,
    monthly_quota: 0,
    own: ["requests_per_second", "monthly_quota"],
    purpose: null,
  });
  const all = await listOrganizations(api.world);
  assert.deepEqual(all.map(({ name }) => name).slice(-2), ["Ann", "Ben"]);
  assert.deepEqual([all.at(-1)?.id, all.at(-1)?.created_at], [id, created_at]);
});

test("what is not understood is declined with a sentence that names the option, and nothing is changed", async () => {
  const earlier = await listOrganizations(api.world);
  const cases: [OrganizationOptions, RegExp][] = [
    [{}, /^say what to change: --state, --plan, --requests-per-second, --monthly-quota or --name$/],
    [{ state: "asleep" }, /^'--state' is one of pending_review, active, suspended, not "asleep"$/],
    [{ state: "suspended", plan: "gold" }, /^'--plan' is one of free, starter, growth, scale, enterprise, not "gold"$/],
    [{ plan: "toString" }, /^'--plan' is one of/],
    [{ name: " " }, /^'--name' is 1 to 191 characters on one line$/],
    [{ name: "x".repeat(192) }, /^'--name'/],
    [{ name: "two\nlines" }, /^'--name'/],
    ...["0", "-1", "1.5", "1e3", "", "many", "1000001", "99999999999999999999"].map(
      (requestsPerSecond): [OrganizationOptions, RegExp] => [
        { requestsPerSecond },
        /^'--requests-per-second' is a whole number from 1 to 1000000, or default for the plan's, not "/,
      ],
    ),
    ...["-1", "0x10", "1000000000001"].map((monthlyQuota): [OrganizationOptions, RegExp] => [
      { state: "suspended", monthlyQuota },
      /^'--monthly-quota' is a whole number from 0 to 1000000000000, or default for the plan's, not "/,
    ]),
  ];
  for (const [options, message] of cases) {
    await assert.rejects(set(options), (error: Error) => message.test(error.message), JSON.stringify(options));
    if (Object.keys(options).length > 0)
      await assert.rejects(createOrganization(api.world, { name: "x", ...options }), { message });
  }
  for (const id of ["", "1", "0190aaaa-0000-7000-8000-000000000000"]) {
    await assert.rejects(changeOrganization(api.world, id, { state: "suspended" }), /^Error: there is no organization/);
  }
  await assert.rejects(createOrganization(api.world, {}), /^Error: '--name' is needed/);
  assert.deepEqual(await listOrganizations(api.world), earlier);
});
