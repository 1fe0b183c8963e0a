// Every operation of /dashboard/api: asked by nobody, by every role, by a stranger, by another site's page, and long after the password was
// shown. A new operation without a place here fails the test.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../test/support/people.ts";

const NO_ID = "01900000-0000-7000-8000-000000000000";
/** Asked before somebody is signed in. */
const OPEN = new Set([
  ...["signIn", "lookUpLink", "useLink", "askForReset", "getWaysIn", "signUp"],
  ...["askPasskey", "signInWithPasskey", "offerFirstPasskey"],
]);
const OWNERS = new Set(["updateMember", "removeMember", "listInvitations", "createInvitation", "deleteInvitation"]);
const OPERATORS = new Set([
  ...["listOrganizations", "changeOrganization", "createSignUpLink"],
  ...["listQueue", "getQueueDestination", "suspendDestination", "resumeDestination", "retryDestination"],
  ...["dropDestination", "getHealth", "lookAtHealth", "getOrganizationReview"],
  ...["listSources", "holdSource", "giveBackSource", "listRelays"],
  ...["listOperatorMail", "getOperatorMail", "getOperatorMailRaw", "downloadOperatorMailAttachment"],
]);
const DANGEROUS = new Set([
  ...["changePassword", "offerTotp", "confirmTotp", "removeTotp", "offerPasskey", "addPasskey", "removePasskey"],
  ...["updateMember", "removeMember", "createInvitation", "changeOrganization", "createSignUpLink"],
  "dropDestination",
]);
/** About the person alone, whatever their role. */
const OWN = new Set([
  ...["getSession", "signOut", "proveAgain", "proveWithPasskey", "listSessions", "endSession", "signOutEverywhere"],
  ...["updatePerson", "listPasskeys", "listMembers"],
]);
const ENDS = new Set(["signOut", "signOutEverywhere", "changePassword"]);
const BODIES: Record<string, object> = {
  updateMember: { role: "viewer" },
  createInvitation: { email: "somebody@example.net", role: "viewer" },
  changeOrganization: { name: "Another name" },
  signUp: { email: "new@example.net" },
  createSignUpLink: { email: "new@example.net" },
};

type Operation = { method: string; path: string; name: string };
let api: TestApi;
let operations: Operation[];
const browsers = new Map<string, Browser>();

before(async () => {
  api = await testApi();
  const operator = await setUp(api, "operator@example.net");
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  for (const role of ["owner", "admin", "developer", "viewer"]) {
    const { body } = await operator.ask("POST", path, { email: `${role}@example.net`, role });
    const browser = browserOf(api, { ip: `192.0.2.${browsers.size + 1}` });
    const use = { token: body.link.split("#")[1], name: "", password: PASSWORD };
    assert.equal((await browser.ask("POST", "/dashboard/api/links/use", use)).status, 200);
    browsers.set(role, browser);
  }
  const described = (await operator.ask("GET", "/dashboard/api/openapi.json")).body;
  operations = Object.entries(described.paths as Record<string, Record<string, { operationId: string }>>).flatMap(
    ([place, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({
        ...{ method: method.toUpperCase(), name: operationId },
        path: place.replace("{org_id}", api.org_id).replace("{id}", NO_ID),
      })),
  );
});
after(() => api.close());

it("all have a place in this test", () => {
  const placed = [OPEN, OWNERS, OPERATORS, DANGEROUS, OWN].flatMap((names) => [...names]);
  assert.deepEqual(
    operations.map(({ name }) => name).filter((name) => !placed.includes(name)),
    [],
  );
  assert.ok(operations.length > 25);
});

function ask(browser: Browser, { method, path, name }: Operation, headers: Record<string, string> = {}) {
  return browser.ask(method, path, method === "GET" ? undefined : (BODIES[name] ?? {}), { headers });
}

it("need somebody who is signed in, but for those that let people in", async () => {
  for (const operation of operations) {
    const { body } = await ask(browserOf(api), operation);
    assert.equal(body.code === "not_signed_in", !OPEN.has(operation.name), `${operation.name} ${body.code}`);
  }
});

it("change nothing for another site's page, whoever is signed in", async () => {
  const owner = browsers.get("owner") as Browser;
  for (const operation of operations.filter(({ method }) => method !== "GET")) {
    for (const [name, value] of [
      ["origin", "https://evil.example"],
      ["origin", ""],
      ["x-postern-dashboard", ""],
    ] as const) {
      const { status, body } = await ask(owner, operation, { [name]: value });
      assert.deepEqual([status, body.code], [403, "request_not_allowed"], operation.name);
    }
  }
});

it("roles: people are for owners, the installation for operators, oneself for everybody", async () => {
  const surprises: string[] = [];
  for (const [role, browser] of browsers) {
    for (const operation of operations.filter(({ name }) => !ENDS.has(name) && !OPEN.has(name))) {
      const { body } = await ask(browser, operation);
      const wanted = OPERATORS.has(operation.name) || (OWNERS.has(operation.name) && role !== "owner");
      if ((body.code === "role_not_allowed") !== wanted) surprises.push(`${role} ${operation.name}: ${body.code}`);
    }
  }
  assert.deepEqual(surprises, []);
});

it("a stranger's organization is not there", async () => {
  const { org_id } = await api.organization();
  const stranger = await setUp(api, "stranger@example.net", org_id, { ip: "192.0.2.98" });
  for (const operation of operations.filter(({ path }) => path.includes(api.org_id))) {
    const { status, body } = await ask(stranger, operation);
    assert.deepEqual([status, body.code], [404, "not_found"], operation.name);
  }
});

it("what is dangerous needs a fresh proof, and nothing else does", async () => {
  const operator = await setUp(api, "second.operator@example.net", api.org_id, { ip: "192.0.2.99" });
  await operator.forgetProof();
  for (const operation of operations.filter(({ name }) => !OPEN.has(name) && !ENDS.has(name))) {
    const { body } = await ask(operator, operation);
    assert.equal(body.code === "proof_needed", DANGEROUS.has(operation.name), `${operation.name} ${body.code}`);
  }
  assert.equal((await operator.ask("PUT", "/dashboard/api/person/password", { password: PASSWORD })).status, 403);
});
