// The file that holds the master key when no variable does: how a key is written, and how the file is made. Not here: whether
// the database was sealed with this key (platform/storage/master-key.ts).
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileWords } from "../platform/process/file-words.ts";
import { IDS_FILE } from "../platform/storage/data-folder.ts";
import { makeFolders } from "../platform/storage/make-folders.ts";

/** 32 bytes in hex or base64; null for anything else. */
export function readKey(text: string): Buffer | null {
  const key = Buffer.from(text, /^[0-9a-fA-F]{64}$/.test(text) ? "hex" : "base64");
  return key.length === 32 ? key : null;
}

/**
 * The key in the text of a file; null for anything else. 64 hex digits that were cut to 43 would be another key in
 * base64.
 */
export function readKeyFile(text: string): Buffer | null {
  const isCut = /^[0-9a-fA-F]{0,63}$/.test(text) || !/^[A-Za-z0-9+/_=-]+$/.test(text);
  return isCut ? null : readKey(text);
}

/** The key in a file that must be there; throws one sentence that names it. */
export function keyInFile(path: string): Buffer {
  const key = readKeyFile(textOf(path));
  if (key) return key;
  throw new Error(`${path} holds no master key: 32 bytes in hex or base64 (make one with: openssl rand -hex 32).`);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new Error(`${fileWords(error, path) ?? `${path} cannot be read`}.`);
  }
}

/** Makes the folder and the file of a new key, unless the file is there. */
export function makeIfAbsent(path: string): true {
  makeFolders(dirname(path), 0o755);
  if (existsSync(path)) return true;
  // Without a list of databases a key is one that was put there: data-folder.ts.
  writeFileSync(join(dirname(path), IDS_FILE), "", { flag: "a", mode: 0o600 });
  makeMasterKey(path);
  return true;
}

/** A new key. Whole and on disk before its name is there: everything that is sealed with it would be lost with it. */
export function makeMasterKey(path: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    writeFileSync(aside, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600, flush: true });
    linkSync(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // another process was faster
  } finally {
    rmSync(aside, { force: true });
  }
  if (process.platform === "win32") return; // folders cannot be opened there
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
