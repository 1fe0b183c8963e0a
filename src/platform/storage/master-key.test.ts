// A database and its master key belong together, over a real database.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { type Db, openDb } from "../database/db.ts";
import { acceptMasterKey, judgeMasterKey, keepMasterKey, refuseOtherMasterKey } from "./master-key.ts";
import { createSeal, type Seal } from "./seal.ts";

const MIGRATION = new URL("../../../migrations/0024_master_key.sql", import.meta.url);

let database: TestDatabase;
let db: Db;
const config = { data_dir: "/srv/postern" };
const right = createSeal(Buffer.alloc(32, 1));
const wrong = createSeal(Buffer.alloc(32, 2));

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
  await db.execute("delete from masked_key");
});

test("the first start keeps its key; another one is refused in one sentence that names the remedy", async () => {
  assert.equal(await judgeMasterKey(db, wrong), "unknown");
  await keepMasterKey({ db, seal: right, config });
  await keepMasterKey({ db, seal: right, config });
  assert.equal(await judgeMasterKey(db, right), "right");
  for (const refuse of [keepMasterKey, refuseOtherMasterKey]) {
    await assert.rejects(refuse({ db, seal: wrong, config }), (error: Error) => {
      assert.match(
        error.message,
        /^this is not the master key that the database was sealed with: set POSTERN_MASTER_KEY/,
      );
      assert.match(error.message, /\/srv\/postern\/master\.key/);
      return true;
    });
  }
  assert.equal(await judgeMasterKey(db, right), "right", "what was refused has changed nothing");
});

test("of two first starts at once with different keys one is refused", async () => {
  const results = await Promise.allSettled([right, wrong].map((seal) => keepMasterKey({ db, seal, config })));
  assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

/** What an older version has left: a key of the masked domain, sealed at `hour`. */
async function sealed(seal: Seal, hour: number): Promise<void> {
  await db.execute(
    `insert into masked_key (domain, id, selector, public_key, private_key, created_at)
     values ($1, $2, 's', 'p', $3, $4)`,
    [
      `m${hour}.example`,
      `00000000-0000-7000-8000-00000000000${hour}`,
      seal.seal(Buffer.from("pem"), "x"),
      new Date(hour * 3_600_000),
    ],
  );
}

async function migrateAgain(): Promise<void> {
  const text = readFileSync(MIGRATION, "utf8");
  await db.execute(text.slice(text.indexOf("insert into master_key")));
}

test("a database from before is known by what was sealed last, and takes the digest at its next start", async () => {
  await sealed(wrong, 1);
  await sealed(right, 2);
  await migrateAgain();
  assert.deepEqual([await judgeMasterKey(db, right), await judgeMasterKey(db, wrong)], ["right", "wrong"]);
  await assert.rejects(keepMasterKey({ db, seal: wrong, config }), /not the master key/);
  await keepMasterKey({ db, seal: right, config });
  const [row] = await db.query<{ digest: Buffer }>("select digest from master_key");
  assert.equal(row?.digest.length, 32);
});

test("a database from before that has sealed nothing takes the key of its next start", async () => {
  await migrateAgain();
  assert.deepEqual(await db.query("select * from master_key"), []);
  await keepMasterKey({ db, seal: wrong, config });
  assert.equal(await judgeMasterKey(db, right), "wrong");
});

test("after a loss the operator may go on with another key", async () => {
  await sealed(right, 3);
  await migrateAgain();
  await acceptMasterKey({ db, seal: wrong });
  await keepMasterKey({ db, seal: wrong, config });
  assert.equal(await judgeMasterKey(db, right), "wrong");
});
