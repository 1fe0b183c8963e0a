import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { dumpSchema } from "./schema-dump.ts";

const COMMITTED = new URL("../../../migrations/schema.sql", import.meta.url);

let database: TestDatabase;

before(async () => {
  database = await testDatabase();
});

after(async () => {
  await database?.drop();
});

async function run(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

describe("the dump of the schema", () => {
  it("is what is committed as migrations/schema.sql", async (t) => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query("select current_setting('server_version_num')::int / 10000 as major");
    await client.end();
    // Other versions write some expressions differently.
    if (rows[0].major !== 18) return t.skip(`the committed dump is of PostgreSQL 18, this server is ${rows[0].major}`);
    assert.equal(
      await dumpSchema(database.url),
      readFileSync(COMMITTED, "utf8"),
      "migrations/ and migrations/schema.sql differ: run `node test/support/write-schema.ts` and commit its diff",
    );
  });

  it("is the same each time, whatever day partitions there are", async () => {
    const first = await dumpSchema(database.url);
    await run("call make_day_partitions('2031-01-01', '2031-01-03')");
    assert.equal(await dumpSchema(database.url), first);
    assert.ok(!/_\d{8}\b/.test(first), "a day partition is in the dump");
  });

  it("sees a column, default, constraint, index, policy, function and trigger that changed", async () => {
    const before = await dumpSchema(database.url);
    for (const [change, undo] of [
      ["alter table api_key add column extra text", "alter table api_key drop column extra"],
      ["alter table api_key alter column name set default 'x'", "alter table api_key alter column name drop default"],
      ["alter table api_key alter column name drop not null", "alter table api_key alter column name set not null"],
      ["alter table api_key add constraint odd check (name <> '')", "alter table api_key drop constraint odd"],
      ["create index odd on api_key (name)", "drop index odd"],
      ["alter table api_key no force row level security", "alter table api_key force row level security"],
      ["create policy odd on api_key using (true)", "drop policy odd on api_key"],
      ["create function odd() returns int language sql as 'select 1'", "drop function odd()"],
      ["alter table api_key set (fillfactor = 77)", "alter table api_key reset (fillfactor)"],
      [
        "alter table api_key alter column name set storage external",
        "alter table api_key alter column name set storage extended",
      ],
      ["create table odd (id uuid primary key)", "drop table odd"],
      [
        "create function odd() returns trigger language plpgsql as 'begin return new; end'; create trigger odd before insert on api_key for each row execute function odd()",
        "drop function odd() cascade",
      ],
    ] as const) {
      await run(change);
      assert.notEqual(await dumpSchema(database.url), before, change);
      await run(undo);
    }
    assert.equal(await dumpSchema(database.url), before);
  });
});
