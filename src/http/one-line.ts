// What people call things: one line of text. It stands in lists, logs, subjects and headings, where a line break or another
// control character would forge a second one. What was stored before is shown as it is.
import { invalid } from "../platform/refusal.ts";
import { isLonger } from "../text/is-longer.ts";

/** Controls (C0, DEL, C1), line and paragraph separators. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;

/** True for text without line breaks and other control characters. */
export function isOneLine(text: string): boolean {
  return text.search(UNSAFE) === -1;
}

/** The text without space around it, which may leave nothing; 400 naming the field when it is not one line. */
export function readLine(field: string, text: string): string {
  const line = text.trim();
  if (isOneLine(line)) return line;
  throw invalid(field, `the '${field}' field must be one line, without control characters`);
}

/** The same for a name, of 1 to `charactersMax` characters. */
export function readName(field: string, text: string, charactersMax: number): string {
  const name = readLine(field, text);
  if (name === "") throw invalid(field, `the '${field}' field must not be empty`);
  if (isLonger(name, charactersMax)) {
    throw invalid(field, `the '${field}' field must have at most ${charactersMax} characters`);
  }
  return name;
}

/** Text that others wrote as one line: a space in place of each run of control characters. */
export function asOneLine(text: string): string {
  return text.replace(UNSAFE, " ").trim();
}
