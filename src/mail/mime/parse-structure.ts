// The parts of a message and where they lie: RFC 2045, RFC 2046 §5.1, and what is sent instead. One pass over the lines
// that begin with two hyphens, so that nesting costs nothing; limits on parts, depth and heads, beyond which the rest is
// left out. message/rfc822 is not looked into. Decodes nothing but Content-Type.
import { unfoldedValue } from "./header-text.ts";
import { fieldEnd, type Header, headersMax, headOctetsMax, isEmptyLine } from "./parse-head.ts";
import { type FieldWithParameters, parseParameters } from "./parse-parameters.ts";

export type StructureDefect =
  | "line_without_field" // a line of a head that is no field; skipped
  | "no_empty_line" // a head that ends without an empty line
  | "head_too_large"
  | "boundary_missing" // a multipart that does not name its boundary
  | "boundary_not_found" // a multipart whose boundary is nowhere
  | "boundary_not_closed"
  | "too_many_parts"
  | "too_deep";

/**
 * `raw` of a header is the field with its line ends; of parts within, only Content-* is kept. A multipart has children,
 * any other part a body.
 */
export type Part = {
  headers: Header[];
  /** As it stands, with the empty line. */
  head: Buffer;
  /** What stands before the first boundary, for readers without MIME; empty where there is nothing. */
  preamble: Buffer;
  type: string;
  parameters: FieldWithParameters["parameters"];
  /** Still in its transfer encoding. */
  body: Buffer;
  children: Part[] | null;
};

export type Structure = { root: Part; defects: Set<StructureDefect> };

export type StructureLimits = { parts_max: number; depth_max: number };

const NOTHING = Buffer.alloc(0);
const LF = 0x0a;
const CR = 0x0d;
const boundaryCharsMax = 10_000;
const guessedBoundaryCharsMax = 100;
const preambleOctetsMax = 64 * 1_024;
/** Stands for the boundary of a multipart that names none: no line holds it. */
const NO_BOUNDARY = "\n";
const restCharsMax = 200;

type Open = { part: Part; boundary: string; default_type: string; closed: boolean; seen: boolean; start: number };

type Walk = {
  bytes: Buffer;
  limits: StructureLimits;
  defects: Set<StructureDefect>;
  /** The multiparts around the place where we are, the outermost first. */
  open: Open[];
  /** How many multiparts are around `bytes`. */
  depth: number;
  /** The leaf we are in, with the start of its body. */
  leaf: { part: Part; start: number } | null;
  parts: number;
};

/** Finds the parts. Lines end in LF or CRLF (in CR where there is no LF at all). Never throws. */
export function parseStructure(given: Buffer, limits: StructureLimits): Structure {
  const bytes = withLineFeeds(given);
  const walk: Walk = { bytes, limits, defects: new Set(), open: [], depth: 0, leaf: null, parts: 0 };
  const { part: root, end } = readPart(walk, startOfMessage(bytes), "text/plain");
  enter(walk, root, end);
  takeLines(walk, end);
  return { root, defects: walk.defects };
}

function takeLines(walk: Walk, from: number): void {
  const { bytes } = walk;
  for (let at = nextDashes(bytes, from); at !== -1; ) at = nextDashes(bytes, takeLine(walk, at));
  finish(walk, 0, bytes.length);
}

/** The bytes as `parseStructure` reads them. CR alone ends lines only in a mail that has no LF at all (old Mac exports). */
export function withLineFeeds(bytes: Buffer): Buffer {
  if (bytes.includes(LF) || !bytes.includes(CR)) return bytes;
  return Buffer.from(bytes.map((byte) => (byte === CR ? LF : byte)));
}

// What stands before the first field in mail that was kept in files: a byte order mark, an mbox line, white space. A mark alone
// in its line is such a line, and not the empty one that ends the head: DMARC judges the From field behind it.
function startOfMessage(bytes: Buffer): number {
  let start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  if (start > 0 && /^\r?\n/.test(bytes.toString("latin1", start, start + 2))) start = lineEnd(bytes, start);
  // Not the obsolete `From  : a@b` (RFC 5322 §4.5): it names the author that DMARC judges.
  if (/^>?From [^:\s]/.test(bytes.toString("latin1", start, start + 7))) start = lineEnd(bytes, start);
  while (start < bytes.length && (bytes[start] === 0x20 || bytes[start] === 0x09)) start = lineEnd(bytes, start);
  return start;
}

function lineEnd(bytes: Buffer, start: number): number {
  const at = bytes.indexOf(LF, start);
  return at === -1 ? bytes.length : at + 1;
}

// --- boundaries ------------------------------------------------------------------------------------------------------

const dashes = Buffer.from("\n--");

/** The start of the next line that begins with two hyphens, from a line's start on; -1 when there is none. */
function nextDashes(bytes: Buffer, from: number): number {
  if (bytes[from] === 0x2d && bytes[from + 1] === 0x2d) return from;
  const at = bytes.indexOf(dashes, from);
  return at === -1 ? -1 : at + 1;
}

type Boundary = { depth: number; closes: boolean };

/** What the line that starts here is to the multiparts around, the innermost first. */
function boundaryAt({ bytes, open }: Walk, start: number): Boundary | null {
  if (bytes[start] !== 0x2d || bytes[start + 1] !== 0x2d) return null;
  for (let depth = open.length - 1; depth >= 0; depth--) {
    const { boundary } = open[depth]!;
    if (!startsWith(bytes, start + 2, boundary)) continue;
    const behind = start + 2 + boundary.length;
    const rest = bytes.toString("latin1", behind, Math.min(lineEnd(bytes, behind), behind + restCharsMax)).trimEnd();
    // RFC 2046 §5.1.1: it is enough that the line begins with the boundary. What goes on without a space is another's.
    if (rest === "" || /^[ \t]/.test(rest)) return { depth, closes: false };
    // Behind the two hyphens nothing may stand; what does, and is no part of another boundary, is passed over.
    if (/^--(?:[ \t]|[^A-Za-z0-9]*$)/.test(rest)) return { depth, closes: true };
  }
  return null;
}

// Byte by byte: mail that is nothing but hyphens would make a string of every line.
function startsWith(bytes: Buffer, start: number, boundary: string): boolean {
  for (let index = 0; index < boundary.length; index++) {
    if (bytes[start + index] !== boundary.charCodeAt(index)) return false;
  }
  return true;
}

/** Deals with a line that may be a boundary; gives the place to go on from. */
function takeLine(walk: Walk, start: number): number {
  const boundary = boundaryAt(walk, start);
  if (boundary === null) return lineEnd(walk.bytes, start);
  finish(walk, boundary.depth + 1, start);
  const parent = walk.open[boundary.depth]!;
  if (!parent.seen) parent.part.preamble = preambleOf(walk.bytes, parent.start, start);
  parent.seen = true;
  const next = lineEnd(walk.bytes, start);
  if (boundary.closes) {
    parent.closed = true;
    return next;
  }
  parent.closed = false;
  if (walk.parts >= walk.limits.parts_max) {
    walk.defects.add("too_many_parts");
    return next;
  }
  const { part, end } = readPart(walk, next, parent.default_type);
  parent.part.children!.push(part);
  enter(walk, part, end);
  return end;
}

function preambleOf(bytes: Buffer, from: number, boundaryAt: number): Buffer {
  return bytes.subarray(from, Math.max(from, beforeLineEnd(bytes, boundaryAt)));
}

/** Ends the leaf and every multipart from this depth on, at the start of a boundary's line or at the end of all. */
function finish(walk: Walk, depth: number, at: number): void {
  if (walk.leaf) {
    const { part, start } = walk.leaf;
    const end = at === walk.bytes.length ? at : Math.max(start, beforeLineEnd(walk.bytes, at));
    part.body = walk.bytes.subarray(start, end);
    walk.leaf = null;
  }
  const ended = walk.open.splice(depth);
  for (const [index, multipart] of ended.entries()) close(walk, multipart, { at, depth: walk.depth + depth + index });
}

// RFC 2046 §5.1.1: the line end before a boundary belongs to it.
function beforeLineEnd(bytes: Buffer, at: number): number {
  if (bytes[at - 1] !== LF) return at;
  return bytes[at - 2] === CR ? at - 2 : at - 1;
}

function close(walk: Walk, multipart: Open, { at, depth }: { at: number; depth: number }): void {
  const { part, boundary, closed, seen, start } = multipart;
  if (seen) {
    if (!closed) walk.defects.add("boundary_not_closed");
    return;
  }
  if (boundary !== NO_BOUNDARY) walk.defects.add("boundary_not_found");
  const end = at === walk.bytes.length ? at : Math.max(start, beforeLineEnd(walk.bytes, at));
  const body = walk.bytes.subarray(start, end);
  const other = guessBoundary(body, boundary);
  if (other === null || other === boundary) {
    // Nothing in it is a part: what it holds is shown as text rather than lost.
    part.children = null;
    part.type = "text/plain";
    part.body = body;
    return;
  }
  // It is read by another boundary than it names; nothing of it was read before.
  const inner: Walk = { ...walk, bytes: body, open: [], depth };
  openMultipart(inner, part, other, 0);
  takeLines(inner, 0);
  walk.parts = inner.parts;
}

// --- parts -----------------------------------------------------------------------------------------------------------

function enter(walk: Walk, part: Part, bodyStart: number): void {
  if (!part.type.startsWith("multipart/")) {
    walk.leaf = { part, start: bodyStart };
    return;
  }
  if (walk.depth + walk.open.length >= walk.limits.depth_max) {
    walk.defects.add("too_deep");
    walk.leaf = { part, start: bodyStart };
    return;
  }
  const named = Buffer.from(part.parameters.get("boundary") ?? "").toString("latin1");
  const isNamed = named.trim() !== "" && named.length <= boundaryCharsMax;
  if (!isNamed) walk.defects.add("boundary_missing");
  openMultipart(walk, part, isNamed ? withoutLostSpaces(walk.bytes, named, bodyStart) : NO_BOUNDARY, bodyStart);
}

function openMultipart(walk: Walk, part: Part, boundary: string, start: number): void {
  part.children = [];
  const defaultType = part.type === "multipart/digest" ? "message/rfc822" : "text/plain";
  walk.open.push({ part, boundary, default_type: defaultType, closed: false, seen: false, start });
}

// A boundary must not end in white space (RFC 2046 §5.1.1), because transports take it away. Some do end so, and came whole.
function withoutLostSpaces(bytes: Buffer, named: string, bodyStart: number): string {
  const trimmed = named.trimEnd();
  if (trimmed === named) return named;
  // The first stands near the head: a thousand searches to the end would be many seconds.
  const near = bytes.subarray(bodyStart, bodyStart + preambleOctetsMax);
  return near.indexOf(`--${named}`, 0, "latin1") === -1 ? trimmed : named;
}

// The first line with two hyphens, if a head follows it and the same stands there again. A short one only where it is `named`
// but for quotes and case.
function guessBoundary(bytes: Buffer, named: string): string | null {
  const at = nextDashes(bytes, 0);
  if (at === -1) return null;
  const next = lineEnd(bytes, at);
  const line = bytes.toString("latin1", at + 2, Math.min(next, at + guessedBoundaryCharsMax)).trimEnd();
  const isNamed = named.replace(/^'|'$/g, "").trim().toLowerCase() === line.toLowerCase();
  if (!(line.length >= 5 || isNamed) || /\s/.test(line) || !/[A-Za-z0-9]/.test(line)) return null;
  if (!isEmptyLine(bytes, next) && nameLength(bytes, next, fieldEnd(bytes, next)) === 0) return null;
  return bytes.indexOf(`\n--${line}`, next - 1, "latin1") === -1 ? null : line;
}

/** Reads a part's head; `end` is where its body starts, or the boundary that cut it off. */
function readPart(walk: Walk, start: number, defaultType: string): { part: Part; end: number } {
  walk.parts += 1;
  const { headers, end } = readHead(walk, start, walk.open.length === 0);
  const field = headers.find((header) => header.name.toLowerCase() === "content-type");
  const { value, parameters } = parseParameters(field?.value ?? "");
  const type = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+-]{1,100}$/.test(value)
    ? value
    : fallbackType(value, defaultType);
  const head = walk.bytes.subarray(start, end);
  return { part: { headers, head, preamble: NOTHING, type, parameters, body: NOTHING, children: null }, end };
}

// RFC 2045 §5.2: without a readable type it is text; a type of the right form with odd letters is some file. A multipart of
// whatever kind is mixed (RFC 2046 §5.1.3): taken for a file, others would see parts in it that we did not.
function fallbackType(value: string, defaultType: string): string {
  if (/^multipart\s*\//.test(value)) return "multipart/mixed";
  if (/^<?html>?$/.test(value)) return "text/html";
  if (value === "text/") return "text/plain";
  return value.includes("/") ? "application/octet-stream" : defaultType;
}

const nameCharsMax = 1_000;

// A line that is no field is passed over when fields follow it; when none do, the body has begun without an empty line.
function readHead(walk: Walk, start: number, isRoot: boolean): { headers: Header[]; end: number } {
  const { bytes, defects } = walk;
  const headers: Header[] = [];
  let strays = -1;
  let at = start;
  while (at < bytes.length && !isEmptyLine(bytes, at) && boundaryAt(walk, at) === null) {
    if (at - start > headOctetsMax || headers.length > headersMax) {
      defects.add("head_too_large");
      if (strays === -1) at = endOfHead(walk, at);
      break;
    }
    const end = fieldEndWithParameters(bytes, at);
    const length = nameLength(bytes, at, end);
    if (length > 0) {
      if (isRoot || isKeptInParts(bytes, at, headers)) {
        headers.push({ name: bytes.toString("latin1", at, at + length), value: "", raw: bytes.subarray(at, end) });
      }
      if (strays !== -1) defects.add("line_without_field");
      strays = -1;
    } else if (strays === -1) strays = at;
    at = end;
  }
  const kept = headers.slice(0, headersMax).filter(({ raw }) => raw.length <= headOctetsMax);
  if (kept.length < headers.length) defects.add("head_too_large");
  for (const header of kept) header.value = unfoldedValue(header.raw);
  if (strays !== -1 || !isEmptyLine(bytes, at)) defects.add("no_empty_line");
  if (strays !== -1) return { headers: kept, end: strays };
  return { headers: kept, end: isEmptyLine(bytes, at) ? lineEnd(bytes, at) : at };
}

const PARAMETER = /^[a-z][a-z0-9*_-]{0,60}[ \t]{0,4}=/i;
const parameterCharsMax = 70;

// Some writers forget to indent the parameters that stand on lines of their own: behind a semicolon they are no lines of text.
function fieldEndWithParameters(bytes: Buffer, start: number): number {
  let end = fieldEnd(bytes, start);
  if (!isContent(bytes, start)) return end;
  while (end < bytes.length && endsInSemicolon(bytes, start, end)) {
    if (!PARAMETER.test(bytes.toString("latin1", end, end + parameterCharsMax))) break;
    end = fieldEnd(bytes, end);
  }
  return end;
}

function endsInSemicolon(bytes: Buffer, start: number, end: number): boolean {
  let at = end - 1;
  while (at > start && isBlank(bytes[at]!)) at--;
  return bytes[at] === 0x3b;
}

const partHeadersMax = 50;

// A thousand parts with a thousand fields each are a message of 6 MB, and would be 300 MB here.
function isKeptInParts(bytes: Buffer, start: number, headers: Header[]): boolean {
  return headers.length < partHeadersMax && isContent(bytes, start);
}

function isContent(bytes: Buffer, start: number): boolean {
  if ((bytes[start]! | 0x20) !== 0x63) return false;
  return bytes.toString("latin1", start, start + "content-".length).toLowerCase() === "content-";
}

/** How long the name of the field is that starts here (RFC 5322 §2.2, §4.5); 0 when it is no field. */
function nameLength(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! > 0x20 && bytes[at]! < 0x7f && bytes[at] !== 0x3a) at++;
  const length = at - start;
  while (at < end && isBlank(bytes[at]!)) at++;
  return bytes[at] === 0x3a && at < end && length <= nameCharsMax ? length : 0;
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === CR || byte === LF;
}

/** Passes over the rest of a head without looking at its fields: to the empty line or to a boundary. */
function endOfHead(walk: Walk, from: number): number {
  const { bytes } = walk;
  const ends = ["\n\n", "\n\r\n"].map((text) => bytes.indexOf(text, from - 1)).filter((at) => at !== -1);
  const empty = ends.length === 0 ? bytes.length : Math.min(...ends) + 1;
  for (let at = nextDashes(bytes, from); at !== -1 && at < empty; at = nextDashes(bytes, lineEnd(bytes, at))) {
    if (boundaryAt(walk, at) !== null) return at;
  }
  return empty;
}
