// Where a backup is kept: a file, or an object of an S3-compatible store (store-s3.ts). It gets its name once it is whole.
import type { Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, type FileHandle, link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { fileWords } from "../platform/process/file-words.ts";
import { UsageError } from "../platform/process/usage-error.ts";

/** Files of backups that were killed stay: they may be another one's that still runs. */
const ASIDE_MAX = 100;

export type Target = {
  /** As the operator named it. */
  name: string;
  /** Throws a UsageError where something has this name already, or nobody can tell. */
  refuseTaken(): Promise<void>;
  /** Answers how many bytes were written. What is there already is not written over. */
  store(bytes: Readable, hash: Hash): Promise<number>;
  /** The stored bytes. A failure is one of the stream. */
  read(): Readable;
};

/** The store of a backup could not do what was asked of it: nothing is said of the backup's bytes. */
export class StoreFailed extends Error {
  override name = "StoreFailed";
}

/** A file. It gets its name once it is on disk. */
export function fileTarget(path: string): Target {
  return {
    name: path,
    async refuseTaken() {
      const isThere = await access(path).then(
        () => true,
        () => false,
      );
      if (isThere) throw taken(path);
    },
    store: (bytes, hash) => storeFile(path, bytes, hash),
    read: () => readFile(path),
  };
}

export function taken(name: string): UsageError {
  return new UsageError(`${name} is there already.`);
}

async function storeFile(path: string, bytes: Readable, hash: Hash): Promise<number> {
  const { aside, file } = await openAside(path).catch((error: NodeJS.ErrnoException) => {
    bytes.destroy();
    throw new UsageError(unwritable(path, error));
  });
  let written = 0;
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      hash.update(chunk);
      await file.writeFile(chunk);
      written += chunk.length;
    }
    await file.sync();
    await file.close();
    await link(aside, path);
    await syncFolder(dirname(path));
    return written;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw taken(path);
    const words = (error as NodeJS.ErrnoException).syscall ? fileWords(error, path) : null;
    throw words === null ? error : new StoreFailed(`${words}; nothing of the backup was kept.`, { cause: error });
  } finally {
    await file.close().catch(() => undefined);
    await rm(aside, { force: true });
  }
}

/** What fails is said of the path: Node's words of a folder name none. */
function readFile(path: string): Readable {
  async function* bytes(): AsyncGenerator<Buffer> {
    try {
      yield* createReadStream(path) as AsyncIterable<Buffer>;
    } catch (error) {
      const words = fileWords(error, path);
      throw words === null ? error : new StoreFailed(`${words}.`, { cause: error });
    }
  }
  return Readable.from(bytes(), { objectMode: false });
}

/** Each has one of its own: two at once under one name would write into one file, and the first would call it whole. */
async function openAside(path: string, n = 1): Promise<{ aside: string; file: FileHandle }> {
  const aside = `${path}.${n}.partial`;
  try {
    return { aside, file: await open(aside, "wx", 0o600) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || n === ASIDE_MAX) throw error;
    return openAside(path, n + 1);
  }
}

function unwritable(path: string, error: NodeJS.ErrnoException): string {
  const folder = dirname(path);
  if (error.code === "EACCES" || error.code === "EPERM") {
    return `${fileWords(error, folder)}: let that user write there. A command by root works as the owner of the data folder.`;
  }
  const words = fileWords(error, error.code === "ENOENT" ? folder : path);
  return words === null ? `${path} cannot be written: ${error.message}` : `${words}.`;
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}
