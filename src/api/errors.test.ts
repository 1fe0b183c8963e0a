import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { Crowded } from "../platform/database/db.ts";
import { createHttpServer, type HttpServer } from "./server.ts";

let api: TestApi;
let server: HttpServer;
const holding = { count: 0, both: Promise.withResolvers<void>() };

before(async () => {
  api = await testApi();
  server = await createHttpServer(api.world, (v1) => {
    v1.get("/v1/slow", { schema: { hide: true } }, () =>
      api.world.db.asOrg(api.org_id, async (tx) => {
        await tx.execute("set local statement_timeout = '10ms'");
        await tx.query("select pg_sleep(10)");
      }),
    );
    v1.get("/v1/crowded", { schema: { hide: true } }, async () => {
      throw new Crowded("too many");
    });
    v1.get("/v1/locks/:first/:second", { schema: { hide: true } }, async ({ params }) => {
      const { first, second } = params as { first: string; second: string };
      await api.world.db.transaction(async (tx) => {
        await tx.query("select pg_advisory_xact_lock($1)", [first]);
        holding.count += 1;
        if (holding.count === 2) holding.both.resolve();
        await holding.both.promise;
        await tx.query("select pg_advisory_xact_lock($1)", [second]);
      });
      return {};
    });
    v1.get("/v1/bug", { schema: { hide: true } }, async () => {
      throw new TypeError("secrets in here");
    });
  });
});
after(async () => {
  await server?.stop();
  await api?.close();
});

const get = (url: string, headers: Record<string, string> = { authorization: `Bearer ${api.live_key}` }) =>
  server.app.inject({ url, headers });

test("a statement beyond its time is 503 with Retry-After, not a 500", async () => {
  const answer = await get("/v1/slow");
  assert.equal(answer.statusCode, 503);
  assert.equal(answer.json().code, "unavailable");
  assert.equal(answer.headers["retry-after"], "5");
});

test("what found no connection beside its organization's other requests is 503 and says so", async () => {
  const answer = await get("/v1/crowded");
  assert.deepEqual([answer.statusCode, answer.json().code, answer.headers["retry-after"]], [503, "unavailable", "1"]);
  assert.match(answer.json().error, /too many of your requests are under way/);
});

test("of two requests that wait for each other in the database one is done, and the other may be tried again", async () => {
  const answers = await Promise.all([get("/v1/locks/1/2"), get("/v1/locks/2/1")]);
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).toSorted(), [200, 503]);
  const refused = answers.find(({ statusCode }) => statusCode === 503);
  assert.deepEqual([refused?.json().code, refused?.headers["retry-after"]], ["unavailable", "1"]);
});

test("a bug is 500 and tells nothing of itself", async () => {
  const answer = await get("/v1/bug");
  const { request_id, ...body } = answer.json();
  assert.deepEqual([answer.statusCode, body], [500, { error: "an internal error occurred", code: "internal_error" }]);
  assert.equal(answer.headers["x-request-id"], request_id);
});

test("a 401 says how to ask (RFC 6750 §3)", async () => {
  assert.equal((await get("/v1/bug", {})).headers["www-authenticate"], 'Bearer realm="postern"');
  const wrong = await get("/v1/bug", { authorization: "Bearer svc_live_0123456789abcdef0123" });
  assert.equal(wrong.headers["www-authenticate"], 'Bearer realm="postern", error="invalid_token"');
});
