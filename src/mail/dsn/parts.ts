// The parts of a mail that somebody else's software wrote, found in one pass and with limits: RFC 2045, 2046 §5.1.
// Made for reports: what a report returns (message/rfc822) stays one part and is not looked into, a part without
// header fields is text, a part that begins with the head of a message is that message. It never throws, decodes
// nothing (body-text.ts does) and knows nothing about bounces. postal-mime is not used: it takes the field groups of
// a broken message/delivery-status apart and drops what it holds for malformed, which is what odd reports live on.

import { withoutComments } from "../mime/comments.ts";
import { type Header, headerValues, splitMessage } from "../mime/parse-head.ts";

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
const DASH = 0x2d;

/** Splits a mail into its leaf parts. Reads the first 4 MiB, 60 parts and 8 levels; the rest is passed over. */
export function splitParts(bytes: Buffer): MailParts {
  const mail = withLineFeeds(bytes.subarray(0, mailOctetsMax));
  const top = readEntity(mail, "text/plain");
  const parts: Part[] = [];
  collect(top, 0, parts);
  return { headers: top.headers, type: top.type, parameters: top.parameters, parts };
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

type Entity = Omit<Part, "depth">;

function readEntity(bytes: Buffer, defaultType: string): Entity {
  const head = splitMessage(bytes);
  const contentType = withoutComments(firstHeader(head.headers, "content-type"));
  const { type, parameters } = readContentType(contentType, defaultType);
  const encoding = withoutComments(firstHeader(head.headers, "content-transfer-encoding")).trim().toLowerCase();
  return { type, parameters, encoding, headers: head.headers, body: bytes.subarray(head.body_offset) };
}

const typeForm = /^\s*([a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80})/i;
// A parameter begins at a semicolon, or at a white space in heads that forgot it.
const parameterForm = /[;\s]\s*([a-z0-9-]{1,40})\s*=\s*(?:"((?:[^"\\]|\\.){0,300})"|([^\s;"]{1,300}))/gi;

/** A content type: lower-case type, parameters by lower-case name. What is missing or broken is `defaultType`. */
function readContentType(value: string, defaultType: string): { type: string; parameters: Map<string, string> } {
  const parameters = new Map<string, string>();
  const type = typeForm.exec(value)?.[1]?.toLowerCase() ?? defaultType;
  for (const match of value.slice(0, 4_000).matchAll(parameterForm)) {
    const name = match[1]!.toLowerCase();
    if (!parameters.has(name)) parameters.set(name, match[2]?.replace(/\\(.)/g, "$1") ?? match[3] ?? "");
  }
  return { type, parameters };
}

function collect(entity: Entity, depth: number, parts: Part[]): void {
  const isMultipart = entity.type.startsWith("multipart/") && depth < depthMax;
  const pieces = isMultipart ? splitMultipart(entity) : [];
  if (pieces.length === 0) {
    // Nothing of its parts is left but their text.
    addLeaf(isMultipart ? { ...entity, type: "text/plain" } : entity, depth, parts);
    return;
  }
  // What stands before the first boundary is for readers without MIME; some reports have their only text there.
  if (pieces[0]!.length > 0) addLeaf({ ...plainText(pieces[0]!), type: "text/x-preamble" }, depth + 1, parts);
  const defaultType = entity.type === "multipart/digest" ? "message/rfc822" : "text/plain";
  for (const piece of pieces.slice(1)) {
    if (parts.length >= partsMax) return;
    collect(readPiece(piece, defaultType), depth + 1, parts);
  }
}

// The boundary that is announced or, when it is missing or never appears (edited and badly folded heads), the first
// line that looks like one.
function splitMultipart(entity: Entity): Buffer[] {
  const announced = entity.parameters.get("boundary")?.trimEnd() ?? "";
  const pieces = splitAtBoundary(entity.body, announced);
  if (pieces.length > 0) return pieces;
  const start = entity.body.toString("latin1", 0, 16_384);
  const guessed = /^--([^\s-][^\n]{0,99}|-[^\n]{5,99})\n[A-Za-z-]{4,40}:/m.exec(start)?.[1] ?? "";
  const guesses = splitAtBoundary(entity.body, guessed.trimEnd());
  return guesses.length > 0 ? guesses : splitAtHeads(entity.body, announced);
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

function addLeaf(entity: Entity, depth: number, parts: Part[]): void {
  if (parts.length < partsMax) parts.push({ ...entity, depth });
}

function plainText(bytes: Buffer): Entity {
  return { type: "text/plain", parameters: new Map(), encoding: "", headers: [], body: bytes };
}

function readPiece(piece: Buffer, defaultType: string): Entity {
  // Some writers forget the empty line behind a head without fields: then the first line is no field.
  if (piece[0] !== LF && !startsWithField(piece)) return plainText(piece);
  const entity = readEntity(piece, defaultType);
  return looksLikeMessage(entity.headers) ? { ...plainText(piece), type: "message/rfc822" } : entity;
}

function startsWithField(piece: Buffer): boolean {
  const lineEnd = piece.indexOf(LF);
  const line = piece.toString("latin1", 0, Math.min(lineEnd === -1 ? piece.length : lineEnd, 200));
  return /^[\x21-\x39\x3b-\x7e]+[ \t]*:/.test(line);
}

// Fields that only messages have: a part whose head was forgotten and that begins with the head of a message.
function looksLikeMessage(headers: readonly Header[]): boolean {
  const names = new Set(headers.map((header) => header.name.toLowerCase()));
  return names.has("received") || names.has("return-path") || (names.has("from") && names.has("date"));
}

// The pieces between the boundary lines; the first one is the preamble. Empty when the boundary never appears.
function splitAtBoundary(body: Buffer, boundary: string): Buffer[] {
  if (boundary === "") return [];
  const delimiter = Buffer.from(`--${boundary}`, "latin1");
  const pieces: Buffer[] = [];
  let start = 0;
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    const lineEnd = boundaryLineEnd(body, at, delimiter.length);
    if (lineEnd === null) continue;
    pieces.push(body.subarray(start, Math.max(start, at - 1)));
    start = lineEnd.next;
    if (lineEnd.isLast || pieces.length > partsMax) return pieces;
  }
  if (pieces.length > 0) pieces.push(body.subarray(start));
  return pieces;
}

// RFC 2046 §5.1.1: a line that begins with the boundary is one, whatever stands behind white space (or "--", at the end).
function boundaryLineEnd(body: Buffer, at: number, length: number): { next: number; isLast: boolean } | null {
  if (at > 0 && body[at - 1] !== LF) return null;
  let end = at + length;
  const isLast = body[end] === DASH && body[end + 1] === DASH;
  if (isLast) end += 2;
  if (body[end] === 0x20 || body[end] === 0x09) {
    const lineEnd = body.indexOf(LF, end);
    end = lineEnd === -1 ? body.length : lineEnd;
  }
  if (end < body.length && body[end] !== LF) return null;
  return { next: Math.min(end + 1, body.length), isLast };
}
