import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { readMigrations } from "../../src/platform/database/migrate.ts";
import { type TestDatabase, testDatabase } from "./database.ts";
import { removeLeftOvers } from "./test-server.ts";

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  return (await client.query(text).finally(() => client.end())).rows;
}

describe("a test database", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.drop());

  it("is migrated, and belongs to a role that row-level security binds", async () => {
    const [applied] = await ask(database.url, "select count(*)::int as migrations from schema_migration");
    assert.deepEqual(applied, { migrations: readMigrations().length });
    const [role] = await ask(
      database.url,
      "select rolsuper, rolbypassrls, pg_get_userbyid(datdba) = rolname as owns from pg_roles, pg_database where rolname = current_user and datname = current_database()",
    );
    assert.deepEqual(role, { rolsuper: false, rolbypassrls: false, owns: true });
  });

  it("is seen by nobody else, and gone after drop even with a session on it", async (test) => {
    const first = await testDatabase();
    const before = performance.now();
    const second = await testDatabase();
    test.diagnostic(`clone: ${Math.round(performance.now() - before)} ms`);
    await ask(first.url, "create table mark (n int)");
    assert.deepEqual(await ask(second.url, "select to_regclass('mark')::text as mark"), [{ mark: null }]);
    const client = new pg.Client(first.url);
    const cut = new Promise<Error>((resolve) => client.on("error", resolve));
    await client.connect();
    await Promise.all([first.drop(), second.drop()]);
    await cut;
    await assert.rejects(ask(first.url, "select 1"), /does not exist/);
  });

  it("leaves the folder of a run that is alive, and removes that of one that was killed", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    const folder = await mkdtemp(join(tmpdir(), `postern-test-${child.pid}-`));
    await removeLeftOvers();
    assert.equal((await stat(folder)).isDirectory(), true);
    child.kill("SIGKILL");
    await once(child, "exit");
    await removeLeftOvers();
    await assert.rejects(stat(folder), { code: "ENOENT" });
    await rm(folder, { recursive: true, force: true });
  });
});
