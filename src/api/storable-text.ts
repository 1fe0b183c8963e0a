// Text that can be stored: PostgreSQL's text has no U+0000, and its jsonb no half of a surrogate pair, so both end here,
// before any feature. JSON can carry them as escapes only (RFC 8259 §§7, 8.2), so most bodies are not even walked.
import type { FastifyRequest } from "fastify";
import { invalid, Refusal } from "../platform/refusal.ts";

const ESCAPED_NUL = "\\u0000";
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/**
 * The parsed body with half surrogate pairs replaced by U+FFFD, as a browser does when it sends text (a cut emoji is no
 * reason to lose a mail); a Refusal that names the field for U+0000. `text` is what `body` was parsed from.
 */
export function storableBody(body: unknown, text: string): unknown {
  if (!text.includes(ESCAPED_NUL) && !ESCAPED_SURROGATE.test(text)) return body;
  try {
    return storable(body, "");
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** A hook that refuses U+0000 (`%00`) in path and query parameters with the 400 that names the parameter. */
export async function refuseNul(request: FastifyRequest): Promise<void> {
  if (!request.url.includes("%00")) return;
  for (const part of [request.params, request.query]) {
    for (const [name, value] of Object.entries((part ?? {}) as Record<string, unknown>)) {
      if ([name, value].flat().some((text) => String(text).includes("\0"))) throw hasNul(name);
    }
  }
}

function storable(value: unknown, path: string): unknown {
  if (typeof value === "string") {
    if (value.includes("\0")) throw hasNul(path);
    return value.toWellFormed();
  }
  if (Array.isArray(value)) return value.map((item, index) => storable(item, `${path}[${index}]`));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const inner = path === "" ? name : `${path}.${name}`;
      if (name.includes("\0")) throw hasNul(inner);
      return [name.toWellFormed(), storable(item, inner)];
    }),
  );
}

function hasNul(path: string) {
  const field = path === "" ? "body" : path.replaceAll("\0", "\u{fffd}").toWellFormed();
  return invalid(field, `the '${field}' field holds the character U+0000, which no text can hold`);
}
