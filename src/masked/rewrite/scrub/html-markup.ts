// Where the markup of an HTML text stands, as browsers read it (HTML Living Standard §13.2.5): a `>` within a comment or a
// quoted value ends nothing. What is never closed goes to the end. One pass, never back. Content of style and script is text here.

export type Span = { start: number; end: number };

/** Every tag, comment and declaration of the text, in order. */
export function markupIn(html: string): Span[] {
  const spans: Span[] = [];
  for (let at = html.indexOf("<"); at !== -1; ) {
    const end = endOfMarkup(html, at);
    if (end > at) spans.push({ start: at, end });
    at = html.indexOf("<", Math.max(end, at + 1));
  }
  return spans;
}

/**
 * Every tag, comment and declaration that ends before the next one begins: in a text a lone `<` opens nothing that goes on over
 * what follows, and the marks of a quote close none.
 */
export function closedMarkupIn(text: string): Span[] {
  const spans: Span[] = [];
  let doCommentsEnd = true;
  for (let at = text.indexOf("<"); at !== -1; ) {
    const next = text.indexOf("<", at + 1);
    const isComment = doCommentsEnd && text.startsWith("<!--", at);
    const closed = isComment ? text : text.slice(at, next === -1 ? text.length : next);
    const start = isComment ? at : 0;
    const end = endOfMarkup(closed, start);
    const isClosed = end > start && closed[end - 1] === ">";
    if (isClosed) spans.push({ start: at, end: at + end - start });
    if (isComment && !isClosed) doCommentsEnd = false;
    at = isClosed ? text.indexOf("<", at + end - start) : next;
  }
  return spans;
}

/** More of them stay: no page that people write has so many. */
const COMMENTS_MAX = 50;

/**
 * Without what looks like a comment within a tag: to browsers it is an attribute, but programs that clean pages take it out, and
 * an address stands there in one piece then.
 */
export function withoutCommentsInTags(html: string): string {
  let page = html;
  let left = html.includes("<!--") ? COMMENTS_MAX : 0;
  for (let at = page.indexOf("<"); at !== -1 && left > 0; ) {
    const end = endOfMarkup(page, at);
    const comment = page.indexOf("<!--", at + 1);
    const behindIt = comment === -1 ? 0 : page.indexOf("-->", comment) + 3;
    if (comment === -1 || behindIt < 3) return page;
    if (comment < end && !page.startsWith("<!--", at)) {
      page = page.slice(0, comment) + page.slice(behindIt);
      left -= 1;
    } else at = page.indexOf("<", Math.max(end, at + 1));
  }
  return page;
}

/** Behind the markup that begins here; the same place when it is a mere character. */
function endOfMarkup(html: string, at: number): number {
  if (html.startsWith("<!--", at)) return endOfComment(html, at + 4);
  const next = html.slice(at + 1, at + 3);
  if (/^\/?[a-z]/i.test(next)) return endOfTag(html, at + 1);
  return /^[!?]|^\/./s.test(next) ? behind(html, ">", at + 1) : at;
}

function endOfComment(html: string, from: number): number {
  if (html[from] === ">") return from + 1;
  if (html.startsWith("->", from)) return from + 2;
  return passed(html, /--!?>/g, from);
}

function endOfTag(html: string, from: number): number {
  let at = passed(html, /(?=[\s/>])/g, from);
  while (at < html.length && html[at] !== ">") {
    const start = at;
    at = passed(html, /(?=[^\s/])/g, at);
    if (html[at] === ">") break;
    // A name may begin with `=`.
    at = passed(html, /(?=[\s/>=])/g, at + 1);
    const equals = passed(html, /(?=\S)/g, at);
    if (html[equals] === "=") at = endOfValue(html, passed(html, /(?=\S)/g, equals + 1));
    if (at <= start) break;
  }
  return Math.min(at + 1, html.length);
}

function endOfValue(html: string, at: number): number {
  const quote = html[at];
  if (quote === '"' || quote === "'") return behind(html, quote, at + 1);
  return passed(html, /(?=[\s>])/g, at);
}

function behind(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from);
  return at === -1 ? html.length : at + mark.length;
}

/** Behind the next match; the end when there is none. */
function passed(html: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  const match = pattern.exec(html);
  return match === null ? html.length : match.index + match[0].length;
}
