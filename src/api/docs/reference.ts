// The reference, rendered from the description: a page for each group of operations, with parameters, fields, the answer and
// examples. Records are shown in place, each one level deep; what is below stands in the example.
import { escapeHtml } from "../../http/public-page.ts";
import examples from "./examples.json" with { type: "json" };

type Schema = {
  $ref?: string;
  type?: string;
  description?: string;
  enum?: unknown[];
  items?: Schema;
  properties?: { [name: string]: Schema };
  required?: string[];
  example?: unknown;
  format?: string;
  nullable?: boolean;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
};
type Content = { content?: { [type: string]: { schema?: Schema; example?: unknown } } };
type Parameter = { $ref?: string; name: string; in: string; required?: boolean; description?: string; schema?: Schema };
export type Operation = {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: Content & { $ref?: string };
  responses: { [status: string]: Content & { $ref?: string; description?: string } };
};
/** What of OpenAPI 3.0 is read here. */
export type Description = {
  info: { version: string };
  tags: { name: string; description?: string }[];
  paths: { [path: string]: { [verb: string]: Operation } };
  components: { [kind: string]: { [name: string]: unknown } };
};
export type Placed = { operation: Operation; verb: string; path: string };
type Markdown = (text: string) => string;

const LANGUAGES = { curl: "curl", node: "Node", python: "Python", ruby: "Ruby", php: "PHP", go: "Go" } as const;

/** Every operation that is described, in the description's order. */
export function operationsOf({ paths }: Description): Placed[] {
  return Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs)
      .filter(([verb]) => ["get", "post", "put", "patch", "delete"].includes(verb))
      .map(([verb, operation]) => ({ operation, verb: verb.toUpperCase(), path })),
  );
}

/** `Masked aliases` → `masked-aliases`. */
export function slugOf(tag: string): string {
  return tag.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

/** Where an operation stands on its page. */
export function anchorOf({ operationId }: Operation): string {
  return operationId;
}

function titleOf({ summary }: Operation): string {
  return escapeHtml(summary).replace(/`([^`]*)`/g, "<code>$1</code>");
}

/** A page for each tag. */
export function referenceOf(
  description: Description,
  markdown: Markdown,
): { slug: string; title: string; body: string }[] {
  const all = operationsOf(description);
  return description.tags.map(({ name, description: text = "" }) => {
    const own = all.filter(({ operation }) => operation.tags[0] === name);
    const list = own.map(({ operation }) => `<li><a href="#${anchorOf(operation)}">${titleOf(operation)}</a></li>`);
    const sections = own.map((placed) => sectionOf(description, placed, markdown));
    const body = `<h1>${escapeHtml(name)}</h1>${markdown(text)}<ul>${list.join("")}</ul>${sections.join("")}`;
    return { slug: slugOf(name), title: name, body };
  });
}

function sectionOf(description: Description, { operation, verb, path }: Placed, markdown: Markdown): string {
  const parameters = (operation.parameters ?? []).map((given) => resolved(description, given));
  const body = operation.requestBody && contentOf(description, operation.requestBody);
  const [status, answer] = Object.entries(operation.responses).find(([code]) => /^2/.test(code)) ?? ["", {}];
  const given = contentOf(description, answer);
  return (
    `<section class="operation" id="${anchorOf(operation)}"><h2>${titleOf(operation)}</h2>` +
    `<p class="where"><span class="verb">${verb}</span>${escapeHtml(path)}</p>${markdown(operation.description ?? "")}` +
    rowsOf(
      "Parameters",
      parameters.map((one) => ({ ...one, schema: one.schema ?? {} })),
      description,
      markdown,
    ) +
    rowsOf("Body", fieldsOf(description, body?.schema), description, markdown) +
    examplesOf(operation.operationId) +
    detailsOf(
      `Answer ${status}`,
      rowsOf("", fieldsOf(description, given?.schema), description, markdown) + jsonOf(given?.example),
    ) +
    "</section>"
  );
}

type Row = { name: string; required?: boolean; description?: string; schema: Schema };

function rowsOf(title: string, rows: Row[], description: Description, markdown: Markdown): string {
  if (rows.length === 0) return "";
  const lines = rows.map(({ name, required, description: text, schema }) => {
    const whole = resolved(description, schema);
    const said = text ?? schema.description ?? whole.description ?? "";
    const need = required ? ' <span class="need">required</span>' : "";
    return `<tr><td><code>${escapeHtml(name)}</code>${need}<br><span class="dim">${escapeHtml(typeOf(description, schema))}</span></td><td>${markdown(said)}</td></tr>`;
  });
  const head = title === "" ? "" : `<h3>${title}</h3>`;
  return `${head}<div class="wide" tabindex="0"><table><tbody>${lines.join("")}</tbody></table></div>`;
}

function fieldsOf(description: Description, schema: Schema | undefined): Row[] {
  const whole = schema && resolved(description, schema);
  const parts = [whole, ...(whole?.allOf ?? []).map((one) => resolved(description, one))];
  return parts.flatMap((part) =>
    Object.entries(part?.properties ?? {}).map(([name, inner]) => ({
      name,
      required: part?.required?.includes(name) ?? false,
      schema: inner,
    })),
  );
}

function typeOf(description: Description, schema: Schema): string {
  const whole = resolved(description, schema);
  if (whole.enum) return whole.enum.map(String).join(" | ");
  if (whole.type === "array") return `list of ${typeOf(description, whole.items ?? {})}`;
  if (schema.$ref && whole.type === "object") return nameOf(schema.$ref);
  const several = whole.anyOf ?? whole.oneOf ?? whole.allOf;
  if (several) return [...new Set(several.map((one) => typeOf(description, one)))].join(" or ");
  return (whole.format ?? whole.type ?? "any") + (whole.nullable ? " or null" : "");
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

/** Whatever `$ref` names. A reference to nothing is an error of the description. */
function resolved<T extends { $ref?: string }>(description: Pick<Description, "components">, given: T): T {
  if (given.$ref === undefined) return given;
  const [kind = "", name = ""] = given.$ref.replace("#/components/", "").split("/");
  const found = description.components[kind]?.[name];
  if (found === undefined) throw new Error(`the description has no ${given.$ref}`);
  return resolved(description, found as T);
}

function contentOf(description: Description, given: Content & { $ref?: string }) {
  const json = resolved(description, given).content?.["application/json"];
  return json && { schema: json.schema, example: json.example ?? (json.schema && exampleOf(description, json.schema)) };
}

/** A schema's own example, or one made of those of its parts; undefined where they have none. */
export function exampleOf(description: Pick<Description, "components">, schema: Schema): unknown {
  const own = resolved(description, schema);
  if (own.example !== undefined) return own.example;
  if (own.enum) return own.enum[0];
  if (own.items) {
    const item = exampleOf(description, own.items);
    return item === undefined ? undefined : [item];
  }
  const base = Object.assign({}, ...(own.allOf ?? []).map((part) => exampleOf(description, part)));
  const fields = Object.entries(own.properties ?? {}).filter(
    ([name, part]) => own.required?.includes(name) || part.example !== undefined,
  );
  const made = fields.map(([name, part]) => [name, exampleOf(description, part)]);
  const whole = { ...base, ...Object.fromEntries(made) };
  return Object.keys(whole).length === 0 ? undefined : whole;
}

function examplesOf(id: string): string {
  const texts = (examples as { [id: string]: { [language: string]: string } })[id];
  if (!texts) return "";
  const tabs = Object.entries(LANGUAGES).map(
    ([language, title]) =>
      `<button type="button" value="${language}" aria-pressed="${language === "curl"}">${title}</button>`,
  );
  const blocks = Object.keys(LANGUAGES).map(
    (language) => `<pre data-lang="${language}" tabindex="0"><code>${escapeHtml(texts[language] ?? "")}</code></pre>`,
  );
  return `<div class="code"><div class="tabs">${tabs.join("")}</div>${blocks.join("")}</div>`;
}

function detailsOf(title: string, body: string): string {
  return body === "" ? "" : `<details><summary>${title}</summary>${body}</details>`;
}

function jsonOf(example: unknown): string {
  return example === undefined
    ? ""
    : `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(example, null, 2))}</code></pre>`;
}
