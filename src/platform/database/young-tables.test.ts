// Which tables are analyzed, in a real database.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { until } from "../../../test/support/until.ts";
import { analyzeGrown } from "./young-tables.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

/** How many rows the planner knows of; -1 where it knows nothing. */
async function knownRows(table: string): Promise<number> {
  const [row] = await api.world.db.query<{ rows: number }>(
    "select reltuples as rows from pg_class where relname = $1",
    [table],
  );
  return row?.rows ?? -1;
}

async function isAnalyzedAt(rows: number): Promise<boolean> {
  await analyzeGrown(api.world);
  return (await knownRows("suppression")) === rows;
}

test("a table that has doubled is analyzed, one that has not, or whose rows come and go, is not", async () => {
  const { db } = api.world;
  const add = (from: number, to: number) =>
    db.execute(
      `insert into suppression (org_id, id, email, reason, scope_type, source, created_at)
       select $1, gen_random_uuid(), n || '@many.example', 'manual', 'org', 'manual', now() from generate_series($2::int, $3::int) n`,
      [api.org_id, from, to],
    );
  await db.execute(
    `insert into inbound_queue (org_id, id, raw_id, next_attempt_at)
     select $1, gen_random_uuid(), gen_random_uuid(), now() from generate_series(1, 300)`,
    [api.org_id],
  );
  await db.execute("delete from inbound_queue");
  await add(1, 300);
  // PostgreSQL counts rows a moment after they are there.
  await until("suppression is analyzed", () => isAnalyzedAt(300));
  assert.equal(await knownRows("suppression"), 300);
  await add(301, 500);
  assert.ok(!(await analyzeGrown(api.world)).includes("suppression"), "200 rows more than 300 are not twice as many");
  await add(501, 700);
  await until("suppression is analyzed", () => isAnalyzedAt(700));
  assert.equal(await knownRows("suppression"), 700);
  assert.ok((await knownRows("inbound_queue")) <= 0, "its rows are gone");
});
