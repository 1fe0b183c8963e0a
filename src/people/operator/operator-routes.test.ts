import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";

const ALL = "/dashboard/api/operator/organizations";
let dns: DnsServer;
let api: TestApi;
let operator: Browser;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  operator = await setUp(api, "operator@example.net");
});
after(async () => {
  await api?.close();
  await dns?.stop();
});

it("an operator approves an organization, and its own log says who did", async () => {
  const young = await api.organization("free", "pending_review");
  const listed = (await operator.ask("GET", ALL)).body.organizations;
  const shown = listed.find((one: { id: string }) => one.id === young.org_id);
  assert.deepEqual([shown.plan, shown.state, shown.own], ["free", "pending_review", []]);
  const send = () =>
    api.ask("POST", "/v1/send", { from: "a@x.example", to: ["b@y.example"], subject: "x", text_body: "x" }, young_key);
  const young_key = { key: young.live_key };
  assert.equal((await send()).body.code, "organization_in_review");
  const changes = { state: "active", plan: "growth", monthly_quota: 7 };
  const changed = await operator.ask("PUT", `${ALL}/${young.org_id}`, changes);
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const { plan, state, monthly_quota, own } = changed.body.organization;
  assert.deepEqual([plan, state, monthly_quota, own], ["growth", "active", 7, ["monthly_quota"]]);
  assert.notEqual((await send()).body.code, "organization_in_review");
  const back = await operator.ask("PUT", `${ALL}/${young.org_id}`, { monthly_quota: null });
  assert.deepEqual(back.body.organization.own, []);
  const { entries } = (await api.ask("GET", "/v1/audit-log", undefined, young_key)).body;
  assert.deepEqual(
    [entries[1].operation, entries[1].name, entries[1].fields.sort()],
    ["changeOrganization", "operator@example.net", ["monthly_quota", "plan", "state"]],
  );
  const [quota_back, at_first] = entries.map(
    ({ changes: noted }: { changes: { field: string; before: string; after: string }[] }) =>
      Object.fromEntries(noted.map(({ field, before, after }) => [field, [before, after]])),
  );
  assert.deepEqual([at_first.state, at_first.plan[1]], [["pending_review", "active"], "growth"]);
  assert.deepEqual([at_first.monthly_quota[1], quota_back.monthly_quota[0]], ["7", "7"]);
});

it("is for operators alone, after a fresh proof, and for what there is", async () => {
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { body } = await operator.ask("POST", path, { email: "owner@example.net", role: "owner" });
  const owner = browserOf(api);
  const token = body.link.split("#")[1];
  await owner.ask("POST", "/dashboard/api/links/use", { token, name: "", password: PASSWORD });
  for (const ask of [
    () => owner.ask("GET", ALL),
    () => owner.ask("PUT", `${ALL}/${api.org_id}`, { plan: "enterprise" }),
  ]) {
    const refused = await ask();
    assert.deepEqual([refused.status, refused.body.code], [403, "role_not_allowed"]);
  }
  assert.equal((await browserOf(api).ask("GET", ALL)).status, 401);
  for (const id of ["0190aaaa-0000-7000-8000-000000000000", "1"]) {
    assert.equal((await operator.ask("PUT", `${ALL}/${id}`, { plan: "free" })).status, 404);
  }
  for (const wrong of [
    {},
    { plan: "gold" },
    { requests_per_second: 0 },
    { name: " " },
    { name: "a\nb" },
    { name: "a\tb" },
  ]) {
    const answer = await operator.ask("PUT", `${ALL}/${api.org_id}`, wrong);
    assert.equal(answer.status, 400, JSON.stringify(wrong));
  }
  await operator.forgetProof();
  const late = await operator.ask("PUT", `${ALL}/${api.org_id}`, { plan: "free" });
  assert.deepEqual([late.status, late.body.code], [403, "proof_needed"]);
});

it("organizations are paged, found by a part of the name or the id, and by state", async () => {
  const made = await Promise.all([
    api.organization("free", "pending_review"),
    api.organization("free", "pending_review"),
  ]);
  const ids = made.map(({ org_id }) => org_id);
  for (const [place, id] of ids.entries())
    await api.world.db.query("update organization set name = $2 where id = $1", [id, `Velo 50% ${"AB"[place]}`]);
  const ask = async (query: string) => {
    const { status, body } = await operator.ask("GET", `${ALL}?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const idsOf = ({ organizations }: { organizations: { id: string }[] }) => organizations.map(({ id }) => id);
  const first = await ask("query=velo+50%25&limit=1");
  assert.deepEqual([first.total, first.organizations.length], [2, 1]);
  const second = await ask(`query=velo+50%25&limit=1&after=${first.next}`);
  assert.deepEqual([...idsOf(first), ...idsOf(second)].sort(), [...ids].sort());
  assert.equal(second.next, null);
  assert.deepEqual(idsOf(await ask(`query=${ids[1]}`)), [ids[1]]);
  assert.equal((await ask("query=velo&state=active")).total, 0);
  assert.equal((await ask("query=velo&state=pending_review")).total, 2);
});

it("a review shows what an organization did so far: test mail, domains and people", async () => {
  const young = await api.organization("free", "pending_review");
  await setUp(api, "young@example.net", young.org_id);
  const review = async () => (await operator.ask("GET", `${ALL}/${young.org_id}/review`)).body.review;
  assert.deepEqual(await review(), {
    test_mails: 0,
    domains: [],
    people: [{ email: "young@example.net", name: "", role: "owner" }],
  });
  await addVerifiedDomain(api, dns, "young.example", { key: young.live_key });
  const mail = { from: "a@young.example", to: ["b@y.example"], subject: "x", text_body: "x" };
  const sent = await api.ask("POST", "/v1/send", mail, { key: young.test_key });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  const { test_mails, domains } = await review();
  assert.deepEqual([test_mails, domains[0].domain, domains[0].status], [1, "young.example", "verified"]);
  assert.equal((await operator.ask("GET", `${ALL}/01900000-0000-7000-8000-000000000000/review`)).status, 404);
});
