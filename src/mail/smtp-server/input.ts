// The bytes of an SMTP client, cut into command lines and message content (RFC 5321 §2.3.8, §4.5.2). Only CRLF ends a
// line and only CRLF.CRLF ends a message, wherever the network cut the bytes: a CR or LF alone, and NUL, are faults, as
// two servers that read them differently can be made to see different messages (SMTP smuggling). From a client that logged
// in, an LF alone may become CRLF; it never ends a message. Pure; knows no commands.

export type InputFault = "bare_cr" | "bare_lf" | "nul" | "line_too_long";

export type Line = { kind: "line"; bytes: Buffer } | { kind: "fault"; fault: InputFault };

/** `more`: all content that is there was handed out. After `end` what is left are command lines again. */
export type DataProgress = "more" | "end" | { kind: "fault"; fault: InputFault };

export type Input = {
  push(chunk: Buffer): void;
  /** The next command line without its CRLF; null when it is not complete yet. */
  takeLine(): Line | null;
  /** The next line may be the first of a message. */
  startData(): void;
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
  let atLineStart = true;
  return {
    push(chunk) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    },
    takeLine() {
      const { line, rest } = cutLine(held);
      held = rest;
      return line;
    },
    startData() {
      atLineStart = true;
    },
    takeData(sink) {
      const cut = cutData(held, atLineStart, sink);
      held = cut.rest;
      atLineStart = cut.atLineStart;
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

type Cut = { progress: DataProgress; rest: Buffer; atLineStart: boolean };

/**
 * What cannot be judged yet (a dot at a line's start, a CR, at the very end) is held back. All content is one piece: a
 * message can be nothing but stuffed dots, and a piece for each line of it would cost fifty times its bytes.
 */
function cutData(held: Buffer, startsLine: boolean, sink: (piece: Buffer) => void): Cut {
  const content = createUnstuffed(held);
  const stop = (fault: InputFault): Cut => ({ progress: { kind: "fault", fault }, rest: EMPTY, atLineStart: false });
  const leave = (at: number, progress: "more" | "end", atLineStart: boolean): Cut => {
    const piece = content.upTo(at);
    if (piece.includes(NUL)) return stop("nul");
    if (piece.length > 0) sink(piece);
    return { progress, rest: held.subarray(progress === "end" ? at + 3 : at), atLineStart };
  };

  let at = 0;
  let atLineStart = startsLine;
  while (at < held.length) {
    if (atLineStart && held[at] === DOT) {
      const after = dotMeans(held, at);
      if (after === "unknown") return leave(at, "more", true);
      if (after === "end") return leave(at, "end", true);
      content.leaveOut(at);
      at += 1;
    }
    const line = endOfLine(held, at);
    if (typeof line === "string") return stop(line);
    at = line.next;
    atLineStart = line.isWhole;
    if (!line.isWhole) return leave(at, "more", false);
  }
  return leave(at, "more", atLineStart);
}

/** The bytes without those that are left out, from the first to the last; shares their memory where none is. */
function createUnstuffed(held: Buffer): { leaveOut(at: number): void; upTo(end: number): Buffer } {
  let out: Buffer | null = null;
  let length = 0;
  let start = 0;
  return {
    leaveOut(at) {
      out ??= Buffer.allocUnsafe(held.length);
      length += held.copy(out, length, start, at);
      start = at + 1;
    },
    upTo(end) {
      if (out === null) return held.subarray(0, end);
      length += held.copy(out, length, start, end);
      return out.subarray(0, length);
    },
  };
}

/** A dot at a line's start: alone on it, stuffed, or too early to say. */
function dotMeans(held: Buffer, at: number): "end" | "stuffed" | "unknown" {
  if (at + 1 >= held.length) return "unknown";
  if (held[at + 1] !== CR) return "stuffed";
  if (at + 2 >= held.length) return "unknown";
  return held[at + 2] === LF ? "end" : "stuffed";
}

/** Where the next line starts, or, when this one is not whole, up to where it is certain. */
function endOfLine(held: Buffer, at: number): { next: number; isWhole: boolean } | InputFault {
  const lf = held.indexOf(LF, at);
  const cr = held.indexOf(CR, at);
  if (lf !== -1) {
    if (cr === -1 || cr > lf) return "bare_lf";
    return cr === lf - 1 ? { next: lf + 1, isWhole: true } : "bare_cr";
  }
  if (cr === -1) return { next: held.length, isWhole: false };
  return cr === held.length - 1 ? { next: cr, isWhole: false } : "bare_cr";
}
