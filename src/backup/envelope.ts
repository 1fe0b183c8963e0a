// What is around the frames of a backup: Zstandard, then the age format (age-encryption.org/v1), with a passphrase or public
// keys. So `age -d backup | zstd -d` opens one without Postern. age authenticates each 64 KiB, and that none is missing.
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { Decrypter, Encrypter } from "age-encryption";
import { UsageError } from "../platform/process/usage-error.ts";
import { BackupBroken } from "./frames.ts";
import { StoreFailed } from "./store.ts";

export type Locks = { passphrase: string | null; recipients: string[] };
export type Keys = { passphrase: string | null; identities: string[] };

/** Fast: a backup is bounded by encryption (about 100 MB/s on one core) rather than by this. */
const LEVEL = 3;

/** The whole backup as bytes to be stored. Throws where a recipient is not an age public key. */
export async function seal(frames: AsyncIterable<Buffer>, { passphrase, recipients }: Locks): Promise<Readable> {
  const encrypter = new Encrypter();
  if (passphrase !== null) encrypter.setPassphrase(passphrase);
  for (const recipient of recipients) addRecipient(encrypter, recipient);
  const source = Readable.from(frames, { objectMode: false });
  const compressed = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL } });
  return await through(source, compressed, (bytes) => encrypter.encrypt(bytes));
}

function addRecipient(encrypter: Encrypter, recipient: string): void {
  try {
    encrypter.addRecipient(recipient);
  } catch {
    throw new UsageError(`--recipient ${recipient} is not an age public key: it begins with age1.`);
  }
}

/** The frames' bytes of a stored backup. Throws BackupBroken at the first byte that is not as it was written. */
export async function* open(stored: Readable, { passphrase, identities }: Keys): AsyncGenerator<Buffer> {
  const decrypter = new Decrypter();
  if (passphrase !== null) decrypter.addPassphrase(passphrase);
  for (const identity of identities) decrypter.addIdentity(identity);
  try {
    const plain = await decrypter.decrypt(Readable.toWeb(stored) as globalThis.ReadableStream<Uint8Array>);
    const compressed = Readable.fromWeb(plain as ReadableStream);
    const bytes = createZstdDecompress();
    compressed.once("error", (error) => bytes.destroy(error));
    yield* compressed.pipe(bytes) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw brokenBecause(cause);
  } finally {
    stored.destroy();
  }
}

/** `work` on the bytes of `source` behind `step`; a failure of any part reaches the reader of the answer. */
async function through(
  source: Readable,
  step: ReturnType<typeof createZstdCompress>,
  work: (bytes: globalThis.ReadableStream<Uint8Array>) => Promise<globalThis.ReadableStream<Uint8Array>>,
): Promise<Readable> {
  source.once("error", (error) => step.destroy(error));
  const bytes = Readable.toWeb(source.pipe(step)) as globalThis.ReadableStream<Uint8Array>;
  return Readable.fromWeb((await work(bytes)) as ReadableStream);
}

function brokenBecause(cause: unknown): unknown {
  if (cause instanceof StoreFailed) return cause;
  const { message = "", code = "" } = cause as { message?: string; code?: string };
  if (/no identity matched|invalid passphrase|passphrase/i.test(message)) {
    return new BackupBroken("the backup does not open with this passphrase or these identities", { cause });
  }
  // What the disk or the network did keeps its own words; all else is about the bytes.
  if (!/^(E[A-Z]{2,}|UND_)/.test(code) || /^ERR_(ZSTD|BUFFER)/.test(code)) {
    return new BackupBroken("the backup is cut short, damaged, or not a backup of Postern", { cause });
  }
  return cause;
}
