// SMTP replies (RFC 5321 §4.2, enhanced codes RFC 3463): reading them from a socket's bytes within limits, and turning
// the text of a stranger into a value that is safe to store and show.
// Does not judge what a reply means (classify.ts) and knows nothing of sockets or time.
import { isUtf8 } from "node:buffer";

const LF = 0x0a;
const CR = 0x0d;
const REPLY_LINE_BYTES_MAX = 2048;
export const REPLY_LINES_MAX = 100;
const REPLY_BYTES_MAX = 64 * 1024;
export const REPLY_TEXT_LENGTH_MAX = 1000;

/** `enhanced` is an RFC 3463 code or null; `text` is one line of valid UTF-8 without controls, at most 1,000 characters. */
export type Reply = { code: number; enhanced: string | null; text: string };

const LINE = /^([2-5][0-9]{2})(?:([ -])(.*))?$/s;
const ENHANCED = /^#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![.\d])[:;,]?\s*/;
// qmail and its relatives put the code at the end: "sorry, no mailbox here by that name. (#5.1.1 - chkuser)".
const ENHANCED_AT_END = /\(#([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![.\d])[^()]{0,40}\)/;

/**
 * Reads the whole text of one reply ("550-5.1.1 No\r\n550 5.1.1 such user"). The code of the last line counts; the codes
 * are taken off every line and the lines are joined by a space. Null if it does not begin with a reply code of 200–599.
 */
export function parseReply(raw: Buffer | string): Reply | null {
  const bytes = typeof raw === "string" ? Buffer.from(raw) : raw;
  const text = decode(bytes.subarray(0, REPLY_BYTES_MAX));
  let code = 0;
  let enhanced: string | null = null;
  let isComplete = false;
  const parts: string[] = [];
  for (const line of text.split(/\r?\n/).slice(0, REPLY_LINES_MAX)) {
    const match = LINE.exec(line);
    if (!match && code === 0) return null;
    if (match && isComplete) break;
    if (match) code = Number(match[1]);
    let part = (match ? (match[3] ?? "") : line).trim();
    const found = ENHANCED.exec(part);
    if (found && match && isOfClass(found[1]!, code)) {
      enhanced ??= found[1]!;
      part = part.slice(found[0].length);
    }
    if (part !== "") parts.push(part);
    // What follows the last line without a code of its own is its folded rest: bounce messages quote replies so.
    if (match && match[2] !== "-") isComplete = true;
  }
  const joined = parts.join(" ");
  enhanced ??= ENHANCED_AT_END.exec(joined)?.[1] ?? null;
  return { code, enhanced, text: sanitizeText(joined) };
}

/** RFC 2034 §4: the classes agree; "554 2.0.1" is a version. In the wild 4 and 5 are mixed up, success and failure not. */
function isOfClass(enhanced: string, code: number): boolean {
  return enhanced.startsWith("2") === (code >= 200 && code < 400);
}

/** UTF-8 where it is valid, else Latin-1: old servers answer in it, and nothing is lost. */
function decode(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? "utf8" : "latin1");
}

// C0, DEL, C1, line and paragraph separators, bidirectional controls, byte order mark, lone surrogates.
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** A stranger's text as one line that cannot forge log lines or drive a terminal: controls are written as \xNN. */
export function sanitizeText(text: string): string {
  // Cut before the work, and again after it: escaping makes text longer.
  const cut = text.slice(0, REPLY_TEXT_LENGTH_MAX + 1).replaceAll("\t", " ");
  const safe = cut.replace(UNSAFE, escapeUnsafe);
  if (safe.length <= REPLY_TEXT_LENGTH_MAX) return safe;
  const last = safe.charCodeAt(REPLY_TEXT_LENGTH_MAX - 2);
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff;
  return `${safe.slice(0, REPLY_TEXT_LENGTH_MAX - (isHighSurrogate ? 2 : 1))}…`;
}

function escapeUnsafe(char: string): string {
  const point = char.codePointAt(0)!;
  return point < 0x100 ? `\\x${point.toString(16).padStart(2, "0")}` : `\\u${point.toString(16).padStart(4, "0")}`;
}

/** One complete reply as it came; `lines` are the lines without line ends, as bytes in Latin-1. */
export type RawReply = { code: number; lines: string[] };

/** The reply with its text made safe. */
export function toReply(raw: RawReply): Reply {
  return parseReply(Buffer.from(raw.lines.join("\n"), "latin1")) ?? { code: raw.code, enhanced: null, text: "" };
}

/**
 * Collects replies from the bytes of a connection. `push` gives null, or a sentence when the server broke the rules or a
 * limit, after which the connection is of no more use. Accepts LF alone as a line end and skips empty lines between
 * replies (both exist); never holds more than one reply's limit.
 */
export class ReplyReader {
  #rest: Buffer | null = null;
  #lines: string[] = [];
  #bytes = 0;
  readonly #onReply: (reply: RawReply) => void;

  constructor(onReply: (reply: RawReply) => void) {
    this.#onReply = onReply;
  }

  /** True while bytes of an unfinished reply are held. */
  get isPartial(): boolean {
    return this.#rest !== null || this.#lines.length > 0;
  }

  push(chunk: Buffer): string | null {
    const data = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    let start = 0;
    for (;;) {
      const end = data.indexOf(LF, start);
      if (end < 0) break;
      const defect = this.#line(data, start, end);
      if (defect) return defect;
      start = end + 1;
    }
    if (data.length - start > REPLY_LINE_BYTES_MAX) return `reply line longer than ${REPLY_LINE_BYTES_MAX} bytes`;
    this.#rest = start < data.length ? Buffer.from(data.subarray(start)) : null;
    return null;
  }

  #line(data: Buffer, start: number, lineEnd: number): string | null {
    const end = lineEnd > start && data[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
    if (lineEnd + 1 - start > REPLY_LINE_BYTES_MAX) return `reply line longer than ${REPLY_LINE_BYTES_MAX} bytes`;
    this.#bytes += lineEnd + 1 - start;
    if (this.#bytes > REPLY_BYTES_MAX) return `reply larger than ${REPLY_BYTES_MAX} bytes`;
    if (end === start && this.#lines.length === 0) return null;
    const line = data.toString("latin1", start, end);
    const code = replyCode(line);
    if (code === 0) return `not an SMTP reply: ${sanitizeText(line.slice(0, 100))}`;
    if (this.#lines.push(line) > REPLY_LINES_MAX) return `reply of more than ${REPLY_LINES_MAX} lines`;
    if (line[3] === "-") return null;
    const lines = this.#lines;
    this.#lines = [];
    this.#bytes = 0;
    this.#onReply({ code, lines });
    return null;
  }
}

/** The code of a reply line, 0 if it is none: three digits of 200–599, then the end, a space or a hyphen. */
function replyCode(line: string): number {
  const separator = line[3];
  if (separator !== undefined && separator !== " " && separator !== "-") return 0;
  const match = /^[2-5][0-9]{2}/.exec(line);
  return match ? Number(match[0]) : 0;
}
