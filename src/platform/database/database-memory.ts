// How much memory the embedded PostgreSQL holds: what each of its processes has for itself, and what they share once. Linux
// only; elsewhere, and where the database is somebody else's, it counts as nothing.
import { closeSync, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PROCESSES_MAX = 1_000;
const KIB = 1024;
/**
 * What is read of /proc: its files have no length, so that each would get 64 KiB of memory of its own, and V8 collects all
 * garbage when some megabytes of that came together: at a look a second, every few seconds of a quiet service.
 */
const room = Buffer.alloc(16 * KIB);

/** Bytes in memory of the server whose cluster this is; 0 when it does not run or cannot be looked at. */
export async function databaseMemory(cluster: string, proc = "/proc"): Promise<number> {
  const pid = /^\d+/.exec(await readFile(join(cluster, "postmaster.pid"), "utf8").catch(() => ""))?.[0];
  if (pid === undefined) return 0;
  const children = textOf(join(proc, pid, "task", pid, "children"))
    .split(" ")
    .filter((word) => word !== "");
  const all = [pid, ...children.slice(0, PROCESSES_MAX)].map((one) => usedBy(join(proc, one)));
  const shared = all.reduce((most, { shared }) => Math.max(most, shared), 0);
  return all.reduce((sum, { own }) => sum + own, shared);
}

function usedBy(folder: string): { own: number; shared: number } {
  const status = textOf(join(folder, "status"));
  const kibOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  return { own: kibOf("RssAnon") * KIB, shared: kibOf("RssShmem") * KIB };
}

/** At once: the kernel writes these as they are read, in some microseconds. A process that has ended meanwhile has nothing. */
function textOf(file: string): string {
  try {
    const fd = openSync(file, "r");
    try {
      let length = 0;
      // A page at a time.
      for (let read = -1; read !== 0 && length < room.length; length += read) {
        read = readSync(fd, room, length, room.length - length, null);
      }
      return room.toString("latin1", 0, length);
    } finally {
      closeSync(fd);
    }
  } catch {
    return "";
  }
}
