// In what creates something, `null` for an optional field means that the field is absent: many clients send every field they
// know. The null is taken away before the schema is asked, unless the field itself may hold it. What stands in free objects
// (variables, metadata, headers) is the customer's own value and stays. In what changes something null clears a field: where it
// is a list that may be empty, it is empty then.
import type { JsonSchema } from "../../http/http.ts";

/** Takes such nulls out of a value, in place. Wrong types are left to the validator. */
export type DropNulls = (value: unknown) => void;

/** For values of this schema; null when it has no optional field. */
export function nullDropper(schema: JsonSchema): DropNulls | null {
  const options = schema.anyOf ?? schema.allOf;
  if (options) return together(options.map(nullDropper));
  if (schema.properties) return ofObject(schema);
  const below = schema.items ? nullDropper(schema.items) : null;
  return below && ((value) => Array.isArray(value) && value.forEach((item) => void below(item)));
}

function together(parts: (DropNulls | null)[]): DropNulls | null {
  const all = parts.filter((part) => part !== null);
  if (all.length === 0) return null;
  return (value) => {
    for (const part of all) part(value);
  };
}

function ofObject(schema: JsonSchema): DropNulls {
  const properties = Object.entries(schema.properties ?? {});
  const droppable = properties.filter(([name, of]) => isOptional(schema, name) && !mayBeNull(of)).map(([name]) => name);
  const below = properties.flatMap(([name, of]) => {
    const drop = nullDropper(of);
    return drop ? [{ name, drop }] : [];
  });
  return (value) => {
    if (!isRecord(value)) return;
    for (const name of droppable) if (value[name] === null) delete value[name];
    for (const { name, drop } of below) if (Object.hasOwn(value, name)) drop(value[name]);
  };
}

/** Puts an empty list in the place of null, for bodies of this schema that change something; null when it has no such list. */
export function listEmptier(schema: JsonSchema): DropNulls | null {
  const names = listsOf(schema).map(([name]) => name);
  if (names.length === 0) return null;
  return (value) => {
    if (!isRecord(value)) return;
    for (const name of names) if (value[name] === null) value[name] = [];
  };
}

/** Those of the body's own fields that are lists and may be empty. */
function listsOf(schema: JsonSchema): [name: string, of: JsonSchema][] {
  const properties = Object.entries(schema.properties ?? {});
  return properties.filter(([, of]) => of.type === "array" && !of.minItems && !mayBeNull(of));
}

/** Says so in the description of a body that changes something. */
export function describeCleared(schema: JsonSchema): void {
  for (const [, of] of listsOf(schema)) of.nullable = true;
}

function isOptional(schema: JsonSchema, name: string): boolean {
  return !(schema.required ?? []).includes(name);
}

function mayBeNull(schema: JsonSchema): boolean {
  return schema.nullable === true || schema.type === "null" || (schema.anyOf ?? []).some(mayBeNull);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Says so in the description of a body (OpenAPI 3.0.3: `nullable` stands beside a `type`, and null in an enum). */
export function describeNulls(schema: JsonSchema): void {
  for (const below of [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]) describeNulls(below);
  for (const [name, of] of Object.entries(schema.properties ?? {})) {
    describeNulls(of);
    if (!schema.required?.includes(name)) allowNull(of);
  }
}

function allowNull(schema: JsonSchema): void {
  const [typed] = schema.anyOf ?? [schema];
  if (!typed?.type || mayBeNull(schema)) return;
  typed.nullable = true;
  if (typed.enum) typed.enum = [...typed.enum, null];
}
