// The master key and its database belong together: under another key DKIM keys and webhook secrets cannot be opened, every
// masked address is unknown, and what is sealed again cannot be opened with the right one. So the database remembers a
// keyed digest, and who comes with another key is refused before anything is sent or accepted. Not here: where the key
// comes from (config.ts), and sealing (seal.ts).
import type { Config } from "../../config.ts";
import type { Query } from "../database/db.ts";
import type { Seal } from "./seal.ts";

type KeyWorld = { db: Query; seal: Seal; config: Pick<Config, "data_dir"> };

const CONTEXT = "master-key-check";

/** `unknown`: the database has sealed nothing yet that it could be known by. */
export async function judgeMasterKey(db: Query, seal: Seal): Promise<"right" | "wrong" | "unknown"> {
  const [kept] = await db.query<{ key_id: number | null; digest: Buffer | null }>(
    "select key_id, digest from master_key",
  );
  if (kept?.digest) return kept.digest.equals(digestOf(seal)) ? "right" : "wrong";
  if (kept?.key_id === null || kept?.key_id === undefined) return "unknown";
  return kept.key_id === keyIdOf(seal) ? "right" : "wrong";
}

/** Throws one sentence with the remedy when the database was sealed under another key. */
export async function refuseOtherMasterKey({ db, seal, config }: KeyWorld): Promise<void> {
  if ((await judgeMasterKey(db, seal)) !== "wrong") return;
  throw new Error(
    `this is not the master key that the database was sealed with: set POSTERN_MASTER_KEY to that key, the same for every process and machine of this database, or put your copy of it back as ${config.data_dir}/master.key (if it is lost for good: postern accept-master-key).`,
  );
}

/** The first start of a database keeps its key; whoever comes at the same moment with another one is refused. */
export async function keepMasterKey(world: KeyWorld): Promise<void> {
  await refuseOtherMasterKey(world);
  await world.db.execute(
    `insert into master_key (digest) values ($1)
     on conflict (is_only) do update set digest = excluded.digest where master_key.digest is null`,
    [digestOf(world.seal)],
  );
  await refuseOtherMasterKey(world);
}

/** After the loss of the right key: this one counts from now on, and what the lost one sealed stays lost. */
export async function acceptMasterKey({ db, seal }: Pick<KeyWorld, "db" | "seal">): Promise<void> {
  await db.execute(
    `insert into master_key (digest) values ($1)
     on conflict (is_only) do update set digest = excluded.digest, key_id = null`,
    [digestOf(seal)],
  );
}

function digestOf(seal: Seal): Buffer {
  return seal.hash("postern", CONTEXT);
}

/** As seal.ts lays sealed bytes out. */
function keyIdOf(seal: Seal): number {
  return seal.seal(Buffer.alloc(0), CONTEXT)[1] as number;
}
