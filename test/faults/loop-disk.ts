// A small disk of its own: an ext4 file system in a file, mounted through a loop device, that can be filled, or lose its
// power (`xfs_io -x -c shutdown`: what was not fsync'd is gone). Needs root, mkfs.ext4, mount and xfs_io.
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Lacking } from "./lacking.ts";
import { sleep } from "./load.ts";

export type LoopDisk = {
  /** Where it is mounted. */
  path: string;
  freeBytes(): number;
  /** Leaves `bytes` free; `empty` gives the room back. */
  fill(bytes: number): void;
  empty(): void;
  /** From here on nothing reaches the disk. Call `mountAgain` once nobody uses it. */
  cutPower(): void;
  mountAgain(): Promise<void>;
  /** A second disk with every bit of this one, as a snapshot of a machine has it. Nobody uses this one meanwhile. */
  clone(): Promise<LoopDisk>;
  /** The same disk, mounted at another path from now on; this one is no more. */
  moveTo(path: string): Promise<LoopDisk>;
  remove(): Promise<void>;
};

const UNMOUNT_TRIES = 200;
const UNMOUNT_AGAIN_MS = 50;
const MIB = 1024 * 1024;

/** Makes and mounts it; throws `Lacking` with the reason when this machine cannot. */
export function makeLoopDisk(bytes: number): LoopDisk {
  if (process.getuid?.() !== 0) throw new Lacking("mounting a loop device needs root");
  const dir = makeFolder();
  const image = join(dir, "disk.img");
  const path = join(dir, "disk");
  try {
    command("xfs_io", ["-V"]);
    command("truncate", ["-s", String(bytes), image]);
    command("mkfs.ext4", ["-q", "-F", image]);
    return mountDisk(dir, path);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw new Lacking(`a loop device with ext4 cannot be mounted here (${(error as Error).message})`);
  }
}

function makeFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "postern-disk-"));
  chmodSync(dir, 0o711);
  return dir;
}

/** The image in `dir`, mounted at `path`. */
function mountDisk(dir: string, path: string): LoopDisk {
  const image = join(dir, "disk.img");
  mkdirSync(path);
  command("mount", ["-o", "loop", image, path]);
  chmodSync(path, 0o711);
  const filler = join(path, "filler");
  const endAtOnce = (): void => {
    spawnSync("umount", ["-l", path]); // it may just not be mounted
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", endAtOnce);
  return {
    path,
    freeBytes: () => freeBytes(path),
    fill: (leave) => fill(path, filler, leave),
    empty: () => rmSync(filler, { force: true }),
    cutPower: () => command("xfs_io", ["-x", "-c", "shutdown", path]),
    async mountAgain() {
      await unmount(path);
      command("mount", ["-o", "loop", image, path]);
    },
    async clone() {
      await unmount(path);
      const other = makeFolder();
      command("cp", ["--sparse=always", image, join(other, "disk.img")]);
      command("mount", ["-o", "loop", image, path]);
      return mountDisk(other, join(other, "disk"));
    },
    async moveTo(to) {
      process.off("exit", endAtOnce);
      await unmount(path);
      return mountDisk(dir, to);
    },
    async remove() {
      process.off("exit", endAtOnce);
      await unmount(path);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function command(name: string, args: string[]): void {
  execFileSync(name, args, { stdio: ["ignore", "ignore", "pipe"], timeout: 60_000 });
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

function fill(path: string, filler: string, leave: number): void {
  const fd = openSync(filler, "a");
  const block = Buffer.alloc(MIB, 1);
  try {
    for (let free = freeBytes(path); free > leave; free = freeBytes(path)) {
      writeSync(fd, block, 0, Math.min(MIB, free - leave));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(fd);
  }
}

/** Killed processes leave the disk when the kernel has cleaned up behind them. */
async function unmount(path: string): Promise<void> {
  for (let turn = 1; ; turn += 1) {
    try {
      command("umount", [path]);
      return;
    } catch (error) {
      if (/not mounted/.test((error as Error).message)) return;
      if (turn >= UNMOUNT_TRIES) throw error;
      await sleep(UNMOUNT_AGAIN_MS);
    }
  }
}
