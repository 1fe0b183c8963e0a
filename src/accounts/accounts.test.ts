import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { bootstrap } from "./accounts.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

const create = (name: string, environment: string, key?: string) =>
  api.ask("POST", "/v1/api-keys", { name, environment }, key === undefined ? {} : { key });

test("a key is created with its secret once, and never shown again", async () => {
  const { status, body } = await create("Shop", "live");
  assert.equal(status, 201);
  assert.deepEqual(Object.keys(body).sort(), ["key", "secret"]);
  const fields = "created_at destination_id environment id key_prefix kind last_four last_used_at name revoked_at";
  assert.equal(Object.keys(body.key).sort().join(" "), fields);
  assert.equal(body.secret.slice(0, 12), body.key.key_prefix);
  assert.equal(body.secret.slice(-4), body.key.last_four);
  for (const path of [`/v1/api-keys/${body.key.id}`, "/v1/api-keys"]) {
    const shown = await api.ask("GET", path);
    assert.ok(!JSON.stringify(shown.body).includes(body.secret), path);
  }
  const rows = await api.world.db.query("select * from api_key");
  assert.ok(!JSON.stringify(rows).includes(body.secret.slice(12, -4)), "the database does not hold it");
});

test("a new key works at once and not after its revocation, also when it revokes itself", async () => {
  const { body } = await create("Short-lived", "live");
  const as = { key: body.secret };
  assert.equal((await api.ask("GET", "/v1/api-keys", undefined, as)).status, 200);
  const gone = await api.ask("DELETE", `/v1/api-keys/${body.key.id}`, undefined, as);
  assert.deepEqual([gone.status, gone.body], [200, { deleted: true, id: body.key.id }]);
  const refused = await api.ask("GET", "/v1/api-keys", undefined, as);
  assert.deepEqual([refused.status, refused.body.code], [401, "invalid_api_key"]);
  const shown = await api.ask("GET", `/v1/api-keys/${body.key.id}`);
  assert.ok(shown.body.key.revoked_at);
  assert.equal((await api.ask("DELETE", `/v1/api-keys/${body.key.id}`)).status, 200, "again is no error");
});

test("renaming changes the name alone", async () => {
  const { body } = await create("Before", "test");
  const renamed = await api.ask("PUT", `/v1/api-keys/${body.key.id}`, { name: "After" });
  assert.deepEqual([renamed.status, renamed.body.key.name], [200, "After"]);
  assert.equal((await api.ask("PUT", `/v1/api-keys/${body.key.id}`, { environment: "live" })).status, 400);
});

test("a bad request names the field", async () => {
  const cases: [unknown, string][] = [
    [{ environment: "live" }, "name"],
    [{ name: "x" }, "environment"],
    [{ name: "", environment: "live" }, "name"],
    [{ name: "   ", environment: "live" }, "name"],
    [{ name: "x".repeat(192), environment: "live" }, "name"],
    [{ name: "x", environment: "prod" }, "environment"],
    [{ name: "x", environment: "live", scope: "all" }, "scope"],
  ];
  for (const [body, field] of cases) {
    const answer = await api.ask("POST", "/v1/api-keys", body);
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", field]);
    assert.ok(answer.body.error.includes(`'${field}'`), answer.body.error);
  }
});

test("a test key manages test keys and creates no live one", async () => {
  assert.equal((await create("From test", "test", api.test_key)).status, 201);
  const { status, body } = await create("Live from test", "live", api.test_key);
  assert.deepEqual([status, body.code, body.field], [403, "test_key_not_allowed", "environment"]);
});

test("lists are newest first, page by page, with the exact total", async () => {
  const { live_key: key } = await api.organization();
  for (const name of ["a", "b", "c"]) await create(name, "test", key);
  const { body } = await api.ask("GET", "/v1/api-keys?limit=2&offset=1", undefined, { key });
  assert.deepEqual([body.total, body.limit, body.offset], [5, 2, 1]);
  assert.deepEqual(
    body.keys.map(({ name }: { name: string }) => name),
    ["b", "a"],
  );
});

test("the first start happens once", async () => {
  assert.equal(await bootstrap(api.world, { live_key: null, test_key: null }), null);
});

test("an organization's request rate answers 429 with the contract's body, and recovers", async () => {
  const { live_key: key } = await api.organization("starter");
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => api.ask("GET", "/v1/api-keys", undefined, { key })),
  );
  const refused = answers.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 15 && refused.length <= 20, `${refused.length} of 30 were refused`);
  const [first] = refused;
  assert.equal(first?.headers["retry-after"], "1");
  const { request_id, message, code, ...rest } = first?.body ?? {};
  assert.deepEqual(rest, {
    error: "rate_limit_exceeded",
    limit_type: "requests_per_second",
    limit: 10,
    used: 10,
    retry_after_seconds: 1,
    warming_phase: "",
  });
});
