// International domain names as people read them. The API gives A-labels (`xn--…`). A label is shown in Unicode only if its
// letters are all of one script. Letters that look alike within one script pass, so the A-label is to stand beside it.

const BASE = 36;
const TMIN = 1;
const TMAX = 26;
const SKEW = 38;
const DAMP = 700;
const FIRST_BIAS = 72;
const FIRST_CODE = 128;
const CODE_MAX = 0x10ffff;

/** `xn--bcher-kva.example` → `bücher.example`. A label that mixes scripts, or is no valid name, stays as it is. */
export function toUnicode(name: string): string {
  return name.split(".").map(labelToUnicode).join(".");
}

/** On one line, such as an entry of a list to choose from: `bücher.example (xn--bcher-kva.example)`. */
export function inOneLine(name: string): string {
  const shown = toUnicode(name);
  return shown === name ? name : `${shown} (${name})`;
}

function labelToUnicode(label: string): string {
  if (!label.startsWith("xn--")) return label;
  const decoded = decodePunycode(label.slice(4));
  return decoded !== null && ONE_SCRIPT.test(decoded) && toAscii(decoded) === label ? decoded : label;
}

/** The browser's own way back (UTS #46): what it maps to something else, such as capitals or invisible signs, is no name. */
function toAscii(label: string): string | null {
  const url = `http://${label}.example`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.example$/, "") : null;
}

/** Their accents are part of the letter (NFC); one that stands alone may hide or imitate another letter. */
const WITHOUT_MARKS = ["Latin", "Greek", "Cyrillic", "Armenian", "Georgian"];
const WITH_MARKS = [
  ...["Hebrew", "Arabic", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam"],
  ...["Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Ethiopic"],
];
/** Scripts that one language writes together: Japanese, Korean (UTS #39 §5.1). */
const TOGETHER = [
  ["Han", "Hiragana", "Katakana"],
  ["Han", "Hangul"],
];
const ONE_SCRIPT = new RegExp(
  `^(?:${[
    ...WITHOUT_MARKS.map((script) => lettersOf([script], "\\p{L}")),
    ...WITH_MARKS.map((script) => lettersOf([script], "\\p{L}\\p{M}\\p{N}")),
    ...TOGETHER.map((scripts) => lettersOf(scripts, "\\p{L}\\p{N}")),
  ].join("|")})$`,
  "u",
);

/** ASCII's digits and hyphen go with every script. */
function lettersOf(scripts: readonly string[], kinds: string): string {
  return `(?:[-0-9]|(?=[${scripts.map((script) => `\\p{scx=${script}}`).join("")}])[${kinds}])+`;
}

/** RFC 3492 §6.2; null: not Punycode. */
export function decodePunycode(text: string): string | null {
  const end = text.lastIndexOf("-");
  const codes = Array.from(text.slice(0, Math.max(0, end)), (letter) => letter.charCodeAt(0));
  let place = end + 1;
  let code = FIRST_CODE;
  let at = 0;
  let bias = FIRST_BIAS;
  while (place < text.length) {
    const before = at;
    for (let weight = 1, k = BASE; ; k += BASE) {
      const digit = digitOf(text.charCodeAt(place++));
      if (digit === null) return null;
      at += digit * weight;
      const threshold = Math.min(TMAX, Math.max(TMIN, k - bias));
      if (digit < threshold) break;
      weight *= BASE - threshold;
    }
    const count = codes.length + 1;
    bias = adapt(at - before, count, before === 0);
    code += Math.floor(at / count);
    if (code > CODE_MAX) return null;
    at %= count;
    codes.splice(at, 0, code);
    at += 1;
  }
  return String.fromCodePoint(...codes);
}

/** a–z are 0 to 25, 0–9 are 26 to 35. */
function digitOf(code: number): number | null {
  if (code >= 97 && code <= 122) return code - 97;
  return code >= 48 && code <= 57 ? code - 22 : null;
}

/** RFC 3492 §6.1. */
function adapt(delta: number, count: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? DAMP : 2));
  rest += Math.floor(rest / count);
  let k = 0;
  for (; rest > ((BASE - TMIN) * TMAX) / 2; k += BASE) rest = Math.floor(rest / (BASE - TMIN));
  return k + Math.floor(((BASE - TMIN + 1) * rest) / (rest + SKEW));
}
