// Lines of a contact that a program broke when it quoted them. A token is longer than the mailbox it stands for, so a quote
// that holds one is broken elsewhere, and the place of a break would answer a guess. So of each line that could hold a guess
// the gaps between its words are known by digests of the words on both sides, whatever they are: where a reply has such a
// gap, with a line end and the marks of quotes in it or not, the contact's own comes back. Where two of its lines have the
// same words with different gaps, the shortest gap stands for both.
import { hash } from "node:crypto";
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { holdsRun } from "../gate/encoded-readings.ts";
import { markupIn } from "../scrub/html-markup.ts";

/** The most lines of one mail; what a longer list has besides comes back as it was broken. */
const LINES_MAX = 2_000;
const GAPS_MAX = 20_000;
const GAP_OCTETS = 5;
/** Those of a mail are kept together, for each that is kept is a row of the database. */
const GAPS_OF_DIGEST = 100;
/** How much of a word counts: what programs write before and behind it does not. */
const WORD_CHARS = 8;
const LOOKED_AT_CHARS = 200;
/** The length of the digests of all else that a contact sent (sent-content.ts). */
const OTHER_OCTETS = 16;
const OTHER_CHARS = Buffer.alloc(OTHER_OCTETS).toString("base64url").length;

/** What an address may be written with, and what may hold one in a code, but for what needs an underscore. */
const LIKE_ADDRESS =
  /[@\uff20\ufe6b=%\\]|&#|&commat|\b(?:at|dot|punkt|point|punto|ponto|punt|arroba)\b|[[({]\s?(?:at|ät)|-40/i;
const LIKE_ADDRESS_IN_UNDERSCORES = /[-_]at[-_]|\w_\w[^\s]*_\w/i;

function isLikeAddress(line: string): boolean {
  return LIKE_ADDRESS.test(line) || holdsRun(line) || (line.includes("_") && LIKE_ADDRESS_IN_UNDERSCORES.test(line));
}
/** Tags that begin another line; all others stand within one. */
const LINE_TAG =
  /^<\/?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|pre|blockquote|body|center|section|article)\b/i;
const BREAK = /\r\n?|\n/;
/** Between two words of a line, with the marks of quotes that a program or the contact wrote there. */
const GAP = /\s[\s>|]*/g;

/** True for the digest of a line, as against one of a string that may leave. */
export function isLineDigest(digest: string): boolean {
  return digest.length !== OTHER_CHARS;
}

/** Those that could hold an address, and those beside them: it may be broken over two lines. */
function linesOfAddresses(lines: readonly string[]): string[] {
  const like = lines.map(isLikeAddress);
  return lines.filter((_line, at) => like[at - 1] || like[at] || like[at + 1]);
}

/** Digests of the gaps in lines that could hold an address, or a part of one: of as many together as have room in one. */
export function lineDigests(key: string, source: string, isHtml: boolean): string[] {
  const lines = isHtml ? htmlLines(source) : source.split(BREAK);
  const sums = new Set<string>();
  for (const line of new Set(linesOfAddresses(lines).slice(0, LINES_MAX))) {
    for (const { before, gap, behind } of gapsOf(line)) {
      if (sums.size >= GAPS_MAX) break;
      sums.add(sumOf(key, before, behind, gap));
    }
  }
  const all = [...sums];
  const digests: string[] = [];
  for (let at = 0; at < all.length; at += GAPS_OF_DIGEST) {
    digests.push(Buffer.from(all.slice(at, at + GAPS_OF_DIGEST).join(""), "hex").toString("base64url"));
  }
  return digests;
}

type Gap = { before: string; gap: string; behind: string };

/** Those between words: not the blanks and marks that a line begins with, nor its end. */
function gapsOf(line: string): Gap[] {
  const found: Gap[] = [];
  let from = (/^[\s>|]*/.exec(line) as RegExpExecArray)[0].length;
  for (const { index, 0: gap } of line.matchAll(GAP)) {
    if (index < from) continue;
    const before = line.slice(from, index);
    from = index + gap.length;
    if (from === line.length) break;
    found.push({ before: endOf(before), gap: single(gap), behind: startOf(wordAt(line, from)) });
  }
  return found;
}

function wordAt(text: string, from: number): string {
  const word = /\S*/y;
  word.lastIndex = from;
  return word.exec(text)?.[0] ?? "";
}

/** Each line of HTML in which line ends are blanks, as one; what is shown in lines, line by line. */
function htmlLines(source: string): string[] {
  const found: string[] = [];
  let line = "";
  eachPiece(source, (piece, isKept, tag) => {
    line += decodeEntities(isKept ? piece : piece.replace(/\s+/g, " "));
    if (tag === "" || LINE_TAG.test(tag)) {
      found.push(...line.split(BREAK));
      line = "";
    }
    return piece;
  });
  return found;
}

/**
 * Exchanges what stands before each tag, and behind the last (`tag` is "" then). `isKept`: line ends are shown there; a style
 * may show them anywhere.
 */
function eachPiece(
  html: string,
  write: (piece: string, isKept: boolean, tag: string) => string,
  within = same,
): string {
  const isStyled = /white-space\s*:\s*(?:pre|break)/i.test(html);
  let [out, from, isPre] = ["", 0, false];
  // What was put aside is letters: `<` before it begins a tag.
  const letters = html.replace(/\ue000[^\ue000\ue001]*\ue001/g, (mark) => "a".repeat(mark.length));
  for (const { start, end } of markupIn(letters)) {
    const tag = html.slice(start, end);
    out += write(html.slice(from, start), isPre || isStyled, tag) + within(tag);
    const [, close, name = ""] = /^<(\/?)(pre|textarea|style|script)\b/i.exec(tag) ?? [];
    if (name !== "") isPre = close === "";
    from = end;
  }
  return out + write(html.slice(from), isPre || isStyled, "");
}

const same = (text: string) => text;

/** Line ends within a piece of HTML, or a tag, are blanks. */
function oneLine(piece: string): string {
  return piece.replace(/\s+/g, " ");
}

/** Writes a quoted text in the lines in which it was sent; `plain` says what a piece of it reads as. */
export type Joiner = (source: string, isHtml: boolean, plain: (text: string) => string) => string;

/** A joiner for what a contact sent; null where it sent nothing that could hold an address. */
export function createJoiner(key: string, digests: Iterable<string>): Joiner | null {
  const known = new Set<string>();
  for (const digest of digests) {
    if (!isLineDigest(digest)) continue;
    const sums = Buffer.from(digest, "base64url").toString("hex");
    for (let at = 0; at < sums.length; at += 2 * GAP_OCTETS) known.add(sums.slice(at, at + 2 * GAP_OCTETS));
  }
  if (known.size === 0) return null;
  return (source, isHtml, plain) => {
    const join = (text: string) => joined(text, plain, (gap) => sentGap(key, known, gap));
    if (!isHtml) return join(source);
    return eachPiece(source, (piece, isKept) => (isKept ? join(piece) : oneLine(piece)), oneTag);
  };
}

/** Programs break lines within tags, too. */
function oneTag(tag: string): string {
  return /^<\/?[a-z]/i.test(tag) ? oneLine(tag) : tag;
}

function joined(text: string, plain: (text: string) => string, sent: (gap: Gap) => string | null): string {
  let out = "";
  let end = 0;
  let from = (/^[\s>|]*/.exec(text) as RegExpExecArray)[0].length;
  for (const { index, 0: gap } of text.matchAll(GAP)) {
    if (index < from) continue;
    const before = text.slice(from, index);
    from = index + gap.length;
    if (gap === " " || (gap.match(/\r\n?|\n/g)?.length ?? 0) > 1) continue;
    // A token may stand for several words.
    const behind = startOf(wordAt(plain(wordAt(text, from)), 0));
    const written = sent({ before: endOf(plain(before).split(/\s/).at(-1) ?? ""), gap: single(gap), behind });
    if (written === null) continue;
    out += text.slice(end, index) + written;
    end = from;
  }
  return out + text.slice(end);
}

/** The gap that the contact wrote between these words, where it is known. */
function sentGap(key: string, known: ReadonlySet<string>, { before, gap, behind }: Gap): string | null {
  for (const one of sources(gap)) if (known.has(sumOf(key, before, behind, one))) return one;
  return null;
}

/** What a gap may have been before a program put a line end and its marks into it, the shortest first. */
function sources(gap: string): string[] {
  const found = new Set([" "]);
  for (let at = 1; at <= gap.length; at += 1) {
    found.add(gap.slice(0, at));
    if (gap[at] === " ") found.add(gap.slice(at));
  }
  return [...found].sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}

function single(gap: string): string {
  return ` ${gap.slice(1)}`.replace(/\s+/g, " ");
}

/** The last letters of a word; the signs around it only where there are none. */
function endOf(word: string): string {
  return (lettersOf(word.slice(-LOOKED_AT_CHARS)) || word).slice(-WORD_CHARS);
}

function startOf(word: string): string {
  return (lettersOf(word.slice(0, LOOKED_AT_CHARS)) || word).slice(0, WORD_CHARS);
}

function lettersOf(word: string): string {
  return word.replace(/[^\p{L}\p{N}]+/gu, "");
}

function sumOf(key: string, before: string, behind: string, gap: string): string {
  return hash("sha256", `${key} gap ${before}\n${gap}\n${behind}`, "hex").slice(0, 2 * GAP_OCTETS);
}
