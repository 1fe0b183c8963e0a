// A database gets another master key while it is at work. The key ring is sealed under the new key as well, with a new data
// key in it; when every process can open that, values are sealed with it; then all sealed values are, a few at a time; and
// when no process uses the old master key, the ring is no longer kept under it. Every step looks at the database for what is done
// already, so a rotation that was killed goes on where it was. Not here: the command (commands/master-key.ts).
import { sleep } from "../clock.ts";
import type { Db, Query, Tx } from "../database/db.ts";
import type { World } from "../world.ts";
import {
  insertRing,
  masterKeyId,
  newestDataKey,
  openRing,
  type RingRow,
  readRings,
  sealRing,
  withNewDataKey,
} from "./key-ring.ts";
import { useKeyRing } from "./master-key.ts";
import { type Resealed, resealAll } from "./reseal.ts";
import type { SealedColumn } from "./sealed-columns.ts";

export type RotateWorld = Pick<World, "db" | "seal" | "config">;
export type KeyUse = {
  process: string;
  machine: string;
  pid: number;
  master_key: Buffer;
  newest_data_key: number;
  seals_with: number;
};

/** A process that was silent for so long has ended, or stands still. */
const ALIVE_S = 30;
const LOOK_EVERY_MS = 500;

/** Every process that is alive, by which master key it has. */
export function listUses(db: Query): Promise<KeyUse[]> {
  return db.query<KeyUse>(
    `select process, machine, pid, master_key, newest_data_key, seals_with from key_ring_use
      where seen_at > clock_timestamp() - $1 * interval '1 second' order by machine, pid, process`,
    [ALIVE_S],
  );
}

/** Begins a rotation: from here on the new master key opens the database too. */
export async function beginRotation({ db, config }: RotateWorld, newKey: Buffer): Promise<void> {
  await db.transaction(async (tx) => {
    const rows = await lockRings(tx);
    const ring = openRing(config.master_key, rows);
    if (!ring) throw new Error("this master key does not open the database");
    if (rows.length > 1) return refuseOther(rows, newKey);
    if (newKey.equals(config.master_key))
      throw new Error("the new master key is the one that the database has already");
    const grown = withNewDataKey(ring, Math.max(newestDataKey(ring), await sealingOf(tx)) + 1);
    const { master_key, sealed } = sealRing(config.master_key, grown);
    await tx.execute("update key_ring set sealed = $2 where master_key = $1", [master_key, sealed]);
    await insertRing(tx, newKey, grown);
  });
}

/** Refuses a second rotation before the first one has ended. */
function refuseOther(rows: RingRow[], newKey: Buffer): void {
  if (rows.at(-1)?.master_key.equals(masterKeyId(newKey))) return;
  throw new Error("a rotation to another master key has not ended: finish it, or undo it with --abandon");
}

async function lockRings(tx: Tx): Promise<RingRow[]> {
  await tx.execute("lock table key_ring in share row exclusive mode");
  return readRings(tx);
}

async function sealingOf(db: Query): Promise<number> {
  const [row] = await db.query<{ data_key: number }>("select data_key from master_key");
  return row?.data_key ?? 0;
}

export type Say = (step: { kind: "waiting"; for: KeyUse[] } | { kind: "resealing"; done: Resealed }) => void;

/** Waits until every process has the new data key, has values sealed with it, and seals all others again. */
export async function goOnRotating(
  world: RotateWorld,
  columns: readonly SealedColumn[],
  say: Say = () => undefined,
): Promise<Resealed> {
  const { db, config } = world;
  const ring = openRing(config.master_key, await readRings(db));
  if (!ring) throw new Error("this master key does not open the database");
  const number = newestDataKey(ring);
  await untilAll(db, say, ({ newest_data_key }) => newest_data_key >= number);
  await db.execute("update master_key set data_key = $1 where data_key < $1", [number]);
  await untilAll(db, say, ({ seals_with }) => seals_with >= number);
  await useKeyRing(world);
  return await resealAll(world, { columns, number, progress: (done) => say({ kind: "resealing", done }) });
}

async function untilAll(db: Query, say: Say, isReady: (use: KeyUse) => boolean): Promise<void> {
  for (;;) {
    const late = (await listUses(db)).filter((use) => !isReady(use));
    if (late.length === 0) return;
    say({ kind: "waiting", for: late });
    await sleep(LOOK_EVERY_MS);
  }
}

/** The old master key opens the database no more. Answers who uses it and keeps it from ending; nobody: it has ended. */
export async function endRotation({ db, config }: RotateWorld, options: { force: boolean }): Promise<KeyUse[]> {
  return await removeRing(db, config.master_key, { newest: false, ...options });
}

/** The new master key opens the database no more, as if the rotation had not begun. The same of who uses it. */
export async function abandonRotation({ db, config }: RotateWorld, options: { force: boolean }): Promise<KeyUse[]> {
  return await removeRing(db, config.master_key, { newest: true, ...options });
}

type Removal = { newest: boolean; force: boolean };

async function removeRing(db: Db, own: Buffer, { newest, force }: Removal): Promise<KeyUse[]> {
  return await db.transaction(async (tx) => {
    const rows = await lockRings(tx);
    const row = rows.length > 1 ? rows.at(newest ? -1 : 0) : undefined;
    if (!row) return [];
    if (row.master_key.equals(masterKeyId(own))) throw new Error(OWN_KEY[newest ? "newest" : "oldest"]);
    const uses = (await listUses(tx)).filter(({ master_key }) => master_key.equals(row.master_key));
    if (uses.length > 0 && !force) return uses;
    await tx.execute("delete from key_ring where number = $1", [row.number]);
    return [];
  });
}

const OWN_KEY = {
  oldest: "this machine still has the old master key: give it the new one first",
  newest: "this machine has the new master key already: give it the old one back first",
};
