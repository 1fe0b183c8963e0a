// Plain text out of HTML in one pass over the characters: time and memory linear in the input, whatever it nests.
// It keeps paragraphs, lists, links and cells apart and knows the usual entities; it builds no tree, so it cannot lay
// out tables, number lists or keep <pre>. text-from-html.ts decides when this one is used.

import { decodeEntities } from "./html-entities.ts";

type Kind = "hidden" | "paragraph" | "line" | "break" | "item" | "cell" | "link" | "image";

const kindOf: ReadonlyMap<string, Kind> = new Map([
  // What is not shown: its content goes with its tags.
  ...kinds("hidden", "head noscript script style svg template title"),
  ...kinds(
    "paragraph",
    "article aside blockquote dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p",
  ),
  ...kinds("paragraph", "pre section table ul"),
  ...kinds("line", "address caption dd div dt option tr"),
  ...kinds("break", "br"),
  ...kinds("item", "li"),
  ...kinds("cell", "td th"),
  ...kinds("link", "a"),
  ...kinds("image", "img"),
]);
const hrefCharsMax = 2_000;
const attributesCharsMax = 4_000;
const tagNameCharsMax = 20;

type Tag = { kind: Kind; isClosing: boolean; attributes: string };
type Output = {
  chunks: string[];
  // Line ends still to be written before the next word, and whether a space is.
  breaks: number;
  space: boolean;
  // The link that is open: where it leads and what has been shown of it.
  link: { href: string; shown: string } | null;
};

/** Text of an HTML document or fragment: paragraphs apart by an empty line, `text [address]` for links. Never throws. */
export function stripHtml(html: string): string {
  const out: Output = { chunks: [], breaks: 0, space: false, link: null };
  let position = 0;
  while (position < html.length) {
    const open = html.indexOf("<", position);
    const textEnd = open === -1 ? html.length : open;
    if (textEnd > position) writeText(out, decodeEntities(html.slice(position, textEnd)));
    position = open === -1 ? html.length : readMarkup(out, html, open);
  }
  return out.chunks.join("");
}

// Handles what starts at `<` and says where the text goes on, always further on.
function readMarkup(out: Output, html: string, open: number): number {
  const next = html.charCodeAt(open + 1);
  if (next === 0x21 || next === 0x3f) {
    return html.startsWith("<!--", open) ? behind(html, "-->", open + 4) : behind(html, ">", open);
  }
  const isClosing = next === 0x2f;
  const nameStart = isClosing ? open + 2 : open + 1;
  if (!isLetter(html.charCodeAt(nameStart))) {
    if (isClosing) return behind(html, ">", open);
    writeText(out, "<");
    return open + 1;
  }
  const start = nameEnd(html, nameStart);
  const end = tagEnd(html, start);
  const name = html.slice(nameStart, start).toLowerCase();
  const kind = kindOf.get(name);
  if (kind === undefined) return end;
  if (kind === "hidden") return isClosing ? end : skipHidden(html, name, end);
  writeTag(out, { kind, isClosing, attributes: html.slice(start, Math.min(end, start + attributesCharsMax)) });
  return end;
}

function writeTag(out: Output, tag: Tag): void {
  if (tag.kind === "paragraph") out.breaks = 2;
  else if (tag.kind === "line") out.breaks = Math.max(1, out.breaks);
  else if (tag.kind === "break") out.breaks = Math.min(2, out.breaks + 1);
  else if (tag.kind === "cell") out.space = true;
  else if (tag.kind === "item") writeItem(out, tag);
  else if (tag.kind === "link") writeLink(out, tag);
  else writeText(out, decodeEntities(attribute(tag.attributes, "alt")));
}

function writeItem(out: Output, tag: Tag): void {
  out.breaks = Math.max(1, out.breaks);
  if (!tag.isClosing) writeText(out, "* ");
}

function writeLink(out: Output, tag: Tag): void {
  const { link } = out;
  out.link = null;
  const isTold = link !== null && (link.shown === link.href || `mailto:${link.shown}` === link.href);
  if (link !== null && !isTold) writeText(out, ` [${link.href}]`);
  if (tag.isClosing) return;
  const href = decodeEntities(attribute(tag.attributes, "href")).trim();
  const isUseful = /^(?:https?|mailto|tel):\S/i.test(href) && href.length <= hrefCharsMax;
  if (isUseful) out.link = { href, shown: "" };
}

function writeText(out: Output, text: string): void {
  const words = text.trim().replace(/\s+/g, " ");
  if (words !== "") {
    if (out.chunks.length > 0) {
      if (out.breaks > 0) out.chunks.push(out.breaks === 1 ? "\n" : "\n\n");
      else if (out.space || startsBlank(text)) out.chunks.push(" ");
    }
    out.chunks.push(words);
    out.breaks = 0;
    out.space = false;
    if (out.link !== null && out.link.shown.length <= hrefCharsMax) out.link.shown += words;
  }
  if (endsBlank(text)) out.space = true;
}

function startsBlank(text: string): boolean {
  return text.charCodeAt(0) <= 0x20 || text.charCodeAt(0) === 0xa0;
}

function endsBlank(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last <= 0x20 || last === 0xa0;
}

function isLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

// Behind the last letter or digit of a tag's name; a longer name is none that we know.
function nameEnd(html: string, start: number): number {
  let end = start + 1;
  while (end - start < tagNameCharsMax && (isLetter(html.charCodeAt(end)) || isDigit(html.charCodeAt(end)))) end++;
  return end;
}

// A `>` within a quoted attribute value does not end the tag. As in a browser, an unclosed quote takes all the rest.
function tagEnd(html: string, from: number): number {
  let isValue = false;
  for (let i = from; i < html.length; i++) {
    const code = html.charCodeAt(i);
    if (code === 0x3e) return i + 1;
    if (isValue && (code === 0x22 || code === 0x27)) {
      i = html.indexOf(code === 0x22 ? '"' : "'", i + 1);
      if (i === -1) return html.length;
    }
    isValue = code === 0x3d || (isValue && code === 0x20);
  }
  return html.length;
}

function skipHidden(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}[\\s/>]`, "gi");
  close.lastIndex = from;
  return close.test(html) ? behind(html, ">", close.lastIndex - 1) : html.length;
}

function behind(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from);
  return at === -1 ? html.length : at + mark.length;
}

const attributePattern = {
  alt: /(?:^|\s)alt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i,
  href: /(?:^|\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i,
};

function attribute(attributes: string, name: "alt" | "href"): string {
  const match = attributePattern[name].exec(attributes);
  return match?.[1] ?? match?.[2] ?? match?.[3] ?? "";
}

function kinds(kind: Kind, names: string): [string, Kind][] {
  return names.split(" ").map((name) => [name, kind]);
}
