// What a text may read as, for the leak gate: references, percents, escapes, tags, invisible characters and line ends undone,
// in every order that matters. Shares nothing with what writes replies. Where something was taken out a mark stands, so that
// whoever searches can tell `an<b>na` from `anna`, and the end of one cell of a table from the beginning of the next.

/** Stands for what was taken out; no character of Unicode. */
export const GAP = "\uffff";

const LAYERS_MAX = 5;
/** What a reference or a percent begins with. */
const CODED = /&[#a-z]|%[0-9a-f]{2}/;
const PERCENTS = /(?:%[0-9a-f]{2})+/g;

/** True if this text, in lower case, holds a character reference of HTML or a percent sign. */
export function isCoded(text: string): boolean {
  return text.search(PERCENTS) !== -1 || (/&(?:#|[a-z]{2})/.test(text) && undoReferences(text) !== text);
}
const LINE_TAG = /<(?:br|p|div)\b[^<>]*>/;
const LINE_TAGS = new RegExp(LINE_TAG, "g");
const SIMPLE_TAGS = /<[^<>]*>/g;

/**
 * Every reading of the text that may matter, in lower case. `isText`: somebody wrote it to be read; of what is binary or was
 * decoded by chance, which is long and full of such signs, fewer readings are worth their time, and no marks. `isWorth` says
 * of a text whether it, or it with its lines joined, can be one of those that are looked for.
 */
export function undisguised(given: string, isText: boolean, isWorth: (text: string) => boolean): Set<string> {
  const mark = isText ? GAP : "";
  const first = fold(given, isText);
  const layers = new Set([first]);
  let last = first;
  for (let layer = 0; layer < LAYERS_MAX && CODED.test(last); layer += 1) {
    const decoded = undoReferences(last).replace(PERCENTS, undoPercents);
    if (decoded === last) break;
    last = fold(decoded, isText);
    if (layers.has(last)) break;
    layers.add(last);
  }
  const whole = new Set([first, last, ...(isText ? unhidden(given, last) : [])]);
  if (isText) for (const one of [...whole]) if (SPOKEN.test(one)) whole.add(withoutSpokenSigns(one));
  for (const one of isText ? [...whole] : []) {
    if (one.includes("urldefense"))
      whole.add(one.replace(/-([2-7][0-9a-f])/g, (_, hex) => character(Number.parseInt(hex, 16))));
  }
  const texts = new Set([...layers].filter(isWorth));
  for (const one of [...whole].flatMap((text) => [text, ...withoutTags(text, isText, isWorth)])) {
    if (!texts.has(one) && !isWorth(one)) continue;
    texts.add(one);
    // Folded lines of calendars and cards; lines that a reader of format=flowed joins (RFC 3676), in quotes, too.
    if (/\n[ \t]/.test(one)) texts.add(one.replace(/\r?\n[ \t]/g, mark));
    if (one.includes("\t")) texts.add(one.replaceAll("\t", mark));
    if (one.includes("\n")) texts.add(one.replace(/(?<![ \t])[ \t]*\r?\n[>| \t]*/g, mark));
  }
  return texts;
}

const SPOKEN = /\b(?:dot|punkt|point|punto|ponto|punt)\b/;

/** As somebody writes an address to be read by people alone: `anna (at) home (dot) example`, `anna at home dot example`. */
function withoutSpokenSigns(text: string): string {
  return text
    .replace(/[ \t]?[[({][ \t]?(?:dot|punkt|point|punto|ponto|punt)[ \t]?[\])}][ \t]?/g, ".")
    .replace(/[\s>]{1,4}dot[\s>]{1,4}/g, ".")
    .replace(/[ \t]?[[({][ \t]?(?:at|ät|arroba)[ \t]?[\])}][ \t]?|[\s>]{1,4}at[\s>]{1,4}(?=[^\s@]{1,255}\.)/g, "@");
}

/** Readings of what is not seen: names of references that nobody here knows, escapes of CSS, invisible characters. */
function unhidden(given: string, last: string): string[] {
  const found: string[] = [];
  if (/&[a-z][a-z0-9]{1,31};/.test(last)) found.push(last.replace(/&[a-z][a-z0-9]{1,31};/g, GAP));
  if (last.includes("\\")) found.push(fold(last.replace(ESCAPES, undoEscape), true));
  if (HIDDEN.test(given)) found.push(fold(given.replace(HIDDEN_ALL, GAP), true));
  return found;
}

/** The readings without tags that are worth it: with line ends for some of them it is the same letters. */
function withoutTags(text: string, isText: boolean, isWorth: (text: string) => boolean): string[] {
  if (!text.includes("<")) return [];
  const simple = text.replace(SIMPLE_TAGS, isText ? GAP : "");
  const found = isWorth(simple) ? [simple] : [];
  if (found.length > 0 && LINE_TAG.test(text)) {
    found.push(text.replace(LINE_TAGS, "\n").replace(SIMPLE_TAGS, isText ? GAP : ""));
  }
  if (isText) {
    const whole = withoutMarkup(text);
    if (whole !== simple) found.push(whole);
  }
  return found;
}

const HIDDEN = /[\p{Cf}\p{DI}]/u;
const HIDDEN_ALL = /[\p{Cf}\p{DI}]/gu;
/** Letters and digits in other shapes: what stands beside them stands apart. */
const SHAPED =
  /[\u00aa-\u00be\u1d2c-\u1d6a\u2070-\u218f\u2460-\u24ff\uff01-\uff5e\u{1d400}-\u{1d7ff}\u{1f100}-\u{1f1ff}]+/gu;

function fold(text: string, isText: boolean): string {
  if (!/[^\x00-\x7f]/.test(text)) return text.toLowerCase();
  if (!isText && !/[^\x00-\xff]/.test(text)) return foldOctets(text);
  const seen = text.replace(HIDDEN_ALL, "");
  const marked = isText ? seen.replace(SHAPED, `${GAP}$&${GAP}`) : seen;
  return marked.normalize("NFKC").replaceAll("\u3002", ".").toLowerCase();
}

/** The same for what was decoded: normalizing noise was most of the time of a search. */
function foldOctets(text: string): string {
  return text
    .replaceAll("\u00ad", "")
    .replace(/[\xa0\xa8\xaa\xaf\xb2-\xb5\xb8-\xba\xbc-\xbe]/g, (one) => one.normalize("NFKC"))
    .toLowerCase();
}

/** Without tags whose values may hold a `>`, and comments, as a browser goes (HTML Living Standard §13.2.5). */
function withoutMarkup(text: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let at = text.indexOf("<"); at !== -1; ) {
    const end = endOfMarkup(text, at);
    if (end > at) {
      kept.push(text.slice(from, at));
      from = end;
    }
    at = text.indexOf("<", Math.max(end, at + 1));
  }
  kept.push(text.slice(from));
  return kept.join(GAP);
}

const COMMENT_END = /--!?>/g;
const TAG_STOP = /[>=]/g;
const VALUE_START = /\S/g;
const VALUE_STOP = /[\s>]/g;

/** Behind what begins here; here, where nothing does. What is never closed goes to the end. */
function endOfMarkup(text: string, at: number): number {
  const next = text.slice(at + 1, at + 4);
  // `<!-->` is a whole comment.
  if (next === "!--") return behind(text, COMMENT_END, at + 2);
  if (/^\/?[a-z]/.test(next)) return endOfTag(text, at);
  return /^(?:[!?]|\/.)/s.test(next) ? endOf(text, ">", at) : at;
}

function endOfTag(text: string, start: number): number {
  for (let at = start; at < text.length; ) {
    at = behind(text, TAG_STOP, at);
    if (text[at - 1] === ">") return at;
    const value = behind(text, VALUE_START, at) - 1;
    const quote = text[value] as string;
    if (quote === ">") return value + 1;
    if (quote === "'" || quote === '"') at = endOf(text, quote, value + 1);
    else {
      at = behind(text, VALUE_STOP, value);
      if (text[at - 1] === ">") return at;
    }
  }
  return text.length;
}

/** Behind the next match; the end when there is none. */
function behind(text: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  const match = pattern.exec(text);
  return match === null ? text.length : match.index + match[0].length;
}

function endOf(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at + 1;
}

function undoPercents(run: string): string {
  return Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8");
}

/** Escapes of CSS: a number and the blank behind it, or a sign that stands for itself. */
const ESCAPES = /\\(?:([0-9a-f]{1,6})[ \t\r\n\f]?|([^\sa-z0-9]))/g;

function undoEscape(whole: string, hex: string | undefined, sign: string | undefined): string {
  return hex === undefined ? (sign ?? whole) : character(Number.parseInt(hex, 16));
}

const REFERENCES: Readonly<Record<string, string>> = {
  ...{ amp: "&", commat: "@", period: ".", lowbar: "_", underbar: "_", hyphen: "-", dash: "-", plus: "+", percnt: "%" },
  ...{ num: "#", semi: ";", lt: "<", gt: ">", quot: '"', apos: "'", colon: ":", comma: ",", excl: "!", dollar: "$" },
  ...{
    quest: "?",
    equals: "=",
    sol: "/",
    bsol: "\\",
    ast: "*",
    midast: "*",
    hat: "^",
    grave: "`",
    lpar: "(",
    rpar: ")",
  },
  ...{ lsqb: "[", lbrack: "[", rsqb: "]", rbrack: "]", lcub: "{", lbrace: "{", rcub: "}", rbrace: "}", vert: "|" },
  ...{ verbar: "|", tab: "\t", newline: "\n", nbsp: " ", nldr: "..", mldr: "...", hellip: "..." },
  ...{ szlig: "ß", oslash: "ø", aelig: "æ", shy: "", zwj: "", zwnj: "" },
  ...{
    fjlig: "fj",
    fflig: "ff",
    filig: "fi",
    fllig: "fl",
    ffilig: "ffi",
    ffllig: "ffl",
    ijlig: "ij",
    ell: "l",
    ee: "e",
  },
  ...{
    exponentiale: "e",
    ii: "i",
    imaginaryi: "i",
    dd: "d",
    differentiald: "d",
    order: "o",
    orderof: "o",
    planckh: "h",
  },
  ...{ os: "s", circleds: "s", ordf: "a", ordm: "o", sup1: "1", sup2: "2", sup3: "3", naturals: "n", integers: "z" },
  ...{ re: "r", real: "r", reals: "r", im: "i", image: "i", bernou: "b", hamilt: "h", lagran: "l", phmmat: "m" },
};

/** Combining marks: HTML has a name for each letter with one of them. */
const MARKS: Readonly<Record<string, string>> = {
  uml: "\u0308",
  acute: "\u0301",
  grave: "\u0300",
  circ: "\u0302",
  tilde: "\u0303",
  cedil: "\u0327",
  ring: "\u030a",
  caron: "\u030c",
};

function undoReferences(text: string): string {
  return text
    .replace(/&(?:tab|newline|#0*(?:9|10|13)|#x0*[9ad]);/g, "")
    .replace(/&#x0*([0-9a-f]{1,6});?/g, (_, hex: string) => character(Number.parseInt(hex, 16)))
    .replace(/&#0*(\d{1,7});?/g, (_, digits: string) => character(Number(digits)))
    .replace(/&([a-z])(uml|acute|grave|circ|tilde|cedil|ring|caron);?/g, (_, letter: string, mark: string) =>
      `${letter}${MARKS[mark] ?? ""}`.normalize("NFC"),
    )
    .replace(/&([a-z])(?:scr|fr|opf);/g, "$1")
    .replace(/&([a-z]{2,14}[1-3]?);?/g, (whole, name: string) =>
      Object.hasOwn(REFERENCES, name) ? REFERENCES[name]! : whole,
    )
    .replace(/&(amp|lt|gt|quot|shy|nbsp)/g, (_, name: string) => REFERENCES[name]!);
}

function character(code: number): string {
  return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "";
}
