// Where a reply stops being what its author wrote and quotes earlier mail: from the first mark that mail programs set there
// to the end, whatever stands between the quotes (inline answers are cleaned as quotes are). For `redact: quoted`. The leak gate finds quotes in a way of its own.

/** The marks of Gmail, Outlook, Apple Mail, Thunderbird, Proton, Yahoo and everybody who uses blockquote. */
const HTML_MARK =
  /<blockquote[\s>]|<div[^>]{0,300}\b(?:gmail_quote|protonmail_quote|yahoo_quoted|moz-cite-prefix|divRplyFwdMsg|appendonsend|x_divRplyFwdMsg)\b|<hr[^>]{0,200}\bdisplay:\s*inline-block|<div[^>]{0,300}\bborder-top:\s*solid #(?:E1E1E1|B5C4DF)/i;

/** A quoted line, a line of dashes or underscores over the head of an earlier mail, or that head itself. */
const TEXT_MARK =
  /^[ \t]{0,4}>|^[ \t]*-{3,}[ \t]*\S.{0,60}[ \t]*-{3,}[ \t]*$|^_{10,}[ \t]*$|^(?:From|Von|De|Da|Van|Från|Fra|Od|От|差出人|发件人):[ \t].{0,300}$/im;

const INTRODUCTION_MAX = 1_000;

/** The last line before a quoted one that ends with a colon introduces it (`On Friday, Shop wrote:`), up to three lines. */
const INTRODUCTION = /(?:^|\n)(?!\s*\n)(?:[^\n]{1,300}\n){0,2}[^\n]{0,300}[:：][ \t]*\r?\n(?:[ \t]*\r?\n)?$/;

/** Splits text into what the author wrote and what is quoted; together they are the text. */
export function splitQuoted(text: string, isHtml: boolean): { own: string; quoted: string } {
  const mark = (isHtml ? HTML_MARK : TEXT_MARK).exec(text);
  if (!mark) return { own: text, quoted: "" };
  const before = text.slice(0, mark.index);
  const near = before.slice(-INTRODUCTION_MAX);
  const introduction = isHtml ? null : INTRODUCTION.exec(near);
  const start = introduction ? before.length - near.length + introduction.index : mark.index;
  return { own: text.slice(0, start), quoted: text.slice(start) };
}
