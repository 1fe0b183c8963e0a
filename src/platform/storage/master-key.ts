// The master key and its database belong together: under another key the key ring cannot be opened, so no DKIM key, webhook
// secret or masked address either. Who comes with another key is refused before anything is sent or accepted. A database
// from before there was a key ring knows its key by a keyed digest, and gets a ring whose root is that key: everything that was
// sealed and every digest stays valid. Not here: where the key comes from (config.ts), sealing (seal.ts), and giving the
// database another master key (rotate-master-key.ts).
import { randomBytes } from "node:crypto";
import type { Config } from "../../config.ts";
import type { Db, Query } from "../database/db.ts";
import { insertRing, type KeyRing, newestDataKey, openRing, readKeys, readRings, withNewDataKey } from "./key-ring.ts";
import { createSeal, type Seal } from "./seal.ts";

type KeyWorld = { db: Db; seal: Seal; config: Pick<Config, "data_dir" | "master_key"> };

const CONTEXT = "master-key-check";

/** `unknown`: the database has sealed nothing yet that it could be known by. */
export async function judgeMasterKey(db: Query, masterKey: Buffer): Promise<"right" | "wrong" | "unknown"> {
  const rings = await readRings(db);
  if (rings.length > 0) return openRing(masterKey, rings) ? "right" : "wrong";
  const [kept] = await db.query<{ key_id: number | null; digest: Buffer | null }>(
    "select key_id, digest from master_key",
  );
  if (kept?.digest) return kept.digest.equals(digestOf(masterKey)) ? "right" : "wrong";
  if (kept?.key_id === null || kept?.key_id === undefined) return "unknown";
  return kept.key_id === keyIdOf(masterKey) ? "right" : "wrong";
}

/** Seals with the database's keys where the master key opens them. */
export async function useKeyRing({ db, seal, config }: KeyWorld): Promise<void> {
  const keys = await readKeys(db, config.master_key);
  if (keys) seal.use(keys);
}

/** Throws one sentence with the remedy when the database was sealed under another key. */
export async function refuseOtherMasterKey({ db, config }: Pick<KeyWorld, "db" | "config">): Promise<void> {
  refuseWrong(await judgeMasterKey(db, config.master_key), config);
}

function refuseWrong(judged: Awaited<ReturnType<typeof judgeMasterKey>>, { data_dir }: Pick<Config, "data_dir">): void {
  if (judged !== "wrong") return;
  throw new Error(
    `this is not the master key that the database was sealed with: set POSTERN_MASTER_KEY to that key (after a rotation, to the new one), the same for every process and machine of this database, or put your copy of it back as ${data_dir}/master.key (if it is lost for good: postern accept-master-key).`,
  );
}

/**
 * The first start of a database keeps its key; a process that comes at the same moment with another one is refused. `isFresh`: nothing
 * was sealed or digested yet; commands and older versions do so with the master key itself.
 */
export async function keepMasterKey(world: KeyWorld, isFresh: () => Promise<boolean>): Promise<void> {
  const { db, config } = world;
  await db.transaction(async (tx) => {
    await lock(tx);
    refuseWrong(await judgeMasterKey(tx, config.master_key), config);
    if ((await readRings(tx)).length > 0) return;
    const isKnown = (await tx.query("select 1 from master_key")).length > 0;
    const ring = !isKnown && (await isFresh()) ? newRing(1) : { root: config.master_key, data: new Map() };
    await keepRing(tx, config.master_key, ring);
  });
  await useKeyRing(world);
}

/** The first keys of a database that has none yet are those of another cell, with a data key of its own to go on with. */
export async function adoptKeyRing(world: KeyWorld, ring: KeyRing, isFresh: () => Promise<boolean>): Promise<void> {
  const { db, config } = world;
  await db.transaction(async (tx) => {
    await lock(tx);
    refuseWrong(await judgeMasterKey(tx, config.master_key), config);
    if ((await readRings(tx)).length > 0 || !(await isFresh()))
      throw new Error("the database has keys of its own already");
    await keepRing(tx, config.master_key, withNewDataKey(ring, newestDataKey(ring) + 1));
  });
  await useKeyRing(world);
}

/**
 * After the loss of the right key: this one counts from now on, and what the lost one sealed stays lost. False where this one
 * is the right one: nothing changes.
 */
export async function acceptMasterKey(world: KeyWorld): Promise<boolean> {
  const { db, config } = world;
  const accepted = await db.transaction(async (tx) => {
    await lock(tx);
    if ((await judgeMasterKey(tx, config.master_key)) === "right") return false;
    const [last] = await tx.query<{ data_key: number }>("select data_key from master_key");
    await tx.execute("delete from key_ring");
    // A number of its own: what the lost keys sealed must not be taken for damaged.
    await keepRing(tx, config.master_key, newRing((last?.data_key ?? 0) + 1));
    return true;
  });
  await useKeyRing(world);
  return accepted;
}

function newRing(dataKey: number): KeyRing {
  return withNewDataKey({ root: randomBytes(32), data: new Map() }, dataKey);
}

async function lock(db: Query): Promise<void> {
  await db.execute("lock table key_ring, master_key in share row exclusive mode");
}

async function keepRing(db: Query, masterKey: Buffer, ring: KeyRing): Promise<void> {
  await insertRing(db, masterKey, ring);
  await db.execute(
    `insert into master_key (digest, data_key) values ($1, $2)
     on conflict (is_only) do update set digest = excluded.digest, data_key = excluded.data_key, key_id = null`,
    [digestOf(ring.root), newestDataKey(ring)],
  );
}

/** By this a version from before the key ring knows whether it has the root. */
function digestOf(root: Buffer): Buffer {
  return createSeal(root).hash("postern", CONTEXT);
}

/** The id of a key, as seal.ts writes it into sealed bytes. */
function keyIdOf(root: Buffer): number {
  return createSeal(root).seal(Buffer.alloc(0), CONTEXT)[1] as number;
}
