// A database gets another master key while two processes with one key each work on it, over a real database.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { until } from "../../../test/support/until.ts";
import { type Db, openDb } from "../database/db.ts";
import { createLog } from "../process/log.ts";
import { createMetrics } from "../process/metrics.ts";
import { createRandom } from "../random.ts";
import type { World } from "../world.ts";
import { followKeyRing } from "./follow-key-ring.ts";
import { masterKeyId, readRings } from "./key-ring.ts";
import { acceptMasterKey, judgeMasterKey, keepMasterKey, useKeyRing } from "./master-key.ts";
import { countLeft } from "./reseal.ts";
import { abandonRotation, beginRotation, endRotation, goOnRotating, listUses } from "./rotate-master-key.ts";
import { createSeal, SealBroken } from "./seal.ts";
import type { SealedColumn } from "./sealed-columns.ts";

const OLD = Buffer.alloc(32, 1);
const NEW = Buffer.alloc(32, 2);
const isFresh = async () => true;
const COLUMNS: SealedColumn[] = [
  { table: "masked_key", column: "private_key", key: ["domain"], context: ({ domain }) => `key:${domain}` },
];

let database: TestDatabase;
let db: Db;

before(async () => {
  database = await testDatabase();
  db = openDb(database.url, { onError: () => undefined });
});
after(async () => {
  await db?.close();
  await database?.drop();
});
beforeEach(async () => {
  for (const table of ["master_key", "key_ring", "key_ring_use", "masked_key"])
    await db.execute(`delete from ${table}`);
});

/** Of a process with this master key. */
function worldOf(master_key: Buffer) {
  const seal = createSeal(master_key);
  const config = { data_dir: "/srv/postern", master_key } as World["config"];
  const log = createLog({ level: "silent", role: "test" });
  return { db, seal, config, log, metrics: createMetrics(), random: createRandom({ now: Date.now }) };
}

async function started(master_key: Buffer) {
  const world = worldOf(master_key);
  await keepMasterKey(world, isFresh);
  return world;
}

async function keep(world: Pick<World, "seal">, domain: string): Promise<void> {
  await db.execute(
    `insert into masked_key (domain, id, selector, public_key, private_key, created_at)
     values ($1, gen_random_uuid(), 's', 'p', $2, now())`,
    [domain, world.seal.seal(Buffer.from(`secret of ${domain}`), `key:${domain}`)],
  );
}

async function read(world: Pick<World, "seal">, domain: string): Promise<string> {
  const [row] = await db.query<{ private_key: Buffer }>("select private_key from masked_key where domain = $1", [
    domain,
  ]);
  return world.seal.open(row!.private_key, `key:${domain}`).toString();
}

/** As an installation from before there was a key ring left it. */
async function fromBefore(): Promise<void> {
  const world = worldOf(OLD);
  await keep(world, "before.example");
  const digest = world.seal.hash("postern", "master-key-check");
  await db.execute("insert into master_key (digest) values ($1)", [digest]);
}

test("a fresh database gets a root of its own, one from before keeps the master key as root", async () => {
  const fresh = await started(OLD);
  assert.notDeepEqual(fresh.seal.hash("x", "y"), createSeal(OLD).hash("x", "y"));
  const beside = worldOf(OLD);
  await useKeyRing(beside);
  assert.deepEqual(beside.seal.hash("x", "y"), fresh.seal.hash("x", "y"));

  await db.execute("delete from key_ring");
  await db.execute("delete from master_key");
  await fromBefore();
  const older = await started(OLD);
  assert.deepEqual(older.seal.hash("x", "y"), createSeal(OLD).hash("x", "y"));
  assert.equal(await read(older, "before.example"), "secret of before.example");
});

test("two processes with a key each read what the other seals, while everything is sealed again", async () => {
  await fromBefore();
  const old = await started(OLD);
  const followed = [await followKeyRing(old)];
  for (let index = 0; index < 120; index += 1) await keep(old, `m${index}.example`);
  const digest = old.seal.hash("x", "y");

  await beginRotation(old, NEW);
  const fresh = await started(NEW);
  followed.push(await followKeyRing(fresh));
  assert.equal(await read(fresh, "before.example"), "secret of before.example", "before anything was sealed again");
  const seen: number[] = [];
  const done = await goOnRotating(old, COLUMNS, (step) => step.kind === "resealing" && seen.push(step.done.left));
  assert.deepEqual([done.sealed_again, done.left, done.unreadable], [121, 0, 0]);
  assert.ok(seen.length >= 3 && seen.at(-1) === 0, JSON.stringify(seen));
  for (const world of [old, fresh]) {
    assert.equal(await read(world, "before.example"), "secret of before.example");
    assert.deepEqual(world.seal.hash("x", "y"), digest);
  }
  await keep(old, "of-old.example");
  await keep(fresh, "of-new.example");
  assert.equal(await read(old, "of-new.example"), "secret of of-new.example");
  assert.equal(await read(fresh, "of-old.example"), "secret of of-old.example");
  assert.equal(await countLeft(db, COLUMNS, 1), 0, "a process that follows seals with the new data key");

  await assert.rejects(endRotation(old, { force: true }), /still has the old master key/);
  const uses = await endRotation(fresh, { force: false });
  assert.deepEqual(
    uses.map(({ master_key, pid }) => [master_key.equals(masterKeyId(OLD)), pid]),
    [[true, process.pid]],
  );
  await followed[0]!.stop();
  assert.deepEqual(await endRotation(fresh, { force: false }), []);
  assert.deepEqual([await judgeMasterKey(db, OLD), await judgeMasterKey(db, NEW)], ["wrong", "right"]);
  const later = worldOf(OLD);
  await useKeyRing(later);
  assert.throws(() => later.seal.open(fresh.seal.seal(Buffer.from("x"), "y"), "y"), SealBroken);
  await followed[1]!.stop();
  assert.deepEqual(await listUses(db), []);
});

test("nothing is sealed with a data key that a living process has not read yet; a dead one is not waited for", async () => {
  const old = await started(OLD);
  await db.execute(
    `insert into key_ring_use (process, machine, pid, master_key, newest_data_key, seals_with)
     values (gen_random_uuid(), 'slow', 7, '\\x00', 1, 1)`,
  );
  await beginRotation(old, NEW);
  const waited: string[] = [];
  const rotating = goOnRotating(old, COLUMNS, (step) => {
    if (step.kind === "waiting") waited.push(...step.for.map(({ machine }) => machine));
  });
  await until("it waits", () => waited.length > 1);
  assert.deepEqual(await db.query("select data_key from master_key"), [{ data_key: 1 }]);
  await db.execute("update key_ring_use set seen_at = now() - interval '2 minutes'");
  await rotating;
  assert.deepEqual(new Set(waited), new Set(["slow"]));
  assert.deepEqual(await db.query("select data_key from master_key"), [{ data_key: 2 }]);
});

test("a rotation to a third key is refused while one is under way, and one may be undone", async () => {
  const old = await started(OLD);
  await assert.rejects(beginRotation(old, OLD), /the one that the database has already/);
  await beginRotation(old, NEW);
  await beginRotation(old, NEW);
  assert.equal((await readRings(db)).length, 2);
  await assert.rejects(beginRotation(old, Buffer.alloc(32, 3)), /another master key has not ended/);
  await assert.rejects(abandonRotation(await started(NEW), { force: false }), /has the new master key already/);
  assert.deepEqual(await abandonRotation(old, { force: false }), []);
  assert.deepEqual([await judgeMasterKey(db, OLD), await judgeMasterKey(db, NEW)], ["right", "wrong"]);
});

test("a row that somebody holds is met later, what a lost key sealed is left and counted", async () => {
  const old = await started(OLD);
  for (const domain of ["held.example", "free.example"]) await keep(old, domain);
  await keep({ seal: createSeal(Buffer.alloc(32, 9)) }, "lost.example");
  await beginRotation(old, NEW);
  const [holding, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holder = db.transaction(async (tx) => {
    await tx.query("select 1 from masked_key where domain = 'held.example' for update");
    holding.resolve();
    await release.promise;
  });
  await holding.promise;
  const done = await goOnRotating(old, COLUMNS, (step) => {
    if (step.kind === "resealing" && step.done.sealed_again === 1) release.resolve();
  });
  await holder;
  assert.deepEqual([done.sealed_again, done.left, done.unreadable], [2, 1, 1]);
  assert.equal(await read(old, "held.example"), "secret of held.example");
});

test("after a loss, what the lost keys sealed is not taken for damaged", async () => {
  const lost = await started(OLD);
  await keep(lost, "lost.example");
  const other = worldOf(NEW);
  await acceptMasterKey(other);
  await keep(other, "new.example");
  assert.equal(await read(other, "new.example"), "secret of new.example");
  await assert.rejects(read(other, "lost.example"), /another master key/);
  assert.equal(await judgeMasterKey(db, OLD), "wrong");
});

test("organizations see neither the key ring nor who uses it", async () => {
  await started(OLD);
  await db.execute(
    "insert into key_ring_use (process, machine, pid, master_key, newest_data_key, seals_with) values (gen_random_uuid(), 'm', 7, '\\x00', 1, 1)",
  );
  for (const table of ["key_ring", "key_ring_use"]) {
    const count = `select count(*)::int as n from ${table}`;
    assert.deepEqual(await db.query(count), [{ n: 1 }]);
    assert.deepEqual(
      await db.asOrg("00000000-0000-7000-8000-000000000001", (tx) => tx.query(count)),
      [{ n: 0 }],
      table,
    );
  }
});
