// Replaces addresses in text and HTML however they are written: in any case, with a +tag, as %40 or &#64; (nested, too),
// with zero-width characters in them, in full-width letters, with accents composed or not, split by tags or line ends, with
// blanks or `[at]` for the `@`, or as return paths hold them (`anna=home.example`, VERP). The text is read through a view in which the disguises are undone and every character knows where it came from. What only
// ends or begins like the address is somebody else's. The leak gate must not use this: it is what it checks.
import { beginsEarlier, isLonger, type Place } from "./address-edges.ts";
import { closedMarkupIn, markupIn, type Span } from "./html-markup.ts";
import {
  decodedView,
  decodeText,
  foldText,
  plainView,
  quotedView,
  unescapedView,
  unescapeText,
  unquotedText,
  type View,
} from "./text-view.ts";

/** `from` is an address that must not stay, or a text that an address was shown as; `to` stands for it. */
export type Replacement = { from: string; to: string };

/** `runs`: how many of them were in a code (encoded-runs.ts, close/); `cut`: how many were keys or signatures. */
export type Replaced = { text: string; count: number; runs?: number; cut?: number };

/** `name` is for names of files: there the address is found wherever its letters stand. */
export type Replacer = { text(text: string): Replaced; html(html: string): Replaced; name(name: string): Replaced };

/**
 * An address, or the words for one, and what is written for it. `units` are its letters as the source has them, without the
 * tags and line ends between, which stay where they are; null leaves it.
 */
export type Exchange = {
  from: string;
  /** Found wherever its letters stand, with or without its tag. */
  anywhere: boolean;
  write(units: readonly string[], { isHtml, isTouched }: WrittenIn): readonly string[] | null;
  /** It comes back letter by letter: what stands between its letters stays behind as many, and so do line ends in its words. */
  comesBack?: boolean;
};

/** `isTouched`: letters stand right beside it in the source. */
export type WrittenIn = { isHtml: boolean; isTouched: boolean };

const ROUNDS_MAX = 4;
const TAGS = /<[^<>]{0,5000}>/g;
/** A line end as quotes and broken lines have it, with the blank that RFC 3676 puts before it. */
const BREAKS = /[ \t]?\r?\n(?:[ \t]?[>|])*[ \t]?|\t+/g;
/** Reverse addresses of any alias; behind `example` letters of another script are other words. */
const REVERSE =
  /r\.[a-z2-7]{26}(?:\+[a-z0-9._=-]{0,640})?@(?:[\p{L}\p{M}\p{N}-]{1,63}\.){1,10}(?:[a-z0-9-]{1,63}|[\p{L}\p{M}\p{N}-]{1,63})/gu;
const IS_REVERSE = /^r\.[a-z2-7]{26}@/i;
/** What RFC 5233 separates from a local part; many characters more than people use. */
const TAG = '(?:\\+[^\\s@<>()",:;\\[\\]\\\\]{0,64})?';
/** What stands behind reverse addresses in tokens (sent-content.ts). */
const TOKEN_TAG = "(?:\\+[a-z0-9._=-]{0,640})?";

/** RFC 5321 §4.1.2 allows the quotes; the rest are what people and list programs write for it. */
const AT =
  '(?<at>"?[ \\t]{0,2}@[ \\t]{0,2}|[=%]|[-+]40|[-_]at[-_]|[ \\t]?[\\[({][ \\t]?(?:at|ät|arroba)[ \\t]?[\\])}][ \\t]?)';
/** What people write for the dots, and Proofpoint for hyphens. */
const DOT = "(?:\\.|[ \\t]?[\\[({][ \\t]?(?:dot|punkt|point|punto|ponto|punt)[ \\t]?[\\])}][ \\t]?)";
const SPOKEN_AT = "[\\s>]{1,4}at[\\s>]{1,4}";
const SPOKEN_DOT = "(?:\\.|[\\s>]{1,4}dot[\\s>]{1,4})";

/** `kept` are found and stay: they are what an earlier rule wrote. */
type Rule = {
  pattern(): RegExp;
  /** Letters that stand in all that the pattern finds: far quicker to look for. */
  needed: string;
  to: string;
  kind: "address" | "words" | "reverse";
  kept: ReadonlySet<string>;
  write?: Exchange["write"];
  comesBack?: boolean;
};
/**
 * A way of reading: as mere text, to see whether there is anything at all, and with the places where it came from. `tags`
 * are those it passed over within a piece of the source.
 */
type Reading = {
  glance(source: string): string;
  view(source: string): View;
  tags(piece: string): string[];
  /** What it passes over belongs to the spelling: in text tags are letters, and a quote in HTML writes them as such. */
  isWhole?: true;
};

const naiveTags = (piece: string) => piece.match(/<\/?[a-z!][^<>]*>/gi) ?? [];
const spansOf = (source: string, pattern: RegExp) =>
  [...source.matchAll(pattern)].map(({ index, 0: { length } }) => ({ start: index, end: index + length }));

// As it stands, too: in `%4anna@…` the first letter belongs to a code when that is read.
const AS_IT_STANDS: Reading = { glance: foldText, view: plainView, tags: naiveTags };
const DECODED: Reading = {
  glance: (source) => foldText(decodeText(source)),
  view: decodedView,
  tags: naiveTags,
};
const UNESCAPED: Reading = {
  glance: (source) => foldText(unescapeText(source)),
  view: unescapedView,
  tags: naiveTags,
};
/** Pasted from the source of a mail (RFC 2045 §6.7). */
const QUOTED_SIGN = /=[2-7][0-9A-Fa-f]/;
const QUOTED: Reading = {
  glance: (source) => foldText(unquotedText(source)),
  view: quotedView,
  tags: naiveTags,
};
/** As browsers read tags, and as simpler readers do. */
const WITHOUT_MARKUP: Reading = {
  glance: (source) => foldText(decodeText(without(source, markupIn(source)))),
  view: (source) => decodedView(source, markupIn(source)),
  tags: (piece) => markupIn(piece).map(({ start, end }) => piece.slice(start, end)),
};
const WITHOUT_TAGS: Reading = {
  glance: (source) => foldText(decodeText(source.replace(TAGS, ""))),
  view: (source) => decodedView(source, spansOf(source, TAGS)),
  tags: naiveTags,
};
const TEXT_WITHOUT_MARKUP: Reading = { ...WITHOUT_MARKUP, isWhole: true };
const TEXT_WITHOUT_TAGS: Reading = { ...WITHOUT_TAGS, isWhole: true };
/** Whatever opened before it: the marks of a quote would close that, and the answer be read in another way than the mail. */
const TEXT_WITHOUT_CLOSED: Reading = {
  glance: (source) => foldText(decodeText(without(source, closedMarkupIn(source)))),
  view: (source) => decodedView(source, closedMarkupIn(source)),
  tags: (piece) => closedMarkupIn(piece).map(({ start, end }) => piece.slice(start, end)),
  isWhole: true,
};
const JOINED: Reading = {
  glance: (source) => foldText(decodeText(source.replace(BREAKS, ""))),
  view: (source) => decodedView(source, spansOf(source, BREAKS)),
  tags: naiveTags,
};

/** Lines that a program broke in HTML. */
const BROKEN = /(?:[ \t]?<(?:br|p|div)\b[^<>]{0,5000}>|<[^<>]{0,5000}>|[ \t]?\r?\n(?:[ \t]?(?:[>|]|&gt;))*[ \t]?)+/g;
const JOINED_HTML: Reading = {
  glance: (source) => foldText(decodeText(source.replace(BROKEN, ""))),
  view: (source) => decodedView(source, spansOf(source, BROKEN)),
  tags: naiveTags,
};
/** The same with the marks of a quote behind such a tag. */
const BROKEN_IN_QUOTES =
  /(?:[ \t]?(?:<(?:br|p|div)\b[^<>]{0,5000}>|\r?\n)(?:[ \t]?(?:[>|]|&gt;))*[ \t]?|<[^<>]{0,5000}>)+/g;
const JOINED_QUOTES: Reading = {
  glance: (source) => foldText(decodeText(source.replace(BROKEN_IN_QUOTES, ""))),
  view: (source) => decodedView(source, spansOf(source, BROKEN_IN_QUOTES)),
  tags: naiveTags,
};
/** For addresses of so many random letters that no two pieces make one by chance: across lines, quotes and tags. */
const LOOSE = /(?:<[^<>]{0,5000}>|[\s>|]|&gt;|&nbsp;)+/g;
const LOOSELY: Reading = {
  glance: (source) => foldText(decodeText(source.replace(LOOSE, ""))),
  view: (source) => decodedView(source, spansOf(source, LOOSE)),
  tags: naiveTags,
};

/**
 * A replacer for these addresses, the longest first; `reverseTo` stands for every reverse address that is none of them. Most
 * texts hold none: they are glanced at and left alone. `isClose`: HTML is read as text is, too.
 */
export function createReplacer(replacements: readonly Replacement[], reverseTo?: string, isClose = false): Replacer {
  return replacerOf(
    lazily(() => {
      const rules: Rule[] = [...replacements]
        .sort((a, b) => b.from.length - a.from.length)
        .map(({ from, to }) => ({
          pattern: lazily(() => patternOf(from)),
          needed: neededOf(from),
          to,
          kind: from.includes("@") ? "address" : "words",
          kept: new Set(),
        }));
      // Somebody whose address is a reverse address of another service stays who they are.
      const kept = new Set(replacements.map(({ to }) => foldText(to)));
      if (reverseTo === undefined) return rules;
      return [...rules, { pattern: () => REVERSE, needed: "r.", to: reverseTo, kind: "reverse", kept }];
    }),
    isClose,
  );
}

/** The same where what stands for an address depends on how it is written. */
export function createExchanger(exchanges: readonly Exchange[]): Replacer {
  const ruleOf = ({ from, anywhere, write, comesBack = false }: Exchange): Rule => {
    const found = from.includes("@") ? "address" : "words";
    const kind = anywhere ? "reverse" : found;
    return {
      pattern: lazily(() => patternOf(from)),
      needed: neededOf(from),
      to: "",
      kind,
      kept: new Set(),
      write,
      comesBack,
    };
  };
  const sorted = [...exchanges].sort((a, b) => b.from.length - a.from.length);
  const replacer = replacerOf(lazily(() => sorted.map(ruleOf)));
  const reverse = sorted.filter(({ from }) => IS_REVERSE.test(from)).map(ruleOf);
  if (reverse.length === 0) return replacer;
  const loosely = (kind: keyof Replacer) => (source: string) => {
    const first = replacer[kind](source);
    const second = run(reverse, first.text, [LOOSELY], kind === "html");
    return { text: second.text, count: first.count + second.count };
  };
  return { text: loosely("text"), html: loosely("html"), name: loosely("name") };
}

function replacerOf(rules: () => readonly Rule[], isClose = false): Replacer {
  const anywhere = lazily(() =>
    rules().map((rule): Rule => (rule.kind === "address" ? { ...rule, kind: "reverse" } : rule)),
  );
  const inText = (source: string) => [
    ...[AS_IT_STANDS, DECODED],
    ...(source.includes("\\") ? [UNESCAPED] : []),
    ...(QUOTED_SIGN.test(source) ? [QUOTED] : []),
    ...(/[\n\t]/.test(source) ? [JOINED] : []),
    ...(source.includes("<") ? [TEXT_WITHOUT_MARKUP, TEXT_WITHOUT_TAGS, TEXT_WITHOUT_CLOSED] : []),
  ];
  const inHtml = (source: string) => [
    ...[AS_IT_STANDS, DECODED],
    ...(source.includes("\\") ? [UNESCAPED] : []),
    ...(source.includes("<") ? [WITHOUT_MARKUP, WITHOUT_TAGS] : []),
    ...(source.includes("<") && source.includes("\n") ? [JOINED_HTML] : []),
    ...(isClose ? closeReadings(source) : []),
  ];
  return {
    text: (source) => untilClean(source, (text) => run(rules(), text, inText(text), false)),
    html: (source) => untilClean(source, (html) => run(rules(), html, inHtml(html), true)),
    name: (source) => untilClean(source, (name) => run(anywhere(), name, inText(name), false)),
  };
}

/** What HTML and files hold that was text before: pasted from the source of a mail, or from a quote of it. */
function closeReadings(source: string): Reading[] {
  return [
    ...(QUOTED_SIGN.test(source) ? [QUOTED] : []),
    ...(/[\n\t]/.test(source) ? [JOINED] : []),
    ...(source.includes("<") ? [JOINED_QUOTES] : []),
  ];
}

/** What a reading found may have stood in the way of those before it: `ANNA<address in it>@home.example`. */
function untilClean(source: string, look: (text: string) => Run): Replaced {
  let { text, count, isLookedAt } = look(source);
  for (let round = 1; round < ROUNDS_MAX && !isLookedAt; round += 1) {
    const next = look(text);
    count += next.count;
    ({ text, isLookedAt } = next);
  }
  return { text, count };
}

function without(source: string, spans: readonly Span[]): string {
  let out = "";
  let from = 0;
  for (const { start, end } of spans) {
    out += source.slice(from, start);
    from = end;
  }
  return out + source.slice(from);
}

/** `isLookedAt`: each reading saw the text as it is now. */
type Run = Replaced & { isLookedAt: boolean };

function run(rules: readonly Rule[], source: string, readings: readonly Reading[], isHtml: boolean): Run {
  // Most forms of one mailbox need the same letters.
  const letters = [...new Set(rules.map(({ needed }) => needed))];
  let text = source;
  let count = 0;
  // As it stands nothing was found in it: without codes it reads the same decoded.
  let isClean = false;
  let isLookedAt = true;
  for (const reading of readings) {
    if (isClean && reading === DECODED && !/[&%]/.test(text)) continue;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const seen = reading.glance(text);
      const there = new Set(letters.filter((one) => seen.includes(one)));
      const meant = rules.filter(({ pattern, needed }) => there.has(needed) && seen.search(pattern()) !== -1);
      isClean = meant.length === 0 && reading === AS_IT_STANDS;
      if (meant.length === 0) break;
      const replaced = replaceIn(text, { ...reading, isHtml }, meant);
      text = replaced.text;
      count += replaced.count;
      if (replaced.count === 0) break;
      isLookedAt = reading === readings[0];
    }
  }
  return { text, count, isLookedAt };
}

/** Most rules are never needed, and writing a pattern takes longer than looking for its letters. */
function lazily<T extends {}>(make: () => T): () => T {
  let made: T | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

/** In HTML a lone `>` ends a tag; behind a line end it is the mark of a quote. */
const BLANKS_BEFORE = "\\s[\\s>]{0,7}";

/** The address with any +tag, in any case; a text wherever it may be broken into lines, quoted ones too. */
function patternOf(given: string): RegExp {
  const lower = foldText(given);
  const at = lower.lastIndexOf("@");
  const before = /^\s/.test(lower) ? BLANKS_BEFORE : "";
  if (at === -1) return new RegExp(before + lower.trimStart().split(/\s+/).map(quote).join("[\\s>]{1,8}"), "g");
  const [local, domain] = [lower.slice(0, at).trimStart(), lower.slice(at + 1)];
  // Gmail delivers with dots and without.
  const letters = /^(?:gmail|googlemail)\.com$/.test(domain) ? [...local.replaceAll(".", "")] : [local];
  const isReverse = /^\(?r\.[a-z2-7]{26}$/.test(local);
  const written = letters.map((one) => spoken(one, DOT)).join("\\.?");
  const whole = `${before}${written}${isReverse ? TOKEN_TAG : TAG}${AT}${spoken(domain, DOT)}`;
  if (isReverse) return new RegExp(whole, "g");
  // `anna dot real at home dot example`; with `at` alone it is among the words for an address.
  const [last = "", ...labels] = domain.split(".").reverse();
  const host = `${labels
    .reverse()
    .map((one) => spoken(one, ""))
    .join(SPOKEN_DOT)}[\\s>]{1,4}dot[\\s>]{1,4}${spoken(last, "")}`;
  return new RegExp(`${whole}|${spoken(local, SPOKEN_DOT)}${SPOKEN_AT}${host}`, "g");
}

/** A piece of an address with these for its dots, and hyphens as links hold them that were rewritten. */
function spoken(text: string, dot: string): string {
  return text
    .split(".")
    .map((piece) => quote(piece).replaceAll("\\-", "-(?:2d)?"))
    .join(dot);
}

/** The longest label of the domain, which patternOf writes as it is; of words the longest. */
function neededOf(given: string): string {
  const lower = foldText(given);
  const at = lower.lastIndexOf("@");
  if (at !== -1) return longest(lower.slice(at + 1).split(/[.-]/));
  return longest(lower.split(/\s+/));
}

function longest(pieces: readonly string[]): string {
  return pieces.reduce((one, other) => (other.length > one.length ? other : one));
}

function quote(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}

type Found = { first: number; last: number; written: string };
type Within = Reading & { isHtml: boolean };

function replaceIn(source: string, reading: Within, rules: readonly Rule[]): Replaced {
  const view = reading.view(source);
  const found = rules.flatMap((rule) => findIn(view, source, rule, reading)).sort((a, b) => a.first - b.first);
  let out = "";
  let end = 0;
  let count = 0;
  for (const { first, last, written } of found) {
    if (first < end) continue;
    out += source.slice(end, first) + written;
    end = last;
    count += 1;
  }
  return { text: count === 0 ? source : out + source.slice(end), count };
}

type Match = Place & { goes: boolean };

function findIn(view: View, source: string, rule: Rule, reading: Within): Found[] {
  const { to, write, comesBack = false } = rule;
  return matchesIn(view, source, rule).flatMap((place) => {
    const { from, separator } = place;
    const [first, last] = [view.starts[from] as number, view.ends[place.to - 1] as number];
    if (write) {
      const within = { isHtml: reading.isHtml, isTouched: isTouchedIn(source, first, last) };
      const { units, between } = piecesOf(view, source, { ...place, isWhole: reading.isWhole === true });
      const written = comesBack
        ? exchanged(inLetters({ units, between }, reading.isHtml), (letters) => write(letters, within))
        : exchanged({ units, between }, (letters) => write(letters, within));
      return written === null ? [] : [{ first, last, written }];
    }
    const address = separator === null || separator === "@" ? to : to.replace("@", () => separator);
    // Tags within stay, so that the document keeps its shape.
    return [{ first, last, written: address + reading.tags(source.slice(first, last)).join("") }];
  });
}

/** Where the rule's address stands, and nobody else's. */
function matchesIn(view: View, source: string, { pattern, kind, kept }: Rule): Place[] {
  const matches = [...view.text.matchAll(pattern())].flatMap(({ index, 0: text, groups }): Match[] => {
    const separator = groups?.at ?? (text.includes("@") ? "@" : null);
    return kept.has(text) ? [] : [{ from: index, to: index + text.length, separator, goes: kind === "reverse" }];
  });
  if (kind === "reverse") return matches;
  const areNear = (one: Match | null, other: Match | null): boolean =>
    one !== null && other !== null && /^[a-z0-9.+_-]{0,64}$/.test(view.text.slice(one.to, other.from).slice(0, 65));
  // What follows one that goes, with letters between at most, belongs to nothing before.
  let gone: Match | null = null;
  for (const match of matches) {
    match.goes = areNear(gone, match) || !isLonger(view, source, match);
    if (match.goes) gone = match;
  }
  // And what stands before one that goes to nothing behind.
  gone = null;
  for (const match of matches.toReversed()) {
    match.goes ||= areNear(match, gone) && !beginsEarlier(view, match);
    if (match.goes) gone = match;
  }
  return matches.filter(({ goes }) => goes);
}

/** As words that stand for an address are left alone (address-edges.ts). */
function isTouchedIn(source: string, first: number, last: number): boolean {
  const [before, after] = [source.slice(Math.max(0, first - 2), first), source.slice(last, last + 3)];
  return /[\p{L}\p{N}_.+-]$/u.test(before) || /^(?:[.-]?[\p{L}\p{N}]|_)/u.test(after);
}

/** The letters of a place in the view as the source has them, and what the view passed over behind so many of them. */
type Pieces = { units: string[]; between: Map<number, string> };

function piecesOf(
  { starts, ends }: View,
  source: string,
  place: { from: number; to: number; isWhole: boolean },
): Pieces {
  const units: string[] = [];
  const between = new Map<number, string>();
  for (let at = place.from; at < place.to; at += 1) {
    const [start, end] = [starts[at] as number, ends[at] as number];
    if (at > place.from && start === starts[at - 1]) continue;
    const before = at > place.from ? source.slice(ends[at - 1] as number, start) : "";
    if (place.isWhole) units.push(...before);
    else if (before !== "") between.set(units.length, before);
    units.push(source.slice(start, end));
  }
  return { units, between };
}

/** A line end with the blanks and the marks of quotes around it. */
const LINE_END = /([\s>|]*[\r\n][\s>|]*)/;

/**
 * The same with places by the letters that come back, where a code in a text is as many as it has, and with line ends as no
 * letters, wherever they stand: a quote puts its own marks there.
 */
function inLetters({ units, between }: Pieces, isHtml: boolean): Pieces {
  const kept: Pieces = { units: [], between: new Map() };
  let letters = 0;
  const pass = (text: string) => {
    if (text !== "") kept.between.set(letters, (kept.between.get(letters) ?? "") + text);
  };
  const keep = (unit: string) => {
    const pieces = unit.split(LINE_END);
    kept.units.push(pieces.length === 1 ? unit : pieces.filter((_, at) => at % 2 === 0).join(""));
    for (const [at, piece] of pieces.entries()) {
      if (at % 2 === 1) pass(piece);
      else letters += isHtml && unit.startsWith("&") ? Number(at === 0) : [...piece].length;
    }
  };
  let gap: { text: string; isLetter: boolean }[] = [];
  const closeGap = () => {
    const isBreak = gap.some(({ text }) => /[\r\n]/.test(text));
    for (const { text, isLetter } of gap) (isLetter && !isBreak ? keep : pass)(text);
    gap = [];
  };
  for (const [at, unit] of units.entries()) {
    gap.push({ text: between.get(at) ?? "", isLetter: false });
    const isBlank = /^[\s>|]$/.test(unit);
    if (isBlank) gap.push({ text: unit, isLetter: true });
    else {
      closeGap();
      keep(unit);
    }
  }
  closeGap();
  return kept;
}

/** What stands for these letters, with what stood between them behind as many. */
function exchanged(
  { units, between }: Pieces,
  write: (units: readonly string[]) => readonly string[] | null,
): string | null {
  const written = write(units);
  if (written === null) return null;
  const pieces = written.map((unit, at) => (between.get(at) ?? "") + unit);
  const rest = [...between].flatMap(([at, text]) => (at >= written.length ? text : []));
  return [...pieces, ...rest].join("");
}
