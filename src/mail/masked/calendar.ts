// Calendar parts (RFC 5545 §3.1): lines unfolded, rewritten, folded again at 75 octets. What a line becomes is the caller's.

const LINE_OCTETS_MAX = 75;

/** Rewrites every content line of a calendar. */
export function rewriteCalendar(text: string, rewrite: (line: string) => string): string {
  const lines = text.replace(/\r?\n[ \t]/g, "").split(/\r?\n/);
  return lines.map((line) => foldCalendarLine(rewrite(line))).join("\r\n");
}

function foldCalendarLine(line: string): string {
  if (Buffer.byteLength(line) <= LINE_OCTETS_MAX) return line;
  let out = "";
  let octets = 0;
  for (const char of line) {
    const size = Buffer.byteLength(char);
    if (octets + size > LINE_OCTETS_MAX) {
      out += "\r\n ";
      octets = 1;
    }
    out += char;
    octets += size;
  }
  return out;
}
