// The charset of text that says none, where its bytes tell: scripts in which nearly every letter is beyond ASCII. By the
// statistics of ICU (package chardet), and only where that leaves no doubt: what is not plainly one of these stays what most
// mail without a label was written in, and text in Latin letters is not even asked about.
import { analyse } from "chardet";
import iconv from "iconv-lite";

/** What a text of a script is made of: its `letters`, of which some are `own` (Chinese has no others), and signs. */
type Script = { letters: RegExp; own: RegExp; signs: RegExp; sure: number };

const CYRILLIC: Script = {
  ...{ letters: /\p{Script=Cyrillic}/u, own: /\p{Script=Cyrillic}/u, sure: 20 },
  signs: /[\u00a0\u00ab\u00bb\u00a9\u00b0\u00b7\u2010-\u2026\u2116]/,
};
const EAST = { signs: /[\p{P}\p{S}\p{Z}]/u, sure: 50 };
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}\u30fc\uff70]/u;
const JAPANESE: Script = {
  ...EAST,
  letters: /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\uff70]/u,
  own: KANA,
};
const KOREAN: Script = { ...EAST, letters: /\p{Script=Hangul}/u, own: /\p{Script=Hangul}/u };
const CHINESE: Script = { ...EAST, letters: /\p{Script=Han}/u, own: /\p{Script=Han}/u };

/** As chardet names them: what our tables call it. KOI8-U has the letters of Ukraine where KOI8-R has lines of boxes. */
const FOUND = new Map<string, { name: string; script: Script }>([
  ["KOI8-R", { name: "koi8-u", script: CYRILLIC }],
  ["windows-1251", { name: "windows-1251", script: CYRILLIC }],
  ["ISO-8859-5", { name: "iso-8859-5", script: CYRILLIC }],
  ["Shift_JIS", { name: "shift_jis", script: JAPANESE }],
  ["EUC-JP", { name: "euc-jp", script: JAPANESE }],
  ["EUC-KR", { name: "cp949", script: KOREAN }],
  ["GB18030", { name: "gb18030", script: CHINESE }],
  ["Big5", { name: "big5-hkscs", script: CHINESE }],
]);

/** How far the first byte beyond ASCII is looked for, and how much from there on is judged: a millisecond or two. */
const SEARCHED_OCTETS = 65_536;
const JUDGED_OCTETS = 4_096;
/** Fewer bytes beyond ASCII prove nothing. */
const HIGH_MIN = 12;
/**
 * The share of such bytes among the letters of words that have one: a quarter in Latin scripts, nearly all in these.
 */
const HIGH_SHARE_MIN = 0.6;
const LETTERS_SHARE_MIN = 0.9;
const OWN_SHARE_MIN = 0.1;
/** How much surer of it than of the next. */
const AHEAD = 1.5;

/** The charset, as our tables name it; "" where the bytes leave a doubt. */
export function detectCharset(bytes: Buffer): string {
  const first = bytes.subarray(0, SEARCHED_OCTETS).findIndex((byte) => byte > 0x7f);
  if (first === -1) return "";
  const judged = bytes.subarray(first, first + JUDGED_OCTETS);
  if (!isFarFromLatin(judged)) return "";
  const [best, next] = analyse(judged);
  const found = FOUND.get(best?.name ?? "");
  if (!best || !found || best.confidence < found.script.sure) return "";
  // Of two ways to read two bytes the first is sure by the characters that are common.
  const isEastern = found.script !== CYRILLIC;
  if (!isEastern && best.confidence < (next?.confidence ?? 0) * AHEAD) return "";
  return isOfScript(iconv.decode(judged, found.name), found.script) ? found.name : "";
}

function isFarFromLatin(bytes: Buffer): boolean {
  let [high, letters] = [0, 0];
  let [highHere, lettersHere] = [0, 0];
  for (let at = 0; at <= bytes.length; at += 1) {
    const byte = bytes[at] ?? 0x20;
    const isHigh = byte > 0x7f;
    if (isHigh || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)) {
      lettersHere += 1;
      if (isHigh) highHere += 1;
      continue;
    }
    if (highHere > 0) {
      high += highHere;
      letters += lettersHere;
    }
    [highHere, lettersHere] = [0, 0];
  }
  return high >= HIGH_MIN && high >= letters * HIGH_SHARE_MIN;
}

/** Nearly all that is beyond ASCII is of the script, and nothing undecodable but what was cut at the end. */
function isOfScript(text: string, { letters, own, signs }: Script): boolean {
  let [known, ownOnes, others] = [0, 0, 0];
  for (const char of text.slice(0, -1)) {
    if (char < "\u0080" || (char !== "\ufffd" && signs.test(char))) continue;
    if (!letters.test(char)) others += 1;
    else {
      known += 1;
      if (own.test(char)) ownOnes += 1;
    }
  }
  return known >= HIGH_MIN / 2 && known >= (known + others) * LETTERS_SHARE_MIN && ownOnes >= known * OWN_SHARE_MIN;
}
