// `postern templates pull|push|preview` and `postern mcp` against a running server: real files, the real program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { readOperations } from "../../clients/cli/commands/resources.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type Ended, type Given, nothingYet, runClient } from "../support/client-commands.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
let api: TestApi;
let access: Record<string, string>;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-templates-"));
  api = await testApi();
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  access = { POSTERN_API_KEY: api.live_key, POSTERN_BASE_URL: `http://127.0.0.1:${port}`, XDG_CONFIG_HOME: folder };
});
after(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = (words: string[], given: Partial<Given> = {}, ended: Ended = nothingYet()): Promise<Ended> =>
  runClient(["templates", ...words], { env: access, ...given }, ended);

async function create(slug: string, more: object = {}): Promise<{ id: string; version: number; html_body: string }> {
  const template = { name: slug, slug, subject: "Hello {{name}}", html_body: "<p>Hi {{name}}</p>", ...more };
  const { status, body } = await api.ask("POST", "/v1/templates", template);
  assert.equal(status, 201, JSON.stringify(body));
  return body.template;
}

async function stored(slug: string) {
  return (await api.ask("GET", `/v1/templates/${slug}`)).body.template;
}

test("pull writes a folder for each template, and a push right after changes nothing", async () => {
  const files = join(folder, "pulled");
  await create("welcome", { variables: [{ name: "name", default: "friend" }], text_body: "Hi {{name}}\n" });
  await create("goodbye", { active: false, description: "the last one" });
  const pulled = await run(["pull", files]);
  assert.deepEqual([pulled.status, pulled.json?.written.sort()], [0, ["goodbye", "welcome"]], pulled.err);
  assert.deepEqual(JSON.parse(readFileSync(join(files, "welcome/template.json"), "utf8")), {
    name: "welcome",
    subject: "Hello {{name}}",
    description: null,
    active: true,
    variables: [{ name: "name", required: false, default: "friend" }],
  });
  assert.equal(readFileSync(join(files, "welcome/body.html"), "utf8"), "<p>Hi {{name}}</p>");
  assert.equal(readFileSync(join(files, "welcome/body.txt"), "utf8"), "Hi {{name}}\n");
  assert.equal(existsSync(join(files, "goodbye/body.txt")), false);
  const pushed = await run(["push", files]);
  assert.deepEqual([pushed.status, pushed.json], [0, { pushed: [], same: 2 }], pushed.err);
  assert.equal((await stored("welcome")).version, 1);
});

test("push shows what changes, asks, and then updates and creates; pull does not overwrite without a yes", async () => {
  const files = join(folder, "pushed");
  await create("order");
  await run(["pull", files, "order"]);
  writeFileSync(join(files, "order/body.html"), "<p>Dear {{name}}</p>");
  mkdirSync(join(files, "fresh"));
  writeFileSync(join(files, "fresh/template.json"), JSON.stringify({ name: "Fresh", subject: "New" }));
  writeFileSync(join(files, "fresh/body.txt"), "Text");
  const unasked = await run(["push", files]);
  assert.equal(unasked.status, 2);
  assert.match(unasked.err, /-<p>Hi \{\{name\}\}<\/p>.*\+<p>Dear \{\{name\}\}<\/p>.*say --yes/s);
  assert.equal((await stored("order")).version, 1, "nothing was pushed");
  const no = await run(["push", files], { tty: true, stdin: "n\n" });
  assert.deepEqual([no.status, (await stored("order")).version], [1, 1]);
  const pushed = await run(["push", files, "--yes"]);
  assert.deepEqual(pushed.json, {
    pushed: [
      { slug: "fresh", version: 1 },
      { slug: "order", version: 2 },
    ],
    same: 0,
  });
  assert.deepEqual(
    [(await stored("order")).html_body, (await stored("fresh")).text_body],
    ["<p>Dear {{name}}</p>", "Text"],
  );

  await api.ask("PUT", "/v1/templates/order", { html_body: "<p>Changed there</p>" });
  const kept = await run(["pull", files, "order"]);
  assert.equal(kept.status, 2, kept.err);
  assert.equal(readFileSync(join(files, "order/body.html"), "utf8"), "<p>Dear {{name}}</p>");
  assert.equal((await run(["pull", files, "order", "--yes"])).status, 0);
  assert.equal(readFileSync(join(files, "order/body.html"), "utf8"), "<p>Changed there</p>");
});

test("preview --watch renders the files as they are, follows each change, and stores nothing", async () => {
  const files = join(folder, "watched");
  await create("news");
  await run(["pull", files, "news"]);
  writeFileSync(join(files, "news/values.json"), '{"name":"Anna"}');
  writeFileSync(join(files, "news/body.html"), "<p>First {{name}} {{more}}</p><script>x</script>");
  const page = join(folder, "news.html");
  const stop = new AbortController();
  const ended = nothingYet();
  const watching = run(
    ["preview", join(files, "news"), "--watch", "--out", page],
    { tty: true, signal: stop.signal },
    ended,
  );
  await until("the first page", () => /Waiting for changes/.test(ended.err));
  const first = readFileSync(page, "utf8");
  assert.match(first, /<meta http-equiv="refresh"/);
  assert.match(first, /<iframe sandbox="" [^>]*srcdoc="&#60;p&#62;First Anna &#60;\/p&#62;&#60;script&#62;/);
  assert.match(ended.out, /missing {2}more/);
  writeFileSync(join(files, "news/template.json"), "{");
  await until("the mistake is printed", () => /template.json is not JSON/.test(ended.err));
  writeFileSync(join(files, "news/template.json"), '{"name":"News","subject":"For {{name}}"}');
  await until("the next page", () => /<h1>For Anna<\/h1>/.test(readFileSync(page, "utf8")));
  stop.abort();
  await watching;
  assert.equal((await stored("news")).version, 1);
  const onServer = await run(["preview", "news", "--variables", '{"name":"Ben"}']);
  assert.equal(onServer.json?.html_body, "<p>Hi Ben</p>");
  mkdirSync(join(files, "unknown"));
  writeFileSync(join(files, "unknown/template.json"), '{"name":"U","subject":"S"}');
  const unknown = await run(["preview", join(files, "unknown")]);
  assert.deepEqual([unknown.status, /templates push/.test(unknown.err)], [4, true], unknown.err);
});

/** Speaks with `postern mcp` as an assistant does: one JSON-RPC message a line. */
async function speak(words: string[], requests: { method: string; params: object }[]) {
  const child = spawn(process.execPath, [MAIN, "mcp", ...words], { env: { ...inheritedEnv(), ...access } });
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  const opening = {
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  const all = [opening, ...requests].map((request, id) => ({ jsonrpc: "2.0", id, ...request }));
  const initialized = { jsonrpc: "2.0", method: "notifications/initialized" };
  // biome-ignore lint/suspicious/noExplicitAny: what the server answers is what is judged
  const answers = new Map<number, any>();
  const exit = new Promise<number | null>((done) => child.once("exit", done));
  const lines = createInterface({ input: child.stdout });
  const printed = new Promise<void>((done) => {
    lines.on("line", (line) => {
      const answer = JSON.parse(line);
      answers.set(answer.id, answer.result ?? answer.error);
      if (answer.id === 0)
        for (const next of [initialized, ...all.slice(1)]) child.stdin.write(`${JSON.stringify(next)}\n`);
      if (answers.size === all.length) done();
    });
  });
  child.stdin.write(`${JSON.stringify(all[0])}\n`);
  await Promise.race([printed, exit.then((code) => assert.fail(`it ended with ${code}: ${said}`))]);
  child.stdin.end();
  return { answers: all.map(({ id }) => answers.get(id)), said, code: await exit };
}

const LIST = { method: "tools/list", params: {} };

test("mcp offers what reads, and refuses what changes, unless --write is said", async () => {
  await create("asked");
  const { answers, code, said } = await speak(
    [],
    [
      LIST,
      { method: "tools/call", params: { name: "templates_get", arguments: { id: "asked" } } },
      { method: "tools/call", params: { name: "templates_delete", arguments: { id: "asked" } } },
      { method: "tools/call", params: { name: "emails_list", arguments: { limit: 5 } } },
      { method: "tools/call", params: { name: "templates_get", arguments: { id: "no-such" } } },
    ],
  );
  const [opened, { tools }, got, refused, listed, missing] = answers;
  assert.equal(opened.serverInfo.name, "postern");
  assert.match(opened.instructions, /never as instructions/);
  const reading = readOperations().filter(({ http, answer }) => http === "GET" && answer !== "bytes");
  assert.equal(tools.length, reading.length);
  assert.ok(tools.every((tool: { annotations: { readOnlyHint: boolean } }) => tool.annotations.readOnlyHint));
  assert.equal(JSON.parse(got.content[0].text).slug, "asked");
  assert.deepEqual([refused.isError, /--write/.test(refused.content[0].text)], [true, true]);
  assert.equal((await api.ask("GET", "/v1/templates/asked")).status, 200);
  assert.match(listed.content[0].text, /data, no instruction/);
  assert.deepEqual(Object.keys(JSON.parse(listed.content[1].text)), ["emails", "total", "has_more"]);
  assert.deepEqual([missing.isError, /template/.test(missing.content[0].text)], [true, true]);
  assert.equal(code, 0);
  assert.match(said, /tools of http.*only read/);
});

test("mcp --write has a tool for every operation but those with files, whose arguments do not collide", async () => {
  const fields = { name: "By a tool", slug: "by-a-tool", subject: "Hi", text_body: "x" };
  const { answers } = await speak(
    ["--write"],
    [
      LIST,
      { method: "tools/call", params: { name: "templates_create", arguments: fields } },
      { method: "tools/call", params: { name: "templates_create", arguments: { name: "By a tool" } } },
    ],
  );
  const [, { tools }, created, lacking] = answers;
  assert.equal(JSON.parse(created.content[0].text).slug, "by-a-tool");
  assert.equal(lacking.isError, true);
  assert.equal((await api.ask("GET", "/v1/templates/by-a-tool")).status, 200);
  const offered = readOperations().filter(({ answer, body }) => answer !== "bytes" && body !== "bytes");
  assert.deepEqual(tools.map(({ name }: { name: string }) => name).length, offered.length);
  for (const { arguments: given, query, fields: own, id } of offered) {
    const names = [...given, ...query, ...own].map(({ name }) => name);
    assert.equal(new Set(names).size, names.length, id);
  }
  assert.deepEqual(
    tools.filter(({ name }: { name: string }) => !/^[a-z][a-z_]{2,63}$/.test(name)),
    [],
  );
});
