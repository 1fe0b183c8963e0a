// Strings of a text that stay as they are: links, and what may hold anything. What programs fetch cannot be changed, because the fetch
// would tell.
import { decodeEntities } from "../../mail/mime/html-entities.ts";
import { markupIn } from "./scrub/html-markup.ts";

/** Links, and what may hold anything: text in base64 or hexadecimal. */
const OPAQUE =
  /(?:\b(?:https?|ftp):|\/\/|\bwww\.)[^\s<>"'\ue000\ue001]{1,20000}|\burl\([^()]{1,20000}\)|[A-Za-z0-9+/_-]{20,40000}={0,2}/gi;
/** What stands before it in a line may be glued to a link, which then begins behind its scheme. */
export const SCHEME = /^(?:https?|ftp):(?=\/\/)/i;
const FETCHED =
  /^(?:src|srcset|href|xlink:href|background|poster|action|formaction|data|longdesc|cite|lowsrc|dynsrc|manifest|ping)$/i;
const ATTRIBUTE = /([a-z][a-z0-9:-]{0,40})(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/gi;

/** Exchanges each of them; `plain` is how all programs write it. */
export function replaceOpaque(source: string, isHtml: boolean, write: (text: string, plain: string) => string): string {
  const runs = (text: string) => text.replace(OPAQUE, (one) => write(one, isHtml ? plainOf(one) : one));
  if (!isHtml || !source.includes("<")) return runs(source);
  let out = "";
  let from = 0;
  for (const { start, end } of markupIn(source)) {
    out += runs(source.slice(from, start)) + runs(withinTag(source.slice(start, end), write));
    from = end;
  }
  return out + runs(source.slice(from));
}

/** Such strings of an HTML text as programs make text of it: what stands on both sides of a tag is one word, unless a line ends there. */
export function gluedIn(html: string): string[] {
  const tags = markupIn(html);
  const found = LINE_TAGS.flatMap((lineTag) => {
    let text = "";
    let from = 0;
    for (const { start, end } of tags) {
      text += html.slice(from, start) + (lineTag.test(html.slice(start, end)) ? "\n" : "");
      from = end;
    }
    return decodeEntities(text + html.slice(from)).match(OPAQUE) ?? [];
  });
  return tags.length === 0 ? [] : [...new Set(found)];
}

/** What was put aside, with the word of the next line: an address may begin in a link and go on behind its line. */
export function brokenIn(kept: string): string[] {
  return [...kept.matchAll(BROKEN)].map(({ groups: { mark, next } = {} }) => `${mark}${next}`);
}

const BROKEN = /(?<mark>\ue000[^\ue000\ue001]*\ue001)[ \t]*\r?\n[\s>|]*(?<next>[^\s<>"'\ue000\ue001]{1,300})/g;

/** Where lines end depends on the program: nowhere, at paragraphs, at cells and items as well. */
const LINE_TAGS = [/^$/, /^<\/?(?:br|p|div)\b/i, /^<\/?(?:br|p|div|li|tr|td|th|h[1-6]|blockquote)\b/i];

function withinTag(tag: string, write: (text: string, plain: string) => string): string {
  return tag.replace(ATTRIBUTE, (whole, name: string, equals: string, given: string) => {
    const quote = /^["']/.exec(given)?.[0] ?? "";
    const value = quote === "" ? given : given.slice(1, -1);
    const plain = plainOf(value);
    if (!FETCHED.test(name) || !isFetched(plain)) return whole;
    return `${name}${equals}${quote}${write(value, plain)}${quote}`;
  });
}

/** True for a value that a program would fetch. */
export function isFetched(plain: string): boolean {
  return !/^mailto:/i.test(plain) && /[:/]/.test(plain);
}

/** References decoded, without the white space that programs drop. */
function plainOf(text: string): string {
  return decodeEntities(text).replace(/[\s\p{Cc}]+/gu, "");
}

/** Stands for what was put aside and is not looked at. */
export const BLANK = "\ue000";

export type Shelf = { put(text: string): string; take(text: string): string; clear(text: string): string };

/** A seed that no mark in the text has. */
export function unusedIn(text: string): string {
  let seed = 0;
  while (text.includes(`\ue000${seed}-`)) seed += 1;
  return String(seed);
}

/** Puts things aside; a mark of no letters stands for each. */
export function createShelf(seed: string): Shelf {
  const things: string[] = [];
  const mark = new RegExp(`\\ue000${seed.slice(0, 8)}-(\\d{1,7})\\ue001`, "g");
  // What was put aside may hold what was put aside before.
  const take = (text: string): string =>
    text.replace(mark, (whole, at: string) => {
      const thing = things[Number(at)];
      return thing === undefined ? whole : take(thing);
    });
  return {
    put: (text) => `\ue000${seed.slice(0, 8)}-${things.push(text) - 1}\ue001`,
    take,
    clear: (text) => text.replace(mark, BLANK),
  };
}

/** Its lines, as they are known when they come back. */
export function linesOf(source: string, isHtml: boolean, isFile: boolean): string[] {
  const lines: string[] = [];
  replaceLines(source, isHtml, (line, plain) => {
    lines.push(knownAs(line, plain, isFile));
    return line;
  });
  return isHtml ? [...lines, ...joinedLines(source)] : lines;
}

/**
 * What a word or a line is known by. In a file references stay, and it is known by them: by what they read as, anybody's own words
 * would be known.
 */
export function knownAs(piece: string, plain: string, isFile: boolean): string {
  return isFile && piece.includes("&") ? `spelled ${normalLine(piece)}` : normalLine(plain);
}

/** Texts between tags that have several lines, as programs write them in one: line ends in HTML are blanks. */
function joinedLines(html: string): string[] {
  let from = 0;
  const texts = [...markupIn(html), { start: html.length, end: html.length }].map(({ start, end }) => {
    const text = html.slice(from, start).replace(/^[>|\s]*/, "");
    from = end;
    return text.trimEnd();
  });
  return texts.filter((text) => /[\r\n]/.test(text)).map((text) => normalLine(decodeEntities(text)));
}

export function replaceWords(source: string, isHtml: boolean, write: (word: string, plain: string) => string): string {
  return source.replace(/[^\s<>"'\ue000\ue001]{8,20000}/g, (word) => write(word, isHtml ? decodeEntities(word) : word));
}

export function normalLine(line: string): string {
  return line.replaceAll(BLANK, "").replace(/\s+/g, " ").trim();
}

/** Exchanges each line, in HTML what stands between tags; `plain` is the line without the marks of quotes. */
export function replaceLines(source: string, isHtml: boolean, write: (line: string, plain: string) => string): string {
  const lines = (text: string) =>
    text.replace(/[^\r\n]+/g, (line) => {
      const [marks = ""] = /^[>|\s]*/.exec(line) ?? [];
      const bare = line.slice(marks.length).trimEnd();
      const plain = isHtml ? decodeEntities(bare) : bare;
      if (normalLine(plain) === "") return line;
      return marks + write(bare, plain) + line.slice(marks.length + bare.length);
    });
  if (!isHtml || !source.includes("<")) return lines(source);
  let out = "";
  let from = 0;
  for (const { start, end } of markupIn(source)) {
    out += lines(source.slice(from, start)) + source.slice(start, end);
    from = end;
  }
  return out + lines(source.slice(from));
}
