// Who this process is among those that share a database: machine, boot and process-id space together say whether the id of another
// process means anything here, so that a restarted process may take over from its predecessor at once instead of after 30 s.
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isAlive } from "./process-alive.ts";

export type ThisHost = { machine: string; pid: number; isAlive(pid: number): boolean };

/** This process's machine name, id, and a check whether another process here is alive. */
export function thisHost(): ThisHost {
  const boot = readOr("/proc/sys/kernel/random/boot_id", (path) => readFileSync(path, "utf8").trim());
  const space = readOr("/proc/self/ns/pid", readlinkSync);
  return { machine: `${hostname()}/${boot}/${space}`, pid: process.pid, isAlive };
}

function readOr(path: string, read: (path: string) => string): string {
  try {
    return read(path);
  } catch {
    return "unknown";
  }
}
