// The text part of a message whose author gave only HTML. html-to-text does it well, but it builds a tree and walks it by
// recursion: 10,000 nested elements overflow the stack, and 4 KB take 0.36 ms where strip-html.ts takes 0.07. So it gets
// only what is small and flat, and the rest goes the linear way. It does not clean HTML for showing.

import { compile } from "html-to-text";
import { stripHtml } from "./strip-html.ts";

// Newsletters nest some dozens of tables; the stack lasts for some thousands of elements.
const depthMax = 100;
// 32 KiB of short paragraphs, its worst usual case, take 12 ms of the event loop.
const treeCharsMax = 32 * 1_024;

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: treeCharsMax, maxDepth: depthMax + 50 },
  selectors: [
    { selector: "a", options: { hideLinkHrefIfSameAsText: true, ignoreHref: false, noAnchorUrl: true } },
    { selector: "img", format: "inlineAlt" },
    // Without this, neighbouring cells are one word.
    { selector: "td", format: "inlineSurround", options: { prefix: " " } },
    { selector: "th", format: "inlineSurround", options: { prefix: " " } },
    ...["h1", "h2", "h3", "h4", "h5", "h6", "table"].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
  formatters: {
    // The address of an image is noise for a reader of text.
    inlineAlt: (element, _walk, builder) => builder.addInline(element.attribs?.alt ?? ""),
  },
});

/** Plain text of an HTML body, lines ended by LF and not wrapped. Never throws; linear beyond 32 KiB or depth 100. */
export function textFromHtml(html: string): string {
  if (html.length > treeCharsMax || isDeep(html)) return stripHtml(html);
  const text = convert(html);
  // It indents every line by the lists around it, so lists in lists multiply the size.
  return text.length > html.length * 2 ? stripHtml(html) : text.trim();
}

// Counts tags without a parser. Elements that close by themselves (<p>, <li>) count as open, which errs towards the linear
// way; closing tags that close nothing can fool it, and then maxDepth above cuts what lies deeper.
function isDeep(html: string): boolean {
  let depth = 0;
  for (let at = html.indexOf("<"); at !== -1; at = html.indexOf("<", at + 1)) {
    if (html.charCodeAt(at + 1) === 0x2f) depth -= depth > 0 ? 1 : 0;
    else if (!isVoid(html, at) && ++depth > depthMax) return true;
  }
  return false;
}

const voidTag = /<(?:!|area|base|br|col|hr|img|input|link|meta|source|wbr)/iy;

function isVoid(html: string, at: number): boolean {
  voidTag.lastIndex = at;
  return voidTag.test(html);
}
