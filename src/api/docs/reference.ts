// The reference, rendered from the description: a page for each group of operations, with parameters, fields, the answer and
// examples, and a page for the events that webhooks get.
import { escapeHtml } from "../../http/public-page.ts";
import examples from "./examples.json" with { type: "json" };
import { fieldsOf, formsOf, jsonOf, rowsOf, type Shown, wordsIn } from "./fields.ts";
import { type Described, exampleOf, resolved, type Schema } from "./schema.ts";

type Content = { description?: string; content?: { [type: string]: { schema?: Schema; example?: unknown } } };
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
export type Description = Described & {
  info: { version: string };
  tags: { name: string; description?: string }[];
  paths: { [path: string]: { [verb: string]: Operation } };
  "x-webhooks": { [event: string]: { post: Operation } };
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
  const shown = { description, markdown };
  const [status, answer] = Object.entries(operation.responses).find(([code]) => /^2/.test(code)) ?? ["", {}];
  const given = contentOf(description, answer);
  return (
    `<section class="operation" id="${anchorOf(operation)}"><h2>${titleOf(operation)}</h2>` +
    `<p class="where"><span class="verb">${verb}</span>${escapeHtml(path)}</p>${markdown(operation.description ?? "")}` +
    rowsOf("Parameters", parametersOf(description, operation), shown) +
    bodyOf(operation, shown as Shown & { description: Description }) +
    examplesOf(operation.operationId) +
    detailsOf(`Answer ${status}`, formsOf("", given?.schema, shown) + jsonOf(given?.example)) +
    "</section>"
  );
}

function parametersOf(description: Description, { parameters = [] }: Operation) {
  return parameters.map((given) => {
    const one = resolved(description, given);
    return { ...one, place: one.in, schema: one.schema ?? {} };
  });
}

function bodyOf({ requestBody }: Operation, shown: Shown & { description: Description }): string {
  if (!requestBody) return "";
  const { content = {}, description: text } = resolved(shown.description, requestBody);
  const json = content["application/json"]?.schema;
  const others = Object.keys(content).filter((type) => type !== "application/json");
  const also = others.map((type) => `<code>${escapeHtml(type)}</code>`).join(" or ");
  const files = also === "" ? "" : `<p>${json ? "Also taken" : "The body"}: ${also}</p>`;
  const head = `<h3>Body</h3>${shown.markdown(text ?? "")}`;
  return head + formsOf("", json, shown) + files;
}

/** What is searched of an operation beside its title: the names and meanings of all that it takes. */
export function takenBy(description: Description, operation: Operation): string {
  const parameters = parametersOf(description, operation).map(({ name, description: text = "" }) => `${name} ${text}`);
  const body = operation.requestBody && contentOf(description, operation.requestBody);
  return [...parameters, wordsIn(description, body?.schema)].join(" ");
}

/** The page of the events: headers, then an example and the fields of each. */
export function eventsOf(description: Description, markdown: Markdown): { title: string; body: string } {
  const shown = { description, markdown };
  const calls = Object.entries(description["x-webhooks"]);
  const [first] = calls.map(([, { post }]) => post);
  const sections = calls.map(([event, { post }]) => {
    const content = post.requestBody && contentOf(description, post.requestBody);
    return (
      `<section class="event" id="${event}"><h2><code>${event}</code></h2><p>${escapeHtml(post.summary)}.</p>` +
      `${jsonOf(content?.example)}${rowsOf("Fields", fieldsOf(description, content?.schema), shown)}</section>`
    );
  });
  const list = calls.map(
    ([event, { post }]) => `<li><a href="#${event}">${event}</a>: ${escapeHtml(post.summary)}</li>`,
  );
  const text = description.tags.find(({ name }) => name === "Webhooks")?.description ?? "";
  const body =
    `<h1>Webhook events</h1><p>Each event is a POST to the endpoint's URL, with a JSON body and these headers. <a href="/docs/guides/webhooks">The guide</a> ` +
    `shows how to verify it.</p>${markdown(text)}<ul>${list.join("")}</ul>` +
    rowsOf("Headers", first ? parametersOf(description, first) : [], shown) +
    sections.join("");
  return { title: "Webhook events", body };
}

function contentOf(description: Description, given: Content & { $ref?: string }) {
  const json = resolved(description, given).content?.["application/json"];
  return json && { schema: json.schema, example: json.example ?? (json.schema && exampleOf(description, json.schema)) };
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
