// While the master key is changed, every process reads the key ring again and says how far it is: values are sealed with a new
// data key only when every process can open them (rotate-master-key.ts waits for that).
import { hostname } from "node:os";
import type { Query } from "../database/db.ts";
import { type RoundsWorld, startRounds } from "../process/rounds.ts";
import type { World } from "../world.ts";
import { masterKeyId, newestDataKey, readKeys, shortKeyId } from "./key-ring.ts";
import type { SealKeys } from "./seal.ts";

type FollowWorld = Pick<World, "db" | "seal" | "config" | "random" | "log"> & RoundsWorld;

const EVERY_MS = 3_000;
/** When the rows of processes that ended without removing them are deleted. */
const FORGET_DAYS = 1;

/**
 * Begins after the first look: until then nothing is sealed that others could not open, or they us. `pid`: the process that an
 * operator restarts to give it another key; the parent's for one that is started and ended by another.
 */
export async function followKeyRing(
  world: FollowWorld,
  pid: number = process.pid,
): Promise<{ process_id: string; stop(): Promise<void> }> {
  const process_id = world.random.uuid();
  const master_key = masterKeyId(world.config.master_key);
  let used: Pick<SealKeys, "data" | "sealing"> = { data: new Map(), sealing: 0 };
  let state: "new" | "open" | "shut" = "new";
  const look = async (): Promise<void> => {
    // First, so that a rotation that does not see this process yet has its key where the next statement reads.
    await noteUse(world.db, process_id, { pid, master_key, ...used });
    const keys = await readKeys(world.db, world.config.master_key);
    if (keys === null) return tellShut();
    state = "open";
    if (keys.sealing === used.sealing && keys.data.size === used.data.size) return;
    world.seal.use(keys);
    used = keys;
    await noteUse(world.db, process_id, { pid, master_key, ...used });
  };
  const tellShut = (): void => {
    if (state !== "open") return;
    state = "shut";
    world.log.error(
      { master_key: shortKeyId(master_key) },
      "the master key of this process opens the database no more: give it the new one before it is started again",
    );
  };
  await look();
  const rounds = startRounds(world, { name: "following the key ring", every_ms: EVERY_MS, round: look });
  return {
    process_id,
    async stop() {
      await rounds.stop();
      await world.db.execute("delete from key_ring_use where process = $1", [process_id]).catch(() => undefined);
    },
  };
}

type Use = { pid: number; master_key: Buffer } & Pick<SealKeys, "data" | "sealing">;

async function noteUse(db: Query, process_id: string, use: Use): Promise<void> {
  await db.execute(
    `with forgotten as (delete from key_ring_use where seen_at < statement_timestamp() - $7 * interval '1 day')
     insert into key_ring_use (process, machine, pid, master_key, newest_data_key, seals_with, seen_at)
     values ($1, $2, $3, $4, $5, $6, statement_timestamp())
     on conflict (process) do update
        set newest_data_key = excluded.newest_data_key, seals_with = excluded.seals_with, seen_at = excluded.seen_at`,
    [process_id, hostname(), use.pid, use.master_key, newestDataKey(use), use.sealing, FORGET_DAYS],
  );
}
