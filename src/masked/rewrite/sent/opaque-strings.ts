// Strings of a text that stay as they are: links, and what may hold anything. What programs fetch cannot be changed, because the fetch
// would tell.
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { markupIn } from "../scrub/html-markup.ts";

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
