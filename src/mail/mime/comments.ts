// Comments of structured MIME fields taken off (RFC 2045 §3, §5.1; RFC 5322 §3.2.2): nested, with quoted pairs, never inside
// quotes. Parentheses that people write where no comment was meant stay: in unquoted names of files (`report (1).pdf`) and
// within an unquoted boundary. Linear; a comment that is not closed is no comment.

/** Names of parameters whose unquoted value may hold parentheses; RFC 2231 sections too. */
const FILE_NAME = /(?:^|[;\s])(?:file)?name(?:\*\d{0,3}\*?)?\s{0,4}$/i;
const BOUNDARY = /(?:^|[;\s])boundary\s{0,4}$/i;
const NAME_CHARS_MAX = 24;
const NAMING = new Set(["file", "boundary"]);

/** A field value with a space for each of its comments. */
export function withoutComments(text: string): string {
  if (!text.includes("(")) return text;
  let out = "";
  let from = 0;
  let value: "file" | "boundary" | "other" = "other";
  const open = { quotes_close: true, comments_close: true };
  for (let at = 0; at < text.length; ) {
    const char = text[at];
    if (char === ";") value = "other";
    else if (char === "=" && !NAMING.has(value)) value = kindAfter(text.slice(Math.max(from, at - NAME_CHARS_MAX), at));
    const end = char === '"' || char === "(" ? endOf(text, at, open) : -1;
    if (end === -1) at += 1;
    else if (char === '"' || isMeant(text, at, value)) at = end;
    else {
      out += `${text.slice(from, at)} `;
      from = end;
      at = end;
    }
  }
  return out + text.slice(from);
}

function kindAfter(name: string): "file" | "boundary" | "other" {
  if (FILE_NAME.test(name)) return "file";
  return BOUNDARY.test(name) ? "boundary" : "other";
}

/** True if the parentheses at this place are part of the value. */
function isMeant(text: string, at: number, value: "file" | "boundary" | "other"): boolean {
  return value === "file" || (value === "boundary" && !/[\s=]/.test(text[at - 1] ?? " "));
}

/** Behind the quotes or the comment that begin here; -1 when they do not end, and then no later ones do either. */
function endOf(text: string, start: number, open: { quotes_close: boolean; comments_close: boolean }): number {
  const isQuote = text[start] === '"';
  if (!(isQuote ? open.quotes_close : open.comments_close)) return -1;
  let depth = 1;
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text[at];
    if (char === "\\") at += 1;
    else if (isQuote ? char === '"' : char === ")") depth -= 1;
    else if (!isQuote && char === "(") depth += 1;
    if (depth === 0) return at + 1;
  }
  if (isQuote) open.quotes_close = false;
  else open.comments_close = false;
  return -1;
}
