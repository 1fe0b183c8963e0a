// Text in format=flowed (RFC 3676) as its reader sees it: lines that belong together in one, quotes with their marks. Written
// without the format, since a reader that joins lines again could make an address of two halves.

/** One line of the text for each line that a reader sees. `isGlued`: DelSp=yes, the blank at the break is not of the text. */
export function unwrapFlowed(text: string, isGlued: boolean): string {
  const out: string[] = [];
  let depth = -1;
  for (const given of text.split(/\r?\n/)) {
    const marks = (/^>+/.exec(given)?.[0] ?? "").length;
    const content = given.slice(marks).replace(/^ /, "");
    // RFC 3676 §4.3: the mark of a signature never flows.
    const isFlowed = content.endsWith(" ") && content !== "-- ";
    const piece = isFlowed && isGlued ? content.slice(0, -1) : content;
    if (depth === marks && content !== "-- ") out[out.length - 1] += piece;
    else out.push(start(marks, piece));
    depth = isFlowed ? marks : -1;
  }
  return out.join("\r\n");
}

/** A line of one's own that begins like a quote keeps the space before it. */
function start(marks: number, piece: string): string {
  if (marks === 0) return piece.startsWith(">") ? ` ${piece}` : piece;
  return piece === "" ? ">".repeat(marks) : `${">".repeat(marks)} ${piece}`;
}
