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

// Most bodies fit, so that no buffer is made for each of them; its content is copied out before anything else can run.
const scratch = Buffer.alloc(256 * 1_024);

/**
 * Quoted-printable of UTF-8 octets whose line ends are CRLF, one octet in each character. Also escapes what gateways
 * spoil: white space at the end of a line, `From ` and a dot at its start (RFC 2049 §3).
 */
export function encodeQuotedPrintable(bytes: Buffer): string {
  const needed = quotedLengthMax(bytes.length);
  const out = needed <= scratch.length ? scratch : Buffer.allocUnsafe(needed);
  const end = bytes.length;
  let i = 0;
  let to = 0;
  let lineStart = 0;
  while (i < end) {
    const isStart = to === lineStart && isSpoiledAtStart(bytes, i);
    if (!isStart) {
      // Most octets end here. One column stays free for the `=` of a soft line break.
      const stop = Math.min(end, i + lineStart + encodedLineMax - 1 - to);
      for (; i < stop; i++) {
        const byte = bytes[i]!;
        const kind = kindOf[byte]!;
        if (kind !== literal && (kind !== blank || endsLine(bytes, i + 1))) break;
        out[to++] = byte;
      }
      if (i === end) break;
    }
    const byte = bytes[i]!;
    if (byte === cr) {
      // Input is canonical: an LF follows.
      out[to++] = cr;
      out[to++] = lf;
      lineStart = to;
      i += 2;
      continue;
    }
    // The octet is one to escape, or one for which the line has no room.
    const room = lineStart + encodedLineMax - 1 - to;
    if (room < 3) {
      out[to++] = equals;
      out[to++] = cr;
      out[to++] = lf;
      lineStart = to;
      continue;
    }
    out[to++] = equals;
    out[to++] = hexDigits[byte >> 4]!;
    out[to++] = hexDigits[byte & 15]!;
    i++;
  }
  return out.toString("latin1", 0, to);
}

// Every octet may take three, and of 76 columns at least 73 are filled before a soft break of three octets.
function quotedLengthMax(octets: number): number {
  return octets * 3 + Math.ceil((octets * 3) / 72) * 3 + 3;
}

const cr = 0x0d;
const lf = 0x0a;
const equals = 0x3d;
const hexDigits = Buffer.from("0123456789ABCDEF", "latin1");

// What an octet is to quoted-printable (RFC 2045 §6.7): a blank stands for itself but at the end of a line.
const escaped = 0;
const literal = 1;
const blank = 2;
const kindOf = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x20 || byte === 0x09) return blank;
  return byte > 0x20 && byte <= 0x7e && byte !== equals ? literal : escaped;
});

function endsLine(bytes: Buffer, next: number): boolean {
  return next === bytes.length || bytes[next] === cr;
}

// A dot or `From ` that would start a line.
function isSpoiledAtStart(bytes: Buffer, i: number): boolean {
  if (bytes[i] === 0x2e) return true;
  const isFrom = bytes[i] === 0x46 && bytes[i + 1] === 0x72 && bytes[i + 2] === 0x6f && bytes[i + 3] === 0x6d;
  return isFrom && bytes[i + 4] === 0x20;
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
