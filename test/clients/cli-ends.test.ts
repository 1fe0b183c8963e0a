// How client commands end: refused before anything is asked, interrupted, or without a place for their output.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, test } from "node:test";
import { readEvents } from "../../clients/cli/events.ts";
import { makeFolder } from "../../clients/cli/folders.ts";
import { tableOf } from "../../clients/cli/output.ts";
import { type Ended, type Given, nothingYet, runClient } from "../support/client-commands.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type PlayedServer, startPlayedServer } from "../support/played-server.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const NEVER_MS = 60_000;
let server: PlayedServer;
let access: Record<string, string>;
let folder: string;

before(async () => {
  server = await startPlayedServer();
  folder = mkdtempSync(join(tmpdir(), "postern-ends-"));
  access = { POSTERN_API_KEY: "svc_live_1", POSTERN_BASE_URL: server.url, XDG_CONFIG_HOME: folder };
});
beforeEach(() => {
  server.asked.length = 0;
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const run = (words: string[], { env, ...given }: Partial<Given> = {}, ended: Ended = nothingYet()): Promise<Ended> =>
  runClient(words, { ...given, env: { ...access, ...env } }, ended);

function template(slug: string, head: unknown): string {
  mkdirSync(join(folder, "templates", slug), { recursive: true });
  writeFileSync(join(folder, "templates", slug, "template.json"), JSON.stringify(head));
  return join(folder, "templates");
}

test("Ctrl-C ends what goes on with 130, and nothing is left open", async () => {
  const welcome = join(template("welcome", { name: "Welcome", subject: "S" }), "welcome");
  for (const [words, begun] of [
    [["tail"], /Watching/],
    [["listen", "3000/hooks"], /Ready/],
    [["templates", "preview", welcome, "--watch"], /Waiting for changes/],
  ] as [string[], RegExp][]) {
    const stop = new AbortController();
    const ended = nothingYet();
    const running = run(words, { tty: true, signal: stop.signal }, ended);
    await until("it has begun", () => begun.test(ended.err));
    if (words[0] !== "templates") await until("it reads events", () => server.readers() === 1);
    stop.abort();
    await running;
    assert.equal(ended.status, 130, words.join(" "));
    await until("nobody reads any more", () => server.readers() === 0);
  }
});

test("the program itself ends with 130, without a word more", async () => {
  const child = spawn(process.execPath, [MAIN, "tail"], { env: { ...inheritedEnv(), ...access } });
  let said = "";
  child.stderr.on("data", (piece) => (said += piece));
  await until("it reads events", () => server.readers() === 1);
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "close"), [130, null]);
  assert.equal(said, "Watching (Ctrl-C ends)\n");
});

test("output that cannot be written fails with a sentence, and a reader that has enough is no failure", async () => {
  const env = { ...inheritedEnv(), ...access };
  const full = spawn(process.execPath, [MAIN, "whoami"], {
    env,
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  });
  let said = "";
  full.stderr?.on("data", (piece) => (said += piece));
  assert.deepEqual(await once(full, "close"), [1, null]);
  assert.match(said, /^postern: the output could not be written: .*no space left/);
  const cut = spawn(process.execPath, [MAIN, "completion", "bash"], { env });
  cut.stdout.destroy();
  assert.deepEqual(await once(cut, "close"), [0, null]);
});

test("api refuses a body where none can be, and an unknown method, before anything is asked", async () => {
  for (const [words, sentence] of [
    [["api", "GET", "/v1/me", "--data", "{}"], /a GET request has no body: leave --data out/],
    [["api", "head", "/v1/me", "--data", "-"], /a HEAD request has no body/],
    [["api", "FETCH", "/v1/me"], /there is no method 'FETCH': GET, HEAD/],
  ] as [string[], RegExp][]) {
    const { status, err } = await run(words);
    assert.equal(status, 2, err);
    assert.match(err, sentence);
  }
  assert.deepEqual(server.asked, []);
});

test("a table of 80 columns shows what happened and to whom, before when and before other ids", () => {
  const [id, at] = ["01a22669-2fa0-77f1-9071-ba95d0066055", "2026-11-29T08:36:38.997Z"];
  const headOf = (row: object) =>
    tableOf([{ id, ...row }], { width: 80, paint: (_style, text) => text })
      .split("\n")[0]
      ?.split(/ +/);
  const change = { at, actor: "key", key_id: id, name: "First live key", operation: "createDomain" };
  assert.deepEqual(headOf(change), ["id", "operation", "name", "actor"]);
  const event = { event_type: "delivered", recipient: "anna@recipient.example", timestamp: at, attempt: 1 };
  assert.deepEqual(headOf(event), ["id", "event_type", "recipient"]);
  const alias = { org_id: id, domain_id: id, address: "help", domain: "shop.example", action: "webhook" };
  assert.deepEqual(headOf(alias), ["id", "address", "domain", "action"]);
});

test("an answer without a body is a success", async () => {
  const { status, out, err } = await run(["api", "HEAD", "/v1/me"]);
  assert.deepEqual([status, out, err], [0, "", "The answer has no body.\n"]);
  assert.deepEqual(server.asked, ["HEAD /v1/me svc_live_1"]);
});

test("push refuses what it would leave out of template.json, and asks nothing of the server", async () => {
  const head = { name: "A", subject: "S" };
  for (const [slug, given, sentence] of [
    ["pq1", { ...head, subjct: "typo" }, /pq1\/template\.json has an unknown field 'subjct': is 'subject' meant\?/],
    ["pq2", { ...head, slug: "other-1" }, /has the slug "other-1", and its folder is called pq2/],
    ["pq3", { ...head, html_body: "<p>x</p>" }, /'html_body': a body is a file beside it, body\.html/],
    ["pq4", { ...head, environment: "live" }, /'environment': it takes name, slug, subject/],
    ["pq5", null, /pq5\/template\.json holds no JSON object/],
  ] as [string, unknown, RegExp][]) {
    const { status, err } = await run(["templates", "push", template(slug, given), slug, "--yes"]);
    assert.equal(status, 2, `${slug}: ${err}`);
    assert.match(err, sentence);
  }
  assert.deepEqual(server.asked, []);
  const same = await run(["templates", "preview", join(template("pq6", { ...head, slug: "pq6" }), "pq6")]);
  assert.equal(same.status, 0, same.err);
});

test("https to a port that speaks plain HTTP is said in plain words", async () => {
  const { status, err } = await run(["whoami"], { env: { POSTERN_BASE_URL: server.url.replace("http:", "https:") } });
  assert.equal(status, 5);
  assert.match(err, /the server at 127\.0\.0\.1:\d+ does not speak TLS: is its address http:\/\/127/);
  assert.doesNotMatch(err, /SSL|:error:/);
});

test("an id that would make another path is wrong usage, and nothing is asked", async () => {
  for (const words of [
    ["emails", "events", ".."],
    ["templates", "delete", "..", "--yes"],
  ]) {
    const { status, err } = await run(words);
    assert.equal(status, 2, err);
    assert.match(err, /an id cannot be/);
  }
  assert.deepEqual(server.asked, []);
});

test("events go on where reading began when the connection is lost before the first one", async () => {
  const asked: (string | undefined)[] = [];
  const lines = ["retry: 1000\nid: 0193-start\n\n", "id: 0193-one\nevent: email.delivered\ndata: {}\n\n"];
  const stream = createServer((request, response) => {
    asked.push(request.headers["last-event-id"] as string | undefined);
    response.writeHead(200, { "content-type": "text/event-stream" }).end(lines.shift());
  });
  await once(stream.listen(0, "127.0.0.1"), "listening");
  const base_url = `http://127.0.0.1:${(stream.address() as AddressInfo).port}`;
  const stop = new AbortController();
  const source = { base_url, api_key: "svc_live_1", types: [], after: null, signal: stop.signal };
  const received = [];
  for await (const { id } of readEvents(source, () => undefined)) {
    received.push(id);
    break;
  }
  assert.deepEqual([received, asked], [["0193-one"], [undefined, "0193-start"]]);
  stream.close();
  stream.closeAllConnections();
  const { status, err } = await run(["listen", "3000", "--after", "zzz"]);
  assert.equal(status, 2, err);
});

test("a folder that cannot be made ends a command with a sentence", {
  skip: process.platform !== "linux",
}, async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  assert.throws(() => makeFolder(join(file, "a")), { message: `${file} cannot be made: a file stands in its place` });
  const env = { ...inheritedEnv(), XDG_CONFIG_HOME: "/proc/x/config" };
  const login = ["login", "--key-stdin", "--base-url", server.url];
  // A process of its own: one that asks for ever holds up everything else in it.
  const child = spawn(process.execPath, [MAIN, ...login], { env, timeout: NEVER_MS });
  child.stdin.end("svc_live_1");
  const [said, [status]] = await Promise.all([text(child.stderr), once(child, "close")]);
  assert.deepEqual([said, status], ["postern: /proc/x cannot be made: its file system takes no new folders\n", 1]);
});
