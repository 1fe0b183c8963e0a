// Text in uuencode (POSIX.1-2017, uuencode): decoded, exchanged and encoded again, in the lines and quotes that it stood in.
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { type Exchanging, exchangedOctets } from "./encoded-text.ts";

/** Behind the marks of a quote, or a tag. */
const BEGIN = /^([>| \t]*|.{0,200}>)begin [0-7]{3,4} [^\r\n]{1,200}$/;
const END = /^[>| \t]*(?:`|end\b)/;
const LINE_END = /\r?\n/;
const HTML_LINE_END = /\r?\n|<br[^<>]{0,20}>/i;
const LINE_OCTETS = 45;

/** The text with other lines of uuencode; what is no text in them stays, for the leak gate to find. */
export function withUuAgain(text: string, isHtml: boolean, exchange: Exchanging): { text: string; count: number } {
  if (!/\bbegin [0-7]{3,4} /.test(text)) return { text, count: 0 };
  const ends = new RegExp(isHtml ? HTML_LINE_END : LINE_END, "gi");
  const lines: Line[] = [];
  let from = 0;
  for (const { index, 0: end } of text.matchAll(ends)) {
    lines.push({ letters: text.slice(from, index), end });
    from = index + end.length;
  }
  lines.push({ letters: text.slice(from), end: "" });
  return inLines(lines, isHtml, exchange);
}

type Line = { letters: string; end: string };

function inLines(lines: readonly Line[], isHtml: boolean, exchange: Exchanging): { text: string; count: number } {
  const out: Line[] = [];
  let count = 0;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as Line;
    out.push(line);
    const [, before] = BEGIN.exec(line.letters.trimEnd()) ?? [];
    if (before === undefined) continue;
    let end = at + 1;
    while (end < lines.length && !END.test((lines[end] as Line).letters)) end += 1;
    const block = lines.slice(at + 1, end);
    const marks = /^[>| \t]*$/.test(before) ? before : "";
    const written = end === lines.length ? null : blockAgain(block, { marks, isHtml }, exchange);
    if (written !== null) count += 1;
    for (const one of written ?? block) out.push(one);
    at = end - 1;
  }
  return { text: out.map(({ letters, end }) => letters + end).join(""), count };
}

type Within = { marks: string; isHtml: boolean };

function blockAgain(lines: readonly Line[], { marks, isHtml }: Within, exchange: Exchanging): Line[] | null {
  if (lines.some(({ letters }) => !letters.startsWith(marks))) return null;
  const bare = lines.map(({ letters }) => letters.slice(marks.length)).filter((line) => line !== "");
  const encodedText = bare.map((line) => (isHtml ? decodeEntities(line) : line)).join("\n");
  const { bytes: octets } = decodeTransfer(Buffer.from(encodedText, "latin1"), "uuencode");
  const written = exchangedOctets(octets, exchange);
  if (written === null) return null;
  const encoded: Line[] = [];
  for (let at = 0; at < written.length; at += LINE_OCTETS) {
    const line = encodedLine(written.subarray(at, at + LINE_OCTETS));
    encoded.push({ letters: marks + (isHtml ? escaped(line) : line), end: lines[0]?.end ?? "\n" });
  }
  return encoded;
}

function encodedLine(octets: Buffer): string {
  let line = sign(octets.length);
  for (let at = 0; at < octets.length; at += 3) {
    const [a = 0, b = 0, c = 0] = octets.subarray(at, at + 3);
    line += [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63].map(sign).join("");
  }
  return line;
}

function sign(six: number): string {
  return six === 0 ? "`" : String.fromCharCode(six + 32);
}

function escaped(line: string): string {
  return line.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
