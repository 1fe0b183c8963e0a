// What is packed in a file, for the leak gate: documents of office programs are ZIP archives and name their authors, PDFs
// pack their strings, pictures their notes, and any of them may lie in an archive. In bounds: so many files within files, so
// many bytes. What cannot be unpacked (encrypted, broken, another method) is left out: nobody else can read it without its
// password either.
// APPNOTE.TXT 6.3.10 §4.3 (ZIP), RFC 1952 (gzip), RFC 8878 (Zstandard), POSIX.1-2024 pax (tar).
import { gunzipSync, inflateRawSync, zstdDecompressSync } from "node:zlib";
import { pdfContents } from "./pdf-contents.ts";
import { pictureNotes } from "./picture-notes.ts";
import { rtfText } from "./rtf-text.ts";
import { createRoom, type Room } from "./unpack-room.ts";

const FILES_MAX = 5_000;
const UNPACKED_MAX = 30_000_000;
/** A picture in a document in an archive in an archive. */
const DEPTH_MAX = 3;

/** What a reader of the file may find in it that does not stand in its bytes; none for what is not packed. */
export function packedContents(file: Buffer): Buffer[] {
  const contents: Buffer[] = [];
  const room = createRoom({ bytes_max: UNPACKED_MAX, files_max: FILES_MAX });
  open(file, room, contents, 0);
  return contents;
}

function open(file: Buffer, room: Room, contents: Buffer[], depth: number): void {
  for (const content of contentsOf(file, room)) {
    contents.push(content);
    if (depth < DEPTH_MAX) open(content, room, contents, depth + 1);
  }
}

/** What one archive or stream (tar, gzip, Zstandard) holds itself, of at most so many octets; none where it cannot be opened. */
export function shallowContents(file: Buffer, bytesMax: number): Buffer[] {
  const room = createRoom({ bytes_max: bytesMax, files_max: FILES_MAX });
  if (file.readUInt16BE(0) === 0x1f8b) return room.unpack((limit) => gunzipSync(file, limit));
  if (file.readUInt32BE(0) === 0x28b52ffd) return room.unpack((limit) => zstdDecompressSync(file, limit));
  return [...tarMembers(file, room)];
}

function contentsOf(file: Buffer, room: Room): Iterable<Buffer> {
  if (file.length < 8) return [];
  const magic = file.readUInt32BE(0);
  if (magic >>> 16 === 0x1f8b) return room.unpack((limit) => gunzipSync(file, limit));
  if (magic === 0x28b52ffd) return room.unpack((limit) => zstdDecompressSync(file, limit));
  if (file.subarray(0, 1_024).includes("%PDF-")) return pdfContents(file, room);
  if (file.subarray(257, 262).equals(USTAR)) return tarContents(file, room);
  if (/^\s{0,4}\{\\rtf/.test(file.toString("latin1", 0, 10))) return rtfText(file);
  const notes = pictureNotes(file, room);
  return notes ?? zipContents(file, room);
}

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const END_SEARCH = 65_557;

type Entry = { name: Buffer; method: number; packed: number; size: number; local: number };

/** By the central directory, what other programs would show of the archive; the smallest first: texts before pictures. */
function* zipContents(file: Buffer, room: Room): Iterable<Buffer> {
  const entries = entriesOf(file, room);
  for (const { name } of entries) yield name;
  for (const entry of entries.sort((a, b) => a.size - b.size)) yield* entryOf(file, entry, room);
}

/** Offsets count from the beginning of the archive, before which a program may stand that unpacks it. */
function entriesOf(file: Buffer, room: Room): Entry[] {
  const entries: Entry[] = [];
  const tail = Math.max(0, file.length - END_SEARCH);
  const end = tail + file.subarray(tail).lastIndexOf(END);
  if (end < tail || end + 22 > file.length) return entries;
  const [length, offset] = [file.readUInt32LE(end + 12), file.readUInt32LE(end + 16)];
  const shift = Math.max(0, end - length - offset);
  for (let at = shift + offset; at + 46 <= file.length && room.takeFile(); ) {
    if (file.readUInt32LE(at) !== CENTRAL) break;
    const named = at + 46 + file.readUInt16LE(at + 28);
    entries.push({
      name: file.subarray(at + 46, named),
      method: file.readUInt16LE(at + 10),
      packed: file.readUInt32LE(at + 20),
      size: file.readUInt32LE(at + 24),
      local: shift + file.readUInt32LE(at + 42),
    });
    at = named + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32);
  }
  return entries;
}

function entryOf(file: Buffer, { method, packed: size, local }: Entry, room: Room): Buffer[] {
  if (local + 30 > file.length || file.readUInt32LE(local) !== LOCAL) return [];
  const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
  const packed = file.subarray(start, start + size);
  if (method === 0) return room.unpack(() => packed);
  return method === 8 ? room.unpack((limit) => inflateRawSync(packed, limit)) : [];
}

const USTAR = Buffer.from("ustar");
const BLOCK = 512;

/** The files of a tar archive that are archives themselves: all others stand in its bytes as they are. */
function* tarContents(file: Buffer, room: Room): Iterable<Buffer> {
  for (const content of tarMembers(file, room)) yield* contentsOf(content, room);
}

function* tarMembers(file: Buffer, room: Room): Iterable<Buffer> {
  for (let at = 0; at + BLOCK <= file.length && room.takeFile(); ) {
    const size = Number.parseInt(file.toString("latin1", at + 124, at + 136), 8);
    if (!Number.isSafeInteger(size) || size < 0) return;
    yield file.subarray(at + BLOCK, at + BLOCK + size);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
}
