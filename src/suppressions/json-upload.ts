// The body of an import preview as JSON: `{"csv": …, "provider": …, "filename": …}`. Of it only the value of `csv` is large:
// while the body comes in, that goes to a file, still escaped, and all else is gathered and parsed at the end. The text is
// unescaped piece by piece when the rows are read.
import { isUtf8 } from "node:buffer";
import { invalid, Refusal } from "../platform/refusal.ts";
import type { TempFile } from "../platform/storage/temp-file.ts";

export const JSON_BYTES_MAX = 40 * 1024 * 1024;
const REST_BYTES_MAX = 64 * 1024;

export type JsonUpload = {
  fields: Record<string, unknown>;
  /** True if the text of `csv` is in the file. It is in `fields` where its name was written with escapes. */
  inFile: boolean;
};

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const BLANKS = new Set([0x20, 0x09, 0x0a, 0x0d]);
const BRACKETS = new Map([
  [0x7b, 1],
  [0x5b, 1],
  [0x7d, -1],
  [0x5d, -1],
]);

/** Where in the body we are. `name` gathers a string of the outermost object as long as it may be the name csv. */
type Scan = {
  rest: Buffer[];
  rest_bytes: number;
  depth: number;
  place: "outside" | "string" | "csv";
  escaped: boolean;
  name: number[];
  /** What must follow for the value of csv to begin. */
  expects: "colon" | "value" | null;
  found: boolean;
};

/** Reads the whole body. 400 beyond 40 MiB, or when it is not a JSON object. */
export async function readJsonBody(stream: AsyncIterable<Buffer>, file: TempFile): Promise<JsonUpload> {
  const scan: Scan = {
    rest: [],
    rest_bytes: 0,
    depth: 0,
    place: "outside",
    escaped: false,
    name: [],
    expects: null,
    found: false,
  };
  let bytes = 0;
  for await (const piece of stream) {
    bytes += piece.length;
    if (bytes > JSON_BYTES_MAX) throw tooLarge();
    for (let at = 0; at < piece.length; ) {
      if (scan.place === "csv") at = await takeText(scan, piece, { at, file });
      else at = takeRest(scan, piece, at);
    }
  }
  if (scan.place === "csv") throw notJson();
  return { fields: parseObject(utf8(Buffer.concat(scan.rest))), inFile: scan.found };
}

/** 400: more than a body may have. */
export function tooLarge(): Refusal {
  return new Refusal("payload_too_large", "the request body is larger than 40 MiB");
}

/** Bytes of the text go to the file, up to the quote that closes it; answers where the rest goes on. */
async function takeText(scan: Scan, piece: Buffer, { at, file }: { at: number; file: TempFile }): Promise<number> {
  const end = closingQuote(scan, piece, at);
  await file.write(piece.subarray(at, end));
  if (end < piece.length) scan.place = "outside";
  return end < piece.length ? keep(scan, piece, { from: end, to: end + 1 }) : end;
}

/** The next quote that no backslash escapes, or the length; a backslash may be the last byte of the piece before. */
function closingQuote(scan: Scan, piece: Buffer, from: number): number {
  let at = scan.escaped ? from + 1 : from;
  scan.escaped = false;
  let quote = piece.indexOf(QUOTE, at);
  for (;;) {
    if (quote !== -1 && quote < at) quote = piece.indexOf(QUOTE, at);
    const slash = piece.indexOf(BACKSLASH, at);
    if (quote !== -1 && (slash === -1 || quote < slash)) return quote;
    if (slash === -1) return piece.length;
    scan.escaped = slash + 1 === piece.length;
    if (scan.escaped) return piece.length;
    at = slash + 2;
  }
}

/** Everything else is kept, up to the quote that opens the text. */
function takeRest(scan: Scan, piece: Buffer, from: number): number {
  let at = from;
  while (at < piece.length && scan.place !== "csv") {
    const byte = piece[at] as number;
    if (scan.place === "string") inString(scan, byte);
    else outside(scan, byte);
    at += 1;
  }
  return keep(scan, piece, { from, to: at });
}

function keep(scan: Scan, piece: Buffer, { from, to }: { from: number; to: number }): number {
  scan.rest_bytes += to - from;
  if (scan.rest_bytes > REST_BYTES_MAX) throw notJson();
  scan.rest.push(Buffer.from(piece.subarray(from, to)));
  return to;
}

function inString(scan: Scan, byte: number): void {
  if (scan.escaped) scan.escaped = false;
  else if (byte === BACKSLASH) scan.escaped = true;
  else if (byte === QUOTE) {
    scan.place = "outside";
    const isName = scan.depth === 1 && !scan.found && Buffer.from(scan.name).toString("latin1") === "csv";
    scan.expects = isName ? "colon" : null;
    return;
  }
  if (scan.name.length < 4) scan.name.push(byte);
}

function outside(scan: Scan, byte: number): void {
  if (BLANKS.has(byte)) return;
  if (byte === QUOTE) {
    const begins = scan.expects === "value";
    scan.place = begins ? "csv" : "string";
    scan.found ||= begins;
    scan.name = [];
  }
  scan.expects = scan.expects === "colon" && byte === COLON ? "value" : null;
  scan.depth += BRACKETS.get(byte) ?? 0;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    // RFC 8259 §8.1: a byte order mark may be passed over.
    value = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    throw notJson();
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("body", "the request body must be a JSON object");
  }
  return value as Record<string, unknown>;
}

function notJson(): Refusal {
  return new Refusal("invalid_json", "the body is not valid JSON");
}

/** The longest escape, a surrogate pair of \\u…\\u…, and what is left of a UTF-8 sequence. */
const CUT_BYTES_MAX = 16;

/** The text of a JSON string's inside as UTF-8, in pieces about as large as those that come in. 400 when it is no JSON. */
export async function* unescaped(inside: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let carried: Buffer = Buffer.alloc(0);
  for await (const piece of inside) {
    const bytes = Buffer.concat([carried, piece]);
    const end = cutPlace(bytes);
    if (end > 0) yield textOf(bytes.subarray(0, end));
    carried = bytes.subarray(end);
  }
  if (carried.length > 0) yield textOf(carried);
}

/** RFC 8259 §8.1. Decoded all the same, it would hold U+FFFD where a list in another encoding has a letter. */
function utf8(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new Refusal("invalid_json", "the body is not UTF-8 (RFC 8259 §8.1)");
}

function textOf(bytes: Buffer): Buffer {
  const text = utf8(bytes);
  try {
    return Buffer.from(JSON.parse(`"${text}"`));
  } catch {
    throw notJson();
  }
}

/** A place near the end that is inside no escape, no surrogate pair of escapes and no UTF-8 sequence. */
function cutPlace(bytes: Buffer): number {
  const goal = bytes.length - CUT_BYTES_MAX;
  let at = 0;
  for (;;) {
    const slash = bytes.indexOf(BACKSLASH, at);
    if (slash === -1 || slash >= goal) break;
    at = slash + escapeLength(bytes, slash);
  }
  let end = Math.max(at, goal, 0);
  while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end += 1;
  return end;
}

function escapeLength(bytes: Buffer, slash: number): number {
  if (bytes[slash + 1] !== 0x75) return 2;
  const isPair = /^\\u[dD][89abAB]..\\u[dD][c-fC-F]/.test(bytes.toString("latin1", slash, slash + 12));
  return isPair ? 12 : 6;
}
