// Calendar parts (RFC 5545 §3.1): lines unfolded, rewritten, folded again at 75 octets. What a line becomes is the caller's.
// Whom a calendar names is read here too: an answer to an invitation goes to its organizer, wherever the mail came from.

const LINE_OCTETS_MAX = 75;

/** Rewrites every content line of a calendar; null takes it out. */
export function rewriteCalendar(text: string, rewrite: (line: string) => string | null): string {
  const rewritten = contentLines(text).flatMap((line) => rewrite(line) ?? []);
  return rewritten.map(foldCalendarLine).join("\r\n");
}

function contentLines(text: string): string[] {
  return text.replace(/\r?\n[ \t]/g, "").split(/\r?\n/);
}

/** Is it a line that names a person (RFC 5545 §3.8.4.1, §3.8.4.3)? */
export function isPersonLine(line: string): boolean {
  return /^(?:ORGANIZER|ATTENDEE)[;:]/i.test(line);
}

/** The addresses of organizers and attendees, as they stand there. */
export function calendarAddresses(text: string): string[] {
  const lines = contentLines(text).filter(isPersonLine);
  return lines.flatMap((line) =>
    [...line.matchAll(/(?:mailto:|\bEMAIL=)"?([^\s;:",<>]{3,320})/gi)].map((found) => found[1] as string),
  );
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
