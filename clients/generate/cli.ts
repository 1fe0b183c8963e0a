// What the command line knows of the operations: one row each, with the arguments and options that it takes.
import type { Description, Field, Model, Operation, Type } from "./read.ts";

/** Writes clients/cli/operations.json. */
export function emitCli({ operations, models }: Description): string {
  const byName = new Map(models.map((model) => [model.name, model]));
  const rows = operations.map((operation) => `  ${JSON.stringify(rowOf(operation, byName))}`);
  return `[\n${rows.join(",\n")}\n]\n`;
}

function rowOf(operation: Operation, models: Map<string, Model>) {
  const { id, resource, method, summary, http, path, answer, page, unwrap, body } = operation;
  return {
    ...{ id, resource, method, summary, http, path, answer, page, unwrap },
    arguments: operation.path_parameters.map(({ name, description }) => ({ name, description })),
    query: operation.query.map((field) => optionOf(field, models)),
    body: body === null ? null : body.kind === "bytes" ? "bytes" : "json",
    needs_body: body?.kind === "json" && body.required,
    fields: body?.kind === "json" ? fieldsOf(body.type, models).map((field) => optionOf(field, models)) : [],
  };
}

function fieldsOf(type: Type, models: Map<string, Model>): readonly Field[] {
  const model = type.kind === "ref" ? models.get(type.name) : undefined;
  if (model?.kind === "object") return model.fields;
  return model?.kind === "alias" ? fieldsOf(model.type, models) : [];
}

/** `kind`: how the words of an option become a value. */
function optionOf({ name, type, required, description }: Field, models: Map<string, Model>) {
  const { kind, values } = kindOf(type, models);
  return { name, kind, ...(values ? { values } : {}), required, description };
}

function kindOf(type: Type, models: Map<string, Model>): { kind: string; values?: readonly string[] } {
  switch (type.kind) {
    case "string":
    case "time":
      return { kind: "text" };
    case "integer":
    case "number":
      return { kind: "number" };
    case "boolean":
      return { kind: "boolean" };
    case "enum":
      return { kind: "text", values: type.values };
    case "array": {
      const items = kindOf(type.items, models);
      return items.kind === "text" ? { ...items, kind: "list" } : { kind: "json" };
    }
    case "union":
      return type.of.some((one) => kindOf(one, models).kind === "list") ? { kind: "list" } : { kind: "json" };
    case "ref": {
      const model = models.get(type.name);
      return model?.kind === "alias" ? kindOf(model.type, models) : { kind: "json" };
    }
    default:
      return { kind: "json" };
  }
}
