// The documentation site: whole, by itself, and true to the description. What its examples do is another matter
// (test/clients/examples.long.test.ts).
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { EVENT_TYPES } from "../../src/webhooks/types.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { operationsOf, readDescription } from "./operations.ts";

let api: TestApi;
const pages = new Map<string, string>();

before(async () => {
  api = await testApi({});
  const waiting = ["/docs"];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const { status, text } = await get(path);
    assert.equal(status, 200, path);
    pages.set(path, text);
    if (text.startsWith("<!doctype html>")) waiting.push(...linksOf(text).map((link) => link.replace(/#.*$/, "")));
  }
});

after(() => api?.close());

async function get(path: string, headers: Record<string, string> = {}) {
  const answer = await api.app.inject({ method: "GET", url: path, headers });
  return { status: answer.statusCode, headers: answer.headers, text: answer.body };
}

/** Of this site; empty ones are within the page. */
function linksOf(html: string): string[] {
  return [...html.matchAll(/(?:href|src)="([^"]*)"/g)]
    .map(([, link]) => link as string)
    .filter((link) => !link.startsWith("#"));
}

describe("/docs", () => {
  it("has every guide and every operation, and each of its links leads somewhere", async () => {
    const guides = readdirSync(new URL("../../docs/guides/", import.meta.url)).map((name) => name.replace(/\.md$/, ""));
    for (const name of guides) assert.ok(pages.has(`/docs/guides/${name}`), name);
    const all = [...pages.values()].join("\n");
    const missing = operationsOf(await readDescription(api)).filter(
      ({ operationId }) => !all.includes(` id="${operationId}"`),
    );
    assert.deepEqual(
      missing.map(({ operationId }) => operationId),
      [],
    );
    for (const [path, html] of pages) {
      for (const [, anchor] of html.matchAll(/href="#([^"]*)"/g))
        assert.ok(html.includes(` id="${anchor}"`), `${path}#${anchor}`);
    }
  });

  it("loads nothing from elsewhere and runs no script of a page's own", async () => {
    for (const [path, html] of pages) {
      const foreign = linksOf(html).filter((link) => !/^\/(docs|openapi\.(yaml|json)$)/.test(link));
      assert.deepEqual(foreign, [], path);
      assert.doesNotMatch(html, /<script(?! src="\/docs\/script\.js" defer>)|<style| on[a-z]+="| style="/, path);
    }
    const { headers } = await get("/docs");
    assert.match(String(headers["content-security-policy"]), /default-src 'none'.*script-src 'self'/);
  });

  it("explains what a field holds, and both forms of a batch", () => {
    const sending = pages.get("/docs/reference/sending") ?? "";
    const [, one = ""] = sending.split('id="sendEmail"');
    assert.match(one, /Fields of SendAttachment.*<code>content<\/code>.*base64/s);
    assert.match(one, /Adds a List-Unsubscribe link/);
    assert.match(one, /<code>Content-\*<\/code>/);
    const [, batch = ""] = sending.split('id="sendBatch"');
    assert.match(
      batch,
      /a list of SendRequest.*Fields of SendRequest.*Or: a Batch.*Fields of Batch.*&#34;emails&#34;: \[/s,
    );
    assert.match(one, /idempotency-key<\/code><br><span class="dim">header, /);
  });

  it("shows each event that webhooks get, with its fields and an example", () => {
    const events = pages.get("/docs/reference/events") ?? "";
    for (const event of EVENT_TYPES) {
      const [, section = ""] = events.split(`<section class="event" id="${event}">`);
      assert.match(section, new RegExp(`&#34;event&#34;: &#34;${event}&#34;`), event);
      assert.match(section, /<code>event_id<\/code>/, event);
    }
  });

  it("finds sending by the names of fields and headers", async () => {
    const found = JSON.parse((await get("/docs/search.json")).text) as { title: string; text: string }[];
    for (const word of ["base64", "attachment", "idempotency"]) {
      const titles = found.filter(({ text }) => text.toLowerCase().includes(word)).slice(0, 20);
      assert.ok(
        titles.some(({ title }) => title === "Send one e-mail"),
        word,
      );
    }
  });

  it("shows each operation in six languages", () => {
    for (const [path, html] of pages) {
      const sections = html.split('<section class="operation"').slice(1);
      for (const section of sections)
        assert.equal(section.match(/<pre data-lang="/g)?.length, 6, `${path} ${section.slice(0, 60)}`);
    }
  });

  it("is found by words, and answers what is not there with a page", async () => {
    const found = JSON.parse((await get("/docs/search.json")).text) as { path: string }[];
    for (const { path } of found) {
      const [page = "", anchor] = path.split("#");
      assert.ok(pages.get(page)?.includes(anchor ? ` id="${anchor}"` : "<h1"), path);
    }
    const gone = await get("/docs/nothing");
    assert.equal(gone.status, 404);
    assert.match(gone.text, /There is no such page/);
  });

  it("says by its tag that nothing changed", async () => {
    const { headers } = await get("/docs/reference/sending");
    assert.equal((await get("/docs/reference/sending", { "if-none-match": String(headers.etag) })).status, 304);
  });
});
