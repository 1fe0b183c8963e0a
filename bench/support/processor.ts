// The processor time of running processes (Linux): what a message costs, which other work on the machine hardly changes.
import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second for every program it tells (sysconf _SC_CLK_TCK). */
const TICKS_PER_S = 100;

type Stat = { pid: number; parent: number; seconds: number };

/**
 * Seconds of processor time, user and system, of these processes, of the processes they started that still run, and of
 * those that have ended. 0 but on Linux. Grandchildren count once their parent has ended; a child that is counted by itself
 * (the database that Postern starts) is left out with `without`.
 */
export function processorSeconds(pids: readonly number[], without?: number): number {
  if (process.platform !== "linux") return 0;
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []));
  const counted = all.filter(({ pid, parent }) => pid !== without && (pids.includes(pid) || pids.includes(parent)));
  return counted.reduce((sum, { seconds }) => sum + seconds, 0);
}

// proc(5): after the name in brackets come state, ppid and, as the 14th to the 17th field, utime and stime of the process
// and cutime and cstime of the children it has waited for.
function readStat(pid: number): Stat | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), seconds: ticks / TICKS_PER_S };
  } catch {
    return null; // it ended, or this is not Linux
  }
}
