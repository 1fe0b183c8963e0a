// The memory of a running process, as Linux tells it (proc_pid_status(5)).
import { readFileSync } from "node:fs";

/** MiB it has resident now (VmRSS), or has had at most (VmHWM); null but on Linux, and once it has ended. */
export function residentMib(pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  } catch {
    return null;
  }
}
