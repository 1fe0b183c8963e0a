// Where a reply stops being what its author wrote and quotes earlier mail: from the first mark that mail programs set there
// to the end, whatever stands between the quotes (inline answers are cleaned as quotes are). For `redact: quoted`. The leak gate finds quotes in a way of its own.

import { anyOf } from "../../../mail/any-of.ts";

/** What mail programs write before the author of an earlier mail, each in its language. */
const FROM_WORDS =
  "From|Von|De|Da|Dari|Van|Från|Fra|Od|От|Від|Lähettäjä|Saatja|Nuo|Kimden|Gönderen|Feladó|Šalje|Από|Từ|" +
  "מאת|من|จาก|差出人|送信者|寄件者|寄件人|发件人|發件人|보낸 사람|보낸사람";

/** The marks of Gmail, Outlook, Apple Mail, Thunderbird, Proton, Yahoo and everybody who uses blockquote. */
const HTML_MARK = new RegExp(
  anyOf([
    /<blockquote[\s>]/,
    /<div[^>]{0,300}\b(?:gmail_quote|protonmail_quote|moz-cite-prefix|divRplyFwdMsg|appendonsend|x_divRplyFwdMsg)\b/,
    /<div[^>]{0,300}yahoo_quoted/,
    /<span[^>]{0,100}OLK_SRC_BODY_SECTION/,
    /<hr[^>]{0,200}\bdisplay:\s*inline-block/,
    /<div[^>]{0,300}\bborder-top:\s*solid #(?:E1E1E1|B5C4DF)/,
    // The head of an earlier mail without a frame: its first word stands at the beginning of an element.
    `>(?:\\s|&nbsp;){0,20}(?:${FROM_WORDS})(?:\\s|&nbsp;){0,5}(?:</?[a-z][^<>]{0,300}>){0,3}[:：]`,
    // `On Friday, Shop &lt;shop@example.com&gt; wrote:`, the mail below it in no frame.
    /@[^<>@]{1,200}(?:<\/a>[^<>@]{0,200})?[:：]\s{0,20}<(?:br|\/?p|\/?div|\/span|\/font|\/td)\b/,
  ]),
  "i",
);

/** A line with an address that ends with a colon, itself or the next: `On Friday, Shop <shop@example.com> wrote:`. */
const INTRODUCTION = "^[^\\n@]{0,300}@[^\\n@]{1,200}(?:@[^\\n@]{1,200})?(?:\\n[^\\n@]{0,60})?[:：][ \\t\\r]*$";

/**
 * A quoted line, a line of dashes or underscores over the head of an earlier mail, or that head itself: in stars where bold
 * text became plain, and with a blank before the colon in French. Or what introduces a mail that no sign marks.
 */
const TEXT_MARK = new RegExp(
  `^[ \\t]{0,4}>|^[ \\t]{0,40}-{3,200}[ \\t]{0,40}[^-\\s].{0,60}?-{3,200}[ \\t]{0,40}$|^_{10,}[ \\t]*$|${INTRODUCTION}|^[ \\t]{0,4}\\*?(?:${FROM_WORDS})[ \\t\\u00a0\\u202f]?(?::\\*?[ \\t\\u00a0]|：).{0,300}$`,
  "im",
);

const INTRODUCTION_LINES_MAX = 3;
const INTRODUCTION_CHARS_MAX = 1_500;

/** Splits text into what the author wrote and what is quoted; together they are the text. */
export function splitQuoted(text: string, isHtml: boolean): { own: string; quoted: string } {
  const mark = (isHtml ? HTML_MARK : TEXT_MARK).exec(text);
  if (!mark) return { own: text, quoted: "" };
  const start = isHtml ? beforeHtmlIntroduction(text, mark.index) : beforeIntroduction(text, mark);
  return { own: text.slice(0, start), quoted: text.slice(start) };
}

/**
 * A line that ends with a colon introduces the quote (`On Friday, Shop wrote:`), with the lines it may be broken into; so does
 * a date with an address (`2026/4/7 Shop <shop@example.com>`).
 */
function beforeIntroduction(text: string, { index, 0: mark }: RegExpExecArray): number {
  const isIntroduction = /[:：]\s*$/.test(mark) && mark.includes("@");
  const quoteAt = index + (isIntroduction ? mark.length : 0);
  let start = text.slice(0, quoteAt).trimEnd().length;
  const line = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  const isDated = /^[ \t]{0,4}>/.test(mark) && /\d[^<>]{0,200}<[^<>@]{1,100}@[^<>]{1,255}>$/.test(line);
  if (!/[:：]$/.test(line) && !isDated) return index;
  for (let lines = 0; lines < INTRODUCTION_LINES_MAX; lines += 1) {
    const lineAt = text.lastIndexOf("\n", start - 1) + 1;
    if (text.slice(lineAt, start).trim() === "") break;
    start = lineAt;
    if (lineAt === 0) break;
    start = lineAt - 1;
  }
  return Math.min(index, start === 0 ? 0 : start + 1);
}

const BLOCK = /<\/?(?:p|div|br|hr|td|tr|table|li|body)\b[^<>]{0,500}>/gi;

/** The same in HTML: the block before the mark, or the one it stands in, and a rule above the head of an earlier mail. */
function beforeHtmlIntroduction(html: string, at: number): number {
  const from = Math.max(0, at - INTRODUCTION_CHARS_MAX);
  const before = html.slice(from, at);
  const said = before.replace(/(?:\s|&nbsp;|<[^<>]{0,500}>)+$/, "");
  const isInText = /[:：]$/.test(said) || html[at] === "@";
  const rule = before.toLowerCase().lastIndexOf("<hr");
  const blocks = isInText ? [...said.matchAll(BLOCK)].map(({ index, 0: tag }) => index + tag.length) : [];
  const block = blocks.at(-1) ?? -1;
  const places = [block, rule].filter((place) => place !== -1).map((place) => from + place);
  return Math.min(at, isInText && block === -1 ? from : at, ...places);
}
