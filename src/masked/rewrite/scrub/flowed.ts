// Text in format=flowed (RFC 3676) as its reader sees it: lines that belong together in one, quotes with their marks. Written
// without the format, since a reader that joins lines again could make an address of two halves.

/** One line of the text for each line that a reader sees. `isGlued`: DelSp=yes, the blank at the break is not of the text. */
export function unwrapFlowed(text: string, isGlued: boolean): string {
  const out: string[] = [];
  let depth = -1;
  for (const given of text.split(/\r?\n/)) {
    // Many programs write the marks of quotes within quotes with blanks between.
    const [mark = ""] = /^>(?: ?>)*/.exec(given) ?? [];
    const marks = mark.replaceAll(" ", "").length;
    const content = given.slice(mark.length).replace(/^ /, "");
    // RFC 3676 §4.3: the mark of a signature never flows.
    const isFlowed = content.endsWith(" ") && content !== "-- ";
    const piece = isFlowed && isGlued ? content.slice(0, -1) : content;
    if (depth === marks && content !== "-- ") out[out.length - 1] += piece;
    else out.push(start(mark, piece));
    depth = isFlowed ? marks : -1;
  }
  return out.join("\r\n");
}

/** A line of one's own that begins like a quote keeps the space before it. */
function start(mark: string, piece: string): string {
  if (mark === "") return piece.startsWith(">") ? ` ${piece}` : piece;
  return piece === "" ? mark : `${mark} ${piece}`;
}
