// Address lists in header fields that somebody else wrote: RFC 5322 §3.4 and §4.4 (groups, comments, routes), RFC 2047
// in names, and what people make of them. Linear, never throws, finds every address a reader may see: the author's domain
// of DMARC hangs on it. Not for what we send or accept as a customer's input: that is ../address.ts.
import { decodeWords } from "./parse-head.ts";

/** `email` as it stands there (null when there is none), `name` decoded (null when there is none). */
export type ParsedAddress = { name: string | null; email: string | null };

export const addressesMax = 1_000;
const textCharsMax = 256 * 1_024;
const nameCharsMax = 1_000;
const emailCharsMax = 1_000;
const commentDepthMax = 20;

/** Reads an unfolded field value whose encoded words are still there. Groups are flattened, at most 1,000 come back. */
export function parseAddressList(value: string): ParsedAddress[] {
  const found: ParsedAddress[] = [];
  let pending: Token[] = [];
  let grouped = false;
  // A comment of its own is a name where nothing else is, else it is about the group or list (RFC 5322 §A.6.1).
  const addPending = () => {
    if (!(grouped || found.length > 0) || !pending.every(isNoWord)) addTo(found, readMailboxes(pending));
    pending = [];
  };
  for (const token of tokens(value.slice(0, textCharsMax))) {
    if (token.kind === "group") {
      pending = [];
      grouped = true;
    } else if (token.kind === "end") addPending();
    else pending.push(token);
    if (found.length >= addressesMax) break;
  }
  addPending();
  return found;
}

function isNoWord({ kind, text }: Token): boolean {
  return kind === "comment" || (kind === "text" && text.trim() === "");
}

// One by one: between two commas may stand more addresses than a call can have arguments.
function addTo(found: ParsedAddress[], mailboxes: readonly ParsedAddress[]): void {
  for (const mailbox of mailboxes) {
    if (found.length >= addressesMax) return;
    found.push(mailbox);
  }
}

// --- tokens ----------------------------------------------------------------------------------------------------------

type Token = { kind: "text" | "quoted" | "comment" | "angle" | "end" | "group"; text: string };
/** `closed`: whether quotes and comments still end somewhere; one that does not is a character like others. */
type Cursor = { text: string; at: number; quotes_close: boolean; comments_close: boolean };

function* tokens(text: string): Generator<Token> {
  const cursor: Cursor = { text, at: 0, quotes_close: true, comments_close: true };
  while (cursor.at < text.length) yield nextToken(cursor);
}

function nextToken(cursor: Cursor): Token {
  const { text, at } = cursor;
  const char = text[at]!;
  if (char === '"' && cursor.quotes_close) {
    const end = endOfQuoted(cursor, at);
    if (end !== -1) return take(cursor, end, { kind: "quoted", text: unquotePairs(text.slice(at + 1, end - 1)) });
  }
  if (char === "(" && cursor.comments_close) {
    const end = endOfComment(cursor, at);
    if (end !== -1) return take(cursor, end, { kind: "comment", text: unquotePairs(text.slice(at + 1, end - 1)) });
  }
  if (char === "<") {
    const end = endOfAngle(cursor, at);
    return take(cursor, end, { kind: "angle", text: text.slice(at + 1, text[end - 1] === ">" ? end - 1 : end) });
  }
  if (char === "," || char === ";") return take(cursor, at + 1, { kind: "end", text: char });
  if (char === ":") return take(cursor, at + 1, { kind: "group", text: char });
  const end = endOfText(cursor, at);
  return take(cursor, end, { kind: "text", text: text.slice(at, end) });
}

function take(cursor: Cursor, end: number, token: Token): Token {
  cursor.at = end;
  return token;
}

function endOfQuoted(cursor: Cursor, start: number): number {
  const { text } = cursor;
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  cursor.quotes_close = false;
  return -1;
}

function endOfComment(cursor: Cursor, start: number): number {
  const { text } = cursor;
  let depth = 0;
  for (let at = start; at < text.length && depth <= commentDepthMax; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "(") depth += 1;
    else if (text[at] === ")") depth -= 1;
    if (depth === 0) return at + 1;
  }
  cursor.comments_close = false;
  return -1;
}

// Up to the next bracket; without one, up to the next comma: what follows may be another address.
function endOfAngle(cursor: Cursor, start: number): number {
  const { text } = cursor;
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at];
    if (char === ">") return at + 1;
    if (char === "<") return at;
    if (char === '"' && cursor.quotes_close) {
      const end = endOfQuoted(cursor, at);
      if (end !== -1) at = end - 1;
    }
  }
  const comma = text.indexOf(",", start);
  return comma === -1 ? text.length : comma;
}

// An encoded word is one piece: some writers leave commas, colons and parentheses in it as they are (RFC 2047 §5 (3) forbids).
// ASCII without blanks, `<` and `"` only: what is no UTF-8 is read in two ways (auth/author.ts), and must not end otherwise.
const wholeWord = /=\?[!#-;=>@-~]{1,80}\?[bq]\?[!#-;=>@-~]*\?=/iy;

// A domain literal may hold colons.
function endOfText({ text }: Cursor, start: number): number {
  let at = start;
  do {
    const isLiteral = text[at] === "[" && text[at - 1] === "@";
    const close = isLiteral ? text.slice(at, at + 100).indexOf("]") : -1;
    wholeWord.lastIndex = at;
    at = text[at] === "=" && wholeWord.test(text) ? wholeWord.lastIndex : at + (close + 1 || 1);
  } while (at < text.length && !'"(<,;:'.includes(text[at]!));
  return at;
}

function unquotePairs(text: string): string {
  return text.replace(/\\(.)/gsu, "$1");
}

// --- one mailbox, or what stands between two commas ------------------------------------------------------------------

function readMailboxes(tokens: Token[]): ParsedAddress[] {
  const brackets = tokens.filter((token) => token.kind === "angle");
  if (brackets.length === 0) return readBare(tokens);
  // `<<a@b.c>>`: what holds nothing counts only where nothing else is.
  const filled = brackets.filter(({ text }) => readAngle(text) !== null);
  const angles = filled.length > 0 ? filled : brackets;
  const first = tokens.findIndex((token) => token.kind === "angle");
  const before = nameOf(tokens.slice(0, first));
  const name =
    before ?? nameOf(tokens.slice(first).filter((token) => token.kind === "comment" || token.kind === "quoted"));
  return angles.map((angle, index) => ({ name: index === 0 ? name : null, email: readAngle(angle.text) }));
}

// RFC 5322 §4.4: a route of other hosts may stand before the address.
function readAngle(text: string): string | null {
  const withoutRoute = /^\s*@[^:"<>]*:/.test(text) ? text.slice(text.indexOf(":") + 1) : text;
  return cleanEmail(withoutRoute);
}

// No angle brackets: `a@b`, `a@b (Name)`, `"a b"@c`, `Name a@b`, or only a name.
function readBare(tokens: Token[]): ParsedAddress[] {
  const comment = nameOf(tokens.filter((token) => token.kind === "comment"));
  const rest = tokens.filter((token) => token.kind !== "comment");
  const text = rest.map(written).join("");
  if (text.trim() === "") return comment === null ? [] : [{ name: comment, email: null }];
  // What is quoted is one word, whatever it holds, and so is what is encoded.
  const masked = rest
    .map((token) => (token.kind === "quoted" ? "q".repeat(written(token).length) : token.text.replace(encoded, maskOf)))
    .join("");
  const words = addressWords(masked);
  if (words.length === 0) return [encodedMailbox(text) ?? { name: nameOf(rest) ?? comment, email: null }];
  const [first] = words;
  const around = `${text.slice(0, first!.start)} ${text.slice(first!.end)}`;
  const name = words.length > 1 ? null : cleanName(decodeWords(unquotePairs(around.replace(/["<>]/g, " "))));
  return words.map(({ start, end }, index) => ({
    name: index === 0 ? (name ?? comment) : null,
    email: cleanEmail(text.slice(start, end)),
  }));
}

const encoded = /=\?[!#-;=>@-~]{1,80}\?[bq]\?[!#-;=>@-~]*?\?=/gi;
const maskOf = (word: string) => "q".repeat(word.length);
const wholeMailbox = /^([^<>]*)<\s*([^\s<>@"]+@[^\s<>@"]+)\s*>$/u;
const bareAddress = /^[^\s<>@",;:]+@[^\s<>@",;:]+$/u;

// Some writers encode the address with the name (RFC 2047 §5 (3) forbids), and readers show it: so it is the author's.
function encodedMailbox(text: string): ParsedAddress | null {
  const decoded = text.includes("=?") ? decodeWords(text).trim() : "";
  if (bareAddress.test(decoded)) return { name: null, email: cleanEmail(decoded) };
  const [, name = "", email = ""] = wholeMailbox.exec(decoded.slice(0, nameCharsMax)) ?? [];
  return email === "" ? null : { name: cleanName(name.replace(/"/g, " ")), email: cleanEmail(email) };
}

function written({ kind, text }: Token): string {
  return kind === "quoted" ? `"${text.replace(/["\\]/g, "\\$&")}"` : text;
}

type Word = { start: number; end: number };

// Words that hold an @, also with spaces around it or before a dot (RFC 5322 §4.4).
function addressWords(text: string): Word[] {
  const words: Word[] = [];
  const word = /[^\s@]*(?:\s{0,4}@\s{0,4}[^\s@]*(?:\s{1,4}\.\s{0,4}[^\s@.]+)*)+/gu;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", word.lastIndex)) {
    word.lastIndex = startOfWord(text, at, words.at(-1)?.end ?? 0);
    const match = word.exec(text);
    if (match === null) break;
    words.push({ start: match.index, end: match.index + match[0].length });
    word.lastIndex = Math.max(word.lastIndex, at + 1);
  }
  return words;
}

function startOfWord(text: string, at: number, floor: number): number {
  let start = at;
  while (start > floor && at - start < 4 && /\s/.test(text[start - 1]!)) start--;
  while (start > floor && !/\s/.test(text[start - 1]!)) start--;
  return start;
}

/** The address without white space, controls and comments outside quotes; null when nothing is left. */
function cleanEmail(text: string): string | null {
  let [clean, end] = ["", 0];
  for (const { 0: quoted, 1: close, index } of text.matchAll(/"(?:[^"\\]|\\.)*("?)/gsu)) {
    // No later quote closes either; looking on from each of them took minutes for a long field of `\"`.
    if (close === "") break;
    clean += cleanOutside(text.slice(end, index)) + quoted.replace(/\p{Cc}/gu, "");
    end = index + quoted.length;
  }
  clean += cleanOutside(text.slice(end));
  return clean.slice(0, emailCharsMax).toWellFormed() || null;
}

function cleanOutside(text: string): string {
  return text.replace(/\([^()\\]*\)|[\s\p{Cc}<>]+/gu, "");
}

// Quoted and bare words in order; encoded words also where they must not stand, in quotes.
function nameOf(tokens: Token[]): string | null {
  const wanted = tokens.some((token) => token.kind !== "comment")
    ? tokens.filter((token) => token.kind !== "comment")
    : tokens;
  return cleanName(decodeWords(wanted.map((token) => token.text).join(" ")));
}

function cleanName(text: string): string | null {
  const name = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return name === "" ? null : name.slice(0, nameCharsMax).toWellFormed();
}
