// Octets as text without loss: what is UTF-8 reads as that, and each octet that is not stands as a character for private use.
// For files whose bytes no charset gives again.
import { isUtf8 } from "node:buffer";

/** U+F780 to U+F7FF, for the octets from 0x80. */
const ESCAPED = /[\uf780-\uf7ff]/;
const ESCAPE = 0xf700;

/** The octets as text. */
export function readOctets(octets: Buffer): string {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < octets.length; ) {
    const length = lengthAt(octets, at);
    const isRead = length === 1 || (length > 1 && isUtf8(octets.subarray(at, at + length)));
    if (isRead && (length !== 3 || !ESCAPED.test(octets.toString("utf8", at, at + length)))) {
      at += length;
      continue;
    }
    pieces.push(octets.toString("utf8", from, at), String.fromCharCode(ESCAPE + (octets[at] as number)));
    at += 1;
    from = at;
  }
  pieces.push(octets.toString("utf8", from));
  return pieces.join("");
}

/** The length of the character that begins there, by its first octet; 0 where none can begin. */
function lengthAt(octets: Buffer, at: number): number {
  const first = octets[at] as number;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return at + length <= octets.length ? length : 0;
}

/** The octets of such a text. */
export function writeOctets(text: string): Buffer {
  const pieces = text.split(/([\uf780-\uf7ff])/);
  return Buffer.concat(
    pieces.map((piece, at) => (at % 2 === 1 ? Buffer.from([piece.charCodeAt(0) - ESCAPE]) : Buffer.from(piece))),
  );
}
