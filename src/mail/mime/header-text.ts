// Values of header fields as text: unfolded, in whatever charset they were sent, encoded words decoded, without controls
// (RFC 5322 §2.2.3, RFC 6532, RFC 2047). Structure within values is read elsewhere.
import { isUtf8 } from "node:buffer";
import { decodeText } from "./decode-charset.ts";
import { decodeWords } from "./parse-head.ts";

/**
 * The value of a raw field, one line, encoded words as they were. Octets above 0x7f are UTF-8 or else in `charset`, or
 * else in windows-1252.
 */
export function unfoldedValue(raw: Buffer, charset = ""): string {
  const octets = raw.subarray(raw.indexOf(0x3a) + 1);
  const { text } = decodeText(octets, isUtf8(octets) ? "" : charset);
  return text.replace(/\r?\n/g, "").trim();
}

/** A value for people and for JSON: words decoded, no controls but tabs, well-formed. */
export function readableValue(value: string): string {
  return decodeWords(value)
    .replace(/(?!\t)\p{Cc}/gu, " ")
    .trim()
    .toWellFormed();
}
