// The stream inside a backup: frames of one letter, four bytes of length and that many bytes. `H` says what the backup is of;
// `T`, then `D`…, then `E` are one table (its rows as COPY writes them); `B`, `D`…, `E` are one large body; `Z` sums up, and
// says that nothing is missing. Not here: compression and encryption (envelope.ts).

import type { Blobs } from "../platform/storage/blobs.ts";

export type FrameType = "H" | "T" | "B" | "D" | "E" | "Z";
export type Frame = { type: FrameType; bytes: Buffer };

export type BackupHead = {
  format: 1;
  postern: string;
  created_at: string;
  postgres: string;
  /** Keyed by the key ring's root: who restores must have a master key that opens the ring. */
  master_key_check: string;
  /** In hex, under each master key; absent or empty: the master key is the root itself. */
  key_ring?: { master_key: string; sealed: string }[];
  migrations: { number: number; checksum: string }[];
  /** Days of which the database has partitions, YYYY-MM-DD. */
  days: string[];
  bodies: "included" | "referenced";
};

export type TableHead = { table: string; columns: string[] };
export type BodyHead = { key: string };
export type TableEnd = { rows: number; bytes: number; checksum: string };
export type BodyEnd = { bytes: number };
export type BackupEnd = {
  tables: number;
  rows: number;
  bodies: number;
  /** Named by rows and no longer in the store: deleted since, or lost. */
  bodies_missing: string[];
  /** Named by rows and left out, as was asked. */
  bodies_referenced: number;
  sequences: { name: string; value: string }[];
};

/** The most bytes in a frame that is written. */
export const CHUNK_BYTES = 1024 * 1024;
const HEAD_BYTES = 5;
/** No writer makes larger ones: a damaged length must not be waited for. */
const FRAME_BYTES_MAX = 16 * 1024 * 1024;
const TYPES = "HTBDEZ";

/** The backup is cut short, damaged, or no backup. The message says which. */
export class BackupBroken extends Error {
  override name = "BackupBroken";
}

/** One frame, ready to be written. */
export function frame(type: FrameType, content: Buffer | object): Buffer {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  if (bytes.length > FRAME_BYTES_MAX) throw new RangeError("a frame of a backup is too long");
  const head = Buffer.alloc(HEAD_BYTES);
  head.write(type, "latin1");
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Bytes of a table or a body. */
export function* dataFrames(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield frame("D", bytes.subarray(at, at + CHUNK_BYTES));
}

/** A large body. False: it is not in the store. A damaged one ends the writing. */
export async function* bodyFrames(blobs: Pick<Blobs, "get">, key: string): AsyncGenerator<Buffer, boolean> {
  const bytes = await blobs.get(key);
  if (bytes === null) return false;
  yield frame("B", { key });
  yield* dataFrames(bytes);
  yield frame("E", { bytes: bytes.length } satisfies BodyEnd);
  return true;
}

/** The frames of `source`, however it is cut into chunks. Throws BackupBroken where it ends inside of one. */
export async function* readFrames(source: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let held: Buffer[] = [];
  let have = 0;
  let need = HEAD_BYTES;
  for await (const chunk of source) {
    held.push(chunk);
    have += chunk.length;
    if (have < need) continue;
    let rest = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held);
    for (need = wanted(rest); rest.length >= need; need = wanted(rest)) {
      if (need > HEAD_BYTES || rest.readUInt32BE(1) === 0) {
        yield { type: String.fromCharCode(rest[0] as number) as FrameType, bytes: rest.subarray(HEAD_BYTES, need) };
        rest = rest.subarray(need);
      }
    }
    held = [rest];
    have = rest.length;
  }
  if (have > 0) throw new BackupBroken("the backup is cut short");
}

/** How many bytes the next frame has, or its head while that is not there. */
function wanted(bytes: Buffer): number {
  if (bytes.length < HEAD_BYTES) return HEAD_BYTES;
  const length = bytes.readUInt32BE(1);
  if (!TYPES.includes(String.fromCharCode(bytes[0] as number)) || length > FRAME_BYTES_MAX) {
    throw new BackupBroken("this is not a backup of Postern, or it is damaged");
  }
  return HEAD_BYTES + length;
}

/** A frame's JSON. */
export function contentOf<T>({ bytes }: Frame): T {
  try {
    return JSON.parse(bytes.toString("utf8")) as T;
  } catch (cause) {
    throw new BackupBroken("the backup is damaged", { cause });
  }
}
