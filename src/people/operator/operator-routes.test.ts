import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";

const ALL = "/dashboard/api/operator/organizations";
let api: TestApi;
let operator: Browser;

before(async () => {
  api = await testApi();
  operator = await setUp(api, "operator@example.net");
});
after(() => api.close());

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
  for (const wrong of [{}, { plan: "gold" }, { requests_per_second: 0 }, { name: " " }, { name: "a\nb" }]) {
    const answer = await operator.ask("PUT", `${ALL}/${api.org_id}`, wrong);
    assert.equal(answer.status, 400, JSON.stringify(wrong));
  }
  await operator.forgetProof();
  const late = await operator.ask("PUT", `${ALL}/${api.org_id}`, { plan: "free" });
  assert.deepEqual([late.status, late.body.code], [403, "proof_needed"]);
});
