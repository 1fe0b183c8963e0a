// Content-Transfer-Encoding undone (RFC 2045 §6, and uuencode from before it), as tolerant as mail readers are: what is
// not of the encoding is passed over or kept, and said in `defect`. Linear. Charsets are not known here.

export type DecodedBytes = { bytes: Buffer; defect: "bad_base64" | "bad_quoted_printable" | "unknown_encoding" | null };

/** Undoes an encoding by its name in the mail. Bytes that are not changed are a view of `body`. */
export function decodeTransfer(body: Buffer, encoding: string): DecodedBytes {
  switch (encoding.trim().toLowerCase().replace(/["';]/g, "")) {
    case "base64":
    case "b64":
      return decodeBase64(body);
    case "quoted-printable":
    case "quotedprintable":
    case "quoted_printable":
      return decodeQuotedPrintable(body);
    case "x-uuencode":
    case "x-uue":
    case "uuencode":
    case "uue":
      return decodeUu(body);
    case "":
    case "7bit":
    case "8bit":
    case "binary":
    case "7-bit":
    case "8-bit":
      return { bytes: body, defect: null };
    default:
      return { bytes: body, defect: "unknown_encoding" };
  }
}

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

// Padding ends a group, and another run may follow: some writers encode line by line or file by file.
function decodeBase64(body: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafeSlow(Math.ceil(body.length / 4) * 3);
  let length = 0;
  let bits = 0;
  let held = 0;
  let bad = false;
  for (let at = 0; at < body.length; at++) {
    const value = base64Values[body[at]!]!;
    if (value < PADDING) {
      held = (held << 6) | value;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        out[length++] = held >> bits;
        held &= (1 << bits) - 1;
      }
    } else if (value === PADDING) {
      bits = 0;
      held = 0;
    } else if (value === OTHER) bad = true;
  }
  return { bytes: exact(out, length), defect: bad || bits >= 6 ? "bad_base64" : null };
}

// A view with a large rest of its memory would be copied whole between threads.
function exact(out: Buffer, length: number): Buffer {
  return out.subarray(0, length);
}

function decodeQuotedPrintable(body: Buffer): DecodedBytes {
  const out = Buffer.allocUnsafeSlow(body.length);
  let length = 0;
  let bad = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!;
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
  }
  return { bytes: exact(out, length), defect: bad ? "bad_quoted_printable" : null };
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
  const text = body.toString("latin1");
  const begin = /^begin(?:-base64)? [0-7]{3,4} .*\r?\n/m.exec(text);
  const parts: Buffer[] = [];
  let at = begin ? begin.index + begin[0].length : 0;
  while (at < text.length) {
    const lineEnd = text.indexOf("\n", at);
    const line = text.slice(at, lineEnd === -1 ? text.length : lineEnd).replace(/\r$/, "");
    if (line === "end" || line === "") break;
    parts.push(decodeUuLine(line));
    at = lineEnd === -1 ? text.length : lineEnd + 1;
  }
  return { bytes: Buffer.concat(parts), defect: null };
}

function decodeUuLine(line: string): Buffer {
  const value = (index: number) => ((line.charCodeAt(index) || 0x20) - 0x20) & 0x3f;
  const length = value(0);
  const out = Buffer.alloc(Math.ceil(length / 3) * 3);
  for (let group = 0; group * 3 < length; group++) {
    const at = 1 + group * 4;
    const word = (value(at) << 18) | (value(at + 1) << 12) | (value(at + 2) << 6) | value(at + 3);
    out.writeUIntBE(word, group * 3, 3);
  }
  return out.subarray(0, length);
}
