// What text holds in encodings that are made for text, for the leak gate: base64 (links that track, pasted certificates),
// quoted-printable (pasted mail), uuencode, yEnc, hexadecimal digits, escapes of JSON. Readers of such text decode it, or may.
// In bounds; one layer.

import { constants, inflateRawSync } from "node:zlib";
import iconv from "iconv-lite";

/** More than any mail has. */
const RUNS_MAX = 40_000_000;
const BASE64 = lettersOf(/[A-Za-z0-9+/_-]/);
const HEX = lettersOf(/[0-9A-Fa-f]/);
const UPPER_BASE32 = lettersOf(/[A-Z2-7]/);
const LOWER_BASE32 = lettersOf(/[a-z2-7]/);
const RUN_CHARS_MIN = 20;
const RUN_CHARS_MAX = 40_000;
/** What stands where a long run is cut stands whole in the next piece. */
const OVERLAP = 1_000;

/** One octet or character in each character. `chance`: what stands before a word in it need not belong to it. */
export type Reading = { text: string; chance: boolean };

/** The decoded texts; none where there is nothing encoded. `isCut`: there is more than was read. */
export type Readings = { texts: Reading[]; isCut: boolean };

/** What a text holds in encodings. */
export function encodedReadings(given: string): Readings {
  const text = given.slice(0, RUNS_MAX);
  const joined = withoutBreaks(text);
  const sources = text.includes("<") ? [joined, joined.replace(/<[^<>]*>/g, "")] : [joined];
  const base64 = sources.flatMap(base64Runs);
  const runs = [...base64, ...sources.flatMap(hexRuns)];
  runs.push(...sources.flatMap(base32Runs));
  const packed = sources.map(packedRuns);
  runs.push(...packed.flatMap(({ found }) => found));
  // Links that track hold links that track.
  runs.push(...base64.flatMap((one) => [...base64Runs(one), ...hexRuns(one)]));
  // Wherever it stands: a program that quotes may begin a line there.
  if (UU_BEGIN.test(text)) runs.push(...uuReadings(text), ...(text.includes("<") ? uuReadings(shownLines(text)) : []));
  if (text.includes("=ybegin ")) runs.push(fromYenc(text));
  const whole: string[] = [];
  if (/=(?:[0-9A-Fa-f]{2}|\r?\n)/.test(text)) whole.push(fromQuoted(text));
  if (WORD.test(text)) whole.push(fromWords(text));
  if (isWide(text)) whole.push(...[false, true].map((isSwapped) => fromWide(text, isSwapped)));
  if (/\\(?:u00|x)[0-9A-Fa-f]{2}/.test(text)) whole.push(text.replace(/\\(?:u00|x)([0-9A-Fa-f]{2})/g, character));
  if (/\\[0-3][0-7]{2}/.test(text)) whole.push(text.replace(/\\([0-3][0-7]{2})/g, octet));
  return {
    texts: [...runs.map((run) => ({ text: run, chance: true })), ...whole.map((one) => ({ text: one, chance: false }))],
    isCut: given.length > RUNS_MAX || packed.some(({ isCut }) => isCut),
  };
}

/**
 * Only the readings as base64, and of them only those in ASCII letters that hold an `@`. In links each step of a path
 * is a run, too.
 */
export function base64Readings(text: string): string[] {
  const found = runsIn(withoutBreaks(text), BASE64).flatMap((run) => [
    run,
    ...(run.includes("/") ? run.split("/") : []),
  ]);
  const runs = [...new Set(found)];
  if (runs.length === 0) return [];
  const octets = [0, 1, 2, 3].map((start) => Buffer.from(runs.map((run) => wholeFours(run, start)).join(""), "base64"));
  return octets.filter((one) => one.includes("@")).map((one) => one.toString("latin1").replace(/[\x80-\xff]/g, " "));
}

/** From that place, filled so that what follows is read from its own beginning, and with line ends behind. */
function wholeFours(run: string, start: number): string {
  const rest = run.slice(start);
  return `${rest.padEnd(Math.ceil(rest.length / 4) * 4, "A")}CgoK`;
}

function withoutBreaks(text: string): string {
  return text.replace(/(?<![ \t])[ \t]*\r?\n[>| \t]*/g, "");
}

/** An octal escape of strings in PDF (ISO 32000-1 §7.3.4.2) and in many languages. */
function octet(_: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 8));
}

function character(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}

/** Which of the first 128 characters are of the class. */
function lettersOf(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 128 }, (_, code) => Number(pattern.test(String.fromCharCode(code))));
}

/**
 * The runs of such letters that are long enough, in pieces that are read one by one. Where none can begin it looks at every
 * twentieth character or so: a pattern tries each letter of each word.
 */
function runsIn(text: string, letters: Uint8Array, charsMax = RUN_CHARS_MAX): string[] {
  const runs: string[] = [];
  for (let from = 0; from + RUN_CHARS_MIN <= text.length; ) {
    let before = from + RUN_CHARS_MIN - 1;
    while (before >= from && letters[text.charCodeAt(before)] === 1) before -= 1;
    if (before >= from) {
      from = before + 1;
      continue;
    }
    let end = from + RUN_CHARS_MIN;
    while (end < text.length && end < from + charsMax && letters[text.charCodeAt(end)] === 1) end += 1;
    runs.push(text.slice(from, end));
    const goesOn = end === from + charsMax && end < text.length && letters[text.charCodeAt(end)] === 1;
    from = goesOn ? end - OVERLAP : end;
  }
  return runs;
}

/** True if there is a run that may be read as base64. Base32 and hexadecimal digits are such runs, too. */
export function holdsRun(text: string): boolean {
  for (let from = 0; from + RUN_CHARS_MIN <= text.length; ) {
    let before = from + RUN_CHARS_MIN - 1;
    while (before >= from && BASE64[text.charCodeAt(before)] === 1) before -= 1;
    if (before < from) return true;
    from = before + 1;
  }
  return false;
}

/** A run may begin before the encoded text does: it is read from each of four places. */
function base64Runs(text: string): string[] {
  const runs = runsIn(text, BASE64);
  if (runs.length === 0) return [];
  return [0, 1, 2, 3].map((start) =>
    runs.map((run) => Buffer.from(run.slice(start), "base64").toString("latin1")).join("\n"),
  );
}

/** What gzip and zlib begin with (RFC 1952 §2.3, RFC 1950 §2.2), in base64. */
const PACKED = /H4sI|eA[E-H]|eF[4-7]|eJ[w-z]|eN[o-r]/g;
/** Without a name of a file, which nobody gives text in a link. */
const GZIP_HEAD = 10;
const ZLIB_HEAD = 2;
/** Other letters may look like the beginning of a packed text: so many places are tried, by their first letters. */
const PACKED_MAX = 4_000;
const TRIED_CHARS = 2_000;
const PACKED_CHARS_MAX = 400_000;
const PACKED_OCTETS_MAX = 200_000;
const UNPACKED_MAX = 10_000_000;

/** Packed texts in base64, as far as there is room: so some links hold whom they are for. */
function packedRuns(text: string): { found: string[]; isCut: boolean } {
  const found: string[] = [];
  let [tried, octets, isCut] = [0, 0, false];
  for (const run of runsIn(text, BASE64, PACKED_CHARS_MAX)) {
    const isFull = run.length === PACKED_CHARS_MAX;
    for (const { index } of run.matchAll(PACKED)) {
      // It stands in the next piece, too.
      if (isFull && index >= run.length - OVERLAP) break;
      if (tried === PACKED_MAX || octets > UNPACKED_MAX) return { found, isCut: true };
      tried += 1;
      const unpacked = unpack(run.slice(index), isFull);
      if (unpacked === null) continue;
      octets += unpacked.text.length;
      isCut ||= unpacked.isCut;
      found.push(unpacked.text);
    }
  }
  return { found, isCut };
}

type Unpacked = { text: string; isCut: boolean };

/** Null for what is no packed text. `goesOn`: there is more of the run. What a line end joined to the run stands behind the packed text, and is passed over so. */
function unpack(run: string, goesOn: boolean): Unpacked | null {
  const head = run.startsWith("H") ? GZIP_HEAD : ZLIB_HEAD;
  const octetsOf = (chars: number) => Buffer.from(run.slice(0, chars), "base64").subarray(head);
  const first = inflate(octetsOf(TRIED_CHARS));
  if (first === null || run.length <= TRIED_CHARS || first === "too long") {
    return first === "too long" ? beginningOf(octetsOf(TRIED_CHARS)) : first;
  }
  const all = octetsOf(run.length);
  const whole = inflate(all);
  if (whole === "too long") return beginningOf(all);
  const isEnded = whole !== null && whole.consumed < all.length;
  return whole && { text: whole.text, isCut: goesOn && !isEnded };
}

/** As much of it as there is room for. */
function beginningOf(octets: Buffer): Unpacked | null {
  for (let length = octets.length >> 1; length > 0; length >>= 1) {
    const some = inflate(octets.subarray(0, length));
    if (some !== "too long") return some && { text: some.text, isCut: true };
  }
  return { text: "", isCut: true };
}

function inflate(octets: Buffer): { text: string; consumed: number; isCut: false } | "too long" | null {
  try {
    const options = { maxOutputLength: PACKED_OCTETS_MAX, finishFlush: constants.Z_SYNC_FLUSH, info: true as const };
    const { buffer, engine } = inflateRawSync(octets, options) as unknown as Inflated;
    return { text: buffer.toString("latin1"), consumed: engine.bytesWritten, isCut: false };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? "too long" : null;
  }
}

/** What zlib gives with the option `info`. */
type Inflated = { buffer: Buffer; engine: { bytesWritten: number } };

/** An encoded word (RFC 2047) in headers that somebody pasted, or that a report quotes. */
const WORD = /=\?[^?\s]{1,80}\?[bq]\?[^?]{1,1000}\?=/i;
const WORDS = new RegExp(WORD, "gi");

/** Words that stand beside each other are one, also over lines and quotes. */
function fromWords(text: string): string {
  return text.replace(/(?<=\?=)[\s>|]{1,40}(?==\?)/g, "").replace(WORDS, decodeWord);
}

/** An encoded word; what it is written in where its charset is not known. */
export function decodeWord(word: string): string {
  const [, charset = "", kind = "", text = ""] = /^=\?([^?*\s]+)[^?]*\?([bq])\?([^?]*)\?=$/i.exec(word) ?? [];
  const quoted = () => text.replaceAll("_", " ").replace(/=([0-9A-Fa-f]{2})/g, character);
  const bytes = kind.toLowerCase() === "b" ? Buffer.from(text, "base64") : Buffer.from(quoted(), "latin1");
  return iconv.encodingExists(charset) ? iconv.decode(bytes, charset) : bytes.toString("latin1");
}

const WIDE_MIN = 8;

/** Letters of ASCII that were read two by two as UTF-16: who gets them can turn them back. */
function isWide(text: string): boolean {
  for (const [run] of text.matchAll(/[\u2020-\u7e7e]{8,}/g)) {
    let length = 0;
    for (let at = 0; at < run.length; at += 1) {
      const low = run.charCodeAt(at) & 0xff;
      length = low >= 0x20 && low <= 0x7e ? length + 1 : 0;
      if (length === WIDE_MIN) return true;
    }
  }
  return false;
}

function fromWide(text: string, isSwapped: boolean): string {
  const octets = Buffer.from(text, "utf16le");
  return (isSwapped ? octets.swap16() : octets).toString("latin1");
}

/** RFC 4648 §6, in either case; a run may begin before the encoded text does. */
function base32Runs(text: string): string[] {
  const runs = [...runsIn(text, UPPER_BASE32), ...runsIn(text, LOWER_BASE32)];
  if (runs.length === 0) return [];
  return Array.from({ length: 8 }, (_, start) => runs.map((run) => fromBase32(run.slice(start))).join("\n"));
}

function fromBase32(run: string): string {
  const octets: number[] = [];
  let [bits, count] = [0, 0];
  for (const char of run.toLowerCase()) {
    bits = ((bits << 5) | "abcdefghijklmnopqrstuvwxyz234567".indexOf(char)) & 0xfff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    octets.push((bits >> count) & 0xff);
  }
  return Buffer.from(octets).toString("latin1");
}

/** What runs of hexadecimal digits hold, by their first and by their second digit. */
export function hexRuns(text: string): string[] {
  const runs = runsIn(text, HEX);
  if (runs.length === 0) return [];
  return [0, 1].map((start) => runs.map((run) => Buffer.from(run.slice(start), "hex").toString("latin1")).join("\n"));
}

function fromQuoted(text: string): string {
  return text.replace(/=[ \t]*\r?\n[> \t]*/g, "").replace(/=([0-9A-Fa-f]{2})/g, character);
}

const UU_BEGIN = /\bbegin [0-7]{3,4} /;
/** What stands before such lines: in a quote its marks, which do not belong to the file, though letters of the file may look like them. */
const UU_MARKS = /^([>| \t]+)begin [0-7]{3,4} /gm;
const UU_MARKS_MAX = 5;

function uuReadings(text: string): string[] {
  const marks = new Set([...text.matchAll(UU_MARKS)].map(([, mark = ""]) => mark));
  const without = [...marks].slice(0, UU_MARKS_MAX).map((mark) => text.replaceAll(`\n${mark}`, "\n"));
  return [text, ...without].map(fromUu);
}

/** All lines are read as if they were of the file: what is none gives nonsense. */
function fromUu(text: string): string {
  return text
    .split("\n")
    .map((line) => uuLine(line.replace(/^[> \t]*(?=M)|\r$/g, "")))
    .join("");
}

/** The lines that a reader of HTML sees, and the letters that markup is made of. */
function shownLines(text: string): string {
  const lines = text.replace(/<(?:br|p|div)\b[^<>]*>/gi, "\n").replace(/<[^<>]*>/g, "");
  return lines.replace(/&(?:amp|lt|gt|quot);/gi, (one) => LETTERS[one.toLowerCase()] ?? one);
}

const LETTERS: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' };

function uuLine(line: string): string {
  const count = (line.charCodeAt(0) - 32) & 63;
  let out = "";
  for (let at = 1; out.length < count && at < line.length; at += 4) {
    const [a = 0, b = 0, c = 0, d = 0] = [0, 1, 2, 3].map((n) => ((line.charCodeAt(at + n) || 32) - 32) & 63);
    out += String.fromCharCode((a << 2) | (b >> 4), ((b & 15) << 4) | (c >> 2), ((c & 3) << 6) | d);
  }
  return out.slice(0, count);
}

function fromYenc(text: string): string {
  const octet = (char: string, less: number) => String.fromCharCode((char.charCodeAt(0) - less) & 0xff);
  return text
    .replace(/\r?\n/g, "")
    .replace(/=([\s\S])|[^=]/g, (char, escaped: string | undefined) =>
      escaped === undefined ? octet(char, 42) : octet(escaped, 106),
    );
}
