// Replaces addresses in text and HTML however they are written: in any case, with a +tag, as %40 or &#64; (nested, too),
// with zero-width characters in them, in full-width letters, with accents composed or not, split by tags or line ends. The
// text is read through a view in which the disguises are undone and every character knows where it came from. The leak gate
// must not use this: it is what it checks.
import { decodeEntities } from "../mime/html-entities.ts";

/** `from` is an address that must not stay, or a text that an address was shown as; `to` stands for it. */
export type Replacement = { from: string; to: string };

export type Replaced = { text: string; count: number };

export type Replacer = { text(text: string): Replaced; html(html: string): Replaced };

/** Each character of `text` came from `starts[i]`..`ends[i]` of the source. */
type View = { text: string; starts: number[]; ends: number[] };

const LAYERS = 4;
const ROUNDS_MAX = 4;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cf}/u;
const INVISIBLE_ALL = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu;
const TAGS = /<[^<>]{0,5000}>/g;
const ENTITIES = /&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,20});?/gi;
const PERCENTS = /%[0-7][0-9a-f]|%[c-f][0-9a-f](?:%[89ab][0-9a-f]){1,3}/gi;
/** A line end as quotes and broken lines have it, with the blank that RFC 3676 puts before it. */
const BREAKS = /[ \t]?\r?\n(?:[ \t]?[>|])*[ \t]?/g;
/** Reverse addresses of any alias. */
const REVERSE = /r\.[a-z2-7]{26}(?:\+[a-z0-9._=-]{0,64})?@(?:[a-z0-9-]{1,63}\.){1,10}[a-z0-9-]{1,63}/g;

type Rule = { pattern: RegExp; to: string };
/** A way of reading: as mere text, to see whether there is anything at all, and with the places where it came from. */
type Reading = { glance(source: string): string; view(source: string): View };

// As it stands, too: in `%4anna@…` the first letter belongs to a code when that is read.
const AS_IT_STANDS: Reading = { glance: foldText, view: (source) => fold(plainView(source)) };
const DECODED: Reading = {
  glance: (source) => foldText(decodeText(source)),
  view: (source) => decodedView(plainView(source)),
};
const WITHOUT_TAGS: Reading = {
  glance: (source) => foldText(decodeText(source.replace(TAGS, ""))),
  view: (source) => decodedView(decode(plainView(source), TAGS, () => "")),
};
const JOINED: Reading = {
  glance: (source) => foldText(decodeText(source.replace(BREAKS, ""))),
  view: (source) => decodedView(decode(plainView(source), BREAKS, () => "")),
};

/**
 * A replacer for these addresses, the longest first; `reverseTo` stands for every reverse address that is none of them. Most
 * texts hold none: they are glanced at and left alone.
 */
export function createReplacer(replacements: readonly Replacement[], reverseTo?: string): Replacer {
  const rules: Rule[] = [...replacements]
    .sort((a, b) => b.from.length - a.from.length)
    .map(({ from, to }) => ({ pattern: patternOf(from), to }));
  if (reverseTo !== undefined) rules.push({ pattern: REVERSE, to: reverseTo });
  return {
    text: (source) => run(rules, source, [AS_IT_STANDS, DECODED, ...(source.includes("\n") ? [JOINED] : [])]),
    html: (source) => run(rules, source, [AS_IT_STANDS, DECODED, WITHOUT_TAGS]),
  };
}

function run(rules: readonly Rule[], source: string, readings: readonly Reading[]): Replaced {
  let text = source;
  let count = 0;
  for (const { glance, view } of readings) {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const seen = glance(text);
      const meant = rules.filter(({ pattern }) => seen.search(pattern) !== -1);
      if (meant.length === 0) break;
      const replaced = replaceIn(view(text), text, meant);
      text = replaced.text;
      count += replaced.count;
      if (replaced.count === 0) break;
    }
  }
  return { text, count };
}

/** The address with any +tag, in any case; a text wherever it may be broken into lines, quoted ones too. */
function patternOf(given: string): RegExp {
  const lower = foldText(given);
  const quote = (text: string) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
  const at = lower.lastIndexOf("@");
  if (at === -1) return new RegExp(lower.split(/\s+/).map(quote).join("[\\s>]{1,8}"), "g");
  return new RegExp(`${quote(lower.slice(0, at))}(?:\\+[a-z0-9._=-]{0,64})?@${quote(lower.slice(at + 1))}`, "g");
}

type Found = { first: number; last: number; to: string };

function replaceIn(view: View, source: string, rules: readonly Rule[]): Replaced {
  const found = rules.flatMap(({ pattern, to }) => findIn(view, pattern, to)).sort((a, b) => a.first - b.first);
  let out = "";
  let end = 0;
  let count = 0;
  for (const { first, last, to } of found) {
    if (first < end) continue;
    // Tags within stay, so that the document keeps its shape.
    const tags = source.slice(first, last).match(/<\/?[a-z!][^<>]*>/gi) ?? [];
    out += source.slice(end, first) + to + tags.join("");
    end = last;
    count += 1;
  }
  return { text: count === 0 ? source : out + source.slice(end), count };
}

function findIn(view: View, pattern: RegExp, to: string): Found[] {
  return [...view.text.matchAll(pattern)].map((match) => ({
    first: view.starts[match.index] as number,
    last: view.ends[match.index + match[0].length - 1] as number,
    to,
  }));
}

function decodedView(plain: View): View {
  let view = plain;
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const before = view.text;
    view = decode(view, ENTITIES, entity);
    view = decode(view, PERCENTS, percent);
    if (view.text === before) break;
  }
  return fold(view);
}

/** What `decodedView` reads. */
function decodeText(source: string): string {
  let text = source;
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const before = text;
    text = text.replace(ENTITIES, entity).replace(PERCENTS, percent);
    if (text === before) break;
  }
  return text;
}

/** What `fold` reads. */
function foldText(text: string): string {
  if (!/[^\x00-\x7f]/.test(text)) return text.toLowerCase();
  return text
    .replace(INVISIBLE_ALL, "")
    .replace(/[\u{80}-\u{10ffff}]/gu, foldChar)
    .toLowerCase();
}

/** Decomposed, so that it is all one how accents were written; the full stop of Chinese separates labels, too (UTS #46). */
function foldChar(char: string): string {
  return char.normalize("NFKD").toLowerCase().replaceAll("\u3002", ".");
}

function plainView(source: string): View {
  const starts = new Array<number>(source.length);
  const ends = new Array<number>(source.length);
  for (let at = 0; at < source.length; at += 1) {
    starts[at] = at;
    ends[at] = at + 1;
  }
  return { text: source, starts, ends };
}

function entity(text: string): string {
  const closed = text.endsWith(";") ? text : `${text};`;
  const decoded = decodeEntities(closed);
  if (decoded !== closed) return decoded;
  return NAMES.get(closed.slice(1, -1).toLowerCase()) ?? text;
}

// Names that HTML 5 has for the characters of addresses, beyond the usual ones.
const NAMES: ReadonlyMap<string, string> = new Map([
  ["commat", "@"],
  ["period", "."],
  ["lowbar", "_"],
  ["hyphen", "-"],
  ["dash", "-"],
  ["plus", "+"],
  ["percnt", "%"],
  ["num", "#"],
  ["semi", ";"],
  ["shy", "\u00ad"],
  ["zwnj", "\u200c"],
  ["zwj", "\u200d"],
]);

function percent(text: string): string {
  const decoded = Buffer.from(text.replaceAll("%", ""), "hex").toString("utf8");
  return decoded.includes("\ufffd") ? text : decoded;
}

/** Writes what `pattern` finds as `to` says; each new character came from the whole of it. */
function decode(view: View, pattern: RegExp, to: (text: string) => string): View {
  const out: View = { text: "", starts: [], ends: [] };
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

function copy(from: View, to: View, start: number, end: number): void {
  to.text += from.text.slice(start, end);
  for (let at = start; at < end; at += 1) {
    to.starts.push(from.starts[at] as number);
    to.ends.push(from.ends[at] as number);
  }
}

/** Without invisible characters, in the compatibility form and in lower case, character by character. */
function fold(view: View): View {
  const out: View = { text: "", starts: [], ends: [] };
  const pieces: string[] = [];
  for (let at = 0; at < view.text.length; ) {
    const char = String.fromCodePoint(view.text.codePointAt(at) as number);
    const last = at + char.length - 1;
    if (char < "\u0080" || !INVISIBLE.test(char)) {
      const folded = char < "\u0080" ? char.toLowerCase() : foldChar(char);
      pieces.push(folded);
      for (let n = 0; n < folded.length; n += 1) {
        out.starts.push(view.starts[at] as number);
        out.ends.push(view.ends[last] as number);
      }
    }
    at = last + 1;
  }
  out.text = pieces.join("");
  return out;
}
