// The body of an upload: the file itself, or multipart with one part `file`; at most 25 MiB of it in memory.
import type { FastifyRequest } from "fastify";
import { PACKED_BYTES_MAX } from "../mail/dmarc-report/unpack.ts";
import { invalid, Refusal } from "../platform/refusal.ts";

/** Reads a stream that is the file; `count` hears of its pieces and may throw. */
export async function readBytes(
  stream: AsyncIterable<Buffer>,
  count: (bytes: number) => void = () => undefined,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    bytes += piece.length;
    count(piece.length);
    if (bytes > PACKED_BYTES_MAX) throw tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The file of a request. 400 when there is none, or when it is larger than 25 MiB. */
export async function readUpload(request: FastifyRequest): Promise<Buffer> {
  const file = request.isMultipart() ? await readMultipart(request) : (request.body as Buffer | null | undefined);
  if (file && file.length > 0) return file;
  throw invalid("file", "the 'file' field is required: send the report as the body, or as the multipart field 'file'");
}

async function readMultipart(request: FastifyRequest): Promise<Buffer | null> {
  let file: Buffer | null = null;
  try {
    for await (const part of request.parts()) {
      const isFile = part.type === "file" && part.fieldname === "file" && file === null;
      if (!isFile) throw unknownPart(part.type, part.fieldname);
      file = await readBytes(part.file, (bytes) => request.holdBytes(bytes));
      if (part.file.truncated) throw tooLarge();
    }
  } catch (error) {
    // The rest goes by, so that the connection can be used again.
    request.raw.unpipe().resume();
    // What the parser says of a stranger's bytes carries no code, only words.
    const reported = error as { code?: string; message: string };
    if (error instanceof Refusal || reported.code || !/multipart|header|part/i.test(reported.message)) throw error;
    throw invalid("file", "the multipart body is not well formed");
  }
  return file;
}

function unknownPart(type: string, name: string): Refusal {
  if (type !== "file" && name === "file")
    return invalid("file", "the 'file' field must be a file part, with a filename");
  return invalid(name.slice(0, 100), `the '${name.slice(0, 100)}' field is not known or given twice`);
}

function tooLarge(): Refusal {
  return new Refusal("payload_too_large", "the 'file' field is larger than 25 MiB", { field: "file" });
}
