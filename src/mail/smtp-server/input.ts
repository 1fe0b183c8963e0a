// The bytes of an SMTP client, cut into command lines and message content (RFC 5321 §2.3.8, §4.5.2). Only CRLF ends a
// line and only CRLF.CRLF ends a message, wherever the network cut the bytes: a CR or LF alone, and NUL, are faults, as
// two servers that read them differently can be made to see different messages (SMTP smuggling). From a client that logged
// in, an LF alone may become CRLF; it never ends a message. Pure; knows no commands.

export type InputFault = "bare_cr" | "bare_lf" | "nul" | "line_too_long";

export type Line = { kind: "line"; bytes: Buffer } | { kind: "fault"; fault: InputFault };

/** `more`: all content that is there was handed out. After `end` what is left are command lines again. */
export type DataProgress = "more" | "end" | { kind: "fault"; fault: InputFault };

export type LineEnds = "strict" | "mended";

export type Input = {
  push(chunk: Buffer): void;
  /** The next command line without its CRLF; null when it is not complete yet. */
  takeLine(): Line | null;
  /**
   * The next line may be the first of a message. `lineEnds` `mended`: an LF alone becomes CRLF instead of a fault, for
   * programs of our own customers that send files as they lie on their disks.
   */
  startData(lineEnds?: LineEnds): void;
  /** Hands the content that is there to `sink`, without the dots of SMTP. It may share memory with what was pushed. */
  takeData(sink: (piece: Buffer) => void): DataProgress;
  /** How many bytes wait. */
  waiting(): number;
  /** Gives what waits and forgets it: bytes that are no text of SMTP. */
  takeAll(): Buffer;
  /** Forgets what waits: nothing said in clear may count after STARTTLS (RFC 3207 §4.2, CVE-2011-0411). */
  clear(): void;
};

// RFC 5321 §4.5.3.1.4 asks for 512; parameters of extensions add to it (RFC 3461: 500 for ORCPT).
export const LINE_OCTETS_MAX = 2_048;

const NUL = 0x00;
const LF = 0x0a;
const CR = 0x0d;
const DOT = 0x2e;
const EMPTY = Buffer.alloc(0);

/** A reader of one connection's bytes, at a line's start. */
export function createInput(): Input {
  let held: Buffer = EMPTY;
  let lineStart: LineStart = "crlf";
  let lineEnds: LineEnds = "strict";
  return {
    push(chunk) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    },
    takeLine() {
      const { line, rest } = cutLine(held);
      held = rest;
      return line;
    },
    startData(wanted = "strict") {
      lineStart = "crlf";
      lineEnds = wanted;
    },
    takeData(sink) {
      const cut = cutData(held, { lineStart, lineEnds }, sink);
      held = cut.rest;
      lineStart = cut.lineStart;
      return cut.progress;
    },
    waiting: () => held.length,
    takeAll() {
      const all = held;
      held = EMPTY;
      return all;
    },
    clear() {
      held = EMPTY;
    },
  };
}

function cutLine(held: Buffer): { line: Line | null; rest: Buffer } {
  const end = held.indexOf(LF);
  const length = end === -1 ? held.length : end + 1;
  const fault = lineFault(held.subarray(0, length), end !== -1);
  if (fault) return { line: { kind: "fault", fault }, rest: EMPTY };
  if (end === -1) return { line: null, rest: held };
  return { line: { kind: "line", bytes: held.subarray(0, end - 1) }, rest: held.subarray(end + 1) };
}

function lineFault(line: Buffer, isWhole: boolean): InputFault | null {
  if (line.length > LINE_OCTETS_MAX) return "line_too_long";
  if (line.includes(NUL)) return "nul";
  const cr = line.indexOf(CR);
  if (isWhole && cr === -1) return "bare_lf";
  const crMayStand = isWhole ? line.length - 2 : line.length - 1;
  return cr === -1 || cr === crMayStand ? null : "bare_cr";
}

/** What stands before the next byte: the end of a line, by what it was ended, or a part of the line. */
type LineStart = "crlf" | "lf" | "within";

type Cut = { progress: DataProgress; rest: Buffer; lineStart: LineStart };

/**
 * What cannot be judged yet (a dot at a line's start, a CR, at the very end) is held back. All content is one piece: a
 * message can be nothing but stuffed dots, and a piece for each line of it would cost fifty times its bytes.
 */
function cutData(held: Buffer, from: { lineStart: LineStart; lineEnds: LineEnds }, sink: (piece: Buffer) => void): Cut {
  const content = createEdited(held, from.lineEnds);
  const endOfLine = lineFinder(held);
  const stop = (fault: InputFault): Cut => ({ progress: { kind: "fault", fault }, rest: EMPTY, lineStart: "within" });
  const leave = (at: number, progress: "more" | "end", lineStart: LineStart): Cut => {
    const piece = content.upTo(at);
    if (piece.includes(NUL)) return stop("nul");
    if (piece.length > 0) sink(piece);
    return { progress, rest: held.subarray(progress === "end" ? at + 3 : at), lineStart };
  };

  let at = 0;
  let { lineStart } = from;
  while (at < held.length) {
    if (lineStart !== "within" && held[at] === DOT) {
      const meaning = dotMeans(held, at, lineStart);
      if (meaning === "unknown") return leave(at, "more", lineStart);
      if (meaning === "end") return leave(at, "end", lineStart);
      if (meaning === "stuffed") {
        content.leaveOut(at);
        at += 1;
      }
    }
    const line = endOfLine(at);
    if (typeof line === "string") return stop(line);
    if (line.endedBy === "lf") {
      if (from.lineEnds === "strict") return stop("bare_lf");
      content.insertCr(line.next - 1);
    }
    at = line.next;
    lineStart = line.endedBy;
    if (lineStart === "within") break;
  }
  return leave(at, "more", lineStart);
}

type Edited = { leaveOut(at: number): void; insertCr(before: number): void; upTo(end: number): Buffer };

/** The bytes without those that are left out and with what is inserted; shares their memory where nothing is changed. */
function createEdited(held: Buffer, lineEnds: LineEnds): Edited {
  const crsMax = lineEnds === "strict" ? 0 : countOf(held, LF);
  let out: Buffer | null = null;
  let length = 0;
  let start = 0;
  const copyUpTo = (end: number): Buffer => {
    out ??= Buffer.allocUnsafe(held.length + crsMax);
    length += held.copy(out, length, start, end);
    start = end;
    return out;
  };
  return {
    leaveOut(at) {
      copyUpTo(at);
      start = at + 1;
    },
    insertCr(before) {
      copyUpTo(before)[length] = CR;
      length += 1;
    },
    upTo: (end) => (out === null ? held.subarray(0, end) : copyUpTo(end).subarray(0, length)),
  };
}

function countOf(bytes: Buffer, byte: number): number {
  let count = 0;
  for (let at = bytes.indexOf(byte); at !== -1; at = bytes.indexOf(byte, at + 1)) count += 1;
  return count;
}

/**
 * A dot at a line's start: alone on it, stuffed, of the text, or too early to say. Behind an LF alone there is no end of a
 * message, and programs differ: Python's smtplib doubles a dot there, curl does not. So of two dots one goes, and one stays.
 */
function dotMeans(held: Buffer, at: number, lineStart: "crlf" | "lf"): "end" | "stuffed" | "text" | "unknown" {
  const next = held[at + 1];
  if (next === undefined) return "unknown";
  if (lineStart === "lf") return next === DOT ? "stuffed" : "text";
  // RFC 5321 §4.5.2 takes a dot away where more stands on the line.
  if (next === LF) return "text";
  if (next !== CR) return "stuffed";
  if (at + 2 >= held.length) return "unknown";
  return held[at + 2] === LF ? "end" : "stuffed";
}

type LineEnd = { next: number; endedBy: LineStart } | InputFault;

/** Finds where the next line starts, or, when this one is not whole, up to where it is certain. Asked front to back. */
function lineFinder(held: Buffer): (at: number) => LineEnd {
  let cr = 0;
  return (at) => {
    // Not for each line: the next CR may be far away.
    if (cr !== -1 && (cr < at || held[cr] !== CR)) cr = held.indexOf(CR, at);
    const lf = held.indexOf(LF, at);
    if (lf !== -1) {
      if (cr === -1 || cr > lf) return { next: lf + 1, endedBy: "lf" };
      return cr === lf - 1 ? { next: lf + 1, endedBy: "crlf" } : "bare_cr";
    }
    if (cr === -1) return { next: held.length, endedBy: "within" };
    return cr === held.length - 1 ? { next: cr, endedBy: "within" } : "bare_cr";
  };
}
