// The parts of a mail that somebody else's software wrote, as reports need them. parse-structure.ts finds them; here is what
// broken reports live on: the text before the first boundary, parts whose boundary lines are lost, returned messages without
// the head of their part. What a report returns (message/rfc822) stays one part and is not looked into. It never throws,
// decodes nothing (body-text.ts does) and knows nothing about bounces.

import { withoutComments } from "../mime/comments.ts";
import { type Header, headerValues, splitMessage } from "../mime/parse-head.ts";
import { type Part as Node, parseStructure, type StructureLimits } from "../mime/parse-structure.ts";

/** `body` is still in its transfer encoding. `depth` counts the multiparts around the part. */
export type Part = {
  type: string;
  parameters: Map<string, string>;
  encoding: string;
  headers: Header[];
  body: Buffer;
  depth: number;
};

export type MailParts = { headers: Header[]; type: string; parameters: Map<string, string>; parts: Part[] };

// A report stands before what it returns, and a returned message is of no use beyond its head. The corpora have at
// most 6 parts.
const mailOctetsMax = 4 * 1_024 * 1_024;
const partsMax = 60;
const depthMax = 8;

const LF = 0x0a;
const CR = 0x0d;

/** Splits a mail into its leaf parts. Reads the first 4 MiB, 60 parts and 8 levels; the rest is passed over. */
export function splitParts(bytes: Buffer): MailParts {
  const { root } = parseStructure(withLineFeeds(bytes.subarray(0, mailOctetsMax)), {
    parts_max: partsMax,
    depth_max: depthMax,
  });
  const parts = leavesOf(root, 0).slice(0, partsMax);
  return { headers: root.headers, type: typeOf(root), parameters: root.parameters, parts };
}

/** Whether a part holds status fields (RFC 3464, RFC 6533), by the names that writers have for its type. */
export function isStatusType(type: string): boolean {
  return /^(?:message|text|application)\/(?:x-?|global-)?delivery-status$/.test(type);
}

/** The first value of a field, unfolded; "" when there is none. */
export function firstHeader(headers: readonly Header[], name: string): string {
  return headerValues(headers, name)[0] ?? "";
}

// One kind of line end. CR alone ends lines only in a mail that has no LF at all (old Mac exports).
function withLineFeeds(bytes: Buffer): Buffer {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  if (bytes.indexOf(CR, start) === -1) return bytes.subarray(start);
  const hasLineFeed = bytes.indexOf(LF, start) !== -1;
  const out = Buffer.allocUnsafe(bytes.length - start);
  let length = 0;
  for (let at = start; at < bytes.length; at++) {
    const octet = bytes[at]!;
    if (octet === CR && bytes[at + 1] === LF) continue;
    out[length++] = octet === CR && !hasLineFeed ? LF : octet;
  }
  return out.subarray(0, length);
}

/** As it is announced, also where none of its parts was found. */
function typeOf({ type, headers }: Node): string {
  return /^\s*(multipart\/[a-z.-]{1,60})/i.exec(firstHeader(headers, "content-type"))?.[1]?.toLowerCase() ?? type;
}

function leavesOf(node: Node, depth: number): Part[] {
  if (node.children !== null) return leavesOfAll(node.preamble, node.children, depth + 1);
  if (typeOf(node) === node.type || depth >= depthMax) return [toPart(node, depth)];
  // A multipart without parts: its boundary appears once only, or its boundary lines are lost.
  const limits = { parts_max: partsMax, depth_max: depthMax - depth };
  const guessed = guessBoundary(node.body);
  const again = guessed === null ? null : parseMultipart(guessed, node.body, limits);
  if (again?.children) return leavesOfAll(again.preamble, again.children, depth + 1);
  const [preamble, ...pieces] = splitAtHeads(node.body, node.parameters.get("boundary")?.trimEnd() ?? "");
  if (preamble === undefined) return [toPart(node, depth)];
  return leavesOfAll(
    preamble,
    pieces.map((piece) => parseStructure(piece, limits).root),
    depth + 1,
  );
}

// What stands before the first boundary is for readers without MIME; some reports have their only text there.
function leavesOfAll(preamble: Buffer, nodes: readonly Node[], depth: number): Part[] {
  const before = preamble.length > 0 ? [{ ...plainText(preamble, depth), type: "text/x-preamble" }] : [];
  return [...before, ...nodes.flatMap((node) => leavesOf(node, depth))];
}

function parseMultipart(boundary: string, body: Buffer, limits: StructureLimits): Node {
  const head = Buffer.from(`Content-Type: multipart/mixed; boundary="${boundary}"\n\n`, "latin1");
  return parseStructure(Buffer.concat([head, body]), limits).root;
}

// The first line that looks like a boundary (edited and badly folded heads).
function guessBoundary(body: Buffer): string | null {
  const start = body.toString("latin1", 0, 16_384);
  return /^--([^\s"\\-][^\n"\\]{0,99}|-[^\n"\\]{5,99})\n[A-Za-z-]{4,40}:/m.exec(start)?.[1]?.trimEnd() ?? null;
}

const partHead = /(?:^|\n)((?:content-[a-z-]{2,40}:[^\n]{0,300}\n(?:[ \t][^\n]{1,300}\n){0,5}){1,6})\n/gi;
const returnedHead =
  /^content-type:\s{0,9}(?:message\/(?:x-)?(?:rfc822|global|partial|news)(?!-delivery)|text\/rfc822)/im;
const headsWithin = 64 * 1_024;

// Where the boundary lines are lost on the way, quoted or broken, a part begins at its head: fields of MIME alone, with
// an empty line before them (or what is left of the boundary line) and one behind. What a report returns goes to its end.
function splitAtHeads(body: Buffer, boundary: string): Buffer[] {
  const text = body.toString("latin1", 0, headsWithin);
  const pieces: Buffer[] = [];
  let start = 0;
  for (const match of text.matchAll(partHead)) {
    const at = match.index + (match[0].startsWith("\n") ? 1 : 0);
    const before = lineBefore(text, at);
    const isRest = boundary !== "" && before.includes(boundary) && before.length <= boundary.length + 12;
    if ((before !== "" && !isRest) || !/^content-type:/im.test(match[1]!)) continue;
    pieces.push(body.subarray(start, Math.max(start, isRest ? at - before.length - 1 : at)));
    start = at;
    if (returnedHead.test(match[1]!)) break;
  }
  return pieces.length === 0 ? [] : [...pieces, body.subarray(start)];
}

function lineBefore(text: string, at: number): string {
  return at === 0 ? "" : text.slice(text.lastIndexOf("\n", at - 2) + 1, at - 1);
}

/** A part whose head was forgotten and that begins with the head of a message is that message. */
function toPart({ head, headers, type, parameters, body }: Node, depth: number): Part {
  if (depth > 0 && looksLikeMessage(splitMessage(head).headers)) {
    const bytes = Buffer.from(head.buffer, head.byteOffset, head.length + body.length);
    return { ...plainText(bytes, depth), type: "message/rfc822" };
  }
  const encoding = withoutComments(firstHeader(headers, "content-transfer-encoding")).trim().toLowerCase();
  return { type, parameters, encoding, headers, body, depth };
}

function plainText(body: Buffer, depth: number): Part {
  return { type: "text/plain", parameters: new Map(), encoding: "", headers: [], body, depth };
}

// Fields that only messages have.
function looksLikeMessage(headers: readonly Header[]): boolean {
  const names = new Set(headers.map((header) => header.name.toLowerCase()));
  return names.has("received") || names.has("return-path") || (names.has("from") && names.has("date"));
}
