// Plain text out of HTML in one pass over the characters: time and memory linear in the input, whatever it nests.
// Paragraphs, line breaks, lists (with numbers, indented), quotations, <pre>, links with their addresses and the cells of
// tables come out readable; it knows the usual entities. It builds no tree and lays out no columns, and it does not clean
// HTML for showing. Why not a library: docs/decisions/0003-automatic-text.md.

import { decodeEntities } from "./html-entities.ts";

type Kind =
  | "hidden"
  | "paragraph"
  | "line"
  | "break"
  | "rule"
  | "list"
  | "item"
  | "quote"
  | "pre"
  | "cell"
  | "link"
  | "image";

const kindOf: ReadonlyMap<string, Kind> = new Map([
  // What is not shown: its content goes with its tags.
  ...kinds("hidden", "head noscript script style svg template title"),
  ...kinds(
    "paragraph",
    "article aside details dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header main nav p section",
  ),
  ...kinds("paragraph", "table"),
  ...kinds("line", "address caption center dd div dt figcaption legend option summary tbody tfoot thead tr"),
  ...kinds("break", "br"),
  ...kinds("rule", "hr"),
  ...kinds("list", "ol ul menu"),
  ...kinds("item", "li"),
  ...kinds("quote", "blockquote"),
  ...kinds("pre", "pre"),
  ...kinds("cell", "td th"),
  ...kinds("link", "a"),
  ...kinds("image", "img"),
]);
const hrefCharsMax = 2_000;
const attributesCharsMax = 4_000;
const tagNameCharsMax = 20;
// Deeper lists and quotations are written as if they stood here, so that the text cannot grow with the square of the depth.
const depthMax = 4;
const listsMax = 1_000;
// Each look for the end of an element that never ends may pass over the whole rest.
const lostEndsMax = 4;

type Tag = { name: string; isClosing: boolean; attributes: string };
type List = { next: number; isOrdered: boolean };
type Output = {
  text: string;
  // Line ends still to be written before the next word, and whether a space is.
  breaks: number;
  space: boolean;
  // The link that is open: where it leads and what has been shown of it.
  link: { href: string; shown: string } | null;
  lists: List[];
  // The mark of a list item that has no text yet.
  mark: string;
  quotes: number;
  quotesWritten: number;
  pre: number;
  lostEnds: number;
};

/** Text of an HTML document or fragment, lines ended by LF and not wrapped; `text [address]` for links. Never throws. */
export function stripHtml(html: string): string {
  const out: Output = {
    text: "",
    breaks: 0,
    space: false,
    link: null,
    lists: [],
    mark: "",
    quotes: 0,
    quotesWritten: 0,
    pre: 0,
    lostEnds: 0,
  };
  let position = 0;
  while (position < html.length) {
    const open = html.indexOf("<", position);
    const textEnd = open === -1 ? html.length : open;
    if (textEnd > position) writeText(out, decodeEntities(html.slice(position, textEnd)));
    position = open === -1 ? html.length : readMarkup(out, html, open);
  }
  return out.text.trim();
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
  const attributes = html.slice(start, Math.min(end, start + attributesCharsMax));
  if (!isClosing && isUnseen(attributes)) {
    const after = endOfElement(out, html, name, end);
    if (after !== null) return after;
  }
  const kind = kindOf.get(name);
  if (kind === undefined) return end;
  if (kind === "hidden") return isClosing ? end : skipHidden(html, name, end);
  writeTag[kind](out, { name, isClosing, attributes });
  return end;
}

const writeTag: Record<Exclude<Kind, "hidden">, (out: Output, tag: Tag) => void> = {
  paragraph: (out) => breakLines(out, out.lists.length > 0 ? 1 : 2),
  line: (out) => breakLines(out, 1),
  break: (out) => {
    out.breaks = Math.min(2, out.breaks + 1);
  },
  rule: (out) => {
    breakLines(out, 2);
    writeText(out, "---");
    breakLines(out, 2);
  },
  list: writeList,
  item: writeItem,
  quote: (out, { isClosing }) => {
    out.quotes = Math.max(0, out.quotes + (isClosing ? -1 : 1));
    breakLines(out, 2);
  },
  pre: (out, { isClosing }) => {
    out.pre = Math.max(0, out.pre + (isClosing ? -1 : 1));
    breakLines(out, 2);
  },
  cell: (out) => {
    out.space = true;
  },
  link: writeLink,
  image: (out, { attributes }) => writeText(out, decodeEntities(attribute(attributes, "alt"))),
};

function breakLines(out: Output, count: number): void {
  out.breaks = Math.max(out.breaks, count);
}

function writeList(out: Output, { name, isClosing }: Tag): void {
  if (isClosing) out.lists.pop();
  breakLines(out, out.lists.length > 0 ? 1 : 2);
  out.mark = "";
  if (!isClosing && out.lists.length < listsMax) out.lists.push({ next: 1, isOrdered: name === "ol" });
}

function writeItem(out: Output, { isClosing }: Tag): void {
  breakLines(out, 1);
  const list = out.lists.at(-1);
  if (isClosing) out.mark = "";
  else out.mark = list?.isOrdered ? `${list.next++}. ` : "* ";
}

function writeLink(out: Output, tag: Tag): void {
  const { link } = out;
  out.link = null;
  if (link !== null && !isTold(link)) {
    // Beside its text, even where the text was a block of its own (a button).
    const { breaks } = out;
    out.breaks = link.shown === "" ? breaks : 0;
    writeText(out, ` [${link.href}]`);
    out.breaks = breaks;
  }
  if (tag.isClosing) return;
  const href = decodeEntities(attribute(tag.attributes, "href")).trim();
  const isUseful = /^(?:https?|mailto|tel):\S/i.test(href) && href.length <= hrefCharsMax;
  if (isUseful) out.link = { href, shown: "" };
}

function isTold({ href, shown }: { href: string; shown: string }): boolean {
  return shown === href || `${shown}/` === href || `mailto:${shown}` === href || `tel:${shown}` === href;
}

function writeText(out: Output, text: string): void {
  if (out.pre > 0) {
    writeLines(out, text);
    return;
  }
  const words = collapse(text);
  if (words !== "") writeWords(out, words, isBlank(text.charCodeAt(0)));
  if (isBlank(text.charCodeAt(text.length - 1))) out.space = true;
}

/** Within <pre>: lines stay lines, and spaces within them stay. */
function writeLines(out: Output, text: string): void {
  for (const [index, line] of text.split(/\r\n?|\n/).entries()) {
    if (index > 0) out.breaks = Math.min(2, out.breaks + 1);
    const kept = line.trimEnd();
    if (kept !== "") writeWords(out, kept, false);
  }
}

function writeWords(out: Output, words: string, afterBlank: boolean): void {
  if (out.text === "") out.text = linePrefix(out);
  else if (out.breaks > 0) {
    const between = "> ".repeat(Math.min(out.quotes, out.quotesWritten, depthMax)).trimEnd();
    out.text += (out.breaks === 1 ? "\n" : `\n${between}\n`) + linePrefix(out);
  } else if (out.space || afterBlank) out.text += " ";
  out.text += words;
  out.breaks = 0;
  out.space = false;
  out.quotesWritten = out.quotes;
  if (out.link !== null && out.link.shown.length <= hrefCharsMax) out.link.shown += words;
}

/** What a new line begins with: quotation marks, the indentation of the lists around, the mark of a new item. */
function linePrefix(out: Output): string {
  const { mark } = out;
  out.mark = "";
  if (out.quotes === 0 && out.lists.length === 0) return mark;
  const levels = Math.min(out.lists.length, depthMax) - (mark === "" ? 0 : 1);
  return "> ".repeat(Math.min(out.quotes, depthMax)) + "  ".repeat(Math.max(0, levels)) + mark;
}

// White space as one space, none at the ends. Most texts need no change; looking costs a tenth of replacing.
function collapse(text: string): string {
  const trimmed = text.trim();
  let isSpace = false;
  for (let i = 0; i < trimmed.length; i++) {
    const code = trimmed.charCodeAt(i);
    const wasSpace = isSpace;
    isSpace = code <= 0x20 || code === 0xa0 || code >= 0x1680;
    if (isSpace && (wasSpace || code !== 0x20)) return trimmed.replace(/\s+/g, " ");
  }
  return trimmed;
}

function isBlank(code: number): boolean {
  return code <= 0x20 || code === 0xa0;
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

/** Newsletters begin with a line for the list of mails that nobody sees in the mail itself. */
function isUnseen(attributes: string): boolean {
  return attributes.includes("display") && /\bdisplay\s*:\s*none/i.test(attributes);
}

const voidNames = new Set("area br col hr img input link meta source wbr".split(" "));

/** Behind the closing tag of the element whose opening tag ends at `from`; null when it is not found. */
function endOfElement(out: Output, html: string, name: string, from: number): number | null {
  if (voidNames.has(name)) return from;
  if (out.lostEnds >= lostEndsMax) return null;
  const tag = new RegExp(`<(/?)${name}(?=[\\s/>])`, "gi");
  tag.lastIndex = from;
  let depth = 1;
  for (let match = tag.exec(html); match !== null; match = tag.exec(html)) {
    depth += match[1] === "/" ? -1 : 1;
    if (depth === 0) return behind(html, ">", tag.lastIndex);
  }
  out.lostEnds += 1;
  return null;
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
