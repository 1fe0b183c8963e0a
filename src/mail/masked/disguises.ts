// What a text may read as, for the leak gate: references, percents, escapes, tags, invisible characters and line ends undone,
// in every order that matters. Shares nothing with what writes replies. Where something was taken out a mark stands, so that
// whoever searches can tell `an<b>na` from `anna`, and the end of one cell of a table from the beginning of the next.

/** Stands for what was taken out; no character of Unicode. */
export const GAP = "\uffff";

const LAYERS_MAX = 5;
const LINE_TAG = /<(?:br|p|div)\b[^<>]*>/;
const LINE_TAGS = new RegExp(LINE_TAG, "g");
const SIMPLE_TAGS = /<[^<>]*>/g;

/**
 * Every reading of the text, in lower case. `isText`: somebody wrote it to be read; of what is binary or was decoded by
 * chance, which is long and full of such signs, fewer readings are worth their time, and no marks.
 */
export function undisguised(given: string, isText: boolean): Set<string> {
  const mark = isText ? GAP : "";
  const first = fold(given, isText);
  const texts = new Set([first]);
  let last = first;
  for (let layer = 0; layer < LAYERS_MAX && /[&%]/.test(last); layer += 1) {
    last = fold(undoReferences(last).replace(/(?:%[0-9a-f]{2})+/g, undoPercents), isText);
    if (texts.has(last)) break;
    texts.add(last);
  }
  const whole = new Set([first, last, ...(isText ? unhidden(given, last) : [])]);
  for (const one of [...whole].flatMap((text) => [text, ...withoutTags(text, isText)])) {
    texts.add(one);
    // Folded lines of calendars and cards; lines that a reader of format=flowed joins (RFC 3676), in quotes, too.
    if (/\n[ \t]/.test(one)) texts.add(one.replace(/\r?\n[ \t]/g, mark));
    if (one.includes("\n")) texts.add(one.replace(/(?<![ \t])[ \t]*\r?\n[>| \t]*/g, mark));
  }
  return texts;
}

/** Readings of what is not seen: names of references that nobody here knows, escapes of CSS, invisible characters. */
function unhidden(given: string, last: string): string[] {
  const found: string[] = [];
  if (/&[a-z][a-z0-9]{1,31};/.test(last)) found.push(last.replace(/&[a-z][a-z0-9]{1,31};/g, GAP));
  if (last.includes("\\")) found.push(fold(last.replace(ESCAPES, undoEscape), true));
  if (HIDDEN.test(given)) found.push(fold(given.replace(HIDDEN_ALL, GAP), true));
  return found;
}

function withoutTags(text: string, isText: boolean): string[] {
  if (!text.includes("<")) return [];
  const found = [text.replace(SIMPLE_TAGS, isText ? GAP : "")];
  if (isText) found.push(withoutMarkup(text));
  if (LINE_TAG.test(text)) found.push(text.replace(LINE_TAGS, "\n").replace(SIMPLE_TAGS, isText ? GAP : ""));
  return found;
}

const HIDDEN = /[\p{Cf}\p{DI}]/u;
const HIDDEN_ALL = /[\p{Cf}\p{DI}]/gu;
/** Letters and digits in other shapes: what stands beside them stands apart. */
const SHAPED =
  /[\u00aa-\u00be\u1d2c-\u1d6a\u2070-\u218f\u2460-\u24ff\uff01-\uff5e\u{1d400}-\u{1d7ff}\u{1f100}-\u{1f1ff}]+/gu;

function fold(text: string, isText: boolean): string {
  if (!/[^\x00-\x7f]/.test(text)) return text.toLowerCase();
  const seen = text.replace(HIDDEN_ALL, "");
  const marked = isText ? seen.replace(SHAPED, `${GAP}$&${GAP}`) : seen;
  return marked.normalize("NFKC").replaceAll("\u3002", ".").toLowerCase();
}

type State = "text" | "comment" | "declaration" | "tag" | "equals" | "value" | "'" | '"';

/** Without tags whose values may hold a `>`, and comments, letter by letter as a browser goes (HTML Living Standard §13.2.5). */
function withoutMarkup(text: string): string {
  const kept: string[] = [];
  let state: State = "text";
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (state === "text") {
      at = text.indexOf("<", at);
      if (at === -1) break;
      state = opened(text, at);
      if (state === "text") continue;
      kept.push(text.slice(from, at));
      // `<!-->` is a whole comment.
      if (state === "comment") at += 1;
      continue;
    }
    state = state === "comment" ? withinComment(text, at) : within(state, text[at] as string);
    from = at + 1;
  }
  if (state === "text") kept.push(text.slice(from));
  return kept.join(GAP);
}

function opened(text: string, at: number): State {
  const next = text.slice(at + 1, at + 4);
  if (next === "!--") return "comment";
  if (/^\/?[a-z]/.test(next)) return "tag";
  return /^(?:[!?]|\/.)/s.test(next) ? "declaration" : "text";
}

function withinComment(text: string, at: number): State {
  if (text[at] !== ">") return "comment";
  return text.startsWith("--", at - 2) || text.startsWith("--!", at - 3) ? "text" : "comment";
}

/** The state behind this character. */
function within(state: Exclude<State, "text" | "comment">, char: string): State {
  if (state === "'" || state === '"') return char === state ? "tag" : state;
  if (char === ">") return "text";
  if (state === "declaration") return state;
  if (/\s/.test(char)) return state === "equals" ? state : "tag";
  if (state === "equals") return char === "'" || char === '"' ? char : "value";
  return state === "tag" && char === "=" ? "equals" : state;
}

function undoPercents(run: string): string {
  return Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8");
}

/** Of CSS: a number and the blank behind it, or a sign that stands for itself. */
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
