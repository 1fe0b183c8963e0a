// Reads the server's description (OpenAPI 3.0, clients/openapi.json) and the interface of the libraries (clients/surface.json)
// into what the emitters write down: resources with their methods, and models. Every operation must have a place in
// surface.json, and every place an operation; what cannot be expressed is an error, never left out silently.

/** A value's type. `ref` names a model. Everything may be null only where `nullable` says so. */
export type Type = { nullable?: true } & (
  | { kind: "string" | "integer" | "number" | "boolean" | "time" | "any" }
  /** `is_closed`: it tells variants of a record apart: no value of another one fits. */
  | { kind: "enum"; values: readonly string[]; is_closed?: boolean }
  | { kind: "array"; items: Type }
  | { kind: "map"; values: Type }
  | { kind: "ref"; name: string }
  | { kind: "union"; of: readonly Type[] }
);

export type Field = { name: string; type: Type; required: boolean; description: string };

export type Model = { name: string; description: string } & (
  | { kind: "object"; fields: readonly Field[] }
  | { kind: "alias"; type: Type }
  /** One of several models, distinguished by the value of `property`. */
  | { kind: "variants"; property: string; variants: readonly { value: string; model: string }[] }
);

export type Parameter = { name: string; type: Type; required: boolean; description: string };

export type Operation = {
  id: string;
  resource: readonly string[];
  method: string;
  http: string;
  path: string;
  summary: string;
  description: string;
  path_parameters: readonly Parameter[];
  query: readonly Parameter[];
  /** `bytes` is a body that goes as it is. */
  body: null | { kind: "json"; type: Type; required: boolean } | { kind: "bytes" };
  answer: "json" | "text" | "bytes";
  /** What the caller gets: the answer, the record inside it (`unwrap`), or one item of the list (`page`). */
  type: Type | null;
  unwrap: string | null;
  page: string | null;
  /** It takes an Idempotency-Key, so that it may be repeated. */
  idempotent: boolean;
};

export type Description = { operations: readonly Operation[]; models: readonly Model[] };

type Json = { [name: string]: unknown };
type Surface = { [id: string]: { resource: string; method: string; answer: string; page?: string; unwrap?: string } };
const METHODS = ["get", "post", "put", "patch", "delete"];

/** Throws a list of everything that has no place or cannot be expressed. */
export function readDescription(openapi: Json, surface: Surface): Description {
  const reader = { openapi, problems: [] as string[] };
  const operations = readOperations(reader, surface);
  const models = closeDiscriminators(modelsNeeded(reader, operations));
  const known = new Set(operations.map(({ id }) => id));
  for (const id of Object.keys(surface)) if (!known.has(id)) reader.problems.push(`surface.json: no operation ${id}`);
  if (reader.problems.length > 0) throw new Error(reader.problems.join("\n"));
  return { operations, models };
}

/** With the property that tells variants apart closed: an open one could be that of any variant, and narrows nothing. */
function closeDiscriminators(models: readonly Model[]): Model[] {
  const properties = new Map(
    models.flatMap((model) =>
      model.kind === "variants" ? model.variants.map(({ model: name }) => [name, model.property] as const) : [],
    ),
  );
  return models.map((model) => {
    const property = properties.get(model.name);
    if (model.kind !== "object" || property === undefined) return model;
    const fields = model.fields.map((field) =>
      field.name === property && field.type.kind === "enum"
        ? { ...field, type: { ...field.type, is_closed: true } }
        : field,
    );
    return { ...model, fields };
  });
}

type Reader = { openapi: Json; problems: string[] };

function readOperations(reader: Reader, surface: Surface): Operation[] {
  const found: Operation[] = [];
  for (const [path, item] of Object.entries(reader.openapi.paths as Json)) {
    for (const http of METHODS) {
      const operation = (item as Json)[http] as Json | undefined;
      if (!operation) continue;
      const id = operation.operationId as string;
      const place = surface[id];
      if (place) found.push(readOperation(reader, operation, { http, path, ...place }));
      else reader.problems.push(`surface.json: ${id} has no place`);
    }
  }
  return found.sort((a, b) => compare(placeOf(a), placeOf(b)));
}

/** By code unit, so that every machine writes the same files. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function placeOf({ resource, method }: Operation): string {
  return `${resource.join(".")}.${method}`;
}

type Place = { http: string; path: string } & Surface[string];

function readOperation(reader: Reader, operation: Json, place: Place): Operation {
  const id = operation.operationId as string;
  const parameters = ((operation.parameters ?? []) as Json[]).map((given) => resolve(reader, given));
  const read = (where: string): Parameter[] =>
    parameters.filter((one) => one.in === where).map((one) => readParameter(reader, one));
  const inPath = read("path");
  const names = [...place.path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name as string);
  return {
    id,
    resource: place.resource.split("."),
    method: place.method,
    http: place.http.toUpperCase(),
    path: place.path,
    summary: (operation.summary ?? "") as string,
    description: (operation.description ?? "") as string,
    path_parameters: names.map((name) => inPath.find((one) => one.name === name) ?? missing(reader, id, name)),
    query: read("query"),
    body: readBody(reader, id, operation),
    answer: place.answer as Operation["answer"],
    type: answerType(reader, operation, place),
    unwrap: place.unwrap ?? null,
    page: place.page ?? null,
    idempotent: parameters.some((one) => one.in === "header" && /^idempotency-key$/i.test(one.name as string)),
  };
}

function missing(reader: Reader, id: string, name: string): Parameter {
  reader.problems.push(`${id}: the path parameter ${name} is not described`);
  return { name, type: { kind: "string" }, required: true, description: "" };
}

function readParameter(reader: Reader, given: Json): Parameter {
  return {
    name: given.name as string,
    type: readType(reader, given.schema as Json),
    required: given.required === true,
    description: (given.description ?? (given.schema as Json).description ?? "") as string,
  };
}

function readBody(reader: Reader, id: string, operation: Json): Operation["body"] {
  if (!operation.requestBody) return null;
  const body = resolve(reader, operation.requestBody as Json);
  const content = body.content as Json;
  const json = content["application/json"] as Json | undefined;
  if (json) {
    const type = readType(reader, json.schema as Json);
    return { kind: "json", type, required: body.required === true && hasRequired(reader, json.schema as Json) };
  }
  if (content["application/octet-stream"]) return { kind: "bytes" };
  reader.problems.push(`${id}: no body that a library can send`);
  return null;
}

/** A body of which every field may be absent may be absent in the call. */
function hasRequired(reader: Reader, schema: Json): boolean {
  const target = merged(reader, schema);
  if (target.type !== "object") return true;
  return ((target.required ?? []) as string[]).length > 0;
}

function answerType(reader: Reader, operation: Json, place: Place): Type | null {
  if (place.answer !== "json") return null;
  const [, answer] = Object.entries(operation.responses as Json).find(([status]) => status.startsWith("2")) ?? [];
  const content = resolve(reader, answer as Json).content as Json;
  const schema = (content["application/json"] as Json).schema as Json;
  const inner = place.unwrap ?? place.page;
  if (inner === undefined) return readType(reader, schema);
  const field = (merged(reader, schema).properties as Json)[inner] as Json | undefined;
  if (!field) reader.problems.push(`surface.json: ${operation.operationId} answers no '${inner}'`);
  const type = readType(reader, field ?? {});
  return place.page && type.kind === "array" ? type.items : type;
}

function resolve(reader: Reader, given: Json): Json {
  if (typeof given.$ref !== "string") return given;
  let at: unknown = reader.openapi;
  for (const part of given.$ref.split("/").slice(1)) at = (at as Json)[part];
  return resolve(reader, at as Json);
}

// Types --------------------------------------------------------------------------------------------------------------

function readType(reader: Reader, schema: Json): Type {
  const type = typeOf(reader, schema);
  return schema.nullable === true ? { ...type, nullable: true } : type;
}

function typeOf(reader: Reader, schema: Json): Type {
  if (typeof schema.$ref === "string") return { kind: "ref", name: nameOf(schema.$ref) };
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1) return readType(reader, schema.allOf[0] as Json);
  const forms = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (forms) return { kind: "union", of: forms.map((form) => readType(reader, form)) };
  if (schema.enum) return enumOf(schema.enum as unknown[]);
  switch (schema.type) {
    case "string":
      return { kind: schema.format === "date-time" ? "time" : "string" };
    case "integer":
    case "number":
    case "boolean":
      return { kind: schema.type };
    case "array":
      return { kind: "array", items: readType(reader, schema.items as Json) };
    case "object":
      return mapOf(reader, schema);
    default:
      return { kind: "any" };
  }
}

function enumOf(values: unknown[]): Type {
  const texts = values.filter((value) => typeof value === "string");
  return texts.length === 0 ? { kind: "any" } : { kind: "enum", values: texts };
}

/** Objects with fields are models and have names; one without a name is what has no fields of its own. */
function mapOf(reader: Reader, schema: Json): Type {
  if (Object.keys((schema.properties ?? {}) as Json).length > 0) {
    reader.problems.push(`an object with the fields ${Object.keys(schema.properties as Json)} has no name`);
  }
  const values = schema.additionalProperties;
  return { kind: "map", values: typeof values === "object" ? readType(reader, values as Json) : { kind: "any" } };
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

// Models -------------------------------------------------------------------------------------------------------------

/** Events are in it too: they come by webhook, and no operation answers with them. */
const ALWAYS = ["Event", "ErrorCode"];

function modelsNeeded(reader: Reader, operations: readonly Operation[]): Model[] {
  const schemas = (reader.openapi.components as Json).schemas as Json;
  const models = new Map<string, Model>();
  const waiting = [...ALWAYS];
  const need = (type: Type): void => {
    if (type.kind === "ref") waiting.push(type.name);
    else if (type.kind === "array") need(type.items);
    else if (type.kind === "map") need(type.values);
    else if (type.kind === "union") for (const one of type.of) need(one);
  };
  for (const { type, body, query, path_parameters } of operations) {
    if (type) need(type);
    if (body?.kind === "json") need(body.type);
    for (const one of [...query, ...path_parameters]) need(one.type);
  }
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (models.has(name)) continue;
    const model = readModel(reader, name, schemas[name] as Json);
    models.set(name, model);
    if (model.kind === "object") for (const { type } of model.fields) need(type);
    else if (model.kind === "alias") need(model.type);
    else waiting.push(...model.variants.map((variant) => variant.model));
  }
  return [...models.values()].sort((a, b) => compare(a.name, b.name));
}

/** A schema that is put together of several (`allOf`) as one: the fields of all of them. */
function merged(reader: Reader, given: Json): Json {
  const schema = resolve(reader, given);
  if (!Array.isArray(schema.allOf)) return schema;
  const { allOf, ...own } = schema;
  const parts = [...(allOf as Json[]).map((part) => merged(reader, part)), own];
  return {
    ...own,
    type: "object",
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required }) => (required ?? []) as string[]),
  };
}

/** A field's own words, else those of the component that it refers to beside words of its place. */
function wordsOf(reader: Reader, { description, allOf = [] }: Json): string {
  const [only, ...others] = allOf as Json[];
  const component = only && others.length === 0 ? merged(reader, only) : {};
  return (description ?? component.description ?? "") as string;
}

function readModel(reader: Reader, name: string, given: Json): Model {
  const schema = merged(reader, given);
  const described = { name, description: (schema.description ?? "") as string };
  const discriminator = schema.discriminator as { propertyName: string; mapping: Record<string, string> } | undefined;
  if (discriminator) {
    const variants = Object.entries(discriminator.mapping).map(([value, ref]) => ({ value, model: nameOf(ref) }));
    return { ...described, kind: "variants", property: discriminator.propertyName, variants };
  }
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  if (properties.length === 0) return { ...described, kind: "alias", type: readType(reader, schema) };
  const required = new Set((schema.required ?? []) as string[]);
  return {
    ...described,
    kind: "object",
    fields: properties.map(([field, of]) => ({
      name: field,
      type: readType(reader, of),
      required: required.has(field),
      description: wordsOf(reader, of),
    })),
  };
}
