// What a change did, value by value: "active: true, then false". Kept are words of a list, numbers, times, ids, switches, and the
// names of things. What somebody writes freely, an address or a secret is never kept: the log outlives what it is about.
import type { JsonSchema } from "../http/http.ts";

/** A value before and after, as text; a list is parted by commas. Null: there was none, or it is not known. */
export type Change = { field: string; before: string | null; after: string | null };

const CHANGES_MAX = 100;
const TEXT_CHARS_MAX = 300;
const FORMATS = new Set(["uuid", "date-time", "date"]);
const TYPES = new Set(["boolean", "integer", "number"]);
/** Fields of a body that the record shows under another name. */
const SHOWN_AS: Record<string, string> = { events: "event_types" };
/** What things are called. */
const NAMES = new Set(["name", "slug", "selector", "new_selector", "ip_pool"]);

type Fields = Record<string, unknown>;

/**
 * The changes that a body asked for. `schema`: that of the body. `before`: the record as it was, undefined where that is not
 * known; what stays as it was is no change. `hasNames`: names stand for things, not for people.
 */
export function changesOf(
  schema: unknown,
  body: unknown,
  { before, hasNames }: { before?: unknown; hasNames: boolean },
): Change[] {
  if (!isFields(body)) return [];
  const was = recordWith(before, Object.keys(body));
  const kept = read(schema as JsonSchema, body, was, { path: "", hasNames });
  return kept.flatMap(({ field, old, value }) => changeOf(field, old, value)).slice(0, CHANGES_MAX);
}

/** True if `changesOf` could keep a value of this body, or of the record before it. */
export function showsValues(schema: unknown, body: unknown, hasNames: boolean): boolean {
  return isFields(body) && read(schema as JsonSchema, body, undefined, { path: "", hasNames }).length > 0;
}

/** The same of two records, for the members that are named. */
export function changesBetween<R extends object>(before: R, after: R, names: readonly (keyof R & string)[]): Change[] {
  return names.flatMap((field) => changeOf(field, before[field], after[field]));
}

/** Compared is all of the two values, also what is not kept of them. */
function changeOf(field: string, old: unknown, value: unknown): Change[] {
  const [was, is] = [textOf(old), textOf(value)];
  return was === is ? [] : [{ field, before: shown(was), after: shown(is) }];
}

type Place = { path: string; hasNames: boolean };

/** A value whose text may be kept, and what stood there before. */
type Kept = { field: string; old: unknown; value: unknown };

function read({ properties }: JsonSchema, body: Fields, was: Fields | undefined, { path, hasNames }: Place): Kept[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const schema = Object.hasOwn(properties ?? {}, name) ? properties?.[name] : undefined;
    if (schema === undefined) return [];
    const field = path + name;
    const old = was?.[name] ?? was?.[SHOWN_AS[name] ?? name];
    if (isFields(value)) {
      return read(schema, value, isFields(old) ? old : undefined, { path: `${field}.`, hasNames });
    }
    return isKept(schema) || (hasNames && NAMES.has(name)) ? [{ field, old, value }] : [];
  });
}

function isKept({ type, format, enum: words, items, anyOf }: JsonSchema): boolean {
  if (words !== undefined) return true;
  if (anyOf !== undefined) return anyOf.every(isKept);
  if (type === "array") return items !== undefined && isKept(items);
  return type !== undefined && (TYPES.has(type) || (format !== undefined && FORMATS.has(format)));
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Whatever is written freely may hold an address of a person; `…` stands for what is not kept. */
function shown(text: string | null): string | null {
  if (text?.includes("@")) return "…";
  return text !== null && text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
}

/** The record of an answer that has one of these members: the answer itself, or what it holds. */
function recordWith(answer: unknown, names: readonly string[]): Fields | undefined {
  if (!isFields(answer)) return undefined;
  const has = (one: unknown): one is Fields => isFields(one) && names.some((name) => Object.hasOwn(one, name));
  return [answer, ...Object.values(answer)].find(has);
}

function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
}
