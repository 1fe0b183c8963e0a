// Roles × acts: every operation of /v1, asked by a person of every role. What is not refused for the role goes on to the
// operation itself, whatever that says of a body that is empty or an id that there is none of.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { operationsOf, readDescription } from "../../../test/api/operations.ts";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { PERSON_ROLES, type PersonRole } from "../types.ts";
import { requireRole } from "./roles.ts";

const NO_ID = "01900000-0000-7000-8000-000000000000";
/** All that a viewer is refused of what is asked by GET, and granted of what is asked by POST. */
const BODIES = [
  "GET /v1/emails/{id}/content",
  "GET /v1/inbound-emails/{id}",
  "GET /v1/inbound-emails/{id}/raw",
  "GET /v1/inbound-emails/{id}/attachments/{attachment_id}/download",
  "GET /v1/masked/people",
  "GET /v1/address-data",
  "GET /v1/masked/failed/{id}/raw",
  "GET /v1/events",
  "GET /v1/webhook-deliveries",
  "GET /v1/webhooks/{id}/deliveries",
];
/** All that developers are refused whatever it is about. */
const ERASES = ["DELETE /v1/address-data"];
const READ_BY_POST = ["POST /v1/templates/{id}/preview"];

let api: TestApi;
const browsers = new Map<string, Browser>();

before(async () => {
  api = await testApi();
  const owner = await setUp(api, "owner@example.net");
  browsers.set("owner", owner);
  for (const role of ["admin", "developer", "viewer"]) {
    const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
    const { body } = await owner.ask("POST", path, { email: `${role}@example.net`, role });
    const browser = browserOf(api);
    const token = body.link.split("#")[1];
    await browser.ask("POST", "/dashboard/api/links/use", { token, name: "", password: PASSWORD });
    browsers.set(role, browser);
  }
  await seesBodies("viewer", false);
});
after(() => api.close());

async function seesBodies(role: string, sees_bodies: boolean): Promise<void> {
  const path = `/dashboard/api/organizations/${api.org_id}/people`;
  const owner = browsers.get("owner") as Browser;
  const { people } = (await owner.ask("GET", path)).body;
  const { id } = people.find((one: { email: string }) => one.email === `${role}@example.net`);
  assert.equal((await owner.ask("PUT", `${path}/${id}`, { sees_bodies })).status, 200);
}

it("every operation with every role: viewers read, all others do what keys do, and developers erase nobody", async () => {
  const operations = operationsOf(await readDescription(api));
  assert.ok(operations.length > 100);
  const surprises: string[] = [];
  let asked = 0;
  for (const { method, name, operationId } of operations) {
    for (const role of PERSON_ROLES) {
      const isAllowed = await allowed(role, { method, operation: operationId });
      const mayRead = method === "GET" ? !BODIES.includes(name) : READ_BY_POST.includes(name);
      const wanted = role === "viewer" ? mayRead : role !== "developer" || !ERASES.includes(name);
      asked += 1;
      if (isAllowed !== wanted) surprises.push(`${role} ${name}: ${isAllowed}`);
    }
  }
  assert.deepEqual(surprises, []);
  assert.equal(asked, operations.length * PERSON_ROLES.length);
});

async function allowed(role: PersonRole, act: { method: string; operation: string }): Promise<boolean> {
  try {
    await requireRole({ role, sees_bodies: false }, act, async () => false);
    return true;
  } catch {
    return false;
  }
}

it("the server asks for the role at every operation", async () => {
  const viewer = browsers.get("viewer") as Browser;
  const surprises: string[] = [];
  for (const { method, name, path } of operationsOf(await readDescription(api))) {
    // An upload and a body of another form are judged before; what has no body, or takes {}, shows the role's own word.
    const isRead = method === "GET";
    const url = path.replace(/\{[^}]+\}/g, NO_ID);
    const query = path === "/v1/masked/people" ? "?email=a@example.net" : "";
    const { status, body } = await viewer.v1(method, url + query, api.org_id);
    const isRefused = body?.code === "role_not_allowed";
    const wanted = isRead ? BODIES.includes(name) : !READ_BY_POST.includes(name);
    if (isRefused !== wanted && !(wanted && status === 400)) surprises.push(`${name}: ${status} ${body?.code}`);
  }
  assert.deepEqual(surprises, []);
});

it("a viewer who may see bodies sees them, and changes nothing all the same", async () => {
  const viewer = browsers.get("viewer") as Browser;
  const ask = () => viewer.v1("GET", `/v1/emails/${NO_ID}/content`, api.org_id);
  assert.equal((await ask()).status, 403);
  await seesBodies("viewer", true);
  assert.equal((await ask()).status, 404);
  assert.equal((await viewer.v1("DELETE", `/v1/emails/${NO_ID}`, api.org_id)).status, 404);
  assert.equal((await viewer.v1("DELETE", `/v1/templates/${NO_ID}`, api.org_id)).status, 403);
});

it("live keys are for owners and admins, test keys for developers as well", async () => {
  for (const [role, environment, status] of [
    ["viewer", "test", 403],
    ["developer", "test", 201],
    ["developer", "live", 403],
    ["admin", "live", 201],
    ["owner", "live", 201],
  ] as const) {
    const browser = browsers.get(role) as Browser;
    const answer = await browser.v1("POST", "/v1/api-keys", api.org_id, { body: { name: role, environment } });
    assert.equal(answer.status, status, `${role} ${environment} ${JSON.stringify(answer.body)}`);
  }
  const { keys } = (await api.ask("GET", "/v1/api-keys")).body;
  const live = keys.find((key: { environment: string }) => key.environment === "live");
  const developer = browsers.get("developer") as Browser;
  for (const [method, body] of [
    ["PUT", { name: "x" }],
    ["DELETE", undefined],
  ] as const) {
    const answer = await developer.v1(method, `/v1/api-keys/${live.id}`, api.org_id, { body });
    assert.deepEqual([answer.status, answer.body.code], [403, "role_not_allowed"]);
  }
});

it("a domain is deleted and a live key made only after a fresh proof", async () => {
  const owner = browsers.get("owner") as Browser;
  const { body } = await owner.v1("POST", "/v1/domains", api.org_id, {
    body: { domain: "danger.example", type: "outbound" },
  });
  const { id } = body;
  await owner.forgetProof();
  for (const ask of [
    () => owner.v1("DELETE", `/v1/domains/${id}`, api.org_id),
    () => owner.v1("POST", "/v1/api-keys", api.org_id, { body: { name: "x", environment: "live" } }),
  ]) {
    const late = await ask();
    assert.deepEqual([late.status, late.body.code], [403, "proof_needed"]);
  }
  const test = { name: "x", environment: "test" };
  assert.equal((await owner.v1("POST", "/v1/api-keys", api.org_id, { body: test })).status, 201);
  await owner.ask("POST", "/dashboard/api/proof", { password: PASSWORD });
  assert.equal((await owner.v1("DELETE", `/v1/domains/${id}`, api.org_id)).status, 200);
});

it("the audit log names the person, and the environment is a key's", async () => {
  const developer = browsers.get("developer") as Browser;
  const made = await developer.v1("POST", "/v1/templates", api.org_id, {
    body: { name: "Hello", subject: "Hello", html_body: "<p>Hello</p>" },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { entries } = (await api.ask("GET", "/v1/audit-log?operation=createTemplate")).body;
  const { actor, name, key_id, person_id } = entries[0];
  const { person } = (await developer.ask("GET", "/dashboard/api/session")).body;
  assert.deepEqual([actor, name, key_id, person_id], ["person", "developer@example.net", null, person.id]);
  for (const headers of [{ "x-postern-environment": "" }, { "x-postern-environment": "prod" }] as const) {
    const answer = await developer.v1("GET", "/v1/domains", api.org_id, { headers });
    assert.deepEqual([answer.status, answer.body.code], [400, "validation_error"]);
  }
  const test = await developer.v1("GET", "/v1/me", api.org_id, { environment: "test" });
  assert.deepEqual([test.body.environment, test.body.key.name], ["test", "developer@example.net"]);
  assert.equal((await api.ask("GET", "/v1/me", undefined, { headers: { cookie: "__Host-postern=x" } })).status, 200);
});
