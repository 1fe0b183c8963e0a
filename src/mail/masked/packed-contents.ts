// What is packed in a file, for the leak gate: documents of office programs are ZIP archives, and name their authors. In
// bounds: so many files, so many bytes, no archive within an archive. What cannot be unpacked (encrypted, broken, another
// method) is left out: nobody else can read it without its password either.
// APPNOTE.TXT 6.3.10 §4.3 (ZIP), RFC 1951, RFC 1952 (gzip), ISO 32000-1 §7.4.4 (PDF streams).
import { gunzipSync, inflateRawSync, inflateSync } from "node:zlib";

const FILES_MAX = 500;
const UNPACKED_MAX = 30_000_000;
const STREAMS_MAX = 500;

/** The contents of a ZIP archive, of a gzip file, or of the packed streams of a PDF; none for anything else. */
export function packedContents(file: Buffer): Buffer[] {
  if (file.length > 4 && file.readUInt32LE(0) === LOCAL) return zipContents(file);
  if (file.length > 4 && file.readUInt16BE(0) === 0x1f8b) return unpacked(UNPACKED_MAX, (max) => gunzipSync(file, max));
  if (file.subarray(0, 1_024).includes("%PDF-")) return pdfContents(file);
  return [];
}

type Limit = { maxOutputLength: number };

function unpacked(room: number, unpack: (limit: Limit) => Buffer): Buffer[] {
  if (room <= 0) return [];
  try {
    return [unpack({ maxOutputLength: room })];
  } catch {
    // Not packed in this way, broken, or larger than there is room for.
    return [];
  }
}

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const END_SEARCH = 65_557;

/** By the central directory: what other programs would show of the archive. */
function zipContents(file: Buffer): Buffer[] {
  const contents: Buffer[] = [];
  let room = UNPACKED_MAX;
  let at = directoryOf(file);
  for (let files = 0; at !== null && files < FILES_MAX && at + 46 <= file.length; files += 1) {
    if (file.readUInt32LE(at) !== CENTRAL) break;
    const nameLength = file.readUInt16LE(at + 28);
    contents.push(file.subarray(at + 46, at + 46 + nameLength));
    for (const content of entryOf(file, at, room)) {
      contents.push(content);
      room -= content.length;
    }
    at += 46 + nameLength + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32);
  }
  return contents;
}

function directoryOf(file: Buffer): number | null {
  const tail = file.subarray(-END_SEARCH);
  const end = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end === -1 || end + 22 > tail.length || tail.readUInt32LE(end) !== END) return null;
  return tail.readUInt32LE(end + 16);
}

function entryOf(file: Buffer, at: number, room: number): Buffer[] {
  const [method, size, local] = [file.readUInt16LE(at + 10), file.readUInt32LE(at + 20), file.readUInt32LE(at + 42)];
  if (local + 30 > file.length || file.readUInt32LE(local) !== LOCAL) return [];
  const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
  const packed = file.subarray(start, start + size);
  if (method === 0) return packed.length <= room ? [packed] : [];
  return method === 8 ? unpacked(room, (limit) => inflateRawSync(packed, limit)) : [];
}

function pdfContents(file: Buffer): Buffer[] {
  const contents: Buffer[] = [];
  let room = UNPACKED_MAX;
  let at = 0;
  for (let streams = 0; streams < STREAMS_MAX; streams += 1) {
    const begin = file.indexOf("stream", at);
    const end = begin === -1 ? -1 : file.indexOf("endstream", begin);
    if (end === -1) break;
    const start = begin + 6 + (file[begin + 6] === 0x0d ? 2 : 1);
    for (const content of unpacked(room, (limit) => inflateSync(file.subarray(start, end), limit))) {
      contents.push(content);
      room -= content.length;
    }
    at = end + 9;
  }
  return contents;
}
