// Writes the examples of the documentation site: each operation as curl and in the five languages, with the values of the
// description's own example. `postern` is the client there, `client` in Go.

import { goName } from "./go.ts";
import { camelCase, snakeCase } from "./names.ts";
import type { Description, Model, Operation, Type } from "./read.ts";

type Example = { curl: string; node: string; python: string; ruby: string; php: string; go: string };
type Schemas = { [name: string]: { example?: unknown } };
type Shown = { operation: Operation; ids: string[]; input: unknown };

const ID = "0193a5c0-7b1e-7000-8000-000000000001";
/** Ids of other records than e-mails end in another number, by the path before them. */
const IDS: { [before: string]: string } = {
  domains: ID.replace(/1$/, "d"),
  aliases: ID.replace(/1$/, "a"),
  webhooks: ID.replace(/1$/, "e"),
};

/** The file's text: examples by operationId. `schemas` are the description's components. */
export function emitDocs({ operations, models }: Description, schemas: Schemas): string {
  const known = new Map(models.map((model) => [model.name, model]));
  const examples = operations.map((operation) => {
    const shown = {
      operation,
      ids: operation.path_parameters.map(({ name }) => idOf(name, operation.path)),
      input: inputOf(operation, schemas),
    };
    return [operation.id, examplesOf(shown, known)];
  });
  return `${JSON.stringify(Object.fromEntries(examples), null, 2)}\n`;
}

function idOf(name: string, path: string): string {
  if (/selector/i.test(name)) return "s1";
  if (/identifier|email/i.test(name)) return "anna@recipient.example";
  const [, before = ""] = new RegExp(`/([^/]+)/\\{${name}\\}`).exec(path) ?? [];
  return IDS[before] ?? ID;
}

/** Null where the body has no example: the operation is then shown without one. */
function inputOf({ body, query }: Operation, schemas: Schemas): unknown {
  if (body?.kind === "json" && body.type.kind === "ref") return schemas[body.type.name]?.example ?? {};
  if (body) return null;
  const required = query.filter((one) => one.required).map(({ name, type }) => [name, sampleOf(type)]);
  return required.length > 0 ? Object.fromEntries(required) : null;
}

function sampleOf(type: Type): unknown {
  if (type.kind === "enum") return type.values[0];
  if (type.kind === "integer" || type.kind === "number") return 7;
  return type.kind === "boolean" ? true : "anna@recipient.example";
}

function examplesOf(shown: Shown, models: ReadonlyMap<string, Model>): Example {
  const { operation, ids, input } = shown;
  const call = (join: string, name: (word: string) => string): string =>
    [...operation.resource, operation.method].map(name).join(join);
  const given = (quote: (text: string) => string, text: string | null, bytes = "bytes"): string =>
    [...ids.map(quote), ...(operation.body?.kind === "bytes" ? [bytes] : text === null ? [] : [text])].join(", ");
  const hasBody = operation.body?.kind === "json";
  const query = input !== null && !hasBody ? (input as { [name: string]: unknown }) : null;
  const keywords = (write: (value: unknown, indent: string) => string, sign: string): string | null =>
    query &&
    Object.entries(query)
      .map(([name, value]) => `${name}${sign}${write(value, "")}`)
      .join(", ");
  return {
    curl: curlOf(shown),
    node: `await postern.${call(".", camelCase)}(${given(JSON.stringify, input === null ? null : jsOf(input))});`,
    python: `postern.${call(".", snakeCase)}(${given(JSON.stringify, query ? keywords(pythonOf, "=") : input === null ? null : pythonOf(input))})`,
    ruby: `postern.${call(".", snakeCase)}(${given(JSON.stringify, query ? keywords(rubyOf, ": ") : input === null ? null : rubyOf(input))})`,
    php: `$postern->${call("->", camelCase)}(${given(phpText, input === null ? null : phpOf(input), "$bytes")});`,
    go: goOf(shown, models),
  };
}

function curlOf({ operation, ids, input }: Shown): string {
  let at = 0;
  const path = operation.path.replace(/\{[^}]+\}/g, () => encodeURIComponent(ids[at++] ?? ""));
  const isQuery = operation.body === null && input !== null;
  const query = isQuery ? `?${new URLSearchParams(input as Record<string, string>)}` : "";
  const verb = operation.http === "GET" ? "" : ` -X ${operation.http}`;
  const lines = [`curl${verb} "$POSTERN_BASE_URL${path}${query}"`, `-H "Authorization: Bearer $POSTERN_API_KEY"`];
  if (operation.body?.kind === "json") {
    lines.push(
      `-H "Content-Type: application/json"`,
      `-d '${JSON.stringify(input ?? {}, null, 1).replaceAll("'", "'\\''")}'`,
    );
  } else if (operation.body) lines.push("--data-binary @file");
  return lines.join(" \\\n  ");
}

// Values -------------------------------------------------------------------------------------------------------------

type Marks = {
  open: string;
  close: string;
  list: [string, string];
  key(name: string): string;
  word(value: unknown): string;
};

function written(value: unknown, marks: Marks, indent = ""): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((one) => written(one, marks, inner));
    const isShort = items.join(", ").length < 70 && !items.some((one) => one.includes("\n"));
    const [open, close] = marks.list;
    return isShort
      ? `${open}${items.join(", ")}${close}`
      : `${open}\n${items.map((one) => `${inner}${one},\n`).join("")}${indent}${close}`;
  }
  if (typeof value !== "object" || value === null) return marks.word(value);
  const pairs = Object.entries(value).map(
    ([name, one]) => `${inner}${marks.key(name)}${written(one, marks, inner)},\n`,
  );
  return pairs.length === 0 ? `${marks.open}${marks.close}` : `${marks.open}\n${pairs.join("")}${indent}${marks.close}`;
}

const isName = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name);

function jsOf(value: unknown): string {
  const key = (name: string): string => `${isName(name) ? name : JSON.stringify(name)}: `;
  return written(value, { open: "{", close: "}", list: ["[", "]"], key, word: (one) => JSON.stringify(one) });
}

function pythonOf(value: unknown): string {
  const word = (one: unknown): string =>
    one === null ? "None" : one === true ? "True" : one === false ? "False" : JSON.stringify(one);
  return written(value, { open: "{", close: "}", list: ["[", "]"], key: (name) => `${JSON.stringify(name)}: `, word });
}

function rubyOf(value: unknown): string {
  const text = (one: unknown): string => JSON.stringify(one).replaceAll("#", "\\#");
  const key = (name: string): string => (isName(name) ? `${name}: ` : `${text(name)} => `);
  const word = (one: unknown): string => (one === null ? "nil" : text(one));
  return written(value, { open: "{", close: "}", list: ["[", "]"], key, word });
}

function phpText(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

function phpOf(value: unknown): string {
  const isEmpty =
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
  if (isEmpty) return "[]";
  const word = (one: unknown): string => (typeof one === "string" ? phpText(one) : JSON.stringify(one));
  return written(value, { open: "[", close: "]", list: ["[", "]"], key: (name) => `${phpText(name)} => `, word });
}

// Go -----------------------------------------------------------------------------------------------------------------

type Models = ReadonlyMap<string, Model>;

function goOf({ operation, ids, input }: Shown, models: Models): string {
  const { id, resource, method, body, query } = operation;
  const given = ["ctx", ...ids.map((one) => JSON.stringify(one))];
  if (body?.kind === "bytes") given.push("content");
  else if (body) given.push(goValue(input ?? {}, body.type, models, ""));
  else if (query.length > 0) {
    const values = (input ?? {}) as { [name: string]: unknown };
    const fields = query.filter(({ name }) => name in values);
    const texts = fields.map((one) => `${goName(one.name)}: ${goField(values[one.name], one, models, "")}`);
    given.push(`postern.${goName(id)}Query{${texts.join(", ")}}`);
  }
  return `answer, err := client.${[...resource, method].map(goName).join(".")}(${given.join(", ")})`;
}

/** A field that may be absent is a pointer, unless it is a list or a map. */
function goField(value: unknown, field: { type: Type; required: boolean }, models: Models, indent: string): string {
  const text = goValue(value, field.type, models, indent);
  if (value === null || (field.required && !field.type.nullable)) return text;
  const kind = bareKind(field.type, models);
  if (["array", "map", "any", "union"].includes(kind)) return text;
  if (kind === "integer") return `postern.Ptr(int64(${text}))`;
  return kind === "number" ? `postern.Ptr(float64(${text}))` : `postern.Ptr(${text})`;
}

function bareKind(type: Type, models: Models): string {
  const model = type.kind === "ref" ? models.get(type.name) : undefined;
  return model?.kind === "alias" && ["any", "union"].includes(model.type.kind) ? "object" : type.kind;
}

function goValue(value: unknown, type: Type, models: Models, indent: string): string {
  if (value === null) return "nil";
  const inner = `${indent}\t`;
  const model = type.kind === "ref" ? models.get(type.name) : undefined;
  if (model?.kind === "alias") {
    const text = goValue(value, model.type, models, indent);
    return model.type.kind === "map" || model.type.kind === "array"
      ? text.replace(/^[^{]+/, `postern.${model.name}`)
      : text;
  }
  if (model?.kind === "object") {
    const fields = model.fields.filter(({ name }) => name in (value as object));
    const texts = fields.map(
      (one) => `${inner}${goName(one.name)}: ${goField((value as never)[one.name], one, models, inner)},\n`,
    );
    return texts.length === 0 ? `postern.${model.name}{}` : `postern.${model.name}{\n${texts.join("")}${indent}}`;
  }
  if (type.kind === "array") {
    const items = (value as unknown[]).map((one) => goValue(one, type.items, models, inner));
    return `${goType(type)}{${items.join(", ")}}`;
  }
  if (type.kind === "map") {
    const pairs = Object.entries(value as object).map(
      ([name, one]) => `${JSON.stringify(name)}: ${goValue(one, type.values, models, inner)}`,
    );
    return `${goType(type)}{${pairs.join(", ")}}`;
  }
  return typeof value === "object" ? goAny(value) : JSON.stringify(value);
}

function goAny(value: unknown): string {
  if (Array.isArray(value)) return `[]any{${value.map(goAny).join(", ")}}`;
  if (typeof value !== "object" || value === null) return value === null ? "nil" : JSON.stringify(value);
  return `map[string]any{${Object.entries(value)
    .map(([name, one]) => `${JSON.stringify(name)}: ${goAny(one)}`)
    .join(", ")}}`;
}

function goType(type: Type): string {
  switch (type.kind) {
    case "array":
      return `[]${goType(type.items)}`;
    case "map":
      return `map[string]${goType(type.values)}`;
    case "ref":
      return `postern.${type.name}`;
    case "integer":
      return "int64";
    case "number":
      return "float64";
    case "boolean":
      return "bool";
    case "any":
    case "union":
      return "any";
    default:
      return "string";
  }
}
