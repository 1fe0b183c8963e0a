// What the doctor says of a database that works and that nothing leaves from, or that a start is refused with.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { testApi } from "../../test/support/api.ts";
import { testDatabase } from "../../test/support/database.ts";
import { findConfig } from "../config.ts";
import { pauseRestored, resumeSending } from "../outbound/outbound.ts";
import { noteDatabase } from "../platform/storage/data-folder.ts";
import { checkDatabase } from "./check-database.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-doctor-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Problems, but for what is wrong with the test server itself. */
async function problems(settings: Record<string, string>): Promise<string[]> {
  const checks = await checkDatabase(findConfig(settings));
  const found = checks.filter(({ status, name }) => status === "problem" && name !== "durability");
  return found.map(({ name, says, remedy }) => `${name}: ${says} ${remedy}`);
}

it("a pause of sending is a problem, with its reason, until it is ended", async () => {
  const api = await testApi();
  const settings = { DATABASE_URL: api.database_url, POSTERN_DATA: join(dir, "none") };
  assert.deepEqual(await problems(settings), []);
  await pauseRestored(api.world.db, "it was restored from the backup of yesterday");
  assert.deepEqual(await problems(settings), [
    "sending: Sending is paused, and all mail waits: it was restored from the backup of yesterday. Look at GET /v1/emails?status=queued, then: postern resume",
  ]);
  await resumeSending(api.world);
  assert.deepEqual(await problems(settings), []);
  await api.close();
});

it("an empty database, or none, beside the data folder of another one is a problem, as a start is refused with it", async () => {
  const database = await testDatabase();
  await noteDatabase(dir, "11111111-2222-3333-4444-555555555555");
  const POSTERN_MASTER_KEY = "ab".repeat(32);
  const [empty, ...more] = await problems({ DATABASE_URL: database.url, POSTERN_DATA: dir, POSTERN_MASTER_KEY });
  assert.match(empty ?? "", /^database: the database is empty, but the data folder \S+ holds the id of another one: /);
  const [lost, ...others] = await problems({ POSTERN_DATA: dir, POSTERN_MASTER_KEY });
  assert.match(lost ?? "", /^database: the database of \S+ is not there, but the id of it/);
  assert.deepEqual([...more, ...others], []);
  const fresh = mkdtempSync(join(dir, "fresh-"));
  writeFileSync(join(fresh, "something"), "");
  assert.deepEqual(await problems({ DATABASE_URL: database.url, POSTERN_DATA: fresh, POSTERN_MASTER_KEY }), []);
  await database.drop();
});
