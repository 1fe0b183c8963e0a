// Which variables a template has: what its author declared, then what its sources read beyond that. A declared variable
// speaks for everything below it (`user` for `user.name`). What is required and has no default must be given.

import { invalid, Refusal } from "../platform/refusal.ts";
import { parseVariableName, variablesOf } from "./language/parse.ts";
import { valueAt } from "./language/render.ts";
import type { DeclaredVariable, ParsedSources, TemplateVariable, VariableDefault, VariableInput } from "./types.ts";

export const VARIABLES_MAX = 500;

/** A variable with the keys that lead to its value. */
export type CheckedVariable = TemplateVariable & { keys: readonly string[] };

type Found = { name: string; keys: readonly string[]; required: boolean };

/** The author's list with canonical names. 400 naming `variables[i].…` for a bad or repeated name. */
export function readDeclared(variables: readonly VariableInput[]): DeclaredVariable[] {
  const names = new Set<string>();
  return variables.map((variable, index) => {
    const field = `variables[${index}].name`;
    const parsed = variable.name.isWellFormed() ? parseVariableName(variable.name) : null;
    if (!parsed) throw invalid(field, `the '${field}' field is not a name as it would stand between {{ and }}`);
    if (names.has(parsed.name)) throw invalid(field, `the '${field}' field is there twice`);
    names.add(parsed.name);
    const value = variable.default ?? null;
    if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed())) {
      throw invalid(`variables[${index}].default`, `the 'variables[${index}].default' field is not valid text`);
    }
    return { name: parsed.name, required: variable.required ?? null, default: value };
  });
}

/** All variables of a version: the declared ones in their order, then those found in the sources beyond them. */
export function allVariables(declared: readonly DeclaredVariable[] | null, sources: ParsedSources): TemplateVariable[] {
  const found = findVariables(sources);
  const own = (declared ?? []).map((variable) => ({ ...variable, keys: keysOf(variable.name) }));
  const isCovered = (keys: readonly string[]) => own.some((variable) => startsWith(keys, variable.keys));
  const beyond = [...found.values()].filter(({ keys }) => !isCovered(keys));
  if (own.length + beyond.length > VARIABLES_MAX) {
    throw new Refusal("template_error", `a template has at most ${VARIABLES_MAX} variables`, { field: "variables" });
  }
  return [
    ...own.map(({ name, keys, required, default: value }) => ({
      name,
      required: required ?? (value === null && isRequiredBelow(keys, found)),
      default: value,
    })),
    ...beyond.map(({ name, required }) => ({ name, required, default: null })),
  ];
}

function isRequiredBelow(keys: readonly string[], found: Map<string, Found>): boolean {
  return [...found.values()].some((variable) => variable.required && startsWith(variable.keys, keys));
}

/** The variables of a stored version, ready to be checked against values. */
export function checkedVariables(variables: readonly TemplateVariable[]): CheckedVariable[] {
  return variables.map((variable) => ({ ...variable, keys: keysOf(variable.name) }));
}

/** Names of the required variables that have neither a value (null is none, "" is one) nor a default. */
export function missingVariables(
  variables: readonly CheckedVariable[],
  values: Readonly<Record<string, unknown>>,
): string[] {
  return variables
    .filter((variable) => variable.required && variable.default === null)
    .filter(({ keys }) => (valueAt(values, keys) ?? null) === null)
    .map(({ name }) => name);
}

/** Names of the given values that no source reads. */
export function unusedVariables(sources: ParsedSources, values: Readonly<Record<string, unknown>>): string[] {
  const parts = [sources.subject, sources.html_body, sources.text_body].filter((part) => part !== null);
  if (parts.some((part) => part.reads_all)) return [];
  const read = new Set(parts.flatMap((part) => variablesOf(part).map(({ keys }) => keys[0])));
  return Object.keys(values).filter((name) => !read.has(name));
}

/** The defaults by name, for the renderer. */
export function defaultsOf(variables: readonly TemplateVariable[]): ReadonlyMap<string, VariableDefault> {
  return new Map(variables.flatMap(({ name, default: value }) => (value === null ? [] : [[name, value] as const])));
}

function findVariables(sources: ParsedSources): Map<string, Found> {
  const found = new Map<string, Found>();
  for (const part of [sources.subject, sources.html_body, sources.text_body]) {
    for (const { name, keys, required } of part ? variablesOf(part) : []) {
      found.set(name, { name, keys, required: required || found.get(name)?.required === true });
    }
  }
  return found;
}

function keysOf(name: string): readonly string[] {
  const parsed = parseVariableName(name);
  if (!parsed) throw new Error("a stored variable has a name that cannot be read");
  return parsed.keys;
}

function startsWith(keys: readonly string[], prefix: readonly string[]): boolean {
  return prefix.length <= keys.length && prefix.every((key, place) => keys[place] === key);
}
