// Where a reply stops being what its author wrote and quotes earlier mail: from the first mark that mail programs set there
// to the end, whatever stands between the quotes (inline answers are cleaned as quotes are). For `redact: quoted`. The leak gate finds quotes in a way of its own.

import { anyOf } from "../../../mail/any-of.ts";

/** The marks of Gmail, Outlook, Apple Mail, Thunderbird, Proton, Yahoo and everybody who uses blockquote. */
const HTML_MARK = new RegExp(
  anyOf([
    /<blockquote[\s>]/,
    /<div[^>]{0,300}\b(?:gmail_quote|protonmail_quote|yahoo_quoted|moz-cite-prefix|divRplyFwdMsg|appendonsend|x_divRplyFwdMsg)\b/,
    /<hr[^>]{0,200}\bdisplay:\s*inline-block/,
    /<div[^>]{0,300}\bborder-top:\s*solid #(?:E1E1E1|B5C4DF)/,
  ]),
  "i",
);

/** What mail programs write before the author of an earlier mail, each in its language. */
const FROM_WORDS =
  "From|Von|De|Da|Dari|Van|Från|Fra|Od|От|Від|Lähettäjä|Saatja|Nuo|Kimden|Gönderen|Feladó|Šalje|Από|Từ|" +
  "מאת|من|จาก|差出人|送信者|寄件者|寄件人|发件人|發件人|보낸 사람|보낸사람";

/**
 * A quoted line, a line of dashes or underscores over the head of an earlier mail, or that head itself: in stars where bold
 * text became plain, and with a blank before the colon in French.
 */
const TEXT_MARK = new RegExp(
  `^[ \\t]{0,4}>|^[ \\t]{0,40}-{3,200}[ \\t]{0,40}[^-\\s].{0,60}?-{3,200}[ \\t]{0,40}$|^_{10,}[ \\t]*$|^\\*?(?:${FROM_WORDS})[ \\t\\u00a0\\u202f]?(?::\\*?[ \\t\\u00a0]|：).{0,300}$`,
  "im",
);

const INTRODUCTION_LINES_MAX = 3;

/** Splits text into what the author wrote and what is quoted; together they are the text. */
export function splitQuoted(text: string, isHtml: boolean): { own: string; quoted: string } {
  const mark = (isHtml ? HTML_MARK : TEXT_MARK).exec(text);
  if (!mark) return { own: text, quoted: "" };
  const start = isHtml ? mark.index : beforeIntroduction(text, mark.index);
  return { own: text.slice(0, start), quoted: text.slice(start) };
}

/** A line that ends with a colon introduces the quote (`On Friday, Shop wrote:`), with the lines it may be broken into. */
function beforeIntroduction(text: string, quoteAt: number): number {
  let start = text.slice(0, quoteAt).trimEnd().length;
  if (!/[:：]$/.test(text.slice(Math.max(0, start - 1), start))) return quoteAt;
  for (let lines = 0; lines < INTRODUCTION_LINES_MAX; lines += 1) {
    const lineAt = text.lastIndexOf("\n", start - 1) + 1;
    if (text.slice(lineAt, start).trim() === "") break;
    start = lineAt;
    if (lineAt === 0) break;
    start = lineAt - 1;
  }
  return start === 0 ? 0 : start + 1;
}
