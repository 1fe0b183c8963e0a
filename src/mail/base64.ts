// Base64 in a field of a request (RFC 4648 §4). Strict, unlike mime/decode-transfer.ts, which reads what mail really holds:
// Node skips what is not base64, and a file that arrives otherwise than it was sent is worse than a refusal.

// Deliberate: blanks on one side of the padding only. `[…\s]*={0,2}\s*$` tries each way to part a run of blanks, which
// froze the process for a minute at 235 kB.
const BASE64 = /^[A-Za-z0-9+/ \t-\r]*(?:=[ \t-\r]*){0,2}$/;
const SPACE = 0x20;
const PADDING = 0x3d;

/**
 * The bytes that `text` stands for, with or without padding and line breaks; null when it is not base64. One character too
 * many is a text that was cut off, which decoding would hide. Takes time in proportion to the text, whatever it holds.
 */
export function decodeBase64(text: string): Buffer | null {
  if (!BASE64.test(text) || countDigits(text) % 4 === 1) return null;
  return Buffer.from(text, "base64");
}

/** How many digits of base64 a text has: all but blanks and padding. Most texts hold nothing else up to their end. */
function countDigits(text: string): number {
  const start = text.search(/[^A-Za-z0-9+/]/);
  if (start === -1) return text.length;
  let count = start;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code > SPACE && code !== PADDING) count += 1;
  }
  return count;
}
