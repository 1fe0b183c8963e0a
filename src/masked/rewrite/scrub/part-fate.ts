// What becomes of a part that is no text of its author: it is kept, left out because it only says who wrote the mail
// (contact cards, keys, signatures, receipts), or is in the way, because what it holds can be neither cleaned nor left out
// unseen. By type and content; a name alone proves nothing: `slides.key` is no key, `notes.asc` no signature.
// RFC 9580 §4.2 (packets of OpenPGP), RFC 8551 §3.2 and §3.9 (S/MIME), MS-OXTNEF §2.1.3 (TNEF).
import { anyOf } from "../../../mail/any-of.ts";
import type { Part } from "../../../mail/mime/parse-structure.ts";
import { filenameOf } from "./part-fields.ts";

/** `lost`: a file that names its author; `encrypted`: for somebody's key, so that nobody can look into it. */
export type PartFate = "kept" | "dropped" | "lost" | "encrypted";

const DROPPED = new RegExp(
  `^(?:${anyOf([
    /text\/(?:x-)?vcard|text\/directory|text\/rfc822-headers/,
    /application\/pgp-(?:keys|signature)|application\/(?:x-)?pkcs7-(?!mime$).*/,
    /message\/(?:global-)?(?:disposition-notification|delivery-status|headers|tracking-status|feedback-report)/,
  ])})$`,
);
const DROPPED_NAME = /\.(?:vcf|vcard|p7s|p7c)$/i;
const LOST = /^(?:application\/vnd\.apple\.pkpass|message\/(?!(?:rfc822|global)$).*)$/;
const ENCRYPTED = /^application\/(?:x-)?pkcs7-mime$/;
const TNEF = /^application\/(?:vnd\.)?ms-tnef$/;
const TNEF_NAME = /\.tnef$|^win\s?mail\.dat$/i;
const OPENPGP = /\.(?:asc|sig|sign|pgp|gpg|key)$/i;
/** attAttachData: a file within. */
const TNEF_FILE = Buffer.from([0x02, 0x0f, 0x80, 0x06, 0x00]);

/** True for a contact card. */
export function isCard(part: Part): boolean {
  return /^text\/(?:(?:x-)?vcard|directory)$/.test(part.type) || /\.(?:vcf|vcard)$/i.test(filenameOf(part).trim());
}

/** The fate of a leaf; `content` is asked for only where that decides. */
export function fateOf(part: Part, content: () => Buffer): PartFate {
  const name = filenameOf(part).trim();
  if (ENCRYPTED.test(part.type) || /\.p7m$/i.test(name)) return "encrypted";
  if (DROPPED.test(part.type) || DROPPED_NAME.test(name)) return "dropped";
  if (TNEF.test(part.type) || TNEF_NAME.test(name)) return content().includes(TNEF_FILE) ? "lost" : "dropped";
  if (LOST.test(part.type) || /\.pkpass$/i.test(name)) return "lost";
  const isControl = part.type === "application/pgp-encrypted";
  // RFC 3156 §4: all that it holds is the version.
  if (isControl && /^\s*Version:[^\n]{0,40}\s*$/i.test(content().toString("latin1", 0, 200))) return "dropped";
  return isControl || OPENPGP.test(name) ? ofOpenPgp(content()) : "kept";
}

const PUBLIC_KEY_SESSION = 1;
const PASSWORD_SESSION = 3;
const SIGNATURE = 2;
const KEYS = [5, 6, 7, 14];
/** One-pass signatures, compressed and encrypted packets: signed or encrypted by a key, unless a password is before them. */
const SEALED = [4, 8, 9, 18, 20];
const PACKETS_MAX = 50;
const ARMOR_CHARS_MAX = 20_000;

function ofOpenPgp(content: Buffer): PartFate {
  const tags = packetTags(unarmored(content));
  const [first = 0] = tags;
  if (tags.includes(PUBLIC_KEY_SESSION)) return "encrypted";
  if (first === PASSWORD_SESSION) return "kept";
  if (first === SIGNATURE || KEYS.includes(first)) return "dropped";
  return SEALED.includes(first) ? "encrypted" : "kept";
}

/** RFC 9580 §6.2: the bytes behind the fields of armor; other bytes as they are. */
function unarmored(content: Buffer): Buffer {
  const lines = content.toString("latin1", 0, ARMOR_CHARS_MAX).split("\n");
  const begin = lines.findIndex((line) => /^-{5}BEGIN PGP (?!SIGNED)/.test(line));
  if (begin === -1) return content;
  const gap = lines.findIndex((line, at) => at > begin && line.trim() === "");
  const body = lines.slice((gap === -1 ? begin : gap) + 1);
  const end = body.findIndex((line) => /^[=-]/.test(line));
  return Buffer.from(body.slice(0, end === -1 ? undefined : end).join(""), "base64");
}

/** The kinds of the first packets, as far as their lengths lead to each other; none for what is no OpenPGP. */
function packetTags(bytes: Buffer): number[] {
  const tags: number[] = [];
  for (let at = 0; at + 2 < bytes.length && tags.length < PACKETS_MAX; ) {
    const head = bytes[at] as number;
    if ((head & 0x80) === 0) break;
    const isNew = (head & 0x40) !== 0;
    tags.push(isNew ? head & 0x3f : (head >> 2) & 0x0f);
    const next = isNew ? behindNew(bytes, at + 1) : behindOld(bytes, at + 1, head & 3);
    if (next === null) break;
    at = next;
  }
  return tags;
}

/** Null for a length that is given piece by piece, and for one that is cut. */
function behindNew(bytes: Buffer, at: number): number | null {
  const first = bytes[at] as number;
  if (first < 192) return at + 1 + first;
  if (first < 224) return at + 2 + ((first - 192) << 8) + (bytes[at + 1] ?? 0) + 192;
  return first === 255 && at + 5 <= bytes.length ? at + 5 + bytes.readUInt32BE(at + 1) : null;
}

function behindOld(bytes: Buffer, at: number, kind: number): number | null {
  const size = [1, 2, 4][kind];
  if (size === undefined || at + size > bytes.length) return null;
  return at + size + bytes.readUIntBE(at, size);
}
