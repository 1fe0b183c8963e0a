// Does a process still run? Whoever left something behind is asked by its number. That numbers are used again is for the
// caller to think of.
import { readFileSync } from "node:fs";

/** Whether a process with this number runs, ours or not. One that ended and that nobody has waited for does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return process.platform !== "linux" || !isZombie(pid);
}

/** In a container process 1 may wait for its adopted children late or never. */
function isZombie(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false; // it ended just now: the next look says so
  }
}
