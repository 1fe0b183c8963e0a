// Character references of HTML, by the package `entities`, which knows all 2,231 names (HTML Living Standard §13.5).
import { decodeHTMLStrict } from "entities/decode";

/** The longest name has 31 characters. */
const REFERENCE = /&(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z][a-z0-9]{1,30});/gi;

/**
 * Replaces character references. Unknown names stay as written; numbers that are no character become U+FFFD, and so do those
 * of windows-1252 that stand for nothing: the text never gets a control character of C1.
 */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (reference) => {
    const decoded = decodeHTMLStrict(reference);
    return decoded >= "\x80" && decoded <= "\x9f" ? "\ufffd" : decoded;
  });
}
