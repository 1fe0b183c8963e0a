// The values that a person tries a template with: a text each as typed, as the nested object that the API takes. Pure.

export type Typed = Record<string, string>;
type Nested = { [name: string]: unknown };

/** `{ "user.name": "Maja" }` → `{ user: { name: "Maja" } }`; `[…]` and `{…}` are read as JSON. What is empty is left out. */
export function toVariables(typed: Typed): Nested {
  const variables: Nested = {};
  for (const [name, text] of Object.entries(typed)) if (text !== "") put(variables, pathOf(name), readValue(text));
  return variables;
}

/** `items[0].name` → items, 0, name. */
function pathOf(name: string): string[] {
  return name.split(/[.[\]]+/).filter(Boolean);
}

function put(within: Nested, path: readonly string[], value: unknown): void {
  const [name = "", ...below] = path;
  if (below.length === 0) {
    within[name] = value;
    return;
  }
  // What every object inherits is no part of it: a variable may be called constructor.
  const next = Object.hasOwn(within, name) ? within[name] : undefined;
  const isContainer = typeof next === "object" && next !== null;
  const container = isContainer ? (next as Nested) : ((/^\d+$/.test(below[0] ?? "") ? [] : {}) as Nested);
  within[name] = container;
  put(container, below, value);
}

function readValue(text: string): unknown {
  if (text === "true" || text === "false") return text === "true";
  // What would be shown otherwise than it is written stays a text: 007, 12.50, an order number of 20 digits.
  if (/^-?\d/.test(text) && String(Number(text)) === text) return Number(text);
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
