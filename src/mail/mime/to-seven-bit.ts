// A message with bytes above 127 as one without, for a server that takes no others (RFC 6152 §3): its texts in
// quoted-printable, everything else in base64. What its parts say stays as it was, byte for byte; a signature over them holds
// no more. Not here: fields that hold such bytes, and what stands between parts; a message with those stays one with them.
import { isAscii } from "node:buffer";
import { decodeTransfer } from "./decode-transfer.ts";
import { encodeBase64, encodeQuotedPrintable } from "./encode-body.ts";
import { defaultParseLimits } from "./parse-message.ts";
import { type Part, parseStructure } from "./parse-structure.ts";

const NESTING_MAX = 5;

type Edit = { start: number; end: number; bytes: Buffer };

/** The same message in 7 bits, as far as it can be; the same bytes when it is one already. Lines must end with CRLF. */
export function toSevenBit(message: Buffer): Buffer {
  return isAscii(message) ? message : convert(message, 0);
}

function convert(message: Buffer, nesting: number): Buffer {
  const { root } = parseStructure(message, defaultParseLimits);
  const edits = editsOf(root, message, nesting).sort((a, b) => a.start - b.start);
  const out: Buffer[] = [];
  let end = 0;
  for (const edit of edits) {
    out.push(message.subarray(end, edit.start), edit.bytes);
    end = edit.end;
  }
  return Buffer.concat([...out, message.subarray(end)]);
}

function editsOf(part: Part, message: Buffer, nesting: number): Edit[] {
  // RFC 2045 §6.4: a multipart that says 8bit holds parts that are.
  if (part.children) {
    const [start] = rangeOf(part.body, message);
    return [
      ...part.children.flatMap((child) => editsOf(child, message, nesting)),
      ...inHead(part, message, start, "7bit"),
    ];
  }
  if (isAscii(part.body)) return [];
  const { encoding, body } = encoded(part, nesting);
  const [start, end] = rangeOf(part.body, message);
  return [...inHead(part, message, start, encoding), { start, end, bytes: body }];
}

function encoded(part: Part, nesting: number): { encoding: string; body: Buffer } {
  const field = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding");
  const { bytes } = decodeTransfer(part.body, field?.value ?? "");
  // RFC 2045 §6.4: an attached message is never encoded as a whole.
  if (/^message\/(?:rfc822|global)$/.test(part.type) && bytes === part.body && nesting < NESTING_MAX) {
    return { encoding: "7bit", body: convert(part.body, nesting + 1) };
  }
  const isText = part.type.startsWith("text/") && !/\r(?!\n)|(?<!\r)\n/.test(bytes.toString("latin1"));
  if (!isText) return { encoding: "base64", body: encodeBase64(bytes) };
  return { encoding: "quoted-printable", body: Buffer.from(encodeQuotedPrintable(bytes), "latin1") };
}

/** The field in place of those that the part has, before the empty line that ends its head. */
function inHead({ headers }: Part, message: Buffer, bodyAt: number, encoding: string): Edit[] {
  const old = headers.filter(({ name }) => name.toLowerCase() === "content-transfer-encoding");
  const gone = old.map(({ raw }): Edit => {
    const [start, end] = rangeOf(raw, message);
    return { start, end, bytes: Buffer.alloc(0) };
  });
  const at = Math.max(0, bodyAt - 2);
  return [...gone, { start: at, end: at, bytes: Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n`) }];
}

function rangeOf(piece: Buffer, message: Buffer): [start: number, end: number] {
  const start = piece.byteOffset - message.byteOffset;
  return [start, start + piece.length];
}
