// The body of an import preview, as multipart or as JSON, without ever being held twice: a multipart file stays in the
// pieces it came in; of a JSON body only the value of `csv` is large, and it is unescaped piece by piece. Both may be
// gzipped files: a list of a million real rows is larger than the 25 MiB that a file may have.
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { FastifyRequest } from "fastify";
import { PROVIDERS } from "../mail/csv/formats.ts";
import { invalid, Refusal } from "../platform/refusal.ts";
import type { Upload } from "./imports.ts";
import type { Provider } from "./types.ts";

export const FILE_BYTES_MAX = 25 * 1024 * 1024;
export const JSON_BYTES_MAX = 40 * 1024 * 1024;
const UNPACKED_BYTES_MAX = 512 * 1024 * 1024;
/** What is read at once. Small on purpose: rows that live through two collections cost 100 MB more at 64 KiB. */
const PIECE_BYTES = 16 * 1024;
const JSON_REST_BYTES_MAX = 64 * 1024;
const FILENAME_CHARS_MAX = 255;

/** The names that a request may give its provider; `generic` is another word for `custom`. */
export const PROVIDER_WORDS = [...PROVIDERS, "generic"] as const;

/** Reads a multipart request with one part `file` and perhaps `provider`, in any order. 400 when it is malformed. */
export async function readMultipart(request: FastifyRequest): Promise<Upload> {
  try {
    return await readParts(request);
  } catch (error) {
    // What the parser says of a stranger's bytes carries no code, only words.
    const told = error as { code?: string; message: string };
    if (error instanceof Refusal || told.code || !/multipart|header|part/i.test(told.message)) throw error;
    throw invalid("file", "the multipart body is not well formed");
  }
}

async function readParts(request: FastifyRequest): Promise<Upload> {
  let file: { pieces: Buffer[]; filename: string } | null = null;
  let provider: Provider | null = null;
  for await (const part of request.parts()) {
    if (part.type === "file" && part.fieldname === "file" && file === null) {
      file = { pieces: await readFile(part.file), filename: (part.filename ?? "").slice(0, FILENAME_CHARS_MAX) };
    } else if (part.type === "field" && part.fieldname === "provider") {
      provider = readProvider(part.value);
    } else if (part.type === "field" && part.fieldname === "file") {
      throw invalid("file", "the 'file' field must be a file part, with a filename");
    } else {
      throw invalid(part.fieldname, `the '${part.fieldname.slice(0, 100)}' field is not known or given twice`);
    }
  }
  if (file === null) throw invalid("file", "the 'file' field is required");
  return { field: "file", filename: file.filename, provider, content: unpacked(file.pieces, "file") };
}

async function readFile(stream: AsyncIterable<Buffer> & { truncated: boolean }): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  if (stream.truncated) {
    throw new Refusal("payload_too_large", "the 'file' field is larger than 25 MiB; gzip or split it", {
      field: "file",
    });
  }
  return pieces;
}

function readProvider(value: unknown): Provider | null {
  if (value === undefined || value === null || value === "") return null;
  if (value === "generic") return "custom";
  if (PROVIDERS.includes(value as Provider)) return value as Provider;
  throw invalid("provider", `the 'provider' field must be one of: ${PROVIDERS.join(", ")}`);
}

// gzip is told by its first bytes (RFC 1952 §2.3.1); archives that hold files are not lists.
function unpacked(pieces: Buffer[], field: "file" | "csv"): AsyncIterable<Buffer> | Iterable<Buffer> {
  const first = pieces[0];
  if (first?.[0] === 0x1f && first[1] === 0x8b) return gunzipped(pieces, field);
  if (first?.subarray(0, 4).equals(Buffer.from("PK\x03\x04", "latin1"))) {
    throw invalid(field, `the '${field}' field is a ZIP or Excel file; unpack it, or save it as CSV`);
  }
  return cut(pieces);
}

async function* gunzipped(pieces: Buffer[], field: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // The source is read by the pipe; its errors come out of the gunzip stream's iterator.
  Readable.from(cut(pieces)).pipe(gunzip);
  let bytes = 0;
  try {
    for await (const piece of gunzip) {
      bytes += piece.length;
      if (bytes > UNPACKED_BYTES_MAX) throw invalid(field, `the '${field}' field unpacks to more than 512 MiB`);
      yield piece as Buffer;
    }
  } catch (error) {
    if (!/^Z_|^ERR_/.test((error as { code?: string }).code ?? "")) throw error;
    throw invalid(field, `the '${field}' field begins like gzip but cannot be unpacked`);
  } finally {
    gunzip.destroy();
  }
}

function* cut(pieces: Buffer[]): Generator<Buffer> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) yield piece.subarray(at, at + PIECE_BYTES);
  }
}

/** Reads the bytes of a JSON body, with room for exactly what the request announces. 400 beyond 40 MiB. */
export async function readJsonBytes(stream: AsyncIterable<Buffer>, announced: number): Promise<Buffer> {
  if (announced > JSON_BYTES_MAX) throw tooLarge();
  let bytes = Buffer.allocUnsafe(announced > 0 ? announced : PIECE_BYTES);
  let length = 0;
  for await (const piece of stream) {
    if (length + piece.length > JSON_BYTES_MAX) throw tooLarge();
    if (length + piece.length > bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(JSON_BYTES_MAX, (length + piece.length) * 2));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    length += piece.copy(bytes, length);
  }
  return bytes.subarray(0, length);
}

function tooLarge(): Refusal {
  return new Refusal("payload_too_large", "the request body is larger than 40 MiB");
}

/** Reads `{"csv": …, "provider": …, "filename": …}`; every other field is a 400 that names it. */
export function readJsonUpload(body: Buffer): Upload {
  const span = findCsv(body);
  const rest = span ? Buffer.concat([body.subarray(0, span.start), body.subarray(span.end)]) : body;
  if (rest.length > JSON_REST_BYTES_MAX) throw notJson();
  const fields = parseObject(rest.toString("utf8"));
  for (const name of Object.keys(fields)) {
    if (!["csv", "provider", "filename"].includes(name))
      throw invalid(name, `the '${name.slice(0, 100)}' field is not known`);
  }
  if (fields.csv === undefined) throw invalid("csv", "the 'csv' field is required");
  if (typeof fields.csv !== "string") throw invalid("csv", "the 'csv' field must be a string");
  const filename = fields.filename ?? "";
  if (typeof filename !== "string") throw invalid("filename", "the 'filename' field must be a string");
  const provider = readProvider(fields.provider);
  const content = span ? unescaped(body.subarray(span.start, span.end)) : [Buffer.from(fields.csv)];
  return { field: "csv", filename: filename.slice(0, FILENAME_CHARS_MAX), provider, content };
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKETS = new Map([
  [0x7b, 1],
  [0x5b, 1],
  [0x7d, -1],
  [0x5d, -1],
]);

/** Where the characters of the outermost member "csv" lie; null when there is none that is a string. */
function findCsv(body: Buffer): { start: number; end: number } | null {
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] as number;
    depth += BRACKETS.get(byte) ?? 0;
    if (byte !== QUOTE) continue;
    const end = endOfString(body, at);
    if (depth === 1 && body.toString("latin1", at, end + 1) === '"csv"') {
      const value = stringAfter(body, end + 1);
      if (value !== null) return value;
    }
    at = end;
  }
  return null;
}

function stringAfter(body: Buffer, from: number): { start: number; end: number } | null {
  const colon = skipBlank(body, from);
  if (body[colon] !== 0x3a) return null;
  const quote = skipBlank(body, colon + 1);
  if (body[quote] !== QUOTE) return null;
  const end = endOfString(body, quote);
  return end < body.length ? { start: quote + 1, end } : null;
}

function skipBlank(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09 || body[at] === 0x0a || body[at] === 0x0d) at += 1;
  return at;
}

/** Index of the closing quote of the string that opens at `open`, or the length when it is not closed. */
function endOfString(body: Buffer, open: number): number {
  let end = body.indexOf(QUOTE, open + 1);
  while (end !== -1) {
    let slashes = 0;
    while (body[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = body.indexOf(QUOTE, end + 1);
  }
  return body.length;
}

/** The text of a JSON string's inside as UTF-8, in pieces. */
function* unescaped(inside: Buffer): Generator<Buffer> {
  let at = 0;
  while (at < inside.length) {
    const end = cutPlace(inside, at);
    let text: string;
    try {
      text = JSON.parse(`"${inside.toString("utf8", at, end)}"`);
    } catch {
      throw notJson();
    }
    yield Buffer.from(text);
    at = end;
  }
}

/** A place about a piece further that is inside no escape, no surrogate pair of escapes and no UTF-8 sequence. */
function cutPlace(inside: Buffer, start: number): number {
  const goal = start + PIECE_BYTES;
  if (goal >= inside.length) return inside.length;
  let at = start;
  for (;;) {
    const slash = inside.indexOf(BACKSLASH, at);
    if (slash === -1 || slash >= goal) break;
    at = slash + escapeLength(inside, slash);
  }
  let end = Math.max(at, goal);
  while (end < inside.length && ((inside[end] as number) & 0xc0) === 0x80) end += 1;
  return end;
}

function escapeLength(inside: Buffer, slash: number): number {
  if (inside[slash + 1] !== 0x75) return 2;
  const isPair = /^\\u[dD][89abAB]..\\u[dD][c-fC-F]/.test(inside.toString("latin1", slash, slash + 12));
  return isPair ? 12 : 6;
}
