// Text that can be stored: PostgreSQL's text has no U+0000, and its jsonb no half of a surrogate pair. JSON can carry them
// as escapes only (RFC 8259 §§7, 8.2), so most bodies are not even walked. Not here: what a path or a query holds (api/).
import { invalid, type Refusal } from "./refusal.ts";

const ESCAPED_NUL = "\\u0000";
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** Could a value parsed from this JSON hold text that cannot be stored? */
export function mayBeUnstorable(json: string): boolean {
  return json.includes(ESCAPED_NUL) || ESCAPED_SURROGATE.test(json);
}

/** The Refusal that names the field of `body` with U+0000 or half a surrogate pair; null when there is none. */
export function findUnstorable(body: unknown): Refusal | null {
  return findBelow(body, "");
}

function findBelow(value: unknown, path: string): Refusal | null {
  if (typeof value === "string") return complaint(value, path);
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
