// What the lists are asked: from the server's own description every operation that pages, without a filter, with each filter that
// it documents, and for the page behind the middle. Not here: the rows (fill.ts), the measuring (lists.ts).

import { uuidFloor } from "../../src/platform/random.ts";

type Schema = { $ref?: string; type?: string; enum?: string[]; maximum?: number; format?: string };
type Parameter = { $ref?: string; name: string; in: string; required?: boolean; schema: Schema };
type Operation = { operationId: string; parameters?: Parameter[] };
export type Description = { paths: Record<string, Record<string, Operation>>; components?: object };

/** `path` still has its `{id}`; `pages` by `after`, or by `offset` alone. `begins`: without an `after` it would wait for what is to come. */
export type List = { operation: string; path: string; pages: "after" | "offset"; filters: Filter[]; begins?: string };
export type Filter = { name: string; values: string[] };

/** Ways through a list, not filters of it; `wait` is how long to wait for more. */
const PAGING = new Set(["limit", "offset", "after", "wait"]);

/**
 * Texts that are searched for: in many rows, in one or few, in none, as each costs something else. A parameter that is in no
 * row here is searched for by FALLBACK.
 */
const TEXTS: Record<string, string[]> = {
  from: ["orders", "customer-of-nobody"],
  to: ["gmail", "customer77@gmail.example", "nobody@nowhere.example"],
  subject: ["order", "invoice for June"],
  tag: ["order", "no-such-tag"],
  message_id: ["c4ca4238a0b923820dcc509a6f75849b@shop.example", "nobody@nowhere.example"],
  envelope_sender: ["mail", "nobody@nowhere.example"],
  q: ["support", "shop 77", "nobody-at-all"],
  query: ["order", "customer77@mail.example", "nobody-at-all"],
  email: ["nobody@nowhere.example"],
  forward_to: ["r@lists.example", "nobody@nowhere.example"],
  scope_id: ["list-3", "list-of-nobody"],
  source: ["bounce", "import:sendgrid", "import:mailgun"],
  operation: ["createDomain", "deleteDomain"],
  types: ["email.bounced", "email.complained"],
};
const FALLBACK = ["order", "nobody-at-all"];
const DAY_MS = 86_400_000;

/** The operations that page; not what is asked of one address, which passes over all mail (decision 0045). `one` is the id that stands for itself in paths and filters. */
export function listsOf(description: Description, one: string, nowMs: number): List[] {
  return Object.entries(description.paths).flatMap(([path, { get }]) => {
    const asked = (get?.parameters ?? []).map((parameter) => resolve<Parameter>(description, parameter));
    const named = new Set(asked.map(({ name }) => name));
    if (!get || !named.has("limit") || asked.some(({ in: place, required }) => place === "query" && required))
      return [];
    const filters = asked
      .filter((parameter) => parameter.in === "query" && !PAGING.has(parameter.name))
      .map(({ name, schema }) => ({ name, values: valuesOf(name, resolve<Schema>(description, schema), one, nowMs) }));
    const begins = named.has("wait") ? { begins: uuidFloor(nowMs - 6 * DAY_MS) } : {};
    return [{ operation: get.operationId, path, pages: named.has("after") ? "after" : "offset", filters, ...begins }];
  });
}

function valuesOf(name: string, schema: Schema, one: string, nowMs: number): string[] {
  if (schema.enum) return schema.enum;
  if (schema.type === "boolean") return ["true", "false"];
  if (schema.type === "integer") return [String(schema.maximum ?? 100)];
  const day = (ago: number) => new Date(nowMs - ago * DAY_MS).toISOString().slice(0, 10);
  if (name === "from_date") return [day(0), day(15)];
  if (name === "to_date") return [day(29), day(15)];
  if (name.endsWith("_ids"))
    return [one, Array.from({ length: 100 }, (_, n) => `${one.slice(0, -2)}${10 + (n % 90)}`).join(",")];
  if (name.endsWith("_id") && !TEXTS[name]) return [one, `${one.slice(0, -2)}00`];
  return TEXTS[name] ?? FALLBACK;
}

function resolve<T extends { $ref?: string }>(description: Description, given: T): T {
  let found = given;
  while (found.$ref) {
    const steps = found.$ref.slice(2).split("/");
    found = steps.reduce((at, step) => (at as Record<string, object>)[step] as object, description as object) as T;
  }
  return found;
}
