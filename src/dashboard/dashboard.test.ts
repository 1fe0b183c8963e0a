import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import Fastify from "fastify";
import { type TestApi, testApi } from "../../test/support/api.ts";
import type { Api } from "../http/http.ts";
import { Refusal } from "../platform/refusal.ts";
import { isBuilt, mountPages } from "./pages.ts";

const HTML = { accept: "text/html,application/xhtml+xml" };
let folder: string;
let pages: Api;
let api: TestApi;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-pages-"));
  mkdirSync(join(folder, "dist/assets"), { recursive: true });
  writeFileSync(join(folder, "dist/index.html"), "<!doctype html><title>Postern</title>");
  writeFileSync(join(folder, "dist/assets/index-a1.js"), `// ${"x".repeat(5_000)}`);
  writeFileSync(join(folder, "secret.html"), "not served");
  writeFileSync(join(folder, "dist/notes.txt"), "not served");
  pages = serverOf(join(folder, "dist"));
  api = await testApi();
});
after(async () => {
  await pages.close();
  await api.close();
  rmSync(folder, { recursive: true });
});

function serverOf(dist: string): Api {
  const app = Fastify() as unknown as Api;
  app.setErrorHandler((error, _request, reply) => reply.code(error instanceof Refusal ? 404 : 500).send({}));
  mountPages(app, dist);
  return app;
}

it("a page of any address is the one page, under a policy without foreign origins and inline scripts", async () => {
  for (const url of ["/", "/emails", "/emails/0193?tab=html", "/welcome"]) {
    const { statusCode, headers, body } = await pages.inject({ url, headers: HTML });
    assert.deepEqual([statusCode, headers["content-type"]], [200, "text/html; charset=utf-8"], url);
    assert.match(body, /<title>Postern/);
    assert.equal(headers["cache-control"], "no-cache");
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /https?:|\*|script-src[^;]*unsafe/);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["referrer-policy"], "no-referrer");
  }
});

it("files are compressed, kept for a year under the name of their content, and not sent twice", async () => {
  const url = "/assets/index-a1.js";
  const first = await pages.inject({ url, headers: { "accept-encoding": "br" } });
  assert.equal(first.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal(first.headers["content-type"], "text/javascript; charset=utf-8");
  assert.ok(first.rawPayload.length < 500);
  assert.equal(brotliDecompressSync(first.rawPayload).length, 5_003);
  const again = await pages.inject({
    url,
    headers: { "accept-encoding": "br", "if-none-match": String(first.headers.etag) },
  });
  assert.equal(again.statusCode, 304);
});

it("nothing outside the build is read, whatever the path says", async () => {
  for (const url of [
    ...["/../secret.html", "/..%2fsecret.html", "/%2e%2e/secret.html", "/assets/../../secret.html", "/notes.txt"],
    ...["/assets/none.js", "/secret.html%00.js", "//secret.html", "/assets/%2e%2e/%2e%2e/secret.html"],
  ]) {
    const { statusCode, body } = await pages.inject({ url });
    assert.equal(statusCode, 404, url);
    assert.ok(!body.includes("not served"), url);
  }
});

it("without a build there is nothing, and programs get the API's own 404 in any case", async () => {
  const empty = join(folder, "none");
  assert.deepEqual([isBuilt(empty), isBuilt(join(folder, "dist"))], [false, true]);
  const bare = serverOf(empty);
  assert.equal((await bare.inject({ url: "/", headers: HTML })).statusCode, 404);
  await bare.close();
  for (const [path, headers] of [
    ["/nothing", {}],
    ["/v1/nothing", HTML],
    ["/dashboard/api/nothing", HTML],
  ] as const) {
    const { status, body } = await api.ask("GET", path, undefined, { key: null, headers });
    const { request_id, ...said } = body;
    assert.ok(request_id);
    assert.deepEqual([status, said], [404, { error: `there is no GET ${path}`, code: "not_found" }], path);
  }
});

it("the dashboard's API has a description of its own, and the public one knows nothing of it", async () => {
  const { body } = await api.ask("GET", "/dashboard/api/openapi.json", undefined, { key: null });
  assert.ok(body.paths["/dashboard/api/sign-in"].post.responses["200"]);
  assert.ok(body.components.schemas.Session && body.components.schemas.Membership);
  assert.equal(body.components.schemas.EmailBouncedEvent, undefined, "only what it uses");
  assert.deepEqual(
    Object.keys(body.paths).filter((path) => !path.startsWith("/dashboard/api/")),
    [],
  );
  const open = await api.ask("GET", "/openapi.json");
  assert.ok(!JSON.stringify(open.body.paths).includes("/dashboard/"));
});

it("the dashboard's types are made of the description that this server gives (node test/clients/write-description.ts)", async () => {
  const { servers: _here, ...said } = (await api.ask("GET", "/dashboard/api/openapi.json", undefined, { key: null }))
    .body;
  const kept = readFileSync(join(import.meta.dirname, "../../dashboard/api/generated/people.json"), "utf8");
  assert.deepEqual(JSON.parse(kept), JSON.parse(JSON.stringify(said)));
});

it("an API key is nobody there", async () => {
  const { status, body } = await api.ask("GET", "/dashboard/api/session");
  assert.deepEqual([status, body.code], [401, "not_signed_in"]);
});
