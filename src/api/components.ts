// Gives the schemas of the description their names: what routes mark with `Named`, and the bodies and answers of operations,
// become components that the rest refers to (OpenAPI 3.0.3, Components Object). Not here: what the schemas say.
import { isDeepStrictEqual } from "node:util";
import { wordsOn } from "./words.ts";

export type Node = { [key: string]: unknown };

type Mark = { name: string; description?: string };
type Operation = {
  operationId: string;
  parameters?: Node[];
  requestBody?: { content: Media };
  responses: Record<string, Answer>;
};
type Answer = { description?: string; content?: Media };
type Media = Record<string, { schema?: Node; example?: unknown; examples?: unknown }>;
export type Described = {
  paths?: Record<string, Record<string, Operation>>;
  components?: Record<string, unknown> & { schemas?: Record<string, Node> };
};

/** The words that a place may say of a component that it refers to: all else belongs to the component. */
const OF_THE_PLACE = ["nullable", "default", "description"];

/**
 * Moves all named schemas of `document` into its components, in place. One name for two different schemas throws; only
 * where a request's body takes more (null for absent), its component is another one, named `…Input`.
 */
export function nameSchemas(document: Described): void {
  const schemas: Record<string, Node> = {};
  const lift = lifter(schemas);
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) lift(named(schema, name), false);
  for (const operation of operationsOf(document)) {
    const title = operation.operationId[0]?.toUpperCase() + operation.operationId.slice(1);
    for (const parameter of operation.parameters ?? []) {
      parameter.schema = lift(parameter.schema as Node, false);
      if (parameter.required === false) delete parameter.required;
    }
    for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
      const name = type === "multipart/form-data" ? `${title}Upload` : `${title}Request`;
      if (media.schema) media.schema = lift(named(media.schema, name), true);
    }
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      const name = Number(status) < 300 ? `${title}Answer` : `${title}Error`;
      for (const media of Object.values(content)) {
        if (media.schema) media.schema = lift(named(withoutDescription(media.schema), name), false);
      }
    }
  }
  document.components = { ...document.components, schemas: sorted(schemas) };
}

function operationsOf({ paths = {} }: Described): Operation[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods));
}

/** What a route says there is said of the answer. */
function withoutDescription({ description: _of, ...schema }: Node): Node {
  return schema;
}

/** Only what has fields or forms needs a name of its own. */
function named(schema: Node, name: string): Node {
  const isPlain = schema["x-name"] !== undefined || schema.$ref !== undefined;
  if (isPlain || !(schema.type === "object" || schema.anyOf)) return schema;
  return { ...schema, "x-name": { name, description: schema.description } };
}

/** Replaces a schema by what stands in its place, and puts the named ones into `schemas`. */
function lifter(schemas: Record<string, Node>) {
  const lift = (schema: Node, isInput: boolean): Node => {
    const below = liftBelow(schema, (part) => lift(part, isInput));
    const { "x-name": mark, ...rest } = below as Node & { "x-name"?: Mark };
    // A word that may be null is an enum of its own: the null is one of the words (OpenAPI 3.0.3, nullable).
    if (!mark || (rest.nullable && rest.enum)) return rest;
    if (isPlain(rest) && OF_THE_PLACE.some((word) => rest[word] !== undefined && rest[word] !== mark.description))
      return rest;
    const extended = rest["x-extends"] ? extend(schemas, rest) : rest;
    const component = { ...extended, ...(mark.description ? { description: mark.description } : {}) } as Node;
    for (const word of OF_THE_PLACE) if (word !== "description" || !mark.description) delete component[word];
    const name = place(schemas, mark.name, component, isInput);
    return referTo(name, rest, component);
  };
  return lift;
}

/** A text with a format: where more is said of it, it is as short written out. */
function isPlain(schema: Node): boolean {
  return schema.type === "string" && !schema.enum;
}

/** The fields of another component, which is placed here where nothing else refers to it, and those beyond them. */
function extend(schemas: Record<string, Node>, { "x-extends": beyond, ...whole }: Node): Node {
  const { name, fields } = beyond as { name: string; fields: string[] };
  const part = (isWanted: (field: string) => boolean): Node => ({
    type: "object",
    ...orNothing("required", ((whole.required ?? []) as string[]).filter(isWanted)),
    properties: Object.fromEntries(Object.entries(whole.properties as object).filter(([field]) => isWanted(field))),
  });
  schemas[name] ??= part((field) => !fields.includes(field));
  return { allOf: [{ $ref: `#/components/schemas/${name}` }, part((field) => fields.includes(field))] };
}

/** OpenAPI 3.0 knows no empty list of required fields. */
function orNothing(word: string, names: string[]): Node {
  return names.length === 0 ? {} : { [word]: names };
}

function liftBelow(schema: Node, lift: (part: Node) => Node): Node {
  const result = { ...schema };
  for (const word of ["items", "additionalProperties", "not"]) {
    const part = result[word];
    if (part !== null && typeof part === "object") result[word] = lift(part as Node);
  }
  for (const word of ["anyOf", "oneOf", "allOf"]) {
    if (Array.isArray(result[word])) result[word] = (result[word] as Node[]).map(lift);
  }
  if (result.properties) {
    const properties = Object.entries(result.properties as Record<string, Node>);
    result.properties = Object.fromEntries(properties.map(([name, part]) => [name, lift(part)]));
  }
  return discriminated(result, schema);
}

/** A union whose forms a field tells apart; `before` has them with their fields. */
function discriminated(schema: Node, before: Node): Node {
  const { "x-discriminator": by, anyOf, ...rest } = schema as Node & { anyOf?: { $ref: string }[] };
  if (typeof by !== "string" || !anyOf) return schema;
  const words = (before.anyOf as Node[]).map((kind) => {
    const field = (kind.properties as Record<string, Node>)[by];
    return field?.enum as string[];
  });
  const mapping = Object.fromEntries(anyOf.flatMap(({ $ref }, at) => (words[at] ?? []).map((word) => [word, $ref])));
  return { ...rest, oneOf: anyOf, discriminator: { propertyName: by, mapping } };
}

function place(schemas: Record<string, Node>, name: string, component: Node, isInput: boolean): string {
  for (const candidate of isInput ? [name, `${name}Input`] : [name]) {
    schemas[candidate] ??= component;
    if (isDeepStrictEqual(schemas[candidate], component)) return candidate;
  }
  throw new Error(`two schemas are called ${name}: ${JSON.stringify([schemas[name], component])}`.slice(0, 2_000));
}

/** A reference alone where it says all; else beside the words that hold in this place. */
function referTo(name: string, here: Node, component: Node): Node {
  const $ref = `#/components/schemas/${name}`;
  const words = OF_THE_PLACE.filter((word) => here[word] !== undefined && here[word] !== component[word]);
  if (words.length === 0) return { $ref };
  const said = Object.fromEntries(words.map((word) => [word, here[word]]));
  return { ...(said.nullable ? { type: component.type ?? "object" } : {}), ...said, allOf: [{ $ref }] };
}

/** Explains what fields and parameters mean where their schemas do not say so, in place. */
export function sayMeanings(document: Described): void {
  const schemas = document.components?.schemas ?? {};
  for (const [owner, schema] of Object.entries(document.components?.schemas ?? {})) {
    for (const { properties = {} } of [schema, ...((schema.allOf ?? []) as Node[])]) {
      for (const [field, part] of Object.entries(properties as Record<string, Node>))
        explain(owner, field, part, schemas);
    }
  }
  for (const operation of operationsOf(document)) {
    for (const parameter of operation.parameters ?? [])
      explain(operation.operationId, parameter.name as string, parameter, schemas);
  }
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    const [, record = ""] = /^Update(\w+)Request$/.exec(name) ?? [];
    const created = document.components?.schemas?.[`Create${record}Request`];
    const read = document.components?.schemas?.[record];
    if (created) pointTo(schema, created, `create${record}`);
    else if (read) pointTo(schema, read, record);
  }
}

/** A long sentence on a field that a create has as well, or else the record, is said there alone. */
function pointTo(update: Node, other: Node, name: string): void {
  const known = Object.fromEntries(fieldsOf(other)) as Record<string, Node>;
  for (const [field, part] of fieldsOf(update)) {
    const { description } = part as { description?: string };
    const isLong = description !== undefined && description.length > DESCRIPTION_CHARS_TWICE_MAX;
    if (isLong && description === known[field]?.description) part.description = `As in ${name}`;
  }
}

const DESCRIPTION_CHARS_TWICE_MAX = 60;

function explain(owner: string, field: string, part: Node, schemas: Record<string, Node>): void {
  const [component, ...others] = ((part.allOf ?? []) as Node[]).map((one) => schemas[nameOf(one) ?? ""]);
  const words = wordsOn(owner, field, component?.description !== undefined && others.length === 0);
  if (!part.$ref && !part.description && words) part.description = words;
}

export type Examples = { requests: Record<string, unknown>; answers: Record<string, unknown> };

/**
 * Puts the examples in, each once: what an answer wraps or lists has the example, and an answer without one is made of
 * those of its parts.
 */
export function giveExamples(document: Described, { requests, answers }: Examples): void {
  const schemas = document.components?.schemas ?? {};
  for (const { operationId, requestBody } of operationsOf(document)) {
    const schema = schemas[nameOf(requestBody?.content["application/json"]?.schema) ?? ""];
    if (schema && requests[operationId] !== undefined) schema.example = requests[operationId];
  }
  for (const [name, value] of Object.entries(answers)) {
    const { owner, example } = wrapped(schemas, name, value as Node) ?? { owner: name, example: value };
    const schema = schemas[owner];
    if (schema) schema.example ??= example;
  }
  const shown = new Set(Object.keys(schemas).filter((name) => schemas[name]?.example !== undefined));
  for (const name of Object.keys(answers).filter((name) => schemas[name]))
    passDown(schemas, shown, schemas[name] as Node);
  for (const name of Object.keys(answers).filter((name) => schemas[name])) sayOnce(schemas[name] as Node, shown);
}

/** Gives the records inside an example to their own components, where these have none. */
function passDown(schemas: Record<string, Node>, shown: Set<string>, { example, ...schema }: Node): void {
  for (const [field, part] of fieldsOf(schema)) {
    const name = recordIn(part);
    const given = (example as Node | undefined)?.[field];
    const value = Array.isArray(given) ? given[0] : given;
    if (name === null || shown.has(name) || !isRecord(value) || !schemas[name]?.properties) continue;
    shown.add(name);
    schemas[name].example = value;
    passDown(schemas, shown, schemas[name]);
  }
}

/**
 * Takes the example away from a component that repeats those of its parts: it is made of them, and each other field gets the
 * value that it has there. The example stays where that would not be shorter, or could not say the same.
 */
function sayOnce(schema: Node, shown: Set<string>): void {
  const { example } = schema;
  const bases = ((schema.allOf ?? []) as Node[]).map(nameOf).filter((name) => name !== null);
  if (!isRecord(example) || !bases.every((name) => shown.has(name))) return;
  const needed = partsOf(schema).flatMap(({ required = [] }) => required as string[]);
  const said: [field: string, part: Node][] = [];
  for (const [field, part] of fieldsOf(schema)) {
    const value = example[field];
    const isMade = shown.has(recordIn(part) ?? "") && needed.includes(field);
    if (isMade && (Array.isArray(value) ? value.length > 0 : isRecord(value))) continue;
    if (value !== undefined) said.push([field, part]);
    else if (needed.includes(field)) return;
  }
  const bytes = said.reduce((sum, [field]) => sum + JSON.stringify({ example: example[field] }).length, 0);
  if (said.some(([, part]) => part.$ref) || bytes + SHORTER_BY > JSON.stringify({ example }).length) return;
  delete schema.example;
  for (const [field, part] of said) part.example = example[field];
}

/** What a component loses when it has no example of its own must be worth more than a few bytes. */
const SHORTER_BY = 40;

function isRecord(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A component and what it is put together of, as far as that stands in it. */
function partsOf(schema: Node): Node[] {
  return [schema, ...((schema.allOf ?? []) as Node[])].filter(({ $ref }) => !$ref);
}

function fieldsOf(schema: Node): [field: string, part: Node][] {
  return partsOf(schema).flatMap(({ properties = {} }) => Object.entries(properties as Record<string, Node>));
}

/** The component that a field holds, or a list of; null where it holds a plain value. */
function recordIn(part: Node): string | null {
  const { allOf = [], items } = part as { allOf?: Node[]; items?: Node };
  return nameOf(part) ?? nameOf(allOf[0]) ?? nameOf(items);
}

/** The record that an answer holds, or that it lists. */
function wrapped(schemas: Record<string, Node>, name: string, value: Node): { owner: string; example: unknown } | null {
  if (!schemas[name] || !/(Answer|List)$/.test(name)) return null;
  const parts = [schemas[name] as Node, ...((schemas[name]?.allOf ?? []) as Node[])];
  const [[field, schema] = ["", {}], ...others] = parts.flatMap(({ properties = {} }) =>
    Object.entries(properties as Record<string, Node>),
  );
  if (others.length > 0) return null;
  const owner = nameOf(schema) ?? nameOf(schema.items as Node | undefined);
  const example = Array.isArray(value[field]) ? value[field][0] : value[field];
  return owner === null || example === undefined ? null : { owner, example };
}

/** The name of the component that a schema refers to. */
function nameOf(schema: Node | undefined): string | null {
  const $ref = schema?.$ref;
  return typeof $ref === "string" ? ($ref.split("/").at(-1) ?? null) : null;
}

const ERRORS: Record<string, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  422: "AllSuppressed",
  429: "Limited",
  default: "AnyError",
};

/** Parameters and answers that several operations have in the same words become components, too. */
export function shareParts(document: Described): void {
  const operations = operationsOf(document);
  const parameters = share(
    operations.flatMap((operation) => operation.parameters ?? []),
    parameterName,
  );
  const answered = operations.flatMap(({ responses }) => Object.entries(responses));
  const names = new Map(answered.map(([status, answer]) => [answer, answerName(status, answer)]));
  const responses = share(
    answered.map(([, answer]) => answer as Node),
    (answer) => names.get(answer as never) ?? null,
  );
  for (const operation of operations) {
    operation.parameters &&= operation.parameters.map((part) => parameters.refer(part, "parameters"));
    for (const [status, answer] of Object.entries(operation.responses)) {
      operation.responses[status] = responses.refer(answer as Node, "responses") as Answer;
    }
  }
  const shared = { parameters: sorted(parameters.components), responses: sorted(responses.components) };
  document.components = { ...document.components, ...shared };
}

/** `limit` is `LimitParam`, and the `id` of a domain, which may be its name, is `DomainIdParam`. */
function parameterName({ name, description, in: place }: Node): string {
  const [, owner = ""] = (place === "path" && /^The (\w+)'s id or its name/.exec(String(description))) || [];
  const words = `${owner}-${name}`.split(/[-_]/).filter((word) => word !== "");
  return `${words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join("")}Param`;
}

function answerName(status: string, { content = {} }: Answer): string | null {
  if (status >= "400") return ERRORS[status] ?? null;
  const name = nameOf(content["application/json"]?.schema);
  return name && (status === "200" ? name : `${name}${status}`);
}

/** What stands there twice or more, by name; of several things with one name the most frequent one. */
function share(parts: Node[], nameFor: (part: Node) => string | null) {
  const texts = Map.groupBy(parts, (part) => JSON.stringify(part));
  const components: Record<string, Node> = {};
  const references = new Map<string, string>();
  for (const [text, same] of [...texts].sort(([, one], [, other]) => other.length - one.length)) {
    const name = nameFor(same[0] as Node);
    if (same.length < 2 || name === null || components[name]) continue;
    components[name] = same[0] as Node;
    references.set(text, name);
  }
  const refer = (part: Node, kind: string): Node => {
    const name = references.get(JSON.stringify(part));
    return name === undefined ? part : { $ref: `#/components/${kind}/${name}` };
  };
  return { components, refer };
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}
