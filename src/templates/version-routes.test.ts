// The versions of a template: listed with who made them, each with its sources, and one made the current one again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { setUp } from "../../test/support/people.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api?.close());

const ask = async (method: string, path: string, body?: unknown) => {
  const answer = await api.ask(method, path, body);
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
};

test("versions are listed newest first, with subject, time and who made them", async () => {
  await ask("POST", "/v1/templates", { name: "Order", slug: "order", subject: "One {{name}}", text_body: "1" });
  await ask("PUT", "/v1/templates/order", { subject: "Two", variables: [{ name: "name", default: "you" }] });
  const person = await setUp(api, "ines@example.net");
  const change = { body: { subject: "Three" } };
  assert.equal((await person.v1("PUT", "/v1/templates/order", api.org_id, change)).status, 200);
  const { body: keys } = await api.ask("GET", "/v1/api-keys");
  const key = keys.keys.find((one: { environment: string }) => one.environment === "live").name;
  const { versions, total } = await ask("GET", "/v1/templates/order/versions");
  assert.deepEqual(
    versions.map(({ created_at: _, ...row }: { created_at: string }) => row),
    [
      { version: 3, subject: "Three", created_by: "ines@example.net" },
      { version: 2, subject: "Two", created_by: key },
      { version: 1, subject: "One {{name}}", created_by: key },
    ],
  );
  assert.equal(total, 3);
  const page = await ask("GET", "/v1/templates/order/versions?before=3&limit=1");
  assert.deepEqual(
    page.versions.map(({ version }: { version: number }) => version),
    [2],
  );
});

test("a version has its sources and what its author declared, and can be made the current one", async () => {
  const { version: first } = await ask("GET", "/v1/templates/order/versions/1");
  assert.deepEqual(
    [first.subject, first.text_body, first.html_body, first.declared],
    ["One {{name}}", "1", null, null],
  );
  assert.deepEqual(first.variables, [{ name: "name", required: true, default: null }]);
  const { version: second } = await ask("GET", "/v1/templates/order/versions/2");
  assert.deepEqual([second.declared, second.variables[0].default], [["name"], "you"]);
  const { subject, text_body, html_body } = first;
  await ask("PUT", "/v1/templates/order", { subject, text_body, html_body, variables: null });
  const { template } = await ask("GET", "/v1/templates/order");
  assert.deepEqual([template.version, template.subject, template.variables[0].default], [4, "One {{name}}", null]);
});

test("a version that is not there is 404, as one of another's template", async () => {
  for (const number of ["9", "0", "-1", "1e3", "99999999999", "x"])
    assert.equal((await api.ask("GET", `/v1/templates/order/versions/${number}`)).status, 404, number);
  const other = await api.organization();
  for (const path of ["versions", "versions/1"])
    assert.equal((await api.ask("GET", `/v1/templates/order/${path}`, undefined, { key: other.live_key })).status, 404);
});
