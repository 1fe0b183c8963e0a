// Text within octets that were decoded from a code: what is hidden in it is exchanged, and all the rest stays. Octets of another
// kind are left alone, because lengths and sums in them would be wrong then.
import { isUtf8 } from "node:buffer";
import type { Replaced } from "../scrub/replace-addresses.ts";

/** Exchanges what is hidden in a text. */
export type Exchanging = (text: string) => Replaced;

type Codec = { read(octets: Buffer): string; write(text: string): Buffer };

const WIDE: Codec = { read: (octets) => octets.toString("utf16le"), write: (text) => Buffer.from(text, "utf16le") };
const WIDE_SWAPPED: Codec = {
  read: (octets) => Buffer.from(octets).swap16().toString("utf16le"),
  write: (text) => Buffer.from(text, "utf16le").swap16(),
};
const LATIN: Codec = { read: (octets) => octets.toString("latin1"), write: (text) => Buffer.from(text, "latin1") };
const UTF8: Codec = { read: (octets) => octets.toString(), write: (text) => Buffer.from(text) };

const IS_TEXT = /^[\t\n\r\x20-\x7e\x80-\ufffd]*$/;

/** The octets with other text in them; null where nothing is hidden, or where they are not text. */
export function exchangedOctets(octets: Buffer, exchange: Exchanging): Buffer | null {
  const whole = octets.length % 2 === 0;
  for (const { read, write } of [isUtf8(octets) ? UTF8 : LATIN, ...(whole ? [WIDE, WIDE_SWAPPED] : [])]) {
    const given = read(octets);
    if (!IS_TEXT.test(given)) continue;
    const { text, count } = exchange(given);
    if (count > 0) return write(text);
  }
  return null;
}
