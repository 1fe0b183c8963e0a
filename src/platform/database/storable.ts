// What can be stored as it was sent: PostgreSQL's text has no U+0000, and its jsonb no half of a surrogate pair. JSON can
// carry them as escapes only (RFC 8259 §§7, 8.2), so most bodies are not even walked. Nor does a number beyond 2^53 (an id
// of 64 bits) come through a double as it was (§6), and nobody would see that it is another one. Not here: what a path or a
// query holds (api/).
import { invalid, type Refusal } from "../refusal.ts";

const ESCAPED_NUL = "\\u0000";
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** As many digits as 2^53 has, or an exponent that may be more than a double has room for. */
const LONG_NUMBER = /\d{16}|\d[eE]\+?\d{3,}\s*[,\]}]/;
const INEXACT = Symbol("a number that JSON.parse does not keep");

/** What JSON.parse makes of `json`, with marks for `findUnstorable` where it does not keep a number. */
export function parseMarked(json: string): unknown {
  // `source` is there since Node 21; the library's types do not know of it.
  const revive = (_name: string, value: unknown, context?: { source: string }): unknown =>
    typeof value === "number" && !isExact(value, context?.source ?? "") ? INEXACT : value;
  return JSON.parse(json, revive as Parameters<typeof JSON.parse>[1]);
}

function isExact(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false;
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(source) || BigInt(source) === BigInt(value);
}

/** True if it may hold a number that JSON.parse does not keep. */
export function hasLongNumber(json: string): boolean {
  return LONG_NUMBER.test(json);
}

/** True if a value parsed from this JSON could hold text that cannot be stored. */
export function mayBeUnstorable(json: string): boolean {
  return json.includes(ESCAPED_NUL) || ESCAPED_SURROGATE.test(json);
}

/** The Refusal that names the field of `body` with U+0000, half a surrogate pair or a marked number; null when there is none. */
export function findUnstorable(body: unknown): Refusal | null {
  return findBelow(body, "");
}

function findBelow(value: unknown, path: string): Refusal | null {
  if (typeof value === "string") return complaint(value, path);
  if (value === INEXACT) return unstorable(path, "is a number that would not be kept exactly: send it as a string");
  if (typeof value !== "object" || value === null) return null;
  const entries = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${index}]`, "", item] as const)
    : Object.entries(value).map(([name, item]) => [path === "" ? name : `${path}.${name}`, name, item] as const);
  for (const [inner, name, item] of entries) {
    const found = complaint(name, inner) ?? findBelow(item, inner);
    if (found) return found;
  }
  return null;
}

function complaint(text: string, path: string): Refusal | null {
  if (text.includes("\0")) return hasNul(path);
  return text.isWellFormed() ? null : unstorable(path, "is not valid Unicode: it holds half of a surrogate pair");
}

/** A 400 that names the field with U+0000. */
export function hasNul(path: string): Refusal {
  return unstorable(path, "holds the character U+0000, which no text can hold");
}

function unstorable(path: string, what: string): Refusal {
  const field = path === "" ? "body" : path.replaceAll("\0", "\u{fffd}").toWellFormed();
  return invalid(field, `the '${field}' field ${what}`);
}
