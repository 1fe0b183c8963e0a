// The documentation at /docs, without a key and without anything from elsewhere: guides (docs/guides), and the reference
// rendered from the description with the examples that clients/generate writes. Pages are made once, at their first request.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Marked } from "marked";
import type { Api } from "../../http/http.ts";
import { escapeHtml } from "../../http/public-page.ts";
import { LOOK, SCRIPT } from "./look.ts";
import { anchorOf, type Description, eventsOf, operationsOf, referenceOf, slugOf, takenBy } from "./reference.ts";

type Page = { path: string; title: string; body: string };
type Found = { path: string; title: string; where: string; text: string };
type Site = { files: Map<string, { type: string; text: string; etag: string }> };

const GUIDES = ["basics", "first-mail", "receive", "webhooks", "masks", "moving", "deliver-well"];
const EVENTS = "/docs/reference/events";
const FOLDER = new URL("../../../docs/guides/", import.meta.url);
const HTML = "text/html; charset=utf-8";

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

/** Mounts the site. */
export function mountDocs(api: Api): void {
  const open = { schema: { hide: true }, exposeHeadRoute: true };
  let site: Site | null = null;
  const answer = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    site ??= makeSite(api.swagger() as unknown as Description);
    const path = request.url.replace(/\?.*$/s, "").replace(/\/$/, "");
    const file = site.files.get(path);
    reply.headers(HEADERS);
    if (!file) return reply.code(404).type(HTML).send(site.files.get("/docs/404")?.text);
    reply.header("etag", file.etag);
    if (request.headers["if-none-match"] === file.etag) return reply.code(304).send();
    return reply.type(file.type).send(file.text);
  };
  api.get("/docs", open, answer);
  api.get("/docs/*", open, answer);
}

function makeSite(description: Description): Site {
  const marked = new Marked({ renderer: { table: wideTable, heading }, tokenizer: { url: () => undefined } });
  const guides = GUIDES.map((name) => guideOf(marked, name));
  const markdown = (text: string): string => marked.parse(text) as string;
  const reference = referenceOf(description, markdown);
  const pages = [
    ...guides,
    ...reference.map(({ slug, title, body }) => ({ path: `/docs/reference/${slug}`, title, body })),
  ];
  const behind = pages.findIndex(({ path }) => path === "/docs/reference/webhooks") + 1;
  pages.splice(behind, 0, { path: EVENTS, ...eventsOf(description, markdown) });
  const all = [homeOf(guides, description), missing(), ...pages];
  const files: Site["files"] = new Map();
  const add = (path: string, type: string, text: string): void => {
    files.set(path, { type, text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"` });
  };
  for (const page of all) add(page.path, HTML, frameOf(page, pages));
  add("/docs/look.css", "text/css; charset=utf-8", LOOK);
  add("/docs/script.js", "text/javascript; charset=utf-8", SCRIPT);
  add("/docs/search.json", "application/json; charset=utf-8", JSON.stringify(searchOf(guides, description)));
  return { files };
}

function guideOf(marked: Marked, name: string): Page {
  const text = readFileSync(new URL(`${name}.md`, FOLDER), "utf8").replace(
    /\]\(([\w-]+)\.md(#[\w-]+)?\)/g,
    "](/docs/guides/$1$2)",
  );
  return {
    path: `/docs/guides/${name}`,
    title: /^# (.*)$/m.exec(text)?.[1] ?? name,
    body: marked.parse(text) as string,
  };
}

/** Each section of a guide can be linked to. */
function heading(this: { parser: { parseInline(tokens: never): string } }, token: object): string {
  const { depth, text, tokens } = token as { depth: number; text: string; tokens: never };
  const id = depth === 1 ? "" : ` id="${slugOf(text)}"`;
  return `<h${depth}${id}>${this.parser.parseInline(tokens)}</h${depth}>\n`;
}

/** A table may be wider than a telephone. */
function wideTable(this: { parser: { parseInline(tokens: never): string } }, token: object): string {
  const { header, rows } = token as { header: { tokens: never }[]; rows: { tokens: never }[][] };
  const row = (cells: { tokens: never }[], name: string): string =>
    `<tr>${cells.map(({ tokens }) => `<${name}>${this.parser.parseInline(tokens)}</${name}>`).join("")}</tr>`;
  const body = rows.map((cells) => row(cells, "td")).join("");
  return `<div class="wide" tabindex="0"><table><thead>${row(header, "th")}</thead><tbody>${body}</tbody></table></div>`;
}

function homeOf(guides: Page[], { info }: Description): Page {
  const list = guides.map(({ path, title }) => `<li><a href="${path}">${escapeHtml(title)}</a></li>`).join("");
  const body =
    `<h1>The API of Postern, version ${escapeHtml(info.version)}</h1><p>Send mail, receive it, and give people masked addresses, on a server of your own.</p>` +
    `<h2>What to do first</h2><ol><li>Make an API key: in the dashboard under API keys, or on the server by <code>postern keys create --name first --env live</code>. ` +
    `A <code>test</code> key checks everything and sends nothing.</li>` +
    `<li>Read <a href="/docs/guides/basics">Basics</a>: keys, errors, limits, lists, and addresses to try things with.</li>` +
    `<li>Install a library, or use curl: <a href="/docs/guides/basics#libraries">Libraries</a>.</li>` +
    `<li>Send: <a href="/docs/guides/first-mail">Your first mail</a>.</li></ol>` +
    `<h2>Guides</h2><ul>${list}</ul><h2>Reference</h2><p>Every operation with its fields, and an example in curl, Node, Python, Ruby, PHP and Go. ` +
    `For programs: <a href="/openapi.yaml">openapi.yaml</a>, <a href="/openapi.json">openapi.json</a>.</p>`;
  return { path: "/docs", title: "Documentation", body };
}

function missing(): Page {
  const body = `<h1>There is no such page</h1><p>Look for it on the left, or go to <a href="/docs">the beginning</a>.</p>`;
  return { path: "/docs/404", title: "Not found", body };
}

function frameOf({ path, title, body }: Page, pages: Page[]): string {
  const links = (start: string): string =>
    pages
      .filter((page) => page.path.startsWith(start))
      .map(
        (page) =>
          `<li><a href="${page.path}"${page.path === path ? ' aria-current="page"' : ""}>${escapeHtml(page.title)}</a></li>`,
      )
      .join("");
  return (
    `<!doctype html><html lang="en" data-lang="curl"><head><meta charset="utf-8"><title>${escapeHtml(title)} · Postern</title>` +
    `<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="stylesheet" href="/docs/look.css">` +
    `<script src="/docs/script.js" defer></script></head><body><a class="skip" href="#content">To the content</a><div class="frame">` +
    `<div class="side"><a class="brand" href="/docs">Postern</a><input type="search" placeholder="Search ( / )" aria-label="Search">` +
    `<ul class="found" aria-live="polite"></ul><nav aria-label="Pages"><section><h2>Guides</h2><ul>${links("/docs/guides/")}</ul></section>` +
    `<section><h2>Reference</h2><ul>${links("/docs/reference/")}</ul></section></nav></div><main id="content">${body}</main></div></body></html>\n`
  );
}

function searchOf(guides: Page[], description: Description): Found[] {
  const texts = guides.map(({ path, title, body }) => ({
    path,
    title,
    where: "Guide",
    text: body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " "),
  }));
  const order = description.tags.map(({ name }) => name);
  const rank = (tags: string[]): number => order.indexOf(tags[0] ?? "");
  const inOrder = operationsOf(description).sort((a, b) => rank(a.operation.tags) - rank(b.operation.tags));
  const operations = inOrder.map(({ operation, verb, path }) => ({
    path: `/docs/reference/${slugOf(operation.tags[0] ?? "")}#${anchorOf(operation)}`,
    title: operation.summary.replaceAll("`", ""),
    where: `${verb} ${path}`,
    text: `${verb} ${path} ${operation.operationId} ${operation.description ?? ""} ${takenBy(description, operation)}`,
  }));
  const events = Object.entries(description["x-webhooks"]).map(([event, { post }]) => ({
    path: `${EVENTS}#${event}`,
    title: event,
    where: "Event",
    text: post.summary,
  }));
  return [...texts, ...operations, ...events];
}
