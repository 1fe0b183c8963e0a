// The key ring in the database: one root and numbered data keys, sealed under each master key that may open it (one, and
// while the master key is changed two). Not here: what is done with the keys (seal.ts), and whether this process has the
// right master key (master-key.ts).
import { randomBytes } from "node:crypto";
import type { Query } from "../database/db.ts";
import { createSeal, SealBroken, type SealKeys } from "./seal.ts";

export type KeyRing = { root: Buffer; data: ReadonlyMap<number, Buffer> };
/** The ring under one master key, as it is kept. */
export type RingRow = { number: number; master_key: Buffer; sealed: Buffer; made_at: Date };

const CONTEXT = "key-ring";
/** The number is one byte of every sealed value. */
const DATA_KEYS_MAX = 255;

/** By this a master key finds its row; nothing of the key can be read from it. */
export function masterKeyId(masterKey: Buffer): Buffer {
  return createSeal(masterKey).hash("postern", "key-ring-master-key");
}

/** For people: enough to tell two keys apart. */
export function shortKeyId(id: Buffer): string {
  return id.toString("hex").slice(0, 8);
}

/** Under `masterKey`; `openRing` reads it. */
export function sealRing(masterKey: Buffer, { root, data }: KeyRing): Pick<RingRow, "master_key" | "sealed"> {
  const keys = [...data].map(([number, key]) => [number, key.toString("hex")]);
  const text = JSON.stringify({ root: root.toString("hex"), data: keys });
  return { master_key: masterKeyId(masterKey), sealed: createSeal(masterKey).seal(Buffer.from(text), CONTEXT) };
}

/** Null where no row is for this master key. Throws SealBroken where its row is damaged. */
export function openRing(masterKey: Buffer, rows: readonly Pick<RingRow, "master_key" | "sealed">[]): KeyRing | null {
  const id = masterKeyId(masterKey);
  const row = rows.find(({ master_key }) => master_key.equals(id));
  if (!row) return null;
  const { root, data } = JSON.parse(openRow(masterKey, row.sealed)) as { root: string; data: [number, string][] };
  const keys = data.map(([number, key]): [number, Buffer] => [number, Buffer.from(key, "hex")]);
  return { root: Buffer.from(root, "hex"), data: new Map(keys) };
}

function openRow(masterKey: Buffer, sealed: Buffer): string {
  try {
    return createSeal(masterKey).open(sealed, CONTEXT).toString();
  } catch (cause) {
    if (!(cause instanceof SealBroken)) throw cause;
    throw new SealBroken("the key ring in the database is damaged: restore the database from a backup", { cause });
  }
}

/** The same ring with one more data key, made now. */
export function withNewDataKey(ring: KeyRing, number: number): KeyRing {
  if (number > DATA_KEYS_MAX)
    throw new Error(`the key ring holds ${DATA_KEYS_MAX} data keys, and there can be no more: no further rotation`);
  return { root: ring.root, data: new Map([...ring.data, [number, randomBytes(32)]]) };
}

export function newestDataKey({ data }: Pick<KeyRing, "data">): number {
  return Math.max(0, ...data.keys());
}

/** All rows, the oldest first; none in a database that is older than the key ring. */
export async function readRings(db: Query): Promise<RingRow[]> {
  const [table] = await db.query<{ found: boolean }>("select to_regclass('key_ring') is not null as found");
  if (!table?.found) return [];
  return await db.query<RingRow>("select number, master_key, sealed, made_at from key_ring order by number");
}

/** The ring with the data key that values are sealed with; null where this master key opens none. */
export async function readKeys(db: Query, masterKey: Buffer): Promise<SealKeys | null> {
  // The number first: what it names was in the ring before.
  const sealing = await readSealing(db);
  const ring = openRing(masterKey, await readRings(db));
  return ring && { ...ring, sealing };
}

async function readSealing(db: Query): Promise<number> {
  const [table] = await db.query<{ found: boolean }>("select to_regclass('key_ring') is not null as found");
  if (!table?.found) return 0;
  const [row] = await db.query<{ data_key: number }>("select data_key from master_key");
  return row?.data_key ?? 0;
}

/** Writes the row of a master key. */
export async function insertRing(db: Query, masterKey: Buffer, ring: KeyRing): Promise<void> {
  const { master_key, sealed } = sealRing(masterKey, ring);
  await db.execute(
    `with next as (select coalesce(max(number), 0) + 1, $1::bytea, $2::bytea from key_ring)
     insert into key_ring (number, master_key, sealed) select * from next returning 1`,
    [master_key, sealed],
  );
}
