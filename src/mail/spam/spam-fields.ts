// What the stored copy of a mail, and what is sent on of it, say about the judgement: X-Spam-* fields in the form that
// SpamAssassin made common, so that mail programs can filter by them. Received ones are taken out: anybody can write them.
import { splitFields } from "../dkim/canonicalize.ts";
import { isAllBody } from "../mime/parse-head.ts";

export type Judged = { score: number | null; verdict: string | null; symbols: readonly { name: string }[] };

const OURS = /^x-spam-(?:flag|score|status)$/i;
const SYMBOLS_MAX = 50;
const LINE_CHARS_MAX = 76;

/** The fields with their last CRLF; empty when nobody judged. */
export function spamFields({ score, verdict, symbols }: Judged): string {
  if (score === null || verdict === null) return "";
  const isSpam = verdict !== "ham";
  const tests = symbols.slice(0, SYMBOLS_MAX).map(({ name }) => name.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 60));
  const status = fold(`X-Spam-Status: ${isSpam ? "Yes" : "No"}, score=${score} tests=`, tests);
  return `${isSpam ? "X-Spam-Flag: YES\r\n" : ""}X-Spam-Score: ${score}\r\n${status}`;
}

function fold(start: string, words: readonly string[]): string {
  let line = start;
  let folded = "";
  for (const [index, word] of (words.length > 0 ? words : ["none"]).entries()) {
    const piece = index < words.length - 1 ? `${word},` : word;
    if (line.length + piece.length > LINE_CHARS_MAX) {
      folded += `${line}\r\n`;
      line = "\t";
    }
    line += piece;
  }
  return `${folded}${line}\r\n`;
}

/** The message without received fields of these names, everything else byte for byte. */
export function withoutSpamFields(bytes: Buffer): Buffer {
  if (isAllBody(bytes)) return bytes;
  const { fields, body } = splitFields(bytes);
  if (!fields.some(({ name }) => OURS.test(name.trim()))) return bytes;
  const kept = fields.filter(({ name }) => !OURS.test(name.trim())).map((field) => field.bytes);
  return Buffer.concat([...kept, Buffer.from("\r\n"), body]);
}
