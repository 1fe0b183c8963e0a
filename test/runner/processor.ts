// Processor time of processes, as Linux counts it (proc_pid_stat(5)). It says what a test costs on a machine that others
// load at the same time, where wall time says nothing.
import { readFileSync } from "node:fs";

export type ProcessorMs = {
  own_ms: number;
  /** Of the children that it waited for, and of theirs; 0 but on Linux. */
  children_ms: number;
};

const MS_OF_TICK = 10; // USER_HZ is 100 on every Linux

/** Of this process until now. */
export function processorMs(): ProcessorMs {
  const { user, system } = process.cpuUsage();
  return { own_ms: (user + system) / 1000, children_ms: ofProcess("self")?.children_ms ?? 0 };
}

/** Of another process; null when it has ended, and but on Linux. */
export function ofProcess(pid: number | "self"): ProcessorMs | null {
  try {
    // Behind the name, which may hold anything: state, ppid, … utime (14), stime, cutime, cstime.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ") ?? [];
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number);
    return { own_ms: (utime + stime) * MS_OF_TICK, children_ms: (cutime + cstime) * MS_OF_TICK };
  } catch {
    return null;
  }
}
