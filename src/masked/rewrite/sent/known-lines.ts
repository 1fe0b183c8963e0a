// Lines and words of what a contact sent, as they are known again when a program quotes them.
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { markupIn } from "../scrub/html-markup.ts";
import { BLANK } from "./shelf.ts";

/** The lines of a text, as they are known when they come back. */
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

/** Exchanges each word of 8 letters and more; `plain` is the word as it reads. */
export function replaceWords(source: string, isHtml: boolean, write: (word: string, plain: string) => string): string {
  return source.replace(/[^\s<>"'\ue000\ue001]{8,20000}/g, (word) => write(word, isHtml ? decodeEntities(word) : word));
}

/** The line as it is compared: without what was put aside, each run of blanks as one. */
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
