// What a PDF holds packed or in pieces, for the leak gate: its streams behind their filters, and its strings as a reader sees
// them, escapes undone, one behind the other, because text is set in pieces of a few letters. Not here: glyphs by their
// numbers in a font, and what is encrypted.
// ISO 32000-1 §7.3.4 (strings), §7.3.8 (streams), §7.4 (filters), §9.4.3 (text in pieces).
import { constants, inflateSync } from "node:zlib";
import { GAP } from "./disguises.ts";
import type { Room } from "./unpack-room.ts";

const STREAMS_MAX = 20_000;
const DICTIONARY_MAX = 2_000;
const FILTERS = /\/(FlateDecode|Fl|ASCII85Decode|A85|ASCIIHexDecode|AHx)\b/g;
const PIECE_MAX = 900_000;

/** Each unpacked stream, and the strings of each and of what stands between them. */
export function* pdfContents(file: Buffer, room: Room): Iterable<Buffer> {
  const between: Buffer[] = [];
  let at = 0;
  for (const { start, end } of streamsOf(file)) {
    between.push(file.subarray(at, start));
    at = end;
    const filters = filtersOf(file, start);
    for (const content of room.unpack((limit) => decode(file.subarray(start, end), filters, limit))) {
      yield content;
      if (isText(content)) yield* stringsOf(content);
    }
  }
  between.push(file.subarray(at));
  yield* stringsOf(Buffer.concat(between));
}

function* streamsOf(file: Buffer): Iterable<{ start: number; end: number }> {
  let at = 0;
  for (let count = 0; count < STREAMS_MAX; ) {
    const word = file.indexOf("stream", at);
    if (word === -1) return;
    at = word + 6;
    const next = file[at];
    // The word alone may stand in any text: a stream begins on a line of its own, behind its dictionary.
    if ((next !== 0x0a && next !== 0x0d) || !/>>\s*$/.test(file.toString("latin1", Math.max(0, word - 20), word))) {
      continue;
    }
    const start = at + (next === 0x0d && file[at + 1] === 0x0a ? 2 : 1);
    const end = file.indexOf("endstream", start);
    if (end === -1) return;
    count += 1;
    at = end + 9;
    yield { start, end };
  }
}

/** In the order in which they are undone; the usual one where none is named. */
function filtersOf(file: Buffer, start: number): string[] {
  const before = file.toString("latin1", Math.max(0, start - DICTIONARY_MAX), start);
  const dictionary = before.slice(Math.max(before.lastIndexOf(" obj"), 0));
  const names = [...dictionary.matchAll(FILTERS)].map(([, name = ""]) => name);
  return names.length > 0 ? names : ["FlateDecode"];
}

function decode(given: Buffer, filters: readonly string[], limit: { maxOutputLength: number }): Buffer {
  let bytes = given;
  for (const filter of filters) {
    if (filter.startsWith("F")) bytes = inflateSync(bytes, { ...limit, finishFlush: constants.Z_SYNC_FLUSH });
    else
      bytes = filter === "A85" || filter === "ASCII85Decode" ? fromAscii85(bytes) : fromHex(bytes.toString("latin1"));
  }
  return bytes;
}

function fromHex(text: string): Buffer {
  return Buffer.from(text.replace(/>[\s\S]*$|[^0-9A-Fa-f]/g, ""), "hex");
}

function fromAscii85(bytes: Buffer): Buffer {
  const out: number[] = [];
  let group: number[] = [];
  const flush = (missing: number) => {
    const value = [...group, ...Array(missing).fill(84)].reduce((sum, digit) => sum * 85 + digit, 0);
    for (let n = 0; n < 4 - missing; n += 1) out.push(Math.floor(value / 256 ** (3 - n)) % 256);
    group = [];
  };
  for (const char of bytes) {
    if (char === 0x7e) break;
    if (char === 0x7a && group.length === 0) out.push(0, 0, 0, 0);
    else if (char >= 0x21 && char <= 0x75) group.push(char - 0x21);
    if (group.length === 5) flush(0);
  }
  if (group.length > 1) flush(5 - group.length);
  return Buffer.from(out);
}

/** Pictures and fonts hold no strings that are set as text. */
function isText(content: Buffer): boolean {
  const start = content.toString("latin1", 0, SAMPLE_OCTETS);
  return (start.match(/[\t\n\r\x20-\x7e]/g)?.length ?? 0) * 2 > start.length;
}

const SAMPLE_OCTETS = 2_000;
const STRING_MAX = 20_000;
/** Strings without an end: each costs a look at so many characters. */
const ENDLESS_MAX = 20;
const HEX = /<([0-9A-Fa-f\s]{4,20000})>/y;

/** The strings as one text, marks between them; in pieces that are short enough to be looked through whole. */
function* stringsOf(content: Buffer): Iterable<Buffer> {
  const strings: string[] = [];
  let length = 0;
  for (const given of rawStrings(content.toString("latin1"))) {
    const text = given.replaceAll("\0", "");
    strings.push(text);
    length += text.length + 3;
    if (length < PIECE_MAX) continue;
    yield Buffer.from(strings.splice(0).join(GAP));
    length = 0;
  }
  if (strings.length > 0) yield Buffer.from(strings.join(GAP));
}

function* rawStrings(text: string): Iterable<string> {
  const start = /[(<]/g;
  let endless = 0;
  for (let found = start.exec(text); found !== null; found = start.exec(text)) {
    if (found[0] === "<") {
      HEX.lastIndex = found.index;
      const [whole = "<", digits] = HEX.exec(text) ?? [];
      if (digits !== undefined) yield fromHex(digits).toString("latin1");
      start.lastIndex = found.index + whole.length;
      continue;
    }
    const { end, isClosed } = endOfString(text, found.index + 1);
    if (isClosed) yield unescaped(text.slice(found.index + 1, end));
    else endless += 1;
    if (isClosed || endless > ENDLESS_MAX) start.lastIndex = end + 1;
  }
}

/** The place of the parenthesis that closes it, or where the search for that ended. */
function endOfString(text: string, from: number): { end: number; isClosed: boolean } {
  const last = Math.min(text.length, from + STRING_MAX);
  let depth = 1;
  for (let at = from; at < last; at += 1) {
    const char = text[at];
    if (char === "\\") at += 1;
    else if (char === "(") depth += 1;
    else if (char === ")") depth -= 1;
    if (depth === 0) return { end: at, isClosed: true };
  }
  return { end: last, isClosed: false };
}

function unescaped(literal: string): string {
  return literal.replace(/\\(?:([0-7]{1,3})|\r?\n|([\s\S]))/g, (_, octal?: string, sign?: string) =>
    octal === undefined ? (sign ?? "") : String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
