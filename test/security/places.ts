// The places of a request's body: every field that the description of an operation names, or an example has, with its
// schema. What the tests of this folder put hostile values into.
import type { Schema } from "../api/operations.ts";

export type Nested = Schema & {
  items?: Nested;
  properties?: Record<string, Nested>;
  anyOf?: Nested[];
  oneOf?: Nested[];
  maxLength?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
};
export type Path = (string | number)[];
export type Place = { path: Path; schema: Nested };

const DEPTH_MAX = 3;

/** Follows references into `schemas`. */
export function schemaOf(schema: Nested | undefined, schemas: Record<string, Nested>): Nested {
  const name = schema?.$ref?.split("/").at(-1);
  return name === undefined ? (schema ?? {}) : schemaOf(schemas[name], schemas);
}

/** Every place of a body: those that the description names, and those that the example has. */
export function placesOf(
  given: Nested | undefined,
  example: unknown,
  schemas: Record<string, Nested>,
  depth = 0,
): Place[] {
  if (depth > DEPTH_MAX) return [];
  const schema = schemaOf(given, schemas);
  const forms = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].map((form) => schemaOf(form, schemas));
  const within = (key: string | number, inner: Nested | undefined, value: unknown): Place[] => [
    { path: [key], schema: schemaOf(inner, schemas) },
    ...placesOf(inner, value, schemas, depth + 1).map((place) => ({ ...place, path: [key, ...place.path] })),
  ];
  const isList = Array.isArray(example) || forms.some(({ items }) => items !== undefined);
  if (isList) return within(0, forms.find(({ items }) => items)?.items, (example as unknown[] | undefined)?.[0]);
  const names = new Set(forms.flatMap(({ properties }) => Object.keys(properties ?? {})));
  if (typeof example === "object" && example !== null) for (const name of Object.keys(example)) names.add(name);
  return [...names].flatMap((name) => {
    const property = forms.find(({ properties }) => properties?.[name])?.properties?.[name];
    return within(name, property, (example as Record<string, unknown> | undefined)?.[name]);
  });
}

/** A copy of the body with another value at a place; what is missing on the way is made. */
export function withValue(body: unknown, [first, ...rest]: Path, value: unknown): unknown {
  if (first === undefined) return value;
  const copy = (Array.isArray(body) ? [...body] : { ...(body as object) }) as Record<string | number, unknown>;
  const known = copy[first];
  copy[first] = withValue(known ?? (typeof rest[0] === "number" ? [] : {}), rest, value);
  return copy;
}
