// Where a backup is kept: a file. It gets its name once it is whole and on disk.
import type { Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { UsageError } from "../platform/process/usage-error.ts";

export type Target = { path: string };

/** Answers how many bytes were written. A file that is there already is not written over. */
export async function storeBackup({ path }: Target, bytes: Readable, hash: Hash): Promise<number> {
  const aside = `${path}.partial`;
  const file = await open(aside, "w", 0o600).catch((error: NodeJS.ErrnoException) => {
    bytes.destroy();
    throw new UsageError(`${aside} cannot be written by this user: ${error.code}`);
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
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw new UsageError(`${path} is there already.`);
    throw error;
  } finally {
    await file.close().catch(() => undefined);
    await rm(aside, { force: true });
  }
}

/** The stored bytes. */
export function readBackup({ path }: Target): Readable {
  return createReadStream(path);
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}
