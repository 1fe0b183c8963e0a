// One address has another answer for each key, person and organization: no cache between may keep any of them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, type TestApi, testApi } from "../support/api.ts";
import { setUp } from "../support/people.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const keptOut = ({ headers }: Answer, what: string) =>
  assert.match(String(headers["cache-control"]), /(?:^|, )no-store$/, what);

test("what a key, a person or nobody is answered under /v1 is kept by no cache", async () => {
  const person = await setUp(api, "cached@people.example");
  for (const path of ["/v1/me", "/v1/emails", "/v1/suppressions/export", "/v1/events", "/v1/templates/none"]) {
    keptOut(await api.ask("GET", path), `${path} with a key`);
    keptOut(await person.v1("GET", path, api.org_id), `${path} with a session`);
    keptOut(await api.ask("GET", path, undefined, { key: null }), `${path} without a key`);
  }
  keptOut(await api.ask("POST", "/v1/templates", { name: 1 }), "a refused body");
});

test("nor is what a password manager is answered", async () => {
  const request = { name: "m", environment: "test", kind: "mask", destination: "me@home.example" };
  const { body } = await api.ask("POST", "/v1/api-keys", request);
  const headers = { authentication: body.secret };
  const answer = await api.ask("GET", "/api/user_info", undefined, { key: null, headers });
  assert.equal(answer.status, 200);
  keptOut(answer, "/api/user_info");
});
