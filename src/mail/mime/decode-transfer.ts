// Content-Transfer-Encoding undone (RFC 2045 §6, and uuencode from before it), as tolerant as mail readers are: what is
// not of the encoding is passed over or kept, and said in `defect`. Linear. Charsets are not known here.
import { withoutComments } from "./comments.ts";

export type DecodedBytes = { bytes: Buffer; defect: "bad_base64" | "bad_quoted_printable" | "unknown_encoding" | null };

/** Undoes an encoding by its name in the mail. Bytes that are not changed are a view of `body`. */
export function decodeTransfer(body: Buffer, encoding: string): DecodedBytes {
  switch (nameOf(encoding)) {
    case "base64":
    case "b64":
      return decodeBase64(body);
    case "quotedprintable":
      return decodeQuotedPrintable(body);
    case "xuuencode":
    case "xuue":
    case "uuencode":
    case "uue":
      return decodeUu(body);
    case "":
    case "7bit":
    case "8bit":
    case "binary":
      return { bytes: body, defect: null };
    default:
      return { bytes: body, defect: "unknown_encoding" };
  }
}

// The first word without its hyphens: what follows a semicolon or a space, such as a charset, belongs elsewhere.
function nameOf(encoding: string): string {
  const text = withoutComments(encoding.slice(0, nameCharsMax)).toLowerCase();
  const joined = text
    .replace(/["']/g, "")
    .replace(/\s*[-_/]\s*/g, "-")
    .replace(/quoted\s+printable/, "quoted-printable")
    .replace(/base\s+64/, "base64");
  return /^[\s;,]*([^\s;,]*)/.exec(joined)![1]!.replaceAll("-", "");
}

const nameCharsMax = 1_000;
const LF = 0x0a;
const CR = 0x0d;
const EQUALS = 0x3d;
const PADDING = 64;
const SPACE = 65;
const OTHER = 66;

// The value of each byte in base64, or what else it is.
const base64Values = makeBase64Values();

function makeBase64Values(): Uint8Array {
  const values = new Uint8Array(256).fill(OTHER);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  [...alphabet].forEach((char, index) => {
    values[char.charCodeAt(0)] = index;
  });
  for (const space of [0x20, 0x09, LF, CR]) values[space] = SPACE;
  values[EQUALS] = PADDING;
  return values;
}

// Padding ends a group, and another run may follow: some writers encode line by line or file by file. What stands behind
// padding or an empty line and is no base64 was added on the way, such as the footer of a mailing list.
function decodeBase64(body: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafeSlow(Math.ceil(body.length / 4) * 3);
  let length = 0;
  let bits = 0;
  let held = 0;
  let bad = false;
  const lines: Lines = { digits: 0, first: 0, odd: 0 };
  for (let at = 0; at < body.length; at++) {
    const value = base64Values[body[at]!]!;
    if (value < PADDING) {
      lines.digits += 1;
      held = (held << 6) | value;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        out[length++] = held >> bits;
        held &= (1 << bits) - 1;
      }
      continue;
    }
    if (value === OTHER) bad = true;
    if (value === PADDING) {
      bits = 0;
      held = 0;
    }
    const isShort = body[at] === LF && endLine(lines);
    const isEnd = value === PADDING || (body[at] === LF && isLineEnd(body, at + 1));
    if ((!isEnd && !(isShort && bits === 0)) || length === 0) continue;
    const next = isEnd || isWholeGroups(body, at + 1) ? nextDigits(body, at + 1) : null;
    if (next === null) {
      bad = true;
      break;
    }
    at = next - 1;
  }
  return { bytes: exact(out, length), defect: bad || bits >= 6 ? "bad_base64" : null };
}

type Lines = { digits: number; first: number; odd: number };

const FULL_LINE_DIGITS = new Set([60, 64, 72, 76]);

/**
 * True if this was the last line: the only one that is shorter than the others, or one alone that no encoder would
 * break.
 */
function endLine(lines: Lines): boolean {
  const { digits, first } = lines;
  lines.digits = 0;
  if (digits === 0) return false;
  if (first === 0) {
    lines.first = digits;
    return !FULL_LINE_DIGITS.has(digits);
  }
  if (digits !== first) lines.odd += 1;
  return lines.odd === 1 && digits < first;
}

/**
 * True if the line that begins here holds whole groups of base64. Text that was added behind the last line rarely does.
 */
function isWholeGroups(body: Buffer, start: number): boolean {
  const end = body.indexOf(LF, start);
  const last = end === -1 ? body.length : end;
  let digits = 0;
  let isBase64 = true;
  for (let at = start; at < last; at++) {
    const value = base64Values[body[at]!]!;
    if (value === OTHER) isBase64 = false;
    if (value <= PADDING) digits += 1;
  }
  for (let at = last; at < body.length; at++) if (base64Values[body[at]!]! !== SPACE) return true;
  return isBase64 && digits % 4 === 0;
}

function isLineEnd(body: Buffer, at: number): boolean {
  return body[at] === LF || (body[at] === CR && body[at + 1] === LF);
}

/** Where base64 goes on behind blanks and padding, the end of the body included; null when what stands there is none. */
function nextDigits(body: Buffer, from: number): number | null {
  let start = from;
  while (start < body.length && [PADDING, SPACE].includes(base64Values[body[start]!]!)) start++;
  let at = start;
  while (at < body.length && base64Values[body[at]!]! < PADDING) at++;
  while (body[at] === 0x20 || body[at] === 0x09) at++;
  return at >= body.length || body[at] === EQUALS || isLineEnd(body, at) ? start : null;
}

// A view with a large rest of its memory would be copied whole between threads.
function exact(out: Buffer, length: number): Buffer {
  return out.subarray(0, length);
}

function decodeQuotedPrintable(body: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafeSlow(body.length);
  let length = 0;
  let bad = false;
  // RFC 2045 §6.7 (3): blanks that stand there themselves at the end of a line were added on the way; =20 was not.
  let kept = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!;
    if (byte === LF || (byte === CR && body[at + 1] === LF)) length = kept;
    if (byte === EQUALS) {
      const high = hexValue(body[at + 1]);
      const low = hexValue(body[at + 2]);
      const breakEnd = softBreakEnd(body, at + 1);
      if (high >= 0 && low >= 0) {
        out[length++] = (high << 4) | low;
        at += 2;
      } else if (breakEnd > 0) at = breakEnd - 1;
      else {
        bad = true;
        out[length++] = byte;
      }
    } else out[length++] = byte;
    if (byte !== 0x20 && byte !== 0x09) kept = length;
  }
  return { bytes: exact(out, kept), defect: bad ? "bad_quoted_printable" : null };
}

function hexValue(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

const trailingSpacesMax = 1_000;

// Behind the line end that a `=` takes away, spaces before it included; 0 when it is none. The end of the body counts.
function softBreakEnd(body: Buffer, start: number): number {
  let at = start;
  while ((body[at] === 0x20 || body[at] === 0x09) && at - start < trailingSpacesMax) at++;
  if (body[at] === CR && body[at + 1] === LF) return at + 2;
  return body[at] === LF ? at + 1 : at >= body.length ? body.length : 0;
}

// `begin 644 name`, lines of a length and so many bytes in four characters each, `end`.
function decodeUu(body: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafeSlow(body.length);
  let length = 0;
  for (let at = startOfUu(body); at < body.length; ) {
    const found = body.indexOf(LF, at);
    const end = found === -1 ? body.length : found;
    const count = uuValue(body[at]);
    // A line of no bytes is the last; "end" stands behind it.
    if (count === 0 || body[at] === CR || isUuEnd(body, at, end)) break;
    length = decodeUuLine(body.subarray(at + 1, withoutCr(body, end)), { out, length, count });
    at = end + 1;
  }
  return { bytes: exact(out, length), defect: null };
}

// Not a letter of the line: read as one it would stand for a blank that was cut off before it.
function withoutCr(body: Buffer, end: number): number {
  return body[end - 1] === CR ? end - 1 : end;
}

// A line of 69 bytes begins with an `e` as well.
function isUuEnd(body: Buffer, at: number, end: number): boolean {
  return body[at] === 0x65 && end - at <= 5 && body.toString("latin1", at, end).trim() === "end";
}

function startOfUu(body: Buffer): number {
  const text = body.toString("latin1", 0, 4_000);
  const begin = /^begin [0-7]{3,4} .*\r?\n/m.exec(text);
  return begin ? begin.index + begin[0].length : 0;
}

function uuValue(byte: number | undefined): number {
  return ((byte ?? 0x20) - 0x20) & 0x3f;
}

/**
 * Writes the bytes of a line; gives the new length. Blanks at its end, which stand for zeros, are often cut off on the way:
 * zeros are written for them, as long as the whole is no longer than it came.
 */
function decodeUuLine(line: Buffer, to: { out: Buffer; length: number; count: number }): number {
  const count = Math.min(to.count, to.out.length - to.length);
  let written = 0;
  for (let at = 0; written < count; at += 4) {
    const word =
      (uuValue(line[at]) << 18) | (uuValue(line[at + 1]) << 12) | (uuValue(line[at + 2]) << 6) | uuValue(line[at + 3]);
    for (let shift = 16; shift >= 0 && written < count; shift -= 8)
      to.out[to.length + written++] = (word >> shift) & 0xff;
  }
  return to.length + written;
}
