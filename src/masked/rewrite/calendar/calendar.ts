// Calendar texts (RFC 5545 §3.1): lines unfolded, rewritten, folded again at 75 octets. What a line becomes is the caller's.
// Whom a line names is in calendar-person.ts.

const LINE_OCTETS_MAX = 75;

/** Rewrites every content line of a calendar; null takes it out. */
export function rewriteCalendar(text: string, rewrite: (line: string) => string | null): string {
  const rewritten = contentLines(text).flatMap((line) => rewrite(line) ?? []);
  return rewritten.map(foldCalendarLine).join("\r\n");
}

/** The lines of a calendar, unfolded. A CR alone ends a line, too: some readers take it so. */
export function contentLines(text: string): string[] {
  return text.replace(/(?:\r\n|\r|\n)[ \t]/g, "").split(/\r\n|\r|\n/);
}

function foldCalendarLine(line: string): string {
  const octetsOfLine = Buffer.byteLength(line);
  if (octetsOfLine <= LINE_OCTETS_MAX) return line;
  if (octetsOfLine === line.length) return foldAscii(line);
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

function foldAscii(line: string): string {
  const rest = line.slice(LINE_OCTETS_MAX).match(FOLDED);
  return [line.slice(0, LINE_OCTETS_MAX), ...(rest ?? [])].join("\r\n ");
}

const FOLDED = new RegExp(`[^]{1,${LINE_OCTETS_MAX - 1}}`, "g");
