// A database and its master key belong together, over a real database.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { type Db, openDb } from "../database/db.ts";
import { acceptMasterKey, judgeMasterKey, keepMasterKey, refuseOtherMasterKey } from "./master-key.ts";
import { createSeal } from "./seal.ts";

const MIGRATION = new URL("../../../migrations/0024_master_key.sql", import.meta.url);

let database: TestDatabase;
let db: Db;
const RIGHT = Buffer.alloc(32, 1);
const WRONG = Buffer.alloc(32, 2);
const isFresh = async () => true;

before(async () => {
  database = await testDatabase();
  db = openDb(database.url, { onError: () => undefined });
});

after(async () => {
  await db?.close();
  await database?.drop();
});

beforeEach(async () => {
  await db.execute("delete from master_key");
  await db.execute("delete from key_ring");
  await db.execute("delete from masked_key");
});

/** A process that starts with this key, and has sealed nothing yet. */
function worldOf(master_key: Buffer) {
  return { db, seal: createSeal(master_key), config: { data_dir: "/srv/postern", master_key } };
}

test("the first start keeps its key; another one is refused in one sentence that names the remedy", async () => {
  assert.equal(await judgeMasterKey(db, WRONG), "unknown");
  await keepMasterKey(worldOf(RIGHT), isFresh);
  await keepMasterKey(worldOf(RIGHT), isFresh);
  assert.equal(await judgeMasterKey(db, RIGHT), "right");
  for (const refuse of [keepMasterKey, refuseOtherMasterKey]) {
    await assert.rejects(refuse(worldOf(WRONG), isFresh), (error: Error) => {
      assert.match(
        error.message,
        /^this is not the master key that the database was sealed with: set POSTERN_MASTER_KEY/,
      );
      assert.match(error.message, /\/srv\/postern\/master\.key/);
      return true;
    });
  }
  assert.equal(await judgeMasterKey(db, RIGHT), "right", "what was refused has changed nothing");
});

test("of two first starts at once with different keys one is refused", async () => {
  const results = await Promise.allSettled([RIGHT, WRONG].map((key) => keepMasterKey(worldOf(key), isFresh)));
  assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

/** What an older version has left: a key of the masked domain, sealed at `hour`. */
async function sealed(masterKey: Buffer, hour: number): Promise<void> {
  await db.execute(
    `insert into masked_key (domain, id, selector, public_key, private_key, created_at)
     values ($1, $2, 's', 'p', $3, $4)`,
    [
      `m${hour}.example`,
      `00000000-0000-7000-8000-00000000000${hour}`,
      createSeal(masterKey).seal(Buffer.from("pem"), "x"),
      new Date(hour * 3_600_000),
    ],
  );
}

async function migrateAgain(): Promise<void> {
  const text = readFileSync(MIGRATION, "utf8");
  await db.execute(text.slice(text.indexOf("insert into master_key")));
}

test("a database from before is known by what was sealed last, and takes the digest at its next start", async () => {
  await sealed(WRONG, 1);
  await sealed(RIGHT, 2);
  await migrateAgain();
  assert.deepEqual([await judgeMasterKey(db, RIGHT), await judgeMasterKey(db, WRONG)], ["right", "wrong"]);
  await assert.rejects(keepMasterKey(worldOf(WRONG), isFresh), /not the master key/);
  await keepMasterKey(worldOf(RIGHT), isFresh);
  const [row] = await db.query<{ digest: Buffer }>("select digest from master_key");
  assert.equal(row?.digest.length, 32);
});

test("a database from before that has sealed nothing takes the key of its next start", async () => {
  await migrateAgain();
  assert.deepEqual(await db.query("select * from master_key"), []);
  await keepMasterKey(worldOf(WRONG), isFresh);
  assert.equal(await judgeMasterKey(db, RIGHT), "wrong");
});

test("after a loss the operator may go on with another key", async () => {
  await sealed(RIGHT, 3);
  await migrateAgain();
  await acceptMasterKey(worldOf(WRONG));
  await keepMasterKey(worldOf(WRONG), isFresh);
  assert.equal(await judgeMasterKey(db, RIGHT), "wrong");
});
