// How many different addresses a contact's mail names: a list of guesses is a warning sign. Counted in the texts as the hider
// reads them; roughly, because nothing but a warning to the owner hangs on it.
import type { ContentHider } from "./sent-content.ts";

/** Beyond that it is a list, whatever else it holds. */
const COUNTED_MAX = 10_000;
const SIDE_CHARS_MAX = 64;

/** The hider, which counts along; `count` tells. */
export function countingAddresses(hider: ContentHider): { hider: ContentHider; count(): number } {
  const found = new Set<string>();
  const along = <T>(read: (source: string) => T) => {
    return (source: string): T => {
      collect(source, found);
      return read(source);
    };
  };
  return {
    hider: { ...hider, text: along(hider.text), html: along(hider.html), file: along(hider.file) },
    count: () => found.size,
  };
}

function collect(source: string, found: Set<string>): void {
  for (let at = source.indexOf("@"); at !== -1 && found.size < COUNTED_MAX; at = source.indexOf("@", at + 1)) {
    const local = /[\p{L}\p{N}._%+-]+$/u.exec(source.slice(Math.max(0, at - SIDE_CHARS_MAX), at))?.[0];
    const domain = /^(?:[\p{L}\p{N}-]+\.)+[\p{L}\p{N}-]{2,}/u.exec(source.slice(at + 1, at + 1 + SIDE_CHARS_MAX))?.[0];
    if (local && domain) found.add(`${local}@${domain}`.toLowerCase());
  }
}
