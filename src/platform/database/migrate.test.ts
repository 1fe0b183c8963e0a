import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { migrateNoting } from "./migrate.ts";

let database: TestDatabase;
before(async () => {
  database = await testDatabase();
});
after(() => database.drop());

it("says that a newer Postern has run on the database, and changes nothing", async () => {
  assert.deepEqual(await migrateNoting(database.url), { applied: [], newer: null });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("insert into schema_migration (number, name, checksum) values (9001, 'later', 'x')");
  await client.end();
  const newer = "the database has migration 9001 (later): a newer Postern has run on it.";
  assert.deepEqual(await migrateNoting(database.url), { applied: [], newer });
});
