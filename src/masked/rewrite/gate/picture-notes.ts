// The notes in pictures that do not stand in their bytes as they are, for the leak gate: packed ones of PNG (zTXt, iTXt, iCCP), and
// those of GIF, which are cut into blocks. What others (EXIF, XMP, IPTC of JPEG, TIFF, WebP) say is plain.
// RFC 2083 §4.2.3 and W3C PNG §11.3.3 (text chunks), GIF89a §24 and §26 (comments, applications).
import { inflateSync } from "node:zlib";
import type { Room } from "./unpack-room.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex");

/** Null for what is no such picture. */
export function pictureNotes(file: Buffer, room: Room): Iterable<Buffer> | null {
  if (file.subarray(0, 8).equals(PNG)) return pngNotes(file, room);
  return file.subarray(0, 4).equals(Buffer.from("GIF8")) ? gifNotes(file, room) : null;
}

function* pngNotes(file: Buffer, room: Room): Iterable<Buffer> {
  for (let at = PNG.length; at + 12 <= file.length && room.takeFile(); ) {
    const end = at + 8 + file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    const chunk = file.subarray(at + 8, end);
    const packed =
      type === "zTXt" || type === "iCCP" ? behind(chunk, 1).subarray(1) : type === "iTXt" ? packedText(chunk) : null;
    if (packed) yield* room.unpack((limit) => inflateSync(packed, limit));
    at = end + 4;
  }
}

/** Keyword, flag, method, language, keyword again, text. */
function packedText(chunk: Buffer): Buffer | null {
  const flagged = behind(chunk, 1);
  return flagged[0] === 1 ? behind(flagged.subarray(2), 2) : null;
}

/** What follows so many zeros. */
function behind(bytes: Buffer, zeros: number): Buffer {
  let at = 0;
  for (let count = 0; count < zeros; count += 1) {
    const zero = bytes.indexOf(0, at);
    if (zero === -1) return Buffer.alloc(0);
    at = zero + 1;
  }
  return bytes.subarray(at);
}

const [EXTENSION, PICTURE, COMMENT, APPLICATION] = [0x21, 0x2c, 0xfe, 0xff];

function* gifNotes(file: Buffer, room: Room): Iterable<Buffer> {
  let at = 13 + tableLength(file[10] ?? 0);
  while (at + 2 < file.length && room.takeFile()) {
    const [kind, label] = [file[at], file[at + 1] ?? 0];
    if (kind !== EXTENSION && kind !== PICTURE) return;
    const first = kind === EXTENSION ? at + 2 : at + 11 + tableLength(file[at + 9] ?? 0);
    const { blocks, end } = readBlocks(file, first);
    if (kind === EXTENSION && (label === COMMENT || label === APPLICATION)) yield Buffer.concat(blocks);
    at = end;
  }
}

/** The length of the table of colours, where the flags say that there is one. */
function tableLength(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

function readBlocks(file: Buffer, first: number): { blocks: Buffer[]; end: number } {
  const blocks: Buffer[] = [];
  let at = first;
  for (let size = file[at] ?? 0; size > 0; size = file[at] ?? 0) {
    blocks.push(file.subarray(at + 1, at + 1 + size));
    at += 1 + size;
  }
  return { blocks, end: at + 1 };
}
