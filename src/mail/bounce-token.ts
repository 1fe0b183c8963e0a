// The signed token that names one delivery: in the return path (`b+<token>@…`, VERP) and in our own header, so that a
// bounce or a complaint is believed only for mail that we sent. 16 bytes message id, 1 byte recipient position, 10 bytes
// HMAC (80 bits), as 44 characters of lower-case base32. Not here: age limits; the id holds the time.
import { isSame, uuidBytes, uuidText } from "./token-bytes.ts";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const MAC_BYTES = 10;
const TOKEN_BYTES = 17 + MAC_BYTES;
const TOKEN = /^[a-z2-7]{44}$/;

/** `mac` is a keyed hash of at least 10 bytes (`seal.hash`). Position is 0–255. */
export function makeToken(messageId: string, position: number, mac: (text: string) => Buffer): string {
  const bytes = Buffer.alloc(TOKEN_BYTES);
  uuidBytes(messageId).copy(bytes);
  bytes[16] = position;
  mac(`${messageId}/${position}`).copy(bytes, 17, 0, MAC_BYTES);
  return encode(bytes);
}

/** What a token names, or null when it is not ours (wrong form or forged). Case does not matter. */
export function readToken(
  token: string,
  mac: (text: string) => Buffer,
): { message_id: string; position: number } | null {
  const text = token.toLowerCase();
  if (!TOKEN.test(text)) return null;
  const bytes = decode(text);
  const message_id = uuidText(bytes.toString("hex", 0, 16));
  const position = bytes[16] as number;
  const expected = mac(`${message_id}/${position}`).subarray(0, MAC_BYTES);
  return isSame(expected, bytes.subarray(17)) ? { message_id, position } : null;
}

function encode(bytes: Buffer): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      text += ALPHABET[(value >>> (bits - 5)) & 31];
      bits -= 5;
    }
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text;
}

function decode(text: string): Buffer {
  const bytes = Buffer.alloc(TOKEN_BYTES);
  let bits = 0;
  let value = 0;
  let at = 0;
  for (const character of text) {
    value = (value << 5) | ALPHABET.indexOf(character);
    bits += 5;
    if (bits >= 8 && at < TOKEN_BYTES) {
      bytes[at] = (value >>> (bits - 8)) & 255;
      at += 1;
      bits -= 8;
    }
    value &= (1 << bits) - 1;
  }
  return bytes;
}
