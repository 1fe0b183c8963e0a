// What the tests of the whole API ask of its description: every operation, from /openapi.yaml as it is served, and every
// route that is mounted, from the server itself.
import { parseYaml } from "@redocly/openapi-core";
import type { TestApi } from "../support/api.ts";

export type Schema = {
  type?: string;
  nullable?: boolean;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  additionalProperties?: boolean | Schema;
  description?: string;
  enum?: string[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  "x-open-enum"?: boolean;
  example?: unknown;
  $ref?: string;
};
export type Parameter = {
  description?: string;
  $ref?: string;
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema: Schema;
};
export type Media = Record<string, { schema: Schema; example?: unknown; examples?: Record<string, unknown> }>;

export type Operation = {
  operationId: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Media };
  responses: Record<string, { description: string; headers?: Record<string, unknown>; content?: Media }>;
};

export type Description = {
  openapi: string;
  info: { description: string };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; examples: Record<string, { value: unknown }> };
};

/** One operation with its place: `{ method: "GET", path: "/v1/emails/{id}", … }`. */
export type Placed = Operation & { method: string; path: string; name: string };

/** The text of /openapi.yaml; it needs no key. */
export async function readDescription(api: Pick<TestApi, "ask">): Promise<string> {
  const { status, body } = await api.ask("GET", "/openapi.yaml", undefined, { key: null });
  if (status !== 200) throw new Error(`/openapi.yaml answers ${status}`);
  return body as string;
}

/** Every operation of the description, in its order. */
export function operationsOf(text: string): Placed[] {
  const description = parseYaml(text) as Description;
  const whole = <T>(part: T | Reference): T => resolve(description, part);
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([word, operation]) => {
      const method = word.toUpperCase();
      const parameters = operation.parameters?.map(whole);
      const answers = Object.entries(operation.responses).map(([status, answer]) => [status, whole(answer)]);
      const responses = Object.fromEntries(answers);
      return { ...operation, parameters, responses, method, path, name: `${method} ${path}` };
    }),
  );
}

type Reference = { $ref: string };

/** What a reference leads to; anything else is itself. */
export function resolve<T>(description: object, part: T | Reference): T {
  const { $ref } = (part ?? {}) as Partial<Reference>;
  if ($ref === undefined) return part as T;
  const steps = $ref.split("/").slice(1);
  return steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], description) as T;
}

/** Every mounted route as `GET /v1/emails/{id}`, read from the router's own tree. */
export function routesOf(api: Pick<TestApi, "app">): string[] {
  const routes: string[] = [];
  const parents: string[] = [];
  for (const line of api.app.printRoutes({ commonPrefix: false }).split("\n")) {
    // A path that another one goes on with has no slash of its own: sessions after session.
    const found = /^([│├└─ ]*)(\S+)(?: \(([A-Z, ]+)\))?$/.exec(line.trimEnd());
    if (!found) continue;
    const [, indent = "", part = "", methods = ""] = found;
    const depth = indent.length / 4;
    const path = (parents[depth - 1] ?? "") + part;
    parents[depth] = path;
    for (const method of methods.split(", ").filter(Boolean)) {
      routes.push(`${method} ${path.replace(/:([A-Za-z_]+)/g, "{$1}")}`);
    }
  }
  return routes;
}
