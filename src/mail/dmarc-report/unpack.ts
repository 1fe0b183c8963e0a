// Takes a report out of its packing: gzip (RFC 1952), a ZIP archive of one file, or none, recognised by the first bytes, never
// by what a stranger calls it. Streams: neither the packed nor the unpacked form is held twice, and what is too much is
// refused while it comes.

import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { type Entry, fromBuffer, type ZipFile } from "yauzl";

export const PACKED_BYTES_MAX: number = 25 * 1024 * 1024;
export const UNPACKED_BYTES_MAX: number = 100 * 1024 * 1024;
const PIECE_BYTES = 32 * 1024;
/** Folders and what macOS adds are no files; an archive of more entries is not looked into. */
const ENTRIES_MAX = 20;

/** Gets one piece; a sentence is why no more is wanted. */
export type Take = (piece: Buffer) => string | null;

/** What may still be unpacked; files that share one have 100 MiB together. */
export type Allowance = { bytes_left: number };

/**
 * Hands the unpacked bytes to `take`, piece by piece, and lets others run between two pieces. Null when all of them were
 * taken, else why not.
 */
export async function unpack(packed: Buffer, allowance: Allowance, take: Take): Promise<string | null> {
  if (packed.length === 0) return "the file is empty";
  if (packed.length > PACKED_BYTES_MAX) return "the file is larger than 25 MiB";
  if (packed[0] === 0x1f && packed[1] === 0x8b) return gunzip(packed, allowance, take);
  if (packed.subarray(0, 4).toString("latin1") === "PK\x03\x04") return unzip(packed, allowance, take);
  return pass(cut(packed), allowance, take);
}

async function gunzip(packed: Buffer, allowance: Allowance, take: Take): Promise<string | null> {
  const stream = createGunzip({ chunkSize: PIECE_BYTES });
  stream.end(withoutLineEnds(packed));
  try {
    return await pass(stream, allowance, take);
  } catch (error) {
    if (!isZlibError(error)) throw error;
    return "the gzip file is damaged or cut off";
  } finally {
    stream.destroy();
  }
}

/**
 * Mimecast puts a line end behind the gzip stream, which zlib takes for a damaged second one. It cannot belong to the
 * first: the last byte is the highest of the unpacked length, which would be beyond 160 MiB.
 */
function withoutLineEnds(packed: Buffer): Buffer {
  let end = packed.length;
  while (end > 0 && (packed[end - 1] === 0x0a || packed[end - 1] === 0x0d)) end -= 1;
  return packed.subarray(0, end);
}

function isZlibError(error: unknown): boolean {
  return /^Z_|^ERR_PADDING_2$/.test((error as { code?: string }).code ?? "");
}

function* cut(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

type Pieces = AsyncIterable<Buffer> | Iterable<Buffer>;

async function pass(pieces: Pieces, allowance: Allowance, take: Take): Promise<string | null> {
  let isEmpty = true;
  for await (const piece of pieces) {
    isEmpty &&= piece.length === 0;
    allowance.bytes_left -= piece.length;
    if (allowance.bytes_left < 0) return "the file unpacks to more than 100 MiB";
    const refusal = take(piece);
    if (refusal !== null) return refusal;
    // A stream that has its pieces ready hands them over without a turn of the event loop in between.
    await nextTurn();
  }
  return isEmpty ? "the file is empty" : null;
}

// --- ZIP ----------------------------------------------------------------------------------------------------------------

async function unzip(packed: Buffer, allowance: Allowance, take: Take): Promise<string | null> {
  let zip: ZipFile | null = null;
  try {
    zip = await openZip(packed).catch((error) => {
      // The same line end, behind an archive, where yauzl looks for a comment.
      if (!/^Invalid comment length\b/.test((error as Error).message)) throw error;
      return openZip(withoutLineEnds(packed));
    });
    if (zip.entryCount > ENTRIES_MAX) return "the archive holds more than one file";
    const files = (await listEntries(zip)).filter(({ fileName }) => !/\/$|^__MACOSX\//.test(fileName));
    if (files.length > 1) return "the archive holds more than one file";
    if (files[0] === undefined) return "the archive holds no file";
    const stream = await openEntry(zip, files[0]);
    try {
      return await pass(stream, allowance, take);
    } finally {
      stream.destroy();
    }
  } catch (error) {
    return `the ZIP archive cannot be read: ${damage(error)}`;
  } finally {
    zip?.close();
  }
}

/** yauzl says what is wrong with a stranger's archive in plain errors without a code; everything else is a bug. */
function damage(error: unknown): string {
  if (!(error instanceof Error) || error.constructor !== Error) throw error;
  return error.message.replace(/[^\x20-\x7e]/g, "?").slice(0, 200);
}

function openZip(packed: Buffer): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    fromBuffer(packed, { lazyEntries: true, validateEntrySizes: true }, (error, zip) =>
      zip ? resolve(zip) : reject(error),
    );
  });
}

function listEntries(zip: ZipFile): Promise<Entry[]> {
  const entries: Entry[] = [];
  return new Promise((resolve, reject) => {
    zip.on("error", reject);
    zip.on("end", () => resolve(entries));
    zip.on("entry", (entry: Entry) => {
      entries.push(entry);
      zip.readEntry();
    });
    zip.readEntry();
  });
}

function openEntry(zip: ZipFile, entry: Entry): Promise<Readable> {
  return new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => (stream ? resolve(stream) : reject(error)));
  });
}
