// Certificates and what else stands in text between such lines (RFC 7468). One that holds what is hidden is exchanged as a
// whole: with a letter less it could not be read. OpenPGP is not among them (scrub/armor.ts).
import { HIDDEN } from "../scrub/encoded-runs.ts";

const BEGIN = /-{5}BEGIN (?!PGP)([A-Z0-9 ]{1,60})-{5}/g;
const END = /-{5}END (?!PGP)[A-Z0-9 ]{1,60}-{5}/g;
/** The end of a line and the marks of the quote that the next begins with. */
const LINE_END = /^[ \t]*((?:\r?\n|<br[^<>]{0,20}>)[>| \t]*)/i;
/** Longer ones are looked at by the leak gate alone. */
const CHARS_MAX = 100_000;

/** The text with nothing in such blocks that hold it. */
export function withoutPem(text: string, holds: (octets: string) => boolean): { text: string; count: number } {
  const ends = [...text.matchAll(END)].map(({ index }) => index);
  let [out, from, next, count] = ["", 0, 0, 0];
  for (const begin of ends.length === 0 ? [] : text.matchAll(BEGIN)) {
    const start = begin.index + begin[0].length;
    while (next < ends.length && (ends[next] as number) < start) next += 1;
    const end = ends[next];
    if (end === undefined || begin.index < from || end - start > CHARS_MAX) continue;
    const content = text.slice(start, end);
    if (!holds(octetsOf(content))) continue;
    const lineEnd = LINE_END.exec(content)?.[1] ?? "\n";
    out += `${text.slice(from, start)}${lineEnd}${HIDDEN}${lineEnd}`;
    from = end;
    count += 1;
  }
  return { text: out + text.slice(from), count };
}

function octetsOf(content: string): string {
  const letters = content.replace(/^[^\n]{0,200}:[^\n]*$/gm, "").replace(/<[^<>]{0,200}>|[^A-Za-z0-9+/]/g, "");
  return Buffer.from(letters, "base64").toString("latin1").replaceAll("\0", "");
}
