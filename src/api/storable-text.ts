// Text that can be stored: PostgreSQL's text has no U+0000, and its jsonb no half of a surrogate pair, so both end here,
// before any feature. JSON can carry them as escapes only (RFC 8259 §§7, 8.2), so most bodies are not even walked.
import type { FastifyRequest } from "fastify";
import { invalid, notFound, type Refusal } from "../platform/refusal.ts";

const ESCAPED_NUL = "\\u0000";
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** The parsed body, or the Refusal that names the field with U+0000 or half a surrogate pair. `text` is what it was parsed from. */
export function storableBody(body: unknown, text: string): unknown {
  if (!text.includes(ESCAPED_NUL) && !ESCAPED_SURROGATE.test(text)) return body;
  return findUnstorable(body, "") ?? body;
}

/** A hook for U+0000 (`%00`): in a path it names nothing (404), in a query it is the 400 that names the parameter. */
export async function refuseNul(request: FastifyRequest): Promise<void> {
  if (!request.url.includes("%00")) return;
  const isInPath = Object.values((request.params ?? {}) as object).some((value) => String(value).includes("\0"));
  if (isInPath) throw notFound("resource");
  for (const [name, value] of Object.entries((request.query ?? {}) as Record<string, unknown>)) {
    if ([name, value].flat().some((text) => String(text).includes("\0"))) throw hasNul(name);
  }
}

function findUnstorable(value: unknown, path: string): Refusal | null {
  if (typeof value === "string") return complaint(value, path);
  if (typeof value !== "object" || value === null) return null;
  const entries = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${index}]`, "", item] as const)
    : Object.entries(value).map(([name, item]) => [path === "" ? name : `${path}.${name}`, name, item] as const);
  for (const [inner, name, item] of entries) {
    const found = complaint(name, inner) ?? findUnstorable(item, inner);
    if (found) return found;
  }
  return null;
}

function complaint(text: string, path: string): Refusal | null {
  if (text.includes("\0")) return hasNul(path);
  return text.isWellFormed() ? null : unstorable(path, "is not valid Unicode: it holds half of a surrogate pair");
}

function hasNul(path: string): Refusal {
  return unstorable(path, "holds the character U+0000, which no text can hold");
}

function unstorable(path: string, what: string): Refusal {
  const field = path === "" ? "body" : path.replaceAll("\0", "\u{fffd}").toWellFormed();
  return invalid(field, `the '${field}' field ${what}`);
}
