// Failures of the file system in words: what the operator can do about it, in place of `ENOENT: no such file or directory, open`.
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";

const WHY: Record<string, string> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is not a folder",
  EISDIR: "is a folder",
  EACCES: "may not be used by this user",
  EPERM: "may not be used by this user",
  EROFS: "is on a file system that is read-only",
  ENOSPC: "is on a disk that is full",
  EDQUOT: "is on a disk whose quota is used up",
  EMFILE: "cannot be opened: this process has too many open files",
};
/** A write to a file that is open names none. */
const WHY_UNNAMED: Record<string, string> = {
  ENOSPC: "the disk is full: make room on it",
  EDQUOT: "the quota of the disk is used up: make room on it",
};
/** No folder was made for what is above it. */
const UNMADE = new Set(["ENOENT", "EACCES", "EPERM", "EROFS"]);
/** Commands by root work as the owner of the data folder, who is somebody else. */
const OF_USER = new Set(["EACCES", "EPERM"]);

/** A sentence about `path` without a final point, or about the disk; null for a failure that is about neither. */
export function fileWords(error: unknown, path?: string): string | null {
  const failure = error as NodeJS.ErrnoException;
  const at = path ?? failure.path;
  if (at === undefined) return WHY_UNNAMED[failure.code ?? ""] ?? null;
  if (failure.syscall === "mkdir" && failure.code === "EEXIST") return `${at} is a file, where a folder should be`;
  // Node reports ENOENT for folders that are made with their parents, whatever kept it from making them.
  if (failure.syscall === "mkdir" && UNMADE.has(failure.code ?? "")) {
    return `${at} cannot be made: ${whyNoFolderBelow(nearestFolder(at)) ?? "its file system takes no new folders"}`;
  }
  const why = WHY[failure.code ?? ""];
  if (why === undefined) return null;
  const uid = process.getuid?.();
  const who = OF_USER.has(failure.code as string) && uid !== undefined ? ` (number ${uid})` : "";
  return `${at} ${why}${who}`;
}

/** Why this user can make nothing in `folder`, which exists, as in fileWords; null when nothing is known to prevent it. */
export function whyNoFolderBelow(folder: string): string | null {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return fileWords(error, folder) ?? (error as Error).message;
  }
}

/** The folder nearest above `path` that exists. */
export function nearestFolder(path: string): string {
  const parent = dirname(path);
  const isFolder = statSync(parent, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder || parent === dirname(parent) ? parent : nearestFolder(parent);
}
