// `postern backup`: every row as of one moment (one snapshot, while mail flows), then the large bodies that these rows name,
// as one encrypted stream. It needs no pg_dump. Not here: putting one back (restore.ts), and looking whether one is whole
// (verify.ts).
import { createHash } from "node:crypto";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import type { Clock } from "../platform/clock.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { readMigrations } from "../platform/database/migrate.ts";
import { beginWith, passedOn } from "../platform/database/session-settings.ts";
import type { Blobs } from "../platform/storage/blobs.ts";
import { openRing, readRings } from "../platform/storage/key-ring.ts";
import { judgeMasterKey } from "../platform/storage/master-key.ts";
import { createSeal } from "../platform/storage/seal.ts";
import { type Locks, seal as sealStream } from "./envelope.ts";
import {
  type BackupEnd,
  type BackupHead,
  bodyFrames,
  CHUNK_BYTES,
  dataFrames,
  frame,
  type TableEnd,
} from "./frames.ts";
import { createRowChecksum } from "./row-checksum.ts";
import type { Target } from "./store.ts";
import { asQuery, bodyKeysOf, connect, copyOut, daysOf, sequencesOf, type Table, tablesOf } from "./tables.ts";

export type BackupWorld = { database_url: string; blobs: Blobs; master_key: Buffer; clock: Clock };
export type Progress = (done: { step: string; rows: number; bodies: number; bytes: number }) => void;
export type BackupOptions = {
  target: Target;
  locks: Locks;
  bodies: BackupHead["bodies"];
  version: string;
  progress: Progress;
};
export type BackupResult = Omit<BackupEnd, "sequences" | "bodies_missing"> & {
  bodies_missing: number;
  /** Before compression, and as stored. */
  bytes: number;
  stored_bytes: number;
  sha256: string;
  seconds: number;
};

const KEY_CHECK = "backup-master-key-check";
/** One snapshot of every row: on Citus, too, as all of them are on one server, which begins the same transaction. */
const BEGIN = beginWith(passedOn([["postern.scope", "system"]]), "begin isolation level repeatable read, read only");

/**
 * A check value of the key ring's root, which stays when the master key is changed and is known with a master key only.
 */
export function masterKeyCheck(root: Buffer): string {
  return createSeal(root).hash("postern", KEY_CHECK).toString("hex");
}

/** Writes the backup whole, or nothing under its name. */
export async function makeBackup(world: BackupWorld, options: BackupOptions): Promise<BackupResult> {
  const startedAtMs = world.clock.monotonic();
  const total = { tables: 0, rows: 0, bodies: 0, bodies_missing: 0, bodies_referenced: 0, bytes: 0 };
  const client = await connect(world.database_url, await schemaOf(world.database_url));
  try {
    const sha256 = createHash("sha256");
    const frames = counting(writeFrames(world, client, options, total), total);
    const stored_bytes = await options.target.store(await sealStream(frames, options.locks), sha256);
    const seconds = Math.round((world.clock.monotonic() - startedAtMs) / 100) / 10;
    return { ...total, stored_bytes, sha256: sha256.digest("hex"), seconds };
  } finally {
    await client.end();
  }
}

type Total = Omit<BackupResult, "stored_bytes" | "sha256" | "seconds">;

async function* counting(frames: AsyncIterable<Buffer>, total: Total): AsyncGenerator<Buffer> {
  for await (const bytes of frames) {
    total.bytes += bytes.length;
    yield bytes;
  }
}

async function* writeFrames(
  world: BackupWorld,
  client: pg.Client,
  options: BackupOptions,
  total: Total,
): AsyncGenerator<Buffer> {
  const tell = (step: string) => options.progress({ step, rows: total.rows, bodies: total.bodies, bytes: total.bytes });
  await client.query(BEGIN);
  await refuseEmpty(client);
  const tables = await tablesOf(client);
  yield frame("H", await headOf(world, client, options));
  for (const table of tables) {
    tell(table.name);
    const end = yield* writeTable(client, table);
    total.tables += 1;
    total.rows += end.rows;
  }
  const sequences = await sequencesOf(client);
  const keys = await bodyKeysOf(client, tables);
  await client.query("commit");
  const bodies_missing: string[] = [];
  if (options.bodies === "referenced") total.bodies_referenced = keys.length;
  else {
    for (const key of keys) {
      if (yield* bodyFrames(world.blobs, key)) total.bodies += 1;
      else bodies_missing.push(key);
      tell("large bodies");
    }
  }
  total.bodies_missing = bodies_missing.length;
  const { bytes: _bytes, ...counted } = total;
  yield frame("Z", { ...counted, bodies_missing, sequences } satisfies BackupEnd);
}

async function refuseEmpty(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select to_regclass('schema_migration') is not null as is_there");
  if (rows[0].is_there) return;
  throw new Error(
    "the database holds nothing of Postern: is it the right one (DATABASE_URL)? A start of Postern fills it.",
  );
}

async function headOf(world: BackupWorld, client: pg.Client, options: BackupOptions): Promise<BackupHead> {
  const known = new Set(readMigrations().map(({ number }) => number));
  const { rows: migrations } = await client.query<BackupHead["migrations"][number]>(
    "select number, checksum from schema_migration order by number",
  );
  const stranger = migrations.find(({ number }) => !known.has(number));
  if (stranger) {
    throw new Error(
      `the database has migration ${stranger.number}, which this Postern does not know: back it up with the version that runs on it.`,
    );
  }
  if ((await judgeMasterKey(asQuery(client), world.master_key)) === "wrong") {
    throw new Error("this is not the master key of the database: set POSTERN_MASTER_KEY to the right one.");
  }
  const rings = await readRings(asQuery(client));
  // A database that no start has given a ring yet: its root will be this key, or nothing is sealed.
  const { root } = openRing(world.master_key, rings) ?? { root: world.master_key };
  const { rows } = await client.query<{ version: string }>("select current_setting('server_version') as version");
  return {
    format: 1,
    postern: options.version,
    created_at: new Date(world.clock.now()).toISOString(),
    postgres: rows[0]?.version ?? "",
    master_key_check: masterKeyCheck(root),
    key_ring: rings.map(({ master_key, sealed }) => ({
      master_key: master_key.toString("hex"),
      sealed: sealed.toString("hex"),
    })),
    migrations,
    days: await daysOf(client),
    bodies: options.bodies,
  };
}

async function* writeTable(client: pg.Client, table: Table): AsyncGenerator<Buffer, TableEnd> {
  yield frame("T", { table: table.name, columns: table.columns });
  const checksum = createRowChecksum();
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of client.query(copyTo(copyOut(table))) as AsyncIterable<Buffer>) {
    checksum.add(chunk);
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < CHUNK_BYTES) continue;
    yield* dataFrames(Buffer.concat(held));
    held = [];
    bytes = 0;
  }
  if (bytes > 0) yield* dataFrames(Buffer.concat(held));
  const end = checksum.end();
  yield frame("E", end);
  return end;
}
