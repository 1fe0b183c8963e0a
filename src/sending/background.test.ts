import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { forgetOld } from "./background.ts";

const HOUR_MS = 3_600_000;
let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

test("idempotency keys are forgotten after 72 hours and not before", async () => {
  const { db, clock } = api.world;
  for (const [key, hours] of [
    ["fresh", 71],
    ["old", 73],
    ["older", 74],
    ["oldest", 99],
  ] as const) {
    await db.execute(
      `insert into idempotency (org_id, environment, key, request_hash, status, answer, created_at)
       values ($1, 'live', $2, '\\x00', 202, '{}', $3)`,
      [api.org_id, key, new Date(clock.now() - hours * HOUR_MS)],
    );
  }
  assert.equal(await forgetOld(api.world, 2), 3);
  const rows = await db.query<{ key: string }>("select key from idempotency");
  assert.deepEqual(
    rows.map(({ key }) => key),
    ["fresh"],
  );
});
