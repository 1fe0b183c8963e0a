// Large bodies, addressed by their SHA-256: a folder by default, any S3-compatible store by configuration. What `put`
// answered is on stable storage. A store in trouble (full, unreachable, forbidden) is BlobsUnavailable: another time it may
// do what was asked. Not here: what refers to a blob and when it may be deleted (the features' retention).
import { createHash, randomBytes, subtle } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { S3mini } from "s3mini";
import { objectSize, openS3, openS3ForPassing, repeated, type S3Options } from "./s3.ts";
import { describeTrouble, isAbsent } from "./s3-trouble.ts";

export type Blobs = {
  /** Keeps the bytes durably and returns their key, the SHA-256 in hex; existing content is not written again. */
  put(bytes: Buffer): Promise<string>;
  /** The bytes, or null when there are none under the key. Throws BlobDamaged when they no longer match it. */
  get(key: string): Promise<Buffer | null>;
  /** The bytes as a stream, or null. Not verified. */
  stream(key: string): Promise<Readable | null>;
  /** Removes the bytes; absent ones are fine. */
  delete(key: string): Promise<void>;
  exists(key: string): Promise<boolean>;
};

/**
 * fsync failed, so nobody knows what is on the disk: the kernel may already have dropped the dirty pages, and asking
 * again would be answered with success. The process must end (reliability rule 1) and start from what is durable.
 */
export class FsyncFailure extends Error {
  override name = "FsyncFailure";
}

/** The store could not do what was asked of it; `code` is of the system's error, such as ENOSPC. Nothing was promised. */
export class BlobsUnavailable extends Error {
  override name = "BlobsUnavailable";
  code: string | undefined;
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = (options.cause as { code?: string } | undefined)?.code;
  }
}

/** The stored bytes do not match their key: a disk fault or a foreign hand. */
export class BlobDamaged extends Error {
  override name = "BlobDamaged";
}

/** Trouble of the store, as opposed to a fault in what it was asked to keep: worth asking again, as often as it takes. */
export function isStoreTrouble(error: unknown): boolean {
  return error instanceof BlobsUnavailable || error instanceof BlobDamaged || error instanceof FsyncFailure;
}

/** A row that holds its bytes itself while they are few, and names a blob else; neither once they are gone for good. */
export type Held = { bytes: Buffer | null; blob_key: string | null };

/**
 * The bytes of a row; null when it holds none. A blob that is named and not there is BlobsUnavailable: a folder that is not
 * mounted or of another machine, a backup without its blobs. It may be there again.
 */
export async function readHeld(blobs: Pick<Blobs, "get">, { bytes, blob_key }: Held): Promise<Buffer | null> {
  if (bytes !== null || blob_key === null) return bytes;
  const found = await blobs.get(blob_key);
  if (found === null) throw missing(blob_key);
  return found;
}

/**
 * The bytes under a key, to be passed on, after a look at all of them: what leaves is what was kept. A blob that is missing
 * is BlobsUnavailable, one that no longer matches its key BlobDamaged. Reads it twice and holds none of it.
 */
export async function openWhole(blobs: Pick<Blobs, "stream">, key: string): Promise<Readable> {
  const first = await blobs.stream(key);
  if (first === null) throw missing(key);
  const hash = createHash("sha256");
  await pipeline(first, hash).catch((cause) => {
    throw new BlobsUnavailable(`blob ${key} cannot be read to its end`, { cause });
  });
  if (hash.digest("hex") !== key) throw damaged(key);
  const again = await blobs.stream(key);
  if (again === null) throw missing(key);
  return again;
}

function missing(key: string): BlobsUnavailable {
  return new BlobsUnavailable(`blob ${key} is not in the store of this process`);
}

function damaged(key: string): BlobDamaged {
  return new BlobDamaged(`blob ${key} no longer matches its key`);
}

const KEY = /^[0-9a-f]{64}$/;
/** A temporary file this old was left by a process that died. */
const ABANDONED_MS = 24 * 60 * 60 * 1000;
/**
 * S3: the store has so long for an answer without a body (and for the beginning of one that is passed on), and for a whole
 * request with one, an upload of 50 MB over 10 Mbit/s included. What is passed on takes as long as its reader.
 */
const S3_LIMITS = { answer_ms: 10_000, request_ms: 60_000 };
/** From this size on the thread pool makes the digest. */
const LARGE_BYTES = 1 << 20;
/**
 * No more waits for the disk at once. Beside somebody who writes 24 MB at a time, a commit of 8 KB took 20 ms (p99; 0.3 alone); with a
 * fsync for each of these, 4 ms, and the 24 MB 23 ms in place of 15.
 */
const SYNCED_BYTES = 1 << 20;

/**
 * Blobs as files `<dir>/ab/cd/<key>`, written aside, fsynced, renamed, and the folders fsynced. The folder may be shared by
 * processes. `endProcess` gets a failed fsync of any request; nothing more is kept then.
 */
export function createFolderBlobs(dir: string, endProcess: (failure: FsyncFailure) => void): Blobs {
  const folders = createFolders(dir);
  const pathOf = (key: string) => join(dir, ...fanOut(key), key);
  let doubt: FsyncFailure | null = null;
  return inTrouble({
    put: async (bytes) => {
      // The file may be there and be lost with the next power cut: a second request must not learn that it is kept.
      if (doubt) throw doubt;
      try {
        return await put(bytes);
      } catch (error) {
        if (error instanceof FsyncFailure && !doubt) {
          doubt = error;
          endProcess(error);
        }
        throw error;
      }
    },
    get: async (key) => verified(key, await orAbsent(readFile(pathOf(key)))),
    stream: async (key) => (await orAbsent(open(pathOf(key))))?.createReadStream() ?? null,
    delete: async (key) => rm(pathOf(key), { force: true }),
    exists: async (key) => (await sizeOf(pathOf(key))) !== null,
  });

  async function put(bytes: Buffer): Promise<string> {
    const key = await digest(bytes);
    const folder = await folders.ready(fanOut(key));
    // An equal file may have been renamed by another process that has not yet synced the folder: sync it either way.
    if ((await sizeOf(pathOf(key))) !== bytes.length) await writeBeside(await folders.temporary(), pathOf(key), bytes);
    await syncFolder(folder);
    return key;
  }
}

/** The same store, whose own failures are all of one kind. */
function inTrouble(blobs: Blobs): Blobs {
  const reported = <T>(work: Promise<T>): Promise<T> =>
    work.catch((cause) => {
      if (isStoreTrouble(cause)) throw cause;
      const trouble = describeTrouble(cause);
      throw new BlobsUnavailable(`the store of large bodies fails: ${trouble.message}`, { cause: trouble });
    });
  return {
    put: (bytes) => reported(blobs.put(bytes)),
    get: async (key) => reported(blobs.get(checked(key))),
    stream: async (key) => reported(blobs.stream(checked(key))),
    delete: async (key) => reported(blobs.delete(checked(key))),
    exists: async (key) => reported(blobs.exists(checked(key))),
  };
}

// Folders are made once and never removed, so that a file's whole path is durable after one fsync of its own folder.
function createFolders(dir: string): { ready(parts: string[]): Promise<string>; temporary(): Promise<string> } {
  const durable = new Map<string, Promise<void>>();
  const temporary = join(dir, "tmp");
  const once = (path: string, make: () => Promise<void>) => {
    const known = durable.get(path);
    if (known) return known;
    const made = make();
    durable.set(path, made);
    made.catch(() => durable.delete(path));
    return made;
  };
  const root = () => once(dir, () => mkdir(dir, { recursive: true, mode: 0o700 }).then(() => syncFolder(dir)));
  const child = (parent: string, name: string) => once(join(parent, name), () => makeFolder(parent, name));
  return {
    ready: async ([first, second]) => {
      await root();
      await child(dir, first!);
      await child(join(dir, first!), second!);
      return join(dir, first!, second!);
    },
    temporary: async () => {
      await root();
      await once(temporary, () => makeFolder(dir, "tmp").then(() => sweep(temporary)));
      return temporary;
    },
  };
}

async function makeFolder(parent: string, name: string): Promise<void> {
  await mkdir(join(parent, name), { recursive: true, mode: 0o700 });
  await syncFolder(parent);
}

async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await orAbsent(stat(path));
    if (found && Date.now() - found.mtimeMs > ABANDONED_MS) await rm(path, { force: true });
  }
}

async function writeBeside(temporary: string, path: string, bytes: Buffer): Promise<void> {
  const aside = join(temporary, randomBytes(16).toString("hex"));
  try {
    const file = await open(aside, "wx", 0o600);
    try {
      // A large body at once would keep the disk from every commit until it is there.
      for (let at = 0; at === 0 || at < bytes.length; at += SYNCED_BYTES) {
        await file.writeFile(bytes.subarray(at, at + SYNCED_BYTES));
        await syncFile(file);
      }
    } finally {
      await file.close();
    }
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

async function syncFile(file: FileHandle): Promise<void> {
  try {
    await file.sync();
  } catch (cause) {
    // Deliberate: a full disk may be noticed only here (delayed allocation, NFS). Nothing was promised, the file goes
    // away and is not synced again, so it is a refusal and not doubt about what is stored.
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOSPC" || code === "EDQUOT") throw cause;
    throw new FsyncFailure(`fsync of a blob failed: ${code}`, { cause });
  }
}

async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder as a file; NTFS logs the rename itself.
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } catch (cause) {
    throw new FsyncFailure(`fsync of ${path} failed: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  } finally {
    await folder.close();
  }
}

async function sizeOf(path: string): Promise<number | null> {
  return (await orAbsent(stat(path)))?.size ?? null;
}

async function orAbsent<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Blobs as objects of an S3-compatible bucket. */
export function createS3Blobs(options: S3Options, limits: typeof S3_LIMITS = S3_LIMITS): Blobs {
  const s3 = openS3(options, limits);
  const passing = openS3ForPassing(options, limits.answer_ms);
  return inTrouble({
    put: async (bytes) => {
      const key = await digest(bytes);
      if ((await objectSize(s3, key)) !== bytes.length) await repeated(() => upload(s3, key, bytes));
      return key;
    },
    get: async (key) => verified(key, toBuffer(await repeated(() => s3.getObjectArrayBuffer(key)))),
    stream: async (key) => {
      const response = await repeated(() => passing.getObjectResponse(key));
      return response?.body ? Readable.fromWeb(response.body as ReadableStream) : null;
    },
    delete: async (key) => {
      await repeated(() => s3.deleteObject(key).catch(absentIsFine));
    },
    exists: async (key) => (await objectSize(s3, key)) !== null,
  });
}

// s3mini signs no payload: the checksum header makes the store refuse bytes that changed on the way.
async function upload(s3: S3mini, key: string, bytes: Buffer): Promise<void> {
  const checksum = Buffer.from(key, "hex").toString("base64");
  const type = "application/octet-stream";
  const answer = await s3.putObject(key, bytes, type, undefined, { "x-amz-checksum-sha256": checksum });
  if (answer instanceof Response) await answer.arrayBuffer();
}

// AWS answers 204 for a key that is not there, others 404.
function absentIsFine(error: unknown): void {
  if (!isAbsent(error)) throw error;
}

function toBuffer(bytes: ArrayBuffer | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes);
}

/** SHA-256 in hexadecimal digits. Of a large body the thread pool makes it: the thread would be held for a millisecond a MiB. */
async function digest(bytes: Buffer): Promise<string> {
  if (bytes.length < LARGE_BYTES) return createHash("sha256").update(bytes).digest("hex");
  return Buffer.from(await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)).toString("hex");
}

function checked(key: string): string {
  if (!KEY.test(key)) throw new TypeError("a blob's key is 64 lower-case hexadecimal digits");
  return key;
}

function fanOut(key: string): string[] {
  return [key.slice(0, 2), key.slice(2, 4)];
}

async function verified(key: string, bytes: Buffer | null): Promise<Buffer | null> {
  if (bytes !== null && (await digest(bytes)) !== key) throw damaged(key);
  return bytes;
}
