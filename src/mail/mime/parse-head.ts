// The head of a message that somebody else wrote: a fast and tolerant split into header fields, and the decoding of
// encoded words. RFC 5322 §2.2 and §4.5 (fields, obsolete spaces before the colon), RFC 2047, RFC 2231 §5 (language).
// It does not read addresses, dates or parts, and it never throws: what is wrong is skipped and named in `defects`.

import { isUtf8 } from "node:buffer";
import { decodeText } from "./decode-charset.ts";

/** `value` is unfolded, with its encoded words as they were; `raw` is the field's octets with its line ends. */
export type Header = { name: string; value: string; raw: Buffer };

export type HeadDefect =
  | "line_without_field" // a line that is neither a field nor a continuation; skipped
  | "head_too_large" // fields beyond the limits were left out
  | "no_empty_line"; // the message ends within its head

export type Head = {
  headers: Header[];
  body_offset: number;
  /** Where the text begins for who reads it: at a line that is no field when no field follows, else where the body does. */
  text_offset: number;
  defects: HeadDefect[];
};

// postal-mime takes 2 MB; real heads stay below 64 KiB (long lists of recipients, ARC chains).
export const headOctetsMax = 256 * 1_024;
export const headersMax = 1_000;

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;

/**
 * Splits a message into its header fields and the offset of its body. Lines may end in CRLF or LF. The body starts
 * behind the first empty line; without one it is empty, and where 256 KiB hold no field it is all there is. Beyond 256 KiB
 * or 1,000 fields the rest of the head is passed over. `raw` shares memory with `bytes`.
 */
export function splitMessage(bytes: Buffer): Head {
  if (isAllBody(bytes)) return { headers: [], body_offset: 0, text_offset: 0, defects: [] };
  const headers: Header[] = [];
  const defects = new Set<HeadDefect>();
  let strays = -1;
  let start = 0;
  while (start < bytes.length && !isEmptyLine(bytes, start)) {
    const end = fieldEnd(bytes, start);
    if (headers.length === headersMax || end > headOctetsMax) defects.add("head_too_large");
    else if (addField(bytes.subarray(start, end), headers, defects)) strays = -1;
    else if (strays === -1) strays = start;
    start = end;
  }
  if (start >= bytes.length) defects.add("no_empty_line");
  const emptyLine = start >= bytes.length ? 0 : bytes[start] === CR ? 2 : 1;
  const body_offset = Math.min(start + emptyLine, bytes.length);
  return { headers, body_offset, text_offset: strays === -1 ? body_offset : strays, defects: [...defects] };
}

/** True if the head ends within its 256 KiB. Looks no further, however large the message is. */
export function isHeadWithin(bytes: Buffer): boolean {
  if (bytes.length <= headOctetsMax || isEmptyLine(bytes, 0)) return true;
  const start = bytes.subarray(0, headOctetsMax + 2);
  return start.includes("\n\r\n") || start.includes("\n\n");
}

/** A large message that holds no field where its head would be: all of it is body, and is not walked through. */
export function isAllBody(bytes: Buffer): boolean {
  return !isHeadWithin(bytes) && splitMessage(bytes.subarray(0, headOctetsMax)).headers.length === 0;
}

/** All values of a field, in the order of the message; `name` in any case. */
export function headerValues(headers: readonly Header[], name: string): string[] {
  const lower = name.toLowerCase();
  return headers.filter((header) => header.name.toLowerCase() === lower).map((header) => header.value);
}

/** True if the line that starts here is empty: the head ends with it. */
export function isEmptyLine(bytes: Buffer, start: number): boolean {
  return bytes[start] === LF || (bytes[start] === CR && bytes[start + 1] === LF);
}

/** Where the field that starts here ends: behind the last of its lines, continuations included. */
export function fieldEnd(bytes: Buffer, start: number): number {
  let end = start;
  do {
    const lineEnd = bytes.indexOf(LF, end);
    if (lineEnd === -1) return bytes.length;
    end = lineEnd + 1;
  } while (bytes[end] === 0x20 || bytes[end] === 0x09);
  return end;
}

/** True if the line was a field; else its defect is noted. */
function addField(raw: Buffer, headers: Header[], defects: Set<HeadDefect>): boolean {
  const colon = raw.indexOf(COLON);
  const name = colon === -1 ? "" : raw.toString("latin1", 0, colon).trimEnd();
  // RFC 5322 §4.5: blanks may stand before the colon. `trimEnd` knows others, with which it is no name.
  const isName = /^[\x21-\x39\x3b-\x7e]+$/.test(name) && [COLON, 0x20, 0x09, CR, LF].includes(raw[name.length]!);
  if (!isName) {
    defects.add("line_without_field");
    return false;
  }
  headers.push({ name, value: unfold(decodeOctets(raw.subarray(colon + 1))), raw });
  return true;
}

// RFC 5322 §2.2.3: only the line ends go, the white space behind them is part of the value.
function unfold(text: string): string {
  return text.replace(/\r?\n/g, "").trim();
}

// Octets above 0x7f are UTF-8 (RFC 6532) or, in mail that breaks the rules, some old charset.
function decodeOctets(octets: Buffer): string {
  return octets.toString(isUtf8(octets) ? "utf8" : "latin1");
}

// Work is linear; this only bounds what one value may cost.
const wordsCharsMax = 256 * 1_024;

type EncodedWord = { charset: string; encoding: string; payload: string; end: number };

/**
 * Decodes the encoded words in a header value, also misplaced ones and characters split over two words; what cannot be
 * decoded stays as it is. The result is one line: controls that were hidden in encoded words become spaces.
 */
export function decodeWords(value: string): string {
  if (!value.includes("=?") || value.length > wordsCharsMax) return value;
  let out = "";
  let position = 0;
  let run: EncodedWord[] = [];
  for (let at = value.indexOf("=?"); at !== -1; ) {
    const word = readWord(value, at);
    if (word === "none_left") break;
    if (word === null) {
      at = value.indexOf("=?", at + 2);
      continue;
    }
    const between = value.slice(position, at);
    // RFC 2047 §6.2: white space between encoded words is not shown.
    if (run.length === 0 || between.trim() !== "") {
      out += decodeRun(run) + between;
      run = [];
    }
    run.push(word);
    position = word.end;
    at = value.indexOf("=?", position);
  }
  return out + decodeRun(run) + value.slice(position);
}

const wordStart = /=\?([^?\s]{1,80})\?([bBqQ])\?/y;

// The word at this place, null when there is none, "none_left" when no word can end behind it.
function readWord(value: string, at: number): EncodedWord | null | "none_left" {
  wordStart.lastIndex = at;
  const match = wordStart.exec(value);
  if (match === null) return null;
  const payloadStart = at + match[0].length;
  const payloadEnd = value.indexOf("?=", payloadStart);
  if (payloadEnd === -1) return "none_left";
  const payload = value.slice(payloadStart, payloadEnd);
  // RFC 2231 §5: a language may follow the charset.
  const charset = match[1]!.split("*")[0]!.toLowerCase();
  return { charset, encoding: match[2]!.toUpperCase(), payload, end: payloadEnd + 2 };
}

// Octets beyond ASCII while a field is taken apart that is not in UTF-8: letters for private use, which mean nothing to
// anybody.
const octetFirst = 0x80;
const heldFirst = 0xf780;

/** The octets of a field, as latin1, so that none beyond ASCII is a blank, a control or a letter. */
export function holdOctets(text: string): string {
  return text.replace(/[\x80-\xff]/g, (octet) => shifted(octet, heldFirst - octetFirst));
}

/** The same the other way round. */
export function heldAsOctets(text: string): string {
  return text.replace(/[\uf780-\uf7ff]/g, (held) => shifted(held, octetFirst - heldFirst));
}

function shifted(character: string, by: number): string {
  return String.fromCharCode(character.charCodeAt(0) + by);
}

function decodeQ(payload: string): Buffer {
  const binary = heldAsOctets(payload)
    .replaceAll("_", " ")
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  // Octets above 0x7f that stand there unencoded are UTF-8.
  return /^[\x00-\xff]*$/.test(binary) ? Buffer.from(binary, "latin1") : Buffer.from(binary);
}

// Charsets with escape sequences: each word starts and ends in ASCII, and a decoder takes the end of one next to the
// start of another for an attack (WHATWG Encoding §12.2).
const stateful = /^(?:iso-2022-|csiso2022|hz-gb|(?:cs)?(?:unicode-?1-?1-?)?utf[-_]?7)/;
const ESC = 0x1b;

// Neighbours in one charset are decoded together: some writers split a character over two words, or a run of JIS, which
// then begins without an escape.
function decodeRun(run: readonly EncodedWord[]): string {
  const pieces = octetsOf(run);
  let out = "";
  for (let i = 0; i < pieces.length; ) {
    const { charset } = pieces[i]!;
    const goesOn = ({ charset: next, octets }: Piece) =>
      next === charset && (!stateful.test(charset) || (charset.includes("2022") && octets[0] !== ESC));
    let next = i + 1;
    while (next < pieces.length && goesOn(pieces[next]!)) next++;
    out += decodeText(Buffer.concat(pieces.slice(i, next).map(({ octets }) => octets)), charset).text;
    i = next;
  }
  return out.replace(/(?!\t)\p{Cc}/gu, " ");
}

type Piece = { charset: string; octets: Buffer };

// Base64 that was cut anywhere is put together first.
function octetsOf(run: readonly EncodedWord[]): Piece[] {
  const pieces: Piece[] = [];
  for (let i = 0; i < run.length; ) {
    const { charset, encoding } = run[i]!;
    const payloads = [run[i]!.payload];
    let digits = digitsOf(run[i]!);
    let next = i + 1;
    for (; next < run.length && isCutBefore(digits, run[next - 1]!, run[next]!); next++) {
      payloads.push(run[next]!.payload);
      digits += digitsOf(run[next]!);
    }
    const whole = payloads.join("");
    pieces.push({ charset, octets: encoding === "B" ? decodeB(whole) : decodeQ(whole) });
    i = next;
  }
  return pieces;
}

function digitsOf({ payload }: EncodedWord): number {
  return payload.replace(/\s/g, "").length;
}

/**
 * True if base64 goes on in the next word, `digits` digits after its beginning. A word of its own ends with padding, or at
 * least with the bits that base64 leaves unused at zero (RFC 4648 §3.5).
 */
function isCutBefore(digits: number, word: EncodedWord, next: EncodedWord): boolean {
  if (word.encoding !== "B" || next.encoding !== "B" || next.charset !== word.charset) return false;
  const over = digits % 4;
  const end = word.payload.trimEnd();
  if (over === 0 || end === "" || end.endsWith("=")) return false;
  const unused = over === 2 ? /[AQgw]$/ : /[AEIMQUYcgkosw048]$/;
  return over === 1 || !unused.test(end) || next.payload.trimEnd().endsWith("=");
}

// Padding may stand within, where a writer encoded piece by piece.
function decodeB(payload: string): Buffer {
  return Buffer.concat(payload.split(/=+/).map((piece) => Buffer.from(piece, "base64")));
}
