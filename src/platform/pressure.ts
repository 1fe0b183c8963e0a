// What this process is about to run out of: room on the disk of its data folder, or memory. Whoever takes new work asks
// first and puts it off (503, 452) while something is short; what was taken goes on. Looked at every second, so that it is
// noticed before PostgreSQL cannot write its log or the kernel ends a process. Not here: bodies under way (api/load.ts).
import { statfs } from "node:fs/promises";
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { World } from "./world.ts";

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
  measure: () => Promise<Measured> = () => measureHere(world.config.data_dir),
): Promise<Pressure> {
  const short = { disk: false, memory: false };
  let room: Room = { bytes: Number.POSITIVE_INFINITY, looks: 0 };
  const gauges = {
    free: world.metrics.gauge("postern_disk_free_bytes", "Free space of the data folder's disk"),
    memory: world.metrics.gauge("postern_memory_share", "Memory used of what this process may have, 0 to 1"),
    short: world.metrics.gauge("postern_short", "1 while new work is put off for want of it", ["what"]),
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
    if (is) world.log.error({ what }, "new work is put off: there is not enough of it");
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

async function measureHere(folder: string): Promise<Measured> {
  const { bavail, bsize } = await statfs(folder);
  return { free_bytes: bavail * bsize, memory_share: memoryShare() };
}

/** The larger of two shares: of the heap's limit, and of what the container or the machine has. */
function memoryShare(): number {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  const granted = process.constrainedMemory();
  const whole = granted > 0 ? Math.min(granted, totalmem()) : totalmem();
  return Math.max(used_heap_size / heap_size_limit, process.memoryUsage.rss() / whole);
}
