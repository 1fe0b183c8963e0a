// Ids in any case (RFC 9562 §4: case-insensitive on input), lower-cased once at the edge, so that no feature compares,
// counts or keeps two spellings of one id. What is an id follows from the schema: the format `uuid`, or a name such as
// `domain_id`, which may hold a name as well. Texts that only look like one (list names, slugs, tags) stay as they are.
import type { JsonSchema } from "../http/http.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Our own ids, or names in their place; not a reporter's `reportId`, which is kept as it was written. */
const ID_NAMES = new Set(["id", "domain_id", "contact_id", "attachment_id", "pattern_id"]);

/** Lower-cases ids inside a value, in place. Made for whole requests: the value itself is an object or a list. */
export type LowerIds = (value: unknown) => void;

/** The lower-caser for values of this schema; null when it has no ids. Wrong types are left to the validator. */
export function idLowerer(schema: JsonSchema): LowerIds | null {
  const options = schema.anyOf ?? schema.allOf;
  if (options) return together(options.map(idLowerer));
  if (schema.properties) return together(Object.entries(schema.properties).map(ofProperty));
  return schema.items ? ofItems(schema.items) : null;
}

function together(parts: (LowerIds | null)[]): LowerIds | null {
  const all = parts.filter((part) => part !== null);
  if (all.length === 0) return null;
  return (value) => {
    for (const part of all) part(value);
  };
}

function ofProperty([name, schema]: [string, JsonSchema]): LowerIds | null {
  const isId = isIdSchema(schema) || (schema.type === "string" && ID_NAMES.has(name));
  const below = isId ? null : idLowerer(schema);
  if (!isId && !below) return null;
  return (value) => {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return;
    if (isId) value[name] = lowered(value[name]);
    else below?.(value[name]);
  };
}

function ofItems(schema: JsonSchema): LowerIds | null {
  const isId = isIdSchema(schema);
  const below = isId ? null : idLowerer(schema);
  if (!isId && !below) return null;
  return (value) => {
    if (!Array.isArray(value)) return;
    for (const [index, item] of value.entries()) {
      if (isId) value[index] = lowered(item);
      else below?.(item);
    }
  };
}

function isIdSchema(schema: JsonSchema): boolean {
  if (schema.format === "uuid") return true;
  return (schema.anyOf ?? []).some(isIdSchema);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function lowered(value: unknown): unknown {
  return typeof value === "string" && UUID.test(value) ? value.toLowerCase() : value;
}
