// How much memory the embedded PostgreSQL holds: what each of its processes has for itself, and what they share once. Linux
// only; elsewhere, and where the database is somebody else's, it counts as nothing.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PROCESSES_MAX = 1_000;
const KIB = 1024;

/** Bytes in memory of the server whose cluster this is; 0 when it does not run or cannot be looked at. */
export async function databaseMemory(cluster: string, proc = "/proc"): Promise<number> {
  const pid = /^\d+/.exec(await textOf(join(cluster, "postmaster.pid")))?.[0];
  if (pid === undefined) return 0;
  const children = (await textOf(join(proc, pid, "task", pid, "children"))).split(" ").filter((word) => word !== "");
  const all = await Promise.all([pid, ...children.slice(0, PROCESSES_MAX)].map((one) => usedBy(join(proc, one))));
  const shared = all.reduce((most, { shared }) => Math.max(most, shared), 0);
  return all.reduce((sum, { own }) => sum + own, shared);
}

async function usedBy(folder: string): Promise<{ own: number; shared: number }> {
  const status = await textOf(join(folder, "status"));
  const kibOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  return { own: kibOf("RssAnon") * KIB, shared: kibOf("RssShmem") * KIB };
}

/** A process that has ended meanwhile has nothing. */
function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
