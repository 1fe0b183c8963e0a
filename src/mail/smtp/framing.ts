// The message as it stands between DATA and the final dot (RFC 5321 §4.5.2): dot-stuffed, ended by CRLF.CRLF.
// Refuses what could end DATA early at a careless receiver (SMTP smuggling): a CR or LF alone, and NUL.
// Does not repair: signed bytes are never changed, except for the dots and a missing last CRLF.

import { setImmediate as nextTurn } from "node:timers/promises";

const LF = 0x0a;
const CR = 0x0d;
const DOT = 0x2e;
const ONE_DOT = Buffer.from(".");
const END_OF_DATA = Buffer.from(".\r\n");
const CRLF_END_OF_DATA = Buffer.from("\r\n.\r\n");
/** Looked at in one go: some milliseconds for the worst of them. */
const SLICE_BYTES = 1 << 18;
/**
 * What no message may hold. A loop over the bytes takes eight times as long. What the neighbouring slice decides is left to
 * the caller: a CR at the end, an LF at the start.
 */
const CARELESS = /\0|\r(?!\n|$)|(?<!\r|^)\n/;
const LEADING_DOT = "\n.";
const STUFFED_DOT = "\n..";

export type FramingDefect = { defect: string };

export type FramedMessage = { chunks: Buffer[]; end: Buffer };

/**
 * Cuts the message (given in parts, as if concatenated) into the buffers to be written: `chunks` without the final dot,
 * then `end`, which holds it. Copies only slices in which a dot is stuffed. Others have a turn between those of a large message.
 */
export async function frameMessage(parts: readonly Buffer[]): Promise<FramedMessage | FramingDefect> {
  const chunks: Buffer[] = [];
  let previous = LF;
  let offset = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += SLICE_BYTES) {
      if (at > 0) await nextTurn();
      const slice = part.subarray(at, at + SLICE_BYTES);
      const text = slice.toString("latin1");
      const defect = findDefect(text, previous, offset);
      if (defect) return defect;
      if (previous === LF && slice[0] === DOT) chunks.push(ONE_DOT);
      chunks.push(text.includes(LEADING_DOT) ? stuffed(text) : slice);
      previous = slice[slice.length - 1]!;
      offset += slice.length;
    }
  }
  if (previous === CR) return misplaced("CR", offset - 1);
  return { chunks, end: previous === LF ? END_OF_DATA : CRLF_END_OF_DATA };
}

/** In a slice (latin1). `previous` is the byte before it, `offset` how many there were. */
function findDefect(text: string, previous: number, offset: number): FramingDefect | null {
  if ((text.charCodeAt(0) === LF) !== (previous === CR)) return misplaced(previous === CR ? "CR" : "LF", offset);
  const found = CARELESS.exec(text);
  if (!found) return null;
  const at = offset + found.index;
  if (found[0] === "\0") return { defect: `NUL at byte ${at}` };
  return misplaced(found[0] === "\r" ? "CR" : "LF", at);
}

function stuffed(text: string): Buffer {
  return Buffer.from(text.replaceAll(LEADING_DOT, STUFFED_DOT), "latin1");
}

function misplaced(what: "CR" | "LF", at: number): FramingDefect {
  return { defect: `${what} that is not part of a CRLF near byte ${at}` };
}
