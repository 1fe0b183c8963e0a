// Failures of the file system in words: what the operator can do about it, in place of `ENOENT: no such file or directory, open`.

const WHY: Record<string, string> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is no folder",
  EISDIR: "is a folder",
  EACCES: "may not be used by this user",
  EPERM: "may not be used by this user",
  EROFS: "is on a file system that is read-only",
  ENOSPC: "is on a disk that is full",
  EDQUOT: "is on a disk whose quota is used up",
  EMFILE: "cannot be opened: this process has too many open files",
};
/** Commands by root work as the owner of the data folder, who is somebody else. */
const OF_USER = new Set(["EACCES", "EPERM"]);

/** A sentence about `path` without a final point; null for a failure that is not about a file. */
export function fileWords(error: unknown, path?: string): string | null {
  const failure = error as NodeJS.ErrnoException;
  const at = path ?? failure.path;
  // Node says so of a folder in one that is read-only, too.
  const why = failure.syscall === "mkdir" && failure.code === "ENOENT" ? "cannot be made" : WHY[failure.code ?? ""];
  if (why === undefined || at === undefined) return null;
  const uid = process.getuid?.();
  const who = OF_USER.has(failure.code as string) && uid !== undefined ? ` (number ${uid})` : "";
  return `${at} ${why}${who}`;
}
