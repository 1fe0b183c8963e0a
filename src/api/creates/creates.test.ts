// Idempotency-Key on operations that create something.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { otherProcess, type TestApi, testApi } from "../../../test/support/api.ts";
import { startForgettingCreates } from "./creates.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

let made = 0;
const newKey = () => `key ${++made}`;
const create = (path: string, body: unknown, key: string, apiKey = api.live_key) =>
  api.ask("POST", path, body, { key: apiKey, headers: { "idempotency-key": key } });
const total = async (path: string) => (await api.ask("GET", path)).body.total as number;

test("a repeated request gets the first answer, secrets included, and nothing is made twice", async () => {
  const body = { url: "https://shop.example/hooks", events: ["email.delivered"] };
  const key = newKey();
  const first = await create("/v1/webhooks", body, key);
  const again = await create("/v1/webhooks", body, key);
  assert.deepEqual([first.status, again.status], [201, 201]);
  assert.deepEqual(again.body, first.body);
  assert.deepEqual([first.headers["idempotent-replayed"], again.headers["idempotent-replayed"]], [undefined, "true"]);
  assert.equal(await total("/v1/webhooks"), 1);
  const rows = await api.world.db.query<{ answer: Buffer }>("select answer from idempotent_create");
  assert.ok(!rows.some(({ answer }) => answer.includes("whsec_")), "a secret is stored sealed only");
});

test("twenty at the same time, from two processes, make one", async () => {
  const other = await otherProcess(api.world);
  const key = newKey();
  const call = { name: "at once", environment: "test" };
  const headers = { authorization: `Bearer ${api.live_key}`, "idempotency-key": key };
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      (at % 2 ? other.app : api.app).inject({ method: "POST", url: "/v1/api-keys", headers, payload: call }),
    ),
  );
  await other.stop();
  assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([201]));
  assert.equal(new Set(answers.map(({ payload }) => payload)).size, 1);
  const { keys } = (await api.ask("GET", "/v1/api-keys")).body;
  assert.equal(keys.filter(({ name }: { name: string }) => name === "at once").length, 1);
});

test("a key with another body or for another operation is a conflict", async () => {
  const key = newKey();
  assert.equal((await create("/v1/api-keys", { name: "one", environment: "test" }, key)).status, 201);
  for (const [path, body] of [
    ["/v1/api-keys", { name: "two", environment: "test" }],
    ["/v1/templates", { name: "one", slug: "one", subject: "s", text_body: "t" }],
  ] as const) {
    const { status, body: answer } = await create(path, body, key);
    assert.deepEqual([status, answer.code, answer.field], [409, "idempotency_conflict", "Idempotency-Key"]);
  }
});

test("what failed may be tried again with the key", async () => {
  const key = newKey();
  const body = { name: "t", slug: "again", subject: "{{", text_body: "t" };
  assert.equal((await create("/v1/templates", body, key)).status, 400);
  const mended = await create("/v1/templates", { ...body, subject: "s" }, key);
  assert.equal(mended.status, 201, JSON.stringify(mended.body));
});

test("a key that is empty or too long is refused before anything is made", async () => {
  for (const key of ["", "x".repeat(257), "ä"]) {
    const { status, body } = await create("/v1/api-keys", { name: "never", environment: "test" }, key);
    assert.deepEqual([status, body.field?.toLowerCase()], [400, "idempotency-key"]);
  }
});

test("live and test keys, and organizations, have keys of their own", async () => {
  const key = newKey();
  const other = await api.organization();
  const call = { name: "own", environment: "test" };
  const ids = await Promise.all(
    [api.live_key, api.test_key, other.live_key].map(
      async (apiKey) => (await create("/v1/api-keys", call, key, apiKey)).body.key.id,
    ),
  );
  assert.equal(new Set(ids).size, 3);
});

test("a request that never ended is not made again: the answer says what to do", async () => {
  const key = newKey();
  const body = { name: "lost", environment: "test" };
  await create("/v1/api-keys", body, key);
  await api.world.db.execute("update idempotent_create set status = null, answer = null where key = $1", [key]);
  const { status, body: answer } = await create("/v1/api-keys", body, key);
  assert.deepEqual([status, answer.code], [409, "idempotency_conflict"]);
  assert.match(answer.error, /has not ended; look whether it made something/);
});

test("keys are forgotten after 72 hours", async () => {
  const key = newKey();
  const body = { name: "old", environment: "test" };
  const first = await create("/v1/api-keys", body, key);
  await api.world.db.execute("update idempotent_create set created_at = created_at - interval '73 hours'");
  const again = await create("/v1/api-keys", body, key);
  assert.notEqual(again.body.key.id, first.body.key.id, "also before they are removed");
  await api.world.db.execute("update idempotent_create set created_at = created_at - interval '73 hours'");
  const work = startForgettingCreates(api.world);
  await work.stop();
  assert.deepEqual(await api.world.db.query("select 1 from idempotent_create"), []);
});

test("every GET answers HEAD with the same headers and no body", async () => {
  for (const url of ["/v1/webhooks", "/v1/me", "/v1/events", "/healthz"]) {
    const headers = { authorization: `Bearer ${api.live_key}`, accept: "text/event-stream, */*" };
    const { statusCode, payload } = await api.app.inject({ method: "HEAD", url, headers });
    assert.deepEqual([statusCode, payload], [200, ""], url);
  }
});
