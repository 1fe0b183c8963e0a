// Bodies as bytes on the wire: canonical CRLF, and the choice between 7bit, quoted-printable and base64.
// RFC 2045 §2.7, §6.7, §6.8; RFC 2049 §3 (what gateways spoil). It knows nothing of headers and parts.

/** A body and the name of its Content-Transfer-Encoding; a string holds one octet in each character, below 0x80. */
export type EncodedBody = { encoding: "7bit" | "quoted-printable" | "base64"; body: string | Buffer };

// RFC 5322 §2.1.1 allows 998; some servers cut at 990, so we keep a distance.
const plainLineMax = 900;
// RFC 2045 §6.7 (5) and §6.8: 76 characters, in quoted-printable with the `=` of a soft line break.
const encodedLineMax = 76;
const base64LineOctets = 57;

const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;

/**
 * Encodes text for a text/* part in UTF-8. ASCII with short lines stays 7bit; quoted-printable otherwise; base64 when
 * more than about a quarter of the octets would need escaping. Any of CR, LF, CRLF is a line end and becomes CRLF; lone
 * surrogates become U+FFFD.
 */
export function encodeText(text: string): EncodedBody {
  // Octets beyond one for each UTF-16 unit: 0 for ASCII, half the octets of most other scripts. 0.3 µs for 5 KB, where
  // a pattern or a loop takes 5.
  const octets = Buffer.byteLength(text);
  const surplus = octets - text.length;
  const lines = toCrlf(text);
  if (surplus === 0 && fitsPlain(lines)) return { encoding: "7bit", body: lines };
  const bytes = Buffer.from(lines);
  if (surplus * 8 > octets) return { encoding: "base64", body: encodeBase64(bytes) };
  return { encoding: "quoted-printable", body: encodeQuotedPrintable(bytes) };
}

/** 7bit for octets that are mail text already (ASCII, no NUL, lines of at most 900), line ends made CRLF; else null. */
export function encodePlainOctets(content: Buffer): EncodedBody | null {
  for (const byte of content) if (byte === 0 || byte > 0x7f) return null;
  const lines = toCrlf(content.toString("latin1"));
  return longestLine(lines) <= plainLineMax ? { encoding: "7bit", body: lines } : null;
}

/** Base64 in lines of 76 characters with CRLF between them, none at the end. */
export function encodeBase64(content: Buffer): Buffer {
  if (content.length === 0) return Buffer.alloc(0);
  const lines = Math.ceil(content.length / base64LineOctets);
  const encoded = Buffer.from(content.toString("base64"), "latin1");
  if (lines === 1) return encoded;
  const out = Buffer.allocUnsafe(encoded.length + (lines - 1) * 2);
  let to = 0;
  for (let from = 0; from < encoded.length; from += encodedLineMax) {
    if (from > 0) {
      out[to++] = 0x0d;
      out[to++] = 0x0a;
    }
    to += encoded.copy(out, to, from, from + encodedLineMax);
  }
  return out;
}

/**
 * Quoted-printable of UTF-8 octets whose line ends are CRLF. Also escapes what gateways spoil: white space at the end
 * of a line, `From ` and a dot at its start (RFC 2049 §3).
 */
export function encodeQuotedPrintable(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafe(quotedLengthMax(bytes.length));
  let to = 0;
  let column = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const kind = kindOf[byte]!;
    // Most octets end here: it makes the loop a third faster.
    if (kind === literal && column < encodedLineMax - 1) {
      out[to++] = byte;
      column++;
      continue;
    }
    if (kind === lineEnd) {
      // Input is canonical: an LF follows.
      out[to++] = 0x0d;
      out[to++] = 0x0a;
      column = 0;
      i++;
      continue;
    }
    const width = kind === literal || (kind === delicate && !isSpoiled(bytes, i, column)) ? 1 : 3;
    // One column stays free for the `=` of a soft line break.
    if (column + width >= encodedLineMax) {
      out[to++] = 0x3d;
      out[to++] = 0x0d;
      out[to++] = 0x0a;
      column = 0;
      i--;
      continue;
    }
    column += width;
    if (width === 1) {
      out[to++] = byte;
    } else {
      out[to++] = 0x3d;
      out[to++] = hexDigits[byte >> 4]!;
      out[to++] = hexDigits[byte & 15]!;
    }
  }
  return out.subarray(0, to);
}

// Every octet may take three, and of 76 columns at least 73 are filled before a soft break of three octets.
function quotedLengthMax(octets: number): number {
  return octets * 3 + Math.ceil((octets * 3) / 72) * 3 + 3;
}

const hexDigits = Buffer.from("0123456789ABCDEF", "latin1");

// What an octet is to quoted-printable (RFC 2045 §6.7): `delicate` ones stand for themselves but for some places.
const escaped = 0;
const literal = 1;
const delicate = 2;
const lineEnd = 3;
const kindOf = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x0d) return lineEnd;
  if (byte === 0x20 || byte === 0x09 || byte === 0x2e || byte === 0x46) return delicate;
  return byte > 0x20 && byte <= 0x7e && byte !== 0x3d ? literal : escaped;
});

// White space that would end a line, a dot or `From ` that would start one.
function isSpoiled(bytes: Buffer, i: number, column: number): boolean {
  const byte = bytes[i]!;
  if (byte === 0x20 || byte === 0x09) return i + 1 === bytes.length || bytes[i + 1] === 0x0d;
  return column === 0 && (byte === 0x2e || startsFromLine(bytes, i));
}

function startsFromLine(bytes: Buffer, i: number): boolean {
  return bytes[i + 1] === 0x72 && bytes[i + 2] === 0x6f && bytes[i + 3] === 0x6d && bytes[i + 4] === 0x20;
}

function toCrlf(text: string): string {
  if (text.includes("\r")) return text.replace(/\r\n?|\n/g, "\r\n");
  return text.includes("\n") ? text.replaceAll("\n", "\r\n") : text;
}

function fitsPlain(lines: string): boolean {
  if (lines.startsWith("From ") || lines.includes("\nFrom ")) return false;
  return longestLine(lines) <= plainLineMax && !controls.test(lines);
}

// Length of the longest line, counted with its CR: at most one more than its text.
function longestLine(text: string): number {
  let longest = 0;
  let start = 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
    if (end - start > longest) longest = end - start;
    start = end + 1;
  }
  return Math.max(longest, text.length - start);
}
