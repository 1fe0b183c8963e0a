// Writes the cases of the group "requests": one for each operation, with values for everything that it takes, and the
// request that must come of it. The answer is a sample of its type.
import type { Description, Model, Operation, Type } from "./read.ts";

const ID = "01936d8a-5f5c-7cc2-9d2e-3b6f0a1c2d3e";
const TIME = "2026-01-31T12:00:00.000Z";
const DEPTH_MAX = 3;

/** The file's text. */
export function emitCases(description: Description): string {
  const models = new Map(description.models.map((model) => [model.name, model]));
  return `${JSON.stringify(
    description.operations.map((operation) => caseOf(operation, models)),
    null,
    1,
  )}\n`;
}

/** How a runner reaches an operation in its library: where it is, and in which order its parameters come. */
export function emitDispatch({ operations }: Description): string {
  const lines = operations.map((operation) => {
    const input = operation.body ? operation.body.kind : operation.query.length > 0 ? "query" : null;
    const { resource, method, path_parameters, page, answer } = operation;
    const place = {
      resource,
      method,
      path: path_parameters.map(({ name }) => name),
      input,
      page: page !== null,
      answer,
    };
    return ` ${JSON.stringify(operation.id)}: ${JSON.stringify(place)}`;
  });
  return `{\n${lines.join(",\n")}\n}\n`;
}

type Models = ReadonlyMap<string, Model>;

function caseOf(operation: Operation, models: Models): object {
  const path = Object.fromEntries(operation.path_parameters.map(({ name }) => [name, pathValue(name)]));
  const query = Object.fromEntries(operation.query.map(({ name, type }) => [name, sample(type, models)]));
  const call: { [name: string]: unknown } = { op: operation.id, path };
  const expect: { [name: string]: unknown } = {
    method: operation.http,
    path: operation.path.replace(/\{([^}]+)\}/g, (_all, name: string) => encodeURIComponent(String(path[name]))),
    query: Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
    headers: headersOf(operation),
  };
  if (operation.query.length > 0) call.input = query;
  if (operation.body?.kind === "json") {
    call.input = sample(operation.body.type, models);
    expect.json = call.input;
  } else if (operation.body?.kind === "bytes") {
    call.bytes_base64 = Buffer.from("\0\u00ff bytes").toString("base64");
    expect.body_base64 = call.bytes_base64;
  } else expect.no_body = true;
  const { respond, outcome } = answerOf(operation, models);
  return { name: `request ${operation.id}`, group: "requests", call, exchanges: [{ expect, respond }], outcome };
}

function headersOf({ body, idempotent }: Operation): object {
  return {
    authorization: "Bearer svc_test_conformance",
    "user-agent": { matches: "^postern-[a-z]+/\\d+\\.\\d+\\.\\d+ " },
    ...(body?.kind === "json" ? { "content-type": "application/json" } : {}),
    "idempotency-key": idempotent ? { matches: "^auto_[0-9a-f-]{32,36}$" } : { absent: true },
  };
}

function pathValue(name: string): string {
  return /id$/i.test(name) ? ID : name;
}

function answerOf({ answer, type, unwrap, page }: Operation, models: Models): { respond: object; outcome: object } {
  if (answer === "text")
    return { respond: { text: "email\na@b.example\n" }, outcome: { return: "email\na@b.example\n" } };
  if (answer === "bytes") {
    const bytes = Buffer.from("\0\u00ff raw").toString("base64");
    return { respond: { body_base64: bytes }, outcome: { return_base64: bytes } };
  }
  const value = type ? sample(type, models) : {};
  if (page !== null) {
    return { respond: { json: { [page]: [value], total: 1, limit: 50, offset: 0 } }, outcome: { items: [value] } };
  }
  return { respond: { json: unwrap === null ? value : { [unwrap]: value } }, outcome: { return: value } };
}

/** A value of the type, the same each time: every field that is required, and the first optional ones. */
function sample(type: Type, models: Models, depth = 0): unknown {
  switch (type.kind) {
    case "string":
      return "text";
    case "time":
      return TIME;
    case "integer":
      return 7;
    case "number":
      return 0.5;
    case "boolean":
      return true;
    case "any":
      return { any: ["thing", 1, null] };
    case "enum":
      return type.values[0];
    case "array":
      return depth > DEPTH_MAX ? [] : [sample(type.items, models, depth + 1)];
    case "map":
      return { key: sample(type.values, models, depth + 1) };
    case "union":
      return sample(type.of[0] as Type, models, depth);
    case "ref":
      return sampleOf(models.get(type.name) as Model, models, depth);
  }
}

function sampleOf(model: Model, models: Models, depth: number): unknown {
  if (model.kind === "alias") return sample(model.type, models, depth);
  if (model.kind === "variants") {
    const [first] = model.variants;
    const value = sampleOf(models.get(first?.model ?? "") as Model, models, depth) as object;
    return { ...value, [model.property]: first?.value };
  }
  const fields = model.fields.filter(({ required }) => required || depth === 0);
  return Object.fromEntries(fields.map(({ name, type }) => [name, sample(type, models, depth + 1)]));
}
