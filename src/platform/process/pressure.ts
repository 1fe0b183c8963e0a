// What this process is about to run out of: room on a disk that its data folder or its own database lies on, or memory. Whoever takes new work asks
// first and defers it (503, 452) while something is short; what was taken goes on. Looked at every second, so that it is
// noticed before PostgreSQL cannot write its log or the kernel ends a process. Not here: bodies under way (api/load.ts).
import { statfs } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { getHeapStatistics } from "node:v8";
import type { Config } from "../../config.ts";
import { databaseMemory } from "../database/database-memory.ts";
import { findDatabase } from "../postgres/database-folder.ts";
import type { World } from "../world.ts";

export type Shortage = "disk" | "memory";

/** `bytes` on the disk before it is short, and how often that was looked at. */
export type Room = { bytes: number; looks: number };

export type Pressure = {
  /** What is short now; null when nothing is. */
  shortage(): Shortage | null;
  /** What is left for mail on its way in; without end while the folder could not be looked at. */
  room(): Room;
  stop(): void;
};

export type Measured = { free_bytes: number; memory_share: number };

const EVERY_MS = 1_000;
const MIB = 1024 * 1024;
/** Room for PostgreSQL's log between two checkpoints and for what is being written. */
const FREE_BYTES_MIN = 100 * MIB;
/** Again only with some more: a disk at the limit must not open and close the door every second. */
const FREE_BYTES_AGAIN = 120 * MIB;
const MEMORY_SHARE_MAX = 0.9;
const MEMORY_SHARE_AGAIN = 0.85;

type PressureWorld = Pick<World, "config" | "metrics" | "log">;

/** Starts to look; `measure` is for tests. */
export async function watchPressure(
  world: PressureWorld,
  measure: () => Promise<Measured> = measurer(world.config),
): Promise<Pressure> {
  const short = { disk: false, memory: false };
  let room: Room = { bytes: Number.POSITIVE_INFINITY, looks: 0 };
  const gauges = {
    free: world.metrics.gauge(
      "postern_disk_free_bytes",
      "Free space of the disks of the data folder and of the embedded database: the least",
    ),
    memory: world.metrics.gauge(
      "postern_memory_share",
      "Memory used of what this process may have, with the embedded database, 0 to 1",
    ),
    short: world.metrics.gauge("postern_short", "1 while new work is refused for now because it is short", ["what"]),
  };

  async function look(): Promise<void> {
    const { free_bytes, memory_share } = await measure();
    room = { bytes: free_bytes - FREE_BYTES_MIN, looks: room.looks + 1 };
    gauges.free.set(free_bytes);
    gauges.memory.set(memory_share);
    note("disk", free_bytes < (short.disk ? FREE_BYTES_AGAIN : FREE_BYTES_MIN));
    note("memory", memory_share > (short.memory ? MEMORY_SHARE_AGAIN : MEMORY_SHARE_MAX));
  }

  function note(what: Shortage, is: boolean): void {
    gauges.short.set({ what }, is ? 1 : 0);
    if (short[what] === is) return;
    short[what] = is;
    if (is) world.log.error({ what }, "new work is refused for now: there is not enough of it");
    else world.log.info({ what }, "new work is taken again");
  }

  // A folder that cannot be looked at shows itself where it is written to.
  const lookOrSay = () => look().catch((err) => world.log.warn({ err }, "free space could not be looked at"));
  await lookOrSay();
  const timer = setInterval(lookOrSay, EVERY_MS);
  timer.unref();
  return {
    room: () => room,
    shortage: () => (short.disk ? "disk" : short.memory ? "memory" : null),
    stop: () => clearInterval(timer),
  };
}

function measurer(config: DiskConfig): () => Promise<Measured> {
  const folders = foldersOnDisk(config);
  const place = config.database_url === null ? findDatabase(config.data_dir) : null;
  return async () => {
    const database = await place;
    const beside = database ? await databaseMemory(join(database.folder, "cluster")) : 0;
    return { free_bytes: await leastFree(await folders), memory_share: memoryShare(beside) };
  };
}

type DiskConfig = Pick<Config, "data_dir" | "database_url">;

/** The folders that may be on disks of their own; which of them there are, their disks tell. Exported for its test. */
export async function foldersOnDisk({ data_dir, database_url }: DiskConfig, elsewhere?: string): Promise<string[]> {
  const ours = [data_dir, join(data_dir, "blobs"), join(data_dir, "spool")];
  const place = database_url === null ? await findDatabase(data_dir, elsewhere) : null;
  return place === null ? ours : [...ours, join(place.folder, "cluster"), join(place.folder, "cluster", "pg_wal")];
}

async function leastFree([data, ...others]: string[]): Promise<number> {
  const first = await freeBytes(data as string);
  // What is not there, or another user's alone, is on no disk of its own that we could look at.
  const rest = await Promise.all(others.map((folder) => freeBytes(folder).catch(() => first)));
  return Math.min(first, ...rest);
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** The larger of two shares: of the heap's limit, and, with `beside`, of what the container or the machine has. */
function memoryShare(beside: number): number {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  const granted = process.constrainedMemory();
  const whole = granted > 0 ? Math.min(granted, totalmem()) : totalmem();
  return Math.max(used_heap_size / heap_size_limit, (process.memoryUsage.rss() + beside) / whole);
}
