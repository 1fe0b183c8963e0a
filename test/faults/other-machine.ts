// A process that stands for another machine: what it takes of this one's processors is no work of the service.
import { spawnSync } from "node:child_process";
import { setPriority } from "node:os";

const LEAST = 19;

/**
 * Lets everything else go first. At the kernel's idle priority it gives its processor up as soon as somebody else wants it
 * (sched(7)); where `chrt` is missing, at the lowest ordinary one, which keeps it for a time slice.
 */
export function standAside(): void {
  setPriority(LEAST);
  spawnSync("chrt", ["--idle", "--all-tasks", "--pid", "0", String(process.pid)]);
}
