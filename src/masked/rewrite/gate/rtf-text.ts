// The text of a document in RTF, for the leak gate: characters by their codes, and words that formatting cuts in two.
// Rich Text Format Specification 1.9.1, "Conventions of an RTF Reader".
import { GAP } from "./disguises.ts";

const OCTETS_MAX = 5_000_000;
const PIECE_MAX = 900_000;
/** A code, a character with its substitute, a control word with the blank that ends it, a sign, a group, a line end. */
const CONTROL =
  /\\'([0-9A-Fa-f]{2})|\\u(-?\d{1,5}) ?(?:\\'[0-9A-Fa-f]{2}|\?)?|\\[A-Za-z]{1,32}-?\d{0,10} ?|\\([^A-Za-z])|[{}]|\r?\n/g;

/** What is left without controls, which marks stand for; in pieces that are short enough to be looked through whole. */
export function* rtfText(file: Buffer): Iterable<Buffer> {
  const text = file
    .toString("latin1", 0, OCTETS_MAX)
    .replace(CONTROL, (_, code?: string, unicode?: string, sign?: string) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      if (unicode !== undefined) return String.fromCharCode((Number(unicode) + 65_536) % 65_536);
      return sign ?? GAP;
    });
  for (let at = 0; at < text.length; at += PIECE_MAX) yield Buffer.from(text.slice(at, at + PIECE_MAX + 500));
}
