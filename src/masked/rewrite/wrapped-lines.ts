// Lines of a contact that a program broke when it quoted them. A token is longer than the mailbox it stands for, so a quote
// that holds one is broken elsewhere, and the place of a break would answer a guess. So each line that could hold a guess is
// known by a digest, whatever it holds, and goes back as one line with single blanks, however it was broken.
import { createHash } from "node:crypto";
import { decodeEntities } from "../../mail/mime/html-entities.ts";
import { markupIn } from "./scrub/html-markup.ts";

/** Of one mail; the rest of a longer list comes back as it was broken. */
const LINES_MAX = 2_000;
/** How many lines one may be broken into, and how many sums are made for a text. */
const PIECES_MAX = 2_000;
const SUMS_MAX = 60_000;
const START_CHARS = 12;
const START_OCTETS = 4;
const WHOLE_OCTETS = 11;
const DIGEST_CHARS = Buffer.alloc(START_OCTETS + WHOLE_OCTETS).toString("base64url").length;

/** What an address may be written with, and what may hold one in a code. */
const LIKE_ADDRESS =
  /[@\uff20=%\\]|&#|&commat|\b(?:at|dot|punkt|arroba)\b|[[({]\s?(?:at|ät)|[-_]at[-_]|\w_\w[^\s]*_\w|[A-Za-z0-9+/_-]{20}/i;
/** Tags that begin another line; all others stand within one. */
const LINE_TAG =
  /^<\/?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|pre|blockquote|body|center|section|article)\b/i;
const MARKS = /^[>|\s]*/;
/** A subject stands behind its word. */
const LABEL = /^[>|\s]*\*?[\p{L} ]{1,20}[:：]\*?\s+/u;

/** Is it the digest of a line, and not of anything that may be let out? */
export function isLineDigest(digest: string): boolean {
  return digest.length === DIGEST_CHARS;
}

/** Digests of the lines that could hold an address; `isTold` are those that hold a token, whatever they look like. */
export function lineDigests(key: string, source: string, isHtml: boolean, isTold: (line: string) => boolean): string[] {
  const lines = isHtml ? htmlLines(source) : source.split(/\r\n?|\n/);
  const found = lines.filter((line) => LIKE_ADDRESS.test(line) || isTold(line)).map(normal);
  return [...new Set(found)]
    .filter((line) => line.includes(" "))
    .slice(0, LINES_MAX)
    .map((line) => {
      const sum = summing(key).update(line);
      return Buffer.concat([startOf(key, line), octets(sum)]).toString("base64url");
    });
}

/** As programs write HTML in lines, and each piece between tags. */
function htmlLines(source: string): string[] {
  const found: string[] = [];
  let line = "";
  eachPiece(source, (piece, isKept, tag) => {
    const text = decodeEntities(piece);
    // Some keep the line ends of the source.
    found.push(...text.split(BREAK), ...(isKept ? [] : [text]));
    line += text;
    if (tag === "" || LINE_TAG.test(tag)) {
      found.push(...line.split(BREAK), ...(isKept ? [] : [line]));
      line = "";
    }
    return piece;
  });
  return found;
}

const BREAK = /\r\n?|\n/;

/**
 * Exchanges what stands before each tag, and behind the last (`tag` is "" then). `isKept`: line ends are shown there; a style
 * may show them anywhere.
 */
function eachPiece(html: string, write: (piece: string, isKept: boolean, tag: string) => string): string {
  const isStyled = /white-space\s*:\s*(?:pre|break)/i.test(html);
  let [out, from, isPre] = ["", 0, false];
  // What was put aside is letters: `<` before it begins a tag.
  const letters = html.replace(/\ue000[^\ue000\ue001]*\ue001/g, (mark) => "a".repeat(mark.length));
  for (const { start, end } of markupIn(letters)) {
    const tag = html.slice(start, end);
    out += write(html.slice(from, start), isPre || isStyled, tag) + tag;
    const [, close, name = ""] = /^<(\/?)(pre|textarea|style|script)\b/i.exec(tag) ?? [];
    if (name !== "") isPre = close === "";
    from = end;
  }
  return out + write(html.slice(from), isPre || isStyled, "");
}

/**
 * A joiner for what a contact sent. `plain` says what a line reads as. Joins what makes one of its lines, of several ways the
 * longest. Null where it sent none.
 */
export function createJoiner(key: string, digests: Iterable<string>) {
  const starts = new Map<string, Set<string>>();
  for (const digest of digests) {
    if (!isLineDigest(digest)) continue;
    const bytes = Buffer.from(digest, "base64url");
    const start = bytes.toString("latin1", 0, START_OCTETS);
    const wholes = starts.get(start) ?? new Set();
    starts.set(start, wholes.add(bytes.toString("latin1", START_OCTETS)));
  }
  if (starts.size === 0) return null;
  return (source: string, isHtml: boolean, plain: (line: string) => string): string => {
    const room = { sums: SUMS_MAX };
    const join = (text: string) => joined(text, { key, starts, room, plain });
    if (!isHtml) return join(source);
    return eachPiece(source, (piece, isKept) => (isKept ? join(piece) : oneLine(piece, { key, starts, room, plain })));
  };
}

/** A piece of HTML in which line ends are blanks. */
function oneLine(piece: string, { key, starts, room, plain }: Known): string {
  const line = normal(plain(piece));
  if (room.sums === 0 || !line.includes(" ")) return piece;
  const wholes = starts.get(startOf(key, line).toString("latin1"));
  if (wholes === undefined) return piece;
  room.sums -= 1;
  if (!wholes.has(octets(summing(key).update(line)).toString("latin1"))) return piece;
  return piece.replace(/\s+/g, " ");
}

type Known = {
  key: string;
  starts: ReadonlyMap<string, ReadonlySet<string>>;
  room: { sums: number };
  plain: (line: string) => string;
};

function joined(text: string, known: Known): string {
  if (!/\S/.test(text)) return text;
  const pieces = text.split(/(\r\n?|\n)/);
  let out = "";
  for (let at = 0; at < pieces.length; ) {
    const found = longest(pieces, at, known);
    if (found === null) {
      out += (pieces[at] as string) + (pieces[at + 1] ?? "");
      at += 2;
      continue;
    }
    out += found.text + (pieces[found.last + 1] ?? "");
    at = found.last + 2;
  }
  return out;
}

/** The most lines from here on that make one which was sent. */
function longest(pieces: readonly string[], at: number, known: Known): { text: string; last: number } | null {
  const first = pieces[at] as string;
  for (const pattern of [MARKS, LABEL]) {
    const marks = pattern.exec(first)?.[0];
    if (marks === undefined) continue;
    const found = longestBehind(pieces, at, marks, known);
    if (found !== null) return found;
  }
  return null;
}

function longestBehind(pieces: readonly string[], at: number, marks: string, known: Known) {
  const { key, starts, room, plain } = known;
  const first = normal(plain((pieces[at] as string).slice(marks.length)));
  // The first words of a line may stand on several.
  const opening = first.length >= START_CHARS ? first : openingOf(pieces, at, first, plain);
  const wholes = first === "" ? undefined : starts.get(startOf(key, opening).toString("latin1"));
  if (wholes === undefined) return null;
  const sum = summing(key);
  let found: number | null = null;
  for (let last = at; last < pieces.length && last < at + 2 * PIECES_MAX && room.sums > 0; last += 2) {
    const line = last === at ? first : normal(plain(pieces[last] as string));
    if (line === "") break;
    sum.update(last === at ? line : ` ${line}`);
    room.sums -= 1;
    if (wholes.has(octets(sum).toString("latin1"))) found = last;
  }
  if (found === null) return null;
  const lines = Array.from({ length: (found - at) / 2 + 1 }, (_, n) => {
    const piece = pieces[at + 2 * n] as string;
    return n === 0 ? piece.slice(marks.length) : withoutMark(piece, marks);
  });
  const [lead = ""] = /^\s*/.exec(lines[0] ?? "") ?? [];
  const end = /\s*$/.exec(lines.at(-1) ?? "")?.[0] ?? "";
  return { text: marks + lead + lines.join(" ").trim().replace(/\s+/g, " ") + end, last: found };
}

/** What goes on has the mark of the first, or less of it where its own words begin like one, or none. */
function withoutMark(piece: string, marks: string): string {
  for (let mark = marks.trimEnd(); mark !== ""; mark = mark.slice(0, -1).trimEnd()) {
    if (piece.startsWith(mark)) return piece.slice(mark.length);
  }
  return piece;
}

function openingOf(pieces: readonly string[], at: number, first: string, plain: Known["plain"]): string {
  let opening = first;
  for (let next = at + 2; next < pieces.length && opening.length < START_CHARS; next += 2) {
    const line = normal(plain(pieces[next] as string));
    if (line === "") break;
    opening += ` ${line}`;
  }
  return opening;
}

/** Without what may be the mark of a quote, and with single blanks. */
function normal(line: string): string {
  return line.replace(/[\s>|]+/g, " ").trim();
}

function summing(key: string) {
  return createHash("sha256").update(`${key} line `);
}

function startOf(key: string, line: string): Buffer {
  const start = line.replaceAll(" ", "").slice(0, START_CHARS);
  return createHash("sha256").update(`${key} start ${start}`).digest().subarray(0, START_OCTETS);
}

/** The sum so far. */
function octets(sum: ReturnType<typeof summing>): Buffer {
  return sum.copy().digest().subarray(0, WHOLE_OCTETS);
}
