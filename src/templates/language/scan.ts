// A pass over the source before @handlebars/parser sees it, with the same idea of where tags begin and end. It exists
// because that parser has no limits of its own: 512 KiB of `{{!----}}` keep it busy for 17 s and of `{{[a]}}` for 19 s
// (it puts text back in front of its input), and deep nesting is quadratic too. Here comments and `[…]` names are
// replaced by others of the same length that it reads in one go, so line and column stay true; tags, names and nesting
// are counted; `items[0]` becomes `items.[0]`; and what is not in our language is refused with a sentence about it.
// Not here: the grammar within a tag.
import { NESTING_MAX, TAG_PARTS_MAX, TAGS_MAX } from "./nodes.ts";

export type Misread = { message: string; at: number };
export type Scan = { ok: true; text: string; tags: number } | ({ ok: false } & Misread);

type Block = { name: string; at: number; branches: number };
type Scanner = {
  source: string;
  pieces: string[];
  copied: number;
  tags: number;
  parts: number;
  depth: number;
  blocks: Block[];
};

/** U+E000…U+E07F of the private use area stand for the ASCII characters inside `[…]`. */
const MARK_FIRST = 0xe000;
const MARK_LAST = MARK_FIRST + 0x7f;
const OPEN_MARK = String.fromCharCode(MARK_FIRST + 0x5b);
const CLOSE_MARK = String.fromCharCode(MARK_FIRST + 0x5d);

const COMMENT = /\{\{~?!(--)?/y;
const LONG_COMMENT_END = /--~?\}\}/g;
const BARE_ELSE = /\{\{~?(?:\^\s*|\s*else\s*)~?\}\}/y;
const HEAD = /\{\{~?(#\*|#>|#|\/|\^|>|\*|\{|&|\s*else\b)?/y;
const BLOCK_NAME = /\s*([^\s~}]{0,100})/y;
/** A character of a plain name, as the parser's grammar has it. */
const NAME_CHARACTER = /[^\s!"#%-,./;->@[-^`{-~]/;

/** Checks the outer shape of `source` and gives the text for the parser: same length, same places. Linear in time. */
export function scanTemplate(source: string): Scan {
  const scanner: Scanner = { source, pieces: [], copied: 0, tags: 0, parts: 0, depth: 0, blocks: [] };
  let chunk = 0;
  for (let at = source.indexOf("{{"); at !== -1; at = source.indexOf("{{", at)) {
    if (isEscaped(source, at, chunk)) {
      chunk = at;
      at += 2;
      continue;
    }
    const end = scanTag(scanner, at);
    if (typeof end !== "number") return { ok: false, ...end };
    at = end;
    chunk = end;
  }
  const open = scanner.blocks.at(-1);
  if (open) return { ok: false, ...misread(open.at, `the block {{#${open.name}}} is never closed`) };
  scanner.pieces.push(source.slice(scanner.copied));
  return { ok: true, text: scanner.pieces.join(""), tags: scanner.tags };
}

/** What the parser calls a `[…]` name, as it was written; a plain name as it is; null when it is neither. */
export function unmaskName(part: string): string | null {
  const name = part.startsWith(OPEN_MARK) ? part.slice(1) : part;
  if (!name.endsWith(CLOSE_MARK)) return part === name && !hasMark(name) ? name : null;
  const inner = unmaskText(name.slice(0, -1));
  return inner.replace(/\\([\\\]])/g, "$1");
}

/** Any text of the parser with our marks turned back, for messages. */
export function unmaskText(text: string): string {
  return text.replace(/[\uE000-\uE07F]/g, (mark) => String.fromCharCode(mark.charCodeAt(0) - MARK_FIRST));
}

function hasMark(text: string): boolean {
  return /[\uE000-\uE07F]/.test(text);
}

function misread(at: number, message: string): Misread {
  return { at, message };
}

// `\{{` is text; `\\{{` is one backslash and a tag. Only backslashes since the last tag (or escaped tag) count.
function isEscaped(source: string, at: number, chunk: number): boolean {
  if (at - 1 < chunk || source[at - 1] !== "\\") return false;
  return at - 2 < chunk || source[at - 2] !== "\\";
}

function scanTag(scanner: Scanner, at: number): number | Misread {
  scanner.tags += 1;
  if (scanner.tags > TAGS_MAX) return misread(at, `there are more than ${TAGS_MAX} tags`);
  if (scanner.source.startsWith("{{{{", at)) {
    return misread(at, "raw blocks ({{{{…}}}}) are not part of the template language");
  }
  const comment = matchAt(COMMENT, scanner.source, at);
  if (comment) return scanComment(scanner, at, comment[1] !== undefined);
  const bareElse = matchAt(BARE_ELSE, scanner.source, at);
  if (bareElse) {
    return scanner.blocks.length > 0 ? at + bareElse[0].length : misread(at, "{{else}} stands outside of any block");
  }
  const head = matchAt(HEAD, scanner.source, at) as RegExpExecArray;
  const kind = (head[1] ?? "").trim();
  const foreign = foreignKind(kind);
  if (foreign) return misread(at, foreign);
  const end = scanInside(scanner, at, at + head[0].length, kind === "{");
  return typeof end === "number" ? (followBlocks(scanner, at, at + head[0].length, kind) ?? end) : end;
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

function foreignKind(kind: string): string | null {
  if (kind === ">" || kind === "#>") return "partials ({{> …}}) are not part of the template language";
  if (kind === "*") return "decorators ({{* …}}) are not part of the template language";
  if (kind === "#*") return "inline blocks ({{#* …}}) are not part of the template language";
  return null;
}

function scanComment(scanner: Scanner, at: number, isLong: boolean): number | Misread {
  const { source } = scanner;
  const unclosed = misread(at, "the comment that begins here is never closed");
  const inside = source.indexOf("!", at) + 1;
  if (!isLong) {
    const end = source.indexOf("}}", inside);
    return end === -1 ? unclosed : end + 2;
  }
  // From `inside` on: the parser takes `{{!--}}` for a whole comment.
  const close = matchAt(LONG_COMMENT_END, source, inside);
  if (!close) return unclosed;
  const text = source.slice(inside, close.index + 2);
  replace(scanner, inside, close.index + 2, text.replace(/[^\r\n]/g, "."));
  return close.index + close[0].length;
}

function replace(scanner: Scanner, from: number, to: number, text: string): void {
  scanner.pieces.push(scanner.source.slice(scanner.copied, from), text);
  scanner.copied = to;
}

function scanInside(scanner: Scanner, tagAt: number, from: number, isTriple: boolean): number | Misread {
  const { source } = scanner;
  let at = from;
  while (at < source.length) {
    const character = source[at] as string;
    if (NAME_CHARACTER.test(character)) {
      if (isMark(character)) return misread(at, "this character is not allowed in a name");
      at += 1;
      continue;
    }
    scanner.parts += 1;
    if (scanner.parts > TAG_PARTS_MAX) return misread(at, "there is too much inside the tags of this template");
    if (character === "}") return scanClose(source, tagAt, at, isTriple);
    if (character === "{" && source[at + 1] === "{") break;
    const next = scanSpecial(scanner, at, character);
    if (typeof next !== "number") return next;
    at = next;
  }
  return misread(tagAt, "the tag that begins here is never closed");
}

function isMark(character: string): boolean {
  const code = character.charCodeAt(0);
  return code >= MARK_FIRST && code <= MARK_LAST;
}

function scanClose(source: string, tagAt: number, at: number, isTriple: boolean): number | Misread {
  if (source.startsWith("}}}}", at)) {
    return misread(at, "there are too many closing braces; put a space before one that is text");
  }
  const triple = source.startsWith("}}}", at) ? 3 : source.startsWith("}~}}", at) ? 4 : 0;
  if (isTriple) return triple ? at + triple : misread(tagAt, "a tag that begins with {{{ must end with }}}");
  if (triple) return misread(at, "a tag that begins with {{ must end with }}; put a space before a brace that is text");
  return source[at + 1] === "}" ? at + 2 : misread(at, "a single } cannot stand inside a tag");
}

function scanSpecial(scanner: Scanner, at: number, character: string): number | Misread {
  switch (character) {
    case '"':
    case "'": {
      const end = closingQuote(scanner.source, at, character);
      return end === -1 ? misread(at, "the text that begins here has no closing quote") : end + 1;
    }
    case "[":
      return maskName(scanner, at);
    case "(":
    case ")":
      return misread(at, "sub-expressions in parentheses are not part of the template language");
    case "|":
      return misread(at, "block parameters (as |name|) are not part of the template language");
    default:
      return /[\s./@=~]/.test(character) ? at + 1 : misread(at, `a ${character} cannot stand inside a tag`);
  }
}

/** The first `quote` after `at` without a backslash before it (as the parser has it), or -1. */
function closingQuote(source: string, at: number, quote: string): number {
  let end = source.indexOf(quote, at + 1);
  while (end !== -1 && source[end - 1] === "\\") end = source.indexOf(quote, end + 1);
  return end;
}

/** The first `]` after `at` that is not escaped, or -1. `\\` and `\]` are escapes. */
function closingBracket(source: string, at: number): number {
  for (let end = at + 1; end < source.length; end += 1) {
    if (source[end] === "]") return end;
    if (source[end] === "\\" && (source[end + 1] === "\\" || source[end + 1] === "]")) end += 1;
  }
  return -1;
}

function maskName(scanner: Scanner, at: number): number | Misread {
  const { source } = scanner;
  const end = closingBracket(source, at);
  const name = source.slice(at + 1, end);
  if (end === -1) return misread(at, "the bracket that begins here is never closed");
  if (name === "") return misread(at, "there is no name between the brackets");
  let masked = "";
  for (const character of name) {
    const isPlain = character > "\x7f" && !/\s/.test(character) && !isMark(character);
    if (!isPlain && (character < " " || character > "\x7e")) {
      return misread(at, "there is a character between the brackets that is not allowed in a name");
    }
    masked += isPlain ? character : String.fromCharCode(MARK_FIRST + character.charCodeAt(0));
  }
  const before = source[at - 1] as string;
  const isIndex = before === "]" || NAME_CHARACTER.test(before);
  replace(scanner, at, end + 1, (isIndex ? "." : OPEN_MARK) + masked + CLOSE_MARK);
  return end + 1;
}

/** Keeps the stack of open blocks; a problem, or null. */
function followBlocks(scanner: Scanner, at: number, nameAt: number, kind: string): Misread | null {
  const name = matchAt(BLOCK_NAME, scanner.source, nameAt)?.[1] ?? "";
  const open = scanner.blocks.at(-1);
  if (kind === "/") {
    if (!open) return misread(at, `{{/${name}}} closes a block that was never opened`);
    if (open.name !== name) return misread(at, `{{/${name}}} stands where {{/${open.name}}} is expected`);
    scanner.depth -= 1 + open.branches;
    scanner.blocks.pop();
  } else if (kind === "else") {
    if (!open) return misread(at, "{{else}} stands outside of any block");
    scanner.depth += 1;
    open.branches += 1;
  } else if (kind === "#" || kind === "^") {
    scanner.depth += 1;
    scanner.blocks.push({ name, at, branches: 0 });
  }
  return scanner.depth > NESTING_MAX ? misread(at, `blocks are nested deeper than ${NESTING_MAX} levels`) : null;
}
