// A text as a reader sees it behind its disguises: references, percents, escapes, invisible characters, letters in other
// shapes, markup and line ends undone; every character knows where it came from. The leak gate must not use this.
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { namedText } from "./entity-names.ts";
import type { Span } from "./html-markup.ts";

/**
 * Each character of `text` came from `starts[i]`..`ends[i]` of the source. `reshaped` are the places of ASCII characters
 * that were written as others.
 */
export type View = { text: string; starts: number[]; ends: number[]; reshaped: ReadonlySet<number> };

const LAYERS = 4;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cf}/u;
const INVISIBLE_ALL = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu;
/** Beyond ASCII; characters for private use, which mark what was put aside, have no other form. */
const SHAPED = /[\u{80}-\u{d7ff}\u{f900}-\u{10ffff}]/gu;
const ENTITIES = /&(?:#0{0,30}\d{1,7}|#x0{0,30}[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});?/gi;
const PERCENTS = /%[0-7][0-9a-f]|%[c-f][0-9a-f](?:%[89ab][0-9a-f]){1,3}/gi;
/**
 * Escapes of JSON and of CSS (Syntax Level 3 §4.3.7): a number with a blank behind it, or a sign that stands for
 * itself.
 */
const ESCAPES = /\\(?:u00[0-7][0-9a-f]|x[0-7][0-9a-f]|[0-9a-f]{1,6}[ \t\r\n\f]?|[!-/:-@[-`{-~])/gi;
const NONE: ReadonlySet<number> = new Set();
/** The first 256, which is what decoded octets are: to normalize each was a quarter of the time of a forward. */
const LATIN = Array.from({ length: 256 }, (_, code) => foldedChar(String.fromCharCode(code)));

/** The text as it stands, but for the shapes of letters. */
export function plainView(source: string): View {
  return fold(sourceView(source));
}

/** References and percents undone, in as many layers as people nest them; what `spans` cover is left out before. */
export function decodedView(source: string, spans: readonly Span[] = []): View {
  return fold(decodeLayers(cut(sourceView(source), spans)));
}

/** Escapes of CSS undone, too. */
export function unescapedView(source: string): View {
  return fold(decode(decodeLayers(sourceView(source)), ESCAPES, escaped));
}

const QUOTED = /=[2-7][0-9a-f]/gi;

/** Octets of quoted-printable undone, as far as they are ASCII. */
export function quotedView(source: string): View {
  return fold(decode(sourceView(source), QUOTED, unquoted));
}

/** What `quotedView` reads, before letters are folded. */
export function unquotedText(source: string): string {
  return source.replace(QUOTED, unquoted);
}

function unquoted(text: string): string {
  return String.fromCharCode(Number.parseInt(text.slice(1), 16));
}

function decodeLayers(given: View): View {
  let view = given;
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const before = view.text;
    view = decode(view, ENTITIES, entity);
    view = decode(view, PERCENTS, percent);
    if (view.text === before) break;
  }
  return view;
}

/** What `decodedView` reads, before letters are folded. */
export function decodeText(source: string): string {
  let text = source;
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const before = text;
    text = text.replace(ENTITIES, entity).replace(PERCENTS, percent);
    if (text === before) break;
  }
  return text;
}

/** What `unescapedView` reads, before letters are folded. */
export function unescapeText(source: string): string {
  return decodeText(source).replace(ESCAPES, escaped);
}

/** What the views read of a text in the end. */
export function foldText(text: string): string {
  if (!/[^\x00-\x7f]/.test(text)) return text.toLowerCase();
  if (!/[^\x00-\xff]/.test(text)) {
    return text
      .replaceAll("\u00ad", "")
      .replace(/[\x80-\xff]+/g, foldLatin)
      .toLowerCase();
  }
  return text.replace(INVISIBLE_ALL, "").replace(SHAPED, foldChar).toLowerCase();
}

function foldLatin(run: string): string {
  let out = "";
  for (let at = 0; at < run.length; at += 1) out += LATIN[run.charCodeAt(at)] as string;
  return out;
}

/** Decomposed, so that it is all one how accents were written; the full stop of Chinese separates labels, too (UTS #46). */
function foldChar(char: string): string {
  return LATIN[char.charCodeAt(0)] ?? foldedChar(char);
}

function foldedChar(char: string): string {
  return char.normalize("NFKD").toLowerCase().replaceAll("\u3002", ".");
}

function sourceView(source: string): View {
  const starts = new Array<number>(source.length);
  const ends = new Array<number>(source.length);
  for (let at = 0; at < source.length; at += 1) {
    starts[at] = at;
    ends[at] = at + 1;
  }
  return { text: source, starts, ends, reshaped: NONE };
}

// Names that need no semicolon (HTML Living Standard §13.2.5.73), as far as they matter here.
const BARE = /^&(?:amp|lt|gt|quot|shy|nbsp)/i;

/** Within an attribute browsers pass over them. */
const PASSED_OVER = /^&(?:tab|newline|#0*(?:9|10|13)|#x0*[9ad]);$/i;

function entity(text: string): string {
  if (PASSED_OVER.test(text)) return "";
  const closed = (text.endsWith(";") ? text : `${text};`).replace(/^(&#x?)0+(?=[0-9a-f])/i, "$1");
  const decoded = decodeEntities(closed);
  if (decoded !== closed) return decoded;
  const named = namedText(closed.slice(1, -1));
  if (named !== undefined) return named;
  const [bare] = BARE.exec(text) ?? [];
  return bare === undefined ? text : decodeEntities(`${bare.toLowerCase()};`) + text.slice(bare.length);
}

function percent(text: string): string {
  const decoded = Buffer.from(text.replaceAll("%", ""), "hex").toString("utf8");
  return decoded.includes("\ufffd") ? text : decoded;
}

function escaped(text: string): string {
  const hex = /^\\(?:u00|x)?([0-9a-f]{1,6})/i.exec(text)?.[1];
  if (hex === undefined) return text.slice(1);
  const code = Number.parseInt(hex, 16);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : text;
}

/** Writes what `pattern` finds as `to` says; each new character came from the whole of it. */
function decode(view: View, pattern: RegExp, to: (text: string) => string): View {
  const out: View = { text: "", starts: [], ends: [], reshaped: NONE };
  let end = 0;
  for (const match of view.text.matchAll(pattern)) {
    const decoded = to(match[0]);
    if (decoded === match[0]) continue;
    copy(view, out, end, match.index);
    end = match.index + match[0].length;
    for (let at = 0; at < decoded.length; at += 1) {
      out.starts.push(view.starts[match.index] as number);
      out.ends.push(view.ends[end - 1] as number);
    }
    out.text += decoded;
  }
  if (end === 0) return view;
  copy(view, out, end, view.text.length);
  return out;
}

function cut(view: View, spans: readonly Span[]): View {
  if (spans.length === 0) return view;
  const out: View = { text: "", starts: [], ends: [], reshaped: NONE };
  let from = 0;
  for (const { start, end } of spans) {
    copy(view, out, from, start);
    from = end;
  }
  copy(view, out, from, view.text.length);
  return out;
}

function copy(from: View, to: View, start: number, end: number): void {
  to.text += from.text.slice(start, end);
  for (let at = start; at < end; at += 1) {
    to.starts.push(from.starts[at] as number);
    to.ends.push(from.ends[at] as number);
  }
}

/** Without invisible characters, in the compatibility form and in lower case, character by character. */
function fold(view: View): View {
  const reshaped = new Set<number>();
  const out: View = { text: "", starts: [], ends: [], reshaped };
  const pieces: string[] = [];
  for (let at = 0; at < view.text.length; ) {
    const char = String.fromCodePoint(view.text.codePointAt(at) as number);
    const last = at + char.length - 1;
    if (char < "\u0080" || !INVISIBLE.test(char)) {
      const folded = char < "\u0080" ? char.toLowerCase() : foldChar(char);
      pieces.push(folded);
      for (let n = 0; n < folded.length; n += 1) {
        if (char >= "\u0080" && folded.charCodeAt(n) < 0x80) reshaped.add(out.starts.length);
        out.starts.push(view.starts[at] as number);
        out.ends.push(view.ends[last] as number);
      }
    }
    at = last + 1;
  }
  out.text = pieces.join("");
  return out;
}
