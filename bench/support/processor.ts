// The processor time of running processes (Linux): what a message costs, which other work on the machine hardly changes.
import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second for every program it tells (sysconf _SC_CLK_TCK). */
const TICKS_PER_S = 100;

type Stat = { pid: number; parent: number; seconds: number };

/** Seconds of processor time, user and system, of these processes; those that ended count nothing. 0 but on Linux. */
export function processorSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (readStat(pid)?.seconds ?? 0), 0);
}

/** `pid` and the processes it started that still run. */
export function familyOf(pid: number): number[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []));
  return [pid, ...all.filter(({ parent }) => parent === pid).map((child) => child.pid)];
}

// proc(5): after the name in brackets come state, ppid and, as the 14th and 15th field, utime and stime.
function readStat(pid: number): Stat | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return { pid, parent: Number(fields[1]), seconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S };
  } catch {
    return null; // it ended, or this is not Linux
  }
}
