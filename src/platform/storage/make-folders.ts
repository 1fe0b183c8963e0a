// Makes a folder with what is missing above it. Node's own way (`recursive`) never ends where a file system answers ENOENT to
// every new folder, as /proc does.
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** `mode` is that of each folder made here. Throws as mkdir does, with the path of the first folder that cannot be made. */
export function makeFolders(path: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let folder = resolve(path); !existsSync(folder) && missing[0] !== folder; folder = dirname(folder))
    missing.unshift(folder);
  for (const folder of missing) makeFolder(folder, mode);
  if (missing.length === 0 && !statSync(path).isDirectory()) mkdirSync(path); // throws: a file stands there
}

function makeFolder(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process was faster.
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    if (!isThere || statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}
