// Takes out of a received message the header fields by which it could pretend to have been checked by us: results under
// our name (RFC 8601 §5) and the fields that only we write. Everything else stays byte for byte; nothing is added.
import { fieldEnd, isAllBody, isEmptyLine } from "../mime/parse-head.ts";
import { toDnsName } from "./author.ts";

const ours = /^x-(?:service|postern)-/i;
const results = /^authentication-results$/i;
const commentDepthMax = 20;
const nameOctetsMax = 200;
const nameStart = /^[\x21-\x39\x3b-\x7e]*/;
const valueOctetsMax = 65_536;

/**
 * True for a field of a received message, as a reader has it (unfolded, encoded words decoded), that only this service may
 * write: the fields that `stripForged` takes out, for code that sees fields and not bytes.
 */
export function isForgedField(name: string, value: string, host: string): boolean {
  return ours.test(name) || (results.test(name) && namesService(value.slice(0, valueOctetsMax), toDnsName(host)));
}

/**
 * The message without received Authentication-Results of `host` and without X-Service-* and X-Postern-* fields. The very
 * same buffer when there are none. Lines may end in CRLF or LF.
 */
export function stripForged(bytes: Buffer, host: string): Buffer {
  if (isAllBody(bytes)) return bytes;
  const kept: Buffer[] = [];
  const id = toDnsName(host);
  let from = 0;
  let start = 0;
  while (start < bytes.length && !isEmptyLine(bytes, start)) {
    const end = fieldEnd(bytes, start);
    if (isForged(bytes.subarray(start, end), id)) {
      kept.push(bytes.subarray(from, start));
      from = end;
    }
    start = end;
  }
  return from === 0 ? bytes : Buffer.concat([...kept, bytes.subarray(from)]);
}

function isForged(field: Buffer, id: string): boolean {
  const first = field[0]! | 0x20;
  // "a" or "x": most fields are done with here.
  if (first !== 0x61 && first !== 0x78) return false;
  const [name] = nameStart.exec(field.toString("latin1", 0, nameOctetsMax))!;
  // However long the name is: what begins so is ours.
  if (ours.test(name)) return true;
  if (!results.test(name)) return false;
  // White space is no hiding place, however much of it there is, before the colon or behind.
  const colon = skipBlanks(field, name.length);
  if (field[colon] !== 0x3a) return false;
  const start = skipBlanks(field, colon + 1);
  return namesService(field.toString("utf8", start, start + valueOctetsMax), id);
}

function skipBlanks(field: Buffer, from: number): number {
  let at = from;
  while (at < field.length && (field[at]! <= 0x20 || field[at] === 0xa0)) at += 1;
  return at;
}

// RFC 8601 §2.2: [CFWS] authserv-id, a token or a quoted string, and then perhaps a version or results. A reader that splits at
// semicolons first finds a token in `"mail.example;"` as well.
function namesService(given: string, id: string): boolean {
  // Octets and characters that are nothing to see: a reader may pass over what our grammar stops at.
  const text = given.replace(/[\p{C}\p{Z}\ufffd]/gu, " ");
  const value = text.slice(skipComments(text));
  const quoted = /^"((?:[^"\\]|\\.)*)"/s.exec(value)?.[1]?.replace(/\\(.)/gs, "$1");
  const token = /^"?\s*([^\s;()<>@,:\\"/[\]?=]+)/.exec(value)?.[1];
  return [quoted, token].some((read) => read !== undefined && toDnsName(read.trim()) === id);
}

function skipComments(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === "\\" && depth > 0) at += 1;
    else if (char === "(" && depth < commentDepthMax) depth += 1;
    else if (char === ")" && depth > 0) depth -= 1;
    else if (depth === 0 && !/\s/.test(char)) return at;
  }
  return text.length;
}
