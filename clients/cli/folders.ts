// A folder that a command writes in. Node's own way to make what is missing above it (`recursive`) never ends where a file
// system answers ENOENT to every new folder, as /proc does.
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CliError, STATUS } from "./exit.ts";

const WHY: Record<string, string> = {
  EEXIST: "a file stands in its place",
  ENOTDIR: "a file stands above it",
  EACCES: "the folder above it may not be written",
  EPERM: "the folder above it may not be written",
  EROFS: "its file system is read-only",
  ENOENT: "its file system takes no new folders",
  ENOSPC: "its disk is full",
};

/** Makes it and what is missing above it, each with `mode`. Throws a CliError that names the first that cannot be made. */
export function makeFolder(path: string, mode = 0o777): void {
  const folder = resolve(path);
  if (isFolder(folder)) return;
  const above = dirname(folder);
  if (above !== folder) makeFolder(above, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    if (isFolder(folder)) return; // another process was faster
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CliError(`${folder} cannot be made: ${WHY[code ?? ""] ?? message}`, STATUS.failed);
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
