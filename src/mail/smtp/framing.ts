// The message as it stands between DATA and the final dot (RFC 5321 §4.5.2): dot-stuffed, ended by CRLF.CRLF.
// Refuses what could end DATA early at a careless receiver (SMTP smuggling): a CR or LF alone, and NUL.
// Does not repair: signed bytes are never changed, except for the dots and a missing last CRLF.

const NUL = 0x00;
const LF = 0x0a;
const CR = 0x0d;
const DOT = 0x2e;
const END_OF_DATA = Buffer.from(".\r\n");
const CRLF_END_OF_DATA = Buffer.from("\r\n.\r\n");

export type FramingDefect = { defect: string };

/**
 * Cuts the message (given in parts, as if concatenated) into the buffers to be written: `chunks` without the final dot,
 * then `end`, which holds it. Copies nothing but where a dot is stuffed.
 */
export function frameMessage(parts: readonly Buffer[]): { chunks: Buffer[]; end: Buffer } | FramingDefect {
  const chunks: Buffer[] = [];
  let previous = LF;
  let offset = 0;
  for (const part of parts) {
    let from = 0;
    for (let i = 0; i < part.length; i++) {
      const byte = part[i]!;
      if (byte === LF ? previous !== CR : previous === CR) return misplaced(previous === CR ? "CR" : "LF", offset + i);
      if (byte === NUL) return { defect: `NUL at byte ${offset + i}` };
      if (byte === DOT && previous === LF) {
        chunks.push(part.subarray(from, i), END_OF_DATA.subarray(0, 1));
        from = i;
      }
      previous = byte;
    }
    if (from < part.length) chunks.push(part.subarray(from));
    offset += part.length;
  }
  if (previous === CR) return misplaced("CR", offset - 1);
  return { chunks, end: previous === LF ? END_OF_DATA : CRLF_END_OF_DATA };
}

function misplaced(what: "CR" | "LF", at: number): FramingDefect {
  return { defect: `${what} that is not part of a CRLF near byte ${at}` };
}
