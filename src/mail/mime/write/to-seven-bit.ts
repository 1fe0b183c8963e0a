// A message with bytes above 127 as one without, for a server that takes no others (RFC 6152 §3), and one with lines that
// no server need take as one without: texts in quoted-printable, everything else in base64. What its parts say stays as it
// was, byte for byte; a signature over them holds no more. Not here: fields that hold such bytes or lines, and what stands
// between parts; a message with those stays one with them.
import { isAscii } from "node:buffer";
import { decodeTransfer } from "../decode-transfer.ts";
import { defaultParseLimits } from "../parse-message.ts";
import { type Part, parseStructure } from "../parse-structure.ts";
import { encodeBase64, encodeQuotedPrintable } from "./encode-body.ts";

const NESTING_MAX = 5;

/** RFC 5322 §2.1.1, RFC 5321 §4.5.3.1.6. */
export const LINE_OCTETS_MAX = 998;

/** Which bodies are encoded again; what is `signed` stays as it is; what parts around them say of themselves then. */
type Way = { needs(body: Buffer): boolean; keepsSigned: boolean; label: string | null };

const SEVEN_BIT: Way = { needs: (body) => !isAscii(body), keepsSigned: false, label: "7bit" };
const SHORT_LINES: Way = { needs: hasLongLine, keepsSigned: true, label: null };

type Edit = { start: number; end: number; bytes: Buffer };

/** The same message in 7 bits, as far as it can be; the same bytes when it is one already. Lines must end with CRLF. */
export function toSevenBit(message: Buffer): Buffer {
  return isAscii(message) ? message : convert(message, SEVEN_BIT, 0);
}

/** The same message without bodies whose lines are over 998 octets, but for signed ones. Lines must end with CRLF. */
export function toShortLines(message: Buffer): Buffer {
  return hasLongLine(message) ? convert(message, SHORT_LINES, 0) : message;
}

function hasLongLine(bytes: Buffer): boolean {
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    if (end - (bytes[end - 1] === 13 ? 1 : 0) - start > LINE_OCTETS_MAX) return true;
    start = end + 1;
  }
  return bytes.length - start > LINE_OCTETS_MAX;
}

function convert(message: Buffer, way: Way, nesting: number): Buffer {
  const { root } = parseStructure(message, defaultParseLimits);
  const edits = editsOf(root, message, way, nesting).sort((a, b) => a.start - b.start);
  const out: Buffer[] = [];
  let end = 0;
  for (const edit of edits) {
    out.push(message.subarray(end, edit.start), edit.bytes);
    end = edit.end;
  }
  return Buffer.concat([...out, message.subarray(end)]);
}

function editsOf(part: Part, message: Buffer, way: Way, nesting: number): Edit[] {
  const { needs, keepsSigned, label } = way;
  const [start, end] = rangeOf(part.body, message);
  const says = (encoding: string | null) => (encoding === null ? [] : inHead(part, message, start, encoding));
  if (part.children) {
    if (keepsSigned && part.type === "multipart/signed") return [];
    // RFC 2045 §6.4: a multipart that says 8bit holds parts that are.
    return [...part.children.flatMap((child) => editsOf(child, message, way, nesting)), ...says(label)];
  }
  if (!needs(part.body)) return [];
  const { encoding, body } = encoded(part, way, nesting);
  return [...says(encoding), { start, end, bytes: body }];
}

function encoded(part: Part, way: Way, nesting: number): { encoding: string | null; body: Buffer } {
  const field = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding");
  const { bytes } = decodeTransfer(part.body, field?.value ?? "");
  // RFC 2045 §6.4: an attached message is never encoded as a whole.
  if (/^message\/(?:rfc822|global)$/.test(part.type) && bytes === part.body && nesting < NESTING_MAX) {
    return { encoding: way.label, body: convert(part.body, way, nesting + 1) };
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
