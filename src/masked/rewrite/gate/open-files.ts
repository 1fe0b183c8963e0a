// The files of a finished reply, opened for the leak gate, and why some of them could not be: what nobody looked into may name
// its author. Archives within archives, documents of office programs (ZIP), PDFs; by yauzl and pdf.js, which wait for their
// streams, so that all is opened before the gate searches. In bounds. Shares nothing with what writes replies.
import { createHash } from "node:crypto";
import { inflateRawSync, zstdDecompressSync } from "node:zlib";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { type Part, parseStructure } from "../../../mail/mime/parse-structure.ts";
import { packedContents, shallowContents } from "./packed-contents.ts";
import { readPdf } from "./pdf-pages.ts";
import { readZip, type ZipEntry } from "./zip-entries.ts";

/** `unopened`: why a file, or one within it, was not looked into; words that go on a sentence. */
export type OpenedFile = { contents: Buffer[]; unopened: string[] };

/** By what `fileDigest` gives for their bytes. */
export type OpenedFiles = ReadonlyMap<string, OpenedFile>;

const LIMITS = { parts_max: 2_000, depth_max: 30 };
const NESTING_MAX = 8;
/** Archives in archives; what lies deeper is not opened. */
const DEPTH_MAX = 8;
const UNPACKED_MAX = 60_000_000;
const FILES_MAX = 5_000;

/** What a file of the reply is found by. */
export function fileDigest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("base64");
}

/** Opens every file of a message that holds others or hides its text. */
export async function openFiles(message: Buffer): Promise<OpenedFiles> {
  const opened = new Map<string, OpenedFile>();
  for (const content of leavesOf(message, 0)) {
    const digest = fileDigest(content);
    if (!opened.has(digest) && needsOpening(content)) opened.set(digest, await openFile(content));
  }
  return opened;
}

/** True for a file whose text is not found in its octets. */
export function needsOpening(file: Buffer): boolean {
  return kindOf(file) !== "plain";
}

function leavesOf(message: Buffer, nesting: number): Buffer[] {
  const within = (part: Part): Buffer[] => {
    if (part.children) return part.children.flatMap(within);
    const encoding = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding")?.value ?? "";
    const { bytes } = decodeTransfer(part.body, encoding);
    return part.type.startsWith("message/") && nesting < NESTING_MAX ? leavesOf(bytes, nesting + 1) : [bytes];
  };
  return within(parseStructure(message, LIMITS).root);
}

type Kind = "plain" | "zip" | "pdf" | "stream" | "closed";
type Room = { bytes: number; files: number };
type Opening = OpenedFile & { room: Room };

/** One file, and all that lies in it. */
export async function openFile(file: Buffer): Promise<OpenedFile> {
  const opening: Opening = { contents: [], unopened: [], room: { bytes: UNPACKED_MAX, files: FILES_MAX } };
  await open(file, opening, 0);
  const { contents, unopened } = opening;
  return { contents, unopened: [...new Set(unopened)] };
}

async function open(file: Buffer, opening: Opening, depth: number): Promise<void> {
  const kind = kindOf(file);
  if (kind === "plain") {
    opening.contents.push(...packedContents(file));
    return;
  }
  if (kind === "closed") {
    opening.unopened.push(closedBecause(file));
    return;
  }
  if (depth >= DEPTH_MAX) {
    opening.unopened.push("there are too many archives within archives");
    return;
  }
  const inside = kind === "zip" ? await entriesOf(file, opening) : await membersOf(kind, file, opening);
  for (const content of inside) {
    opening.room.bytes -= content.length;
    opening.room.files -= 1;
    if (opening.room.bytes < 0 || opening.room.files < 0) {
      opening.unopened.push(TOO_LARGE);
      return;
    }
    opening.contents.push(content);
    await open(content, opening, depth + 1);
  }
}

const TOO_LARGE = "it is too large when it is unpacked";

async function membersOf(kind: "pdf" | "stream", file: Buffer, opening: Opening): Promise<Buffer[]> {
  if (kind === "pdf") {
    const { texts, files, why } = await readPdf(file);
    if (why !== null) opening.unopened.push(`it is a PDF, and ${why}`);
    return [...packedContents(file), ...texts.map((text) => Buffer.from(text)), ...files];
  }
  const contents = [...shallowContents(file, Math.max(0, opening.room.bytes))];
  if (contents.length === 0) opening.unopened.push("it is damaged, or too large when it is unpacked");
  return contents;
}

const [STORED, DEFLATED, ZSTANDARD] = [0, 8, 93];
/** Pictures, sound and film in a document: what is too large of them is not missed. */
const MEDIA = /\.(?:png|jpe?g|gif|bmp|tiff?|webp|heic|emf|wmf|mp[34]|m4[av]|mov|avi|wav|webm|ttf|otf|woff2?|odttf)$/i;

async function entriesOf(file: Buffer, opening: Opening): Promise<Buffer[]> {
  const { entries, why } = await readZip(file, opening.room.files);
  if (why !== null) opening.unopened.push(`it is an archive, and ${why}`);
  const contents: Buffer[] = entries.map(({ name }) => Buffer.from(name));
  let left = opening.room.bytes;
  for (const entry of entries.sort((a, b) => a.packed.length - b.packed.length)) {
    const why = entry.encrypted ? "a file in it is under a password" : null;
    const content = why === null ? unpacked(entry, left) : null;
    if (content !== null) {
      left -= content.length;
      contents.push(content);
    } else if (entry.isListed && !MEDIA.test(entry.name)) opening.unopened.push(why ?? NOT_UNPACKED);
  }
  return contents;
}

const NOT_UNPACKED = "a file in it is damaged, too large, or packed in a way that cannot be opened here";

function unpacked({ packed, method }: ZipEntry, left: number): Buffer | null {
  if (packed.length === 0 || method === STORED) return packed;
  const limit = { maxOutputLength: Math.max(1, left) };
  try {
    if (method === DEFLATED) return inflateRawSync(packed, limit);
    return method === ZSTANDARD ? zstdDecompressSync(packed, limit) : null;
  } catch {
    return null;
  }
}

/** Formats that are known by their first octets, and that nothing here can open. */
const CLOSED: readonly (readonly [RegExp, string])[] = [
  [/^7z\xbc\xaf\x27\x1c/, "it is a 7-Zip archive"],
  [/^Rar!\x1a\x07/, "it is a RAR archive"],
  [/^\xfd7zXZ\0/, "it is packed with xz"],
  [/^BZh[1-9](?:1AY&SY|\x17rE8P\x90)/, "it is packed with bzip2"],
  [/^[\x5d-\x6d]\0\0[\0-\xff]{2}(?:\xff{8}|[\0-\xff]{4}\0{4})/, "it is packed with LZMA"],
  [/^LZIP/, "it is packed with lzip"],
  [/^\x04\x22M\x18/, "it is packed with LZ4"],
  [/^\x1f[\x9d\xa0]/, "it is packed with compress"],
  [/^MSCF\0/, "it is a cabinet of Windows"],
  [/^[\0-\xff]{2}-l[hz][\0-\xff]-/, "it is an LHA archive"],
  [/^[\0-\xff]{7}\*\*ACE\*\*/, "it is an ACE archive"],
  [/^\x60\xea[\0-\xff]{2}[\x1e-\x2e]/, "it is an ARJ archive"],
  [/^!<arch>\n/, "it is an archive of ar"],
  [/^\xed\xab\xee\xdb/, "it is a package of RPM"],
  [/^hsqs/, "it is an image of a file system"],
  [/^age-encryption\.org\/|^-----BEGIN AGE ENCRYPTED FILE/, "it is encrypted"],
  [/^\x03\xd9\xa2\x9a/, "it is encrypted"],
  [/^Salted__/, "it is encrypted"],
  [/^[\x8c\xc3][\x04-\x20][\x04-\x06]/, "it is encrypted with a password"],
];
/** Compound files (MS-CFB) that hold an encrypted document (MS-OFFCRYPTO §2.3.4.4). */
const COMPOUND = Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
const ENCRYPTED_PACKAGE = Buffer.from("EncryptedPackage", "utf16le");

function closedBecause(file: Buffer): string {
  const start = file.toString("latin1", 0, 40);
  return CLOSED.find(([magic]) => magic.test(start))?.[1] ?? "it is under a password";
}

const ZIP_END = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const ZIP_END_SEARCH = 65_557;

function kindOf(file: Buffer): Kind {
  if (file.length < 8) return "plain";
  const start = file.toString("latin1", 0, 40);
  if (/^PK(?:\x03\x04|\x05\x06|\x07\x08)/.test(start)) return "zip";
  if (file.subarray(0, 1_024).includes("%PDF-")) return "pdf";
  if (/^\x1f\x8b|^\x28\xb5\x2f\xfd/.test(start) || file.toString("latin1", 257, 262) === "ustar") return "stream";
  if (CLOSED.some(([magic]) => magic.test(start))) return "closed";
  if (file.subarray(0, 8).equals(COMPOUND)) return file.includes(ENCRYPTED_PACKAGE) ? "closed" : "plain";
  // A program may stand before the archive that it unpacks.
  const isArchive = file.subarray(Math.max(0, file.length - ZIP_END_SEARCH)).includes(ZIP_END);
  return isArchive ? "zip" : "plain";
}
