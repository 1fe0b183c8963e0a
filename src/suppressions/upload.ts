// The body of an import preview, as multipart or as JSON: the list goes to a file piece by piece, and is read from there in
// pieces, so that memory holds no list for as long as its rows are read. A multipart file may be gzipped: a list of a million real rows is larger than the 25 MiB
// that a file may have.
import { createHash, type Hash } from "node:crypto";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { FastifyRequest } from "fastify";
import { invalid, Refusal } from "../platform/refusal.ts";
import { openTempFile, type TempFile } from "../platform/storage/temp-file.ts";
import type { World } from "../platform/world.ts";
import { PROVIDERS } from "./import/formats.ts";
import type { Upload } from "./imports.ts";
import { JSON_BYTES_MAX, readJsonBody, tooLarge, unescaped } from "./json-upload.ts";
import type { Provider } from "./types.ts";

export const FILE_BYTES_MAX = 25 * 1024 * 1024;
const UNPACKED_BYTES_MAX = 512 * 1024 * 1024;
/** What is read at once. Small on purpose: rows that live through two collections cost 100 MB more at 64 KiB. */
const PIECE_BYTES = 16 * 1024;
const MAGIC_BYTES = 4;
const FILENAME_CHARS_MAX = 255;

/** The names that a request may give its provider; `generic` is another word for `custom`. */
export const PROVIDER_WORDS = [...PROVIDERS, "generic"] as const;

type Room = Pick<World, "config" | "random">;

/** `discard` gives back the room that the content takes; call it when the content was read or is not needed. The content may be
 * gone through again. */
export type ReadUpload = Upload & {
  /**
   * SHA-256 of the file and what was said beside it: equal where the same list is sent again, however it is cut into
   * parts.
   */
  digest: Buffer;
  discard(): Promise<void>;
};

/** Reads a multipart request with one part `file` and perhaps `provider`, in any order. 400 when it is malformed. */
export async function readMultipart(world: Room, request: FastifyRequest): Promise<ReadUpload> {
  const file = await openTempFile(world);
  try {
    return await readParts(request, file);
  } catch (error) {
    await file.discard();
    // The rest goes by, so that the connection can be used again.
    request.raw.unpipe().resume();
    // What the parser says of a stranger's bytes carries no code, only words.
    const reported = error as { code?: string; message: string };
    if (error instanceof Refusal || reported.code || !/multipart|header|part/i.test(reported.message)) throw error;
    throw invalid("file", "the multipart body is not well formed");
  }
}

async function readParts(request: FastifyRequest, file: TempFile): Promise<ReadUpload> {
  let given: { filename: string } | null = null;
  let provider: Provider | null = null;
  const hash = createHash("sha256");
  for await (const part of request.parts()) {
    if (part.type === "file" && part.fieldname === "file" && given === null) {
      await readFile(request, part.file, file, hash);
      given = { filename: (part.filename ?? "").slice(0, FILENAME_CHARS_MAX) };
    } else if (part.type === "field" && part.fieldname === "provider") {
      provider = readProvider(part.value);
    } else if (part.type === "field" && part.fieldname === "file") {
      throw invalid("file", "the 'file' field must be a file part, with a filename");
    } else {
      throw invalid(part.fieldname, `the '${part.fieldname.slice(0, 100)}' field is not known or given twice`);
    }
  }
  if (given === null) throw invalid("file", "the 'file' field is required");
  const content = await unpacked(file, "file");
  const { filename } = given;
  const digest = Buffer.from(JSON.stringify([hash.digest("hex"), filename, provider]));
  return { field: "file", filename, provider, content, digest, discard: () => file.discard() };
}

type Pieces = AsyncIterable<Buffer> & { truncated: boolean };

async function readFile(request: FastifyRequest, stream: Pieces, file: TempFile, hash: Hash): Promise<void> {
  for await (const piece of stream) {
    request.holdBytes(piece.length);
    hash.update(piece);
    await file.write(piece);
  }
  if (stream.truncated) {
    throw new Refusal("payload_too_large", "the 'file' field is larger than 25 MiB; gzip or split it", {
      field: "file",
    });
  }
}

function readProvider(value: unknown): Provider | null {
  if (value === undefined || value === null || value === "") return null;
  if (value === "generic") return "custom";
  if (PROVIDERS.includes(value as Provider)) return value as Provider;
  throw invalid("provider", `the 'provider' field must be one of: ${PROVIDERS.join(", ")}`);
}

// gzip is recognised by its first bytes (RFC 1952 §2.3.1); archives that hold files are not lists.
async function unpacked(file: TempFile, field: "file" | "csv"): Promise<AsyncIterable<Buffer>> {
  const { value: first } = await file.read(MAGIC_BYTES).next();
  if (first?.[0] === 0x1f && first[1] === 0x8b) return again(() => gunzipped(file, field));
  if (first?.equals(Buffer.from("PK\x03\x04", "latin1"))) {
    throw invalid(field, `the '${field}' field is a ZIP or Excel file; unpack it, or save it as CSV`);
  }
  return again(() => file.read(PIECE_BYTES));
}

function again(begin: () => AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => begin()[Symbol.asyncIterator]() };
}

async function* gunzipped(file: TempFile, field: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // The source is read by the pipe; its errors come out of the gunzip stream's iterator.
  const source = Readable.from(copies(file.read(PIECE_BYTES)));
  source.on("error", (error) => gunzip.destroy(error)).pipe(gunzip);
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
    source.destroy();
    gunzip.destroy();
  }
}

/** gunzip reads a piece while the next is fetched. */
async function* copies(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

async function* hashed(stream: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const piece of stream) {
    hash.update(piece);
    yield piece;
  }
}

/** Reads `{"csv": …, "provider": …, "filename": …}`, of so many bytes as it says; any other field is a 400 that names it. */
export async function readJson(world: Room, stream: AsyncIterable<Buffer>, announced: number): Promise<ReadUpload> {
  if (announced > JSON_BYTES_MAX) throw tooLarge();
  const file = await openTempFile(world);
  try {
    const hash = createHash("sha256");
    const { fields, inFile } = await readJsonBody(hashed(stream, hash), file);
    for (const name of Object.keys(fields)) {
      if (!["csv", "provider", "filename"].includes(name))
        throw invalid(name, `the '${name.slice(0, 100)}' field is not known`);
    }
    if (fields.csv === undefined) throw invalid("csv", "the 'csv' field is required");
    if (typeof fields.csv !== "string") throw invalid("csv", "the 'csv' field must be a string");
    const csv = fields.csv;
    const filename = fields.filename ?? "";
    if (typeof filename !== "string") throw invalid("filename", "the 'filename' field must be a string");
    const content = inFile ? again(() => unescaped(file.read(PIECE_BYTES))) : [Buffer.from(csv)];
    const provider = readProvider(fields.provider);
    const discard = () => file.discard();
    const named = { field: "csv" as const, filename: filename.slice(0, FILENAME_CHARS_MAX), provider };
    return { ...named, content, digest: hash.digest(), discard };
  } catch (error) {
    await file.discard();
    throw error;
  }
}
