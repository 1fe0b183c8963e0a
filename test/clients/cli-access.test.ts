// Which key the client commands use, and where they send it: profiles, the environment, the command line.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { after, before, beforeEach, test } from "node:test";
import { Command } from "commander";
import { wordsFor } from "../../clients/cli/cli.ts";
import { type Ended, type Given, nothingYet, runClient } from "../support/client-commands.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type PlayedServer, startPlayedServer } from "../support/played-server.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const LIVE = { POSTERN_API_KEY: "svc_live_env" };
let ours: PlayedServer;
let other: PlayedServer;
let folder: string;
let file: string;

before(async () => {
  [ours, other] = await Promise.all([startPlayedServer(), startPlayedServer()]);
  folder = mkdtempSync(join(tmpdir(), "postern-access-"));
  file = join(folder, "postern/profiles.json");
  mkdirSync(join(folder, "postern"));
});
beforeEach(() => {
  const profiles = {
    prod: { base_url: ours.url, api_key: "svc_live_1" },
    test: { base_url: ours.url, api_key: "svc_test_1" },
  };
  writeFileSync(file, JSON.stringify({ current: "prod", profiles }));
  for (const server of [ours, other]) server.asked.length = 0;
});
after(async () => {
  await Promise.all([ours.stop(), other.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

type Options = Partial<Given>;

const run = (words: string[], { env, ...given }: Options = {}, ended: Ended = nothingYet()): Promise<Ended> =>
  runClient(words, { ...given, env: { XDG_CONFIG_HOME: folder, ...env } }, ended);

test("--profile goes before the environment, for the key and for the address", async () => {
  const env = { ...LIVE, POSTERN_BASE_URL: other.url };
  const mail = ["--from", "a@shop.example", "--to", "b@c.example", "--subject", "s", "--text", "t"];
  const sent = await run(["send", ...mail, "--profile", "test"], { env });
  assert.equal(sent.status, 0, sent.err);
  assert.deepEqual([ours.asked, other.asked], [["POST /v1/send svc_test_1"], []]);
  assert.equal((await run(["whoami", "--profile", "test"], { env })).json.from, "profile test");
  assert.equal((await run(["whoami"], { env })).json.from, "the environment");
  assert.deepEqual(other.asked, ["GET /v1/me svc_live_env"]);
});

test("an assistant that is given --profile test acts with that key", async () => {
  const env = { ...inheritedEnv(), ...LIVE, POSTERN_BASE_URL: other.url, XDG_CONFIG_HOME: folder };
  const child = spawn(process.execPath, [MAIN, "mcp", "--profile", "test"], { env });
  let out = "";
  child.stdout.on("data", (piece) => (out += piece));
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "test", version: "1" };
  say({ id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  await until("it has begun", () => out.includes('"id":0'));
  say({ method: "notifications/initialized" });
  say({ id: 1, method: "tools/call", params: { name: "me_get", arguments: {} } });
  await until("the tool has answered", () => out.includes('"id":1'));
  child.stdin.end();
  await once(child, "close");
  assert.deepEqual([ours.asked, other.asked], [["GET /v1/me svc_test_1"], []]);
});

test("an argument that a tool was not given is named, and an answer that strangers may have written says so", async () => {
  const child = spawn(process.execPath, [MAIN, "mcp", "--profile", "test"], {
    env: { ...inheritedEnv(), XDG_CONFIG_HOME: folder },
  });
  // biome-ignore lint/suspicious/noExplicitAny: what the server answers is what is judged
  const answers = new Map<number, any>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, result } = JSON.parse(line);
    answers.set(id, result);
  });
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "test", version: "1" };
  say({ id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  await until("it has begun", () => answers.has(0));
  say({ method: "notifications/initialized" });
  const calls: [string, object, RegExp][] = [
    ["emails_get", {}, /^the argument 'id' is missing$/],
    ["emails_get", { id: "" }, /^the argument 'id' is a text$/],
    ["emails_get", { id: { a: 1 } }, /^the argument 'id' is a text$/],
    ["emails_events", { id: ".." }, /^an id cannot be/],
    ["stats_isps", { id: "shop.example" }, /^Strangers may have written/],
    ["suppressions_check", { email: "a@b.example" }, /^Strangers may have written/],
    ["usage_get", {}, /^\{/],
  ];
  for (const [at, [name, given]] of calls.entries())
    say({ id: at + 1, method: "tools/call", params: { name, arguments: given } });
  await until("each has answered", () => answers.size === calls.length + 1);
  for (const [at, [name, , sentence]] of calls.entries())
    assert.match(answers.get(at + 1).content[0].text, sentence, name);
  assert.equal(ours.asked.length, 3, String(ours.asked));
  child.stdin.end();
  await once(child, "close");
});

test("a profile's key goes to the profile's address only, unless the command line names another", async () => {
  const env = { POSTERN_BASE_URL: other.url };
  const refused = await run(["whoami"], { env });
  assert.equal(refused.status, 2);
  assert.match(refused.err, /POSTERN_BASE_URL is http.*the key of profile 'prod' is for http.*unset POSTERN_BASE_URL/);
  assert.deepEqual([ours.asked, other.asked], [[], []]);
  assert.equal((await run(["whoami"], { env: { POSTERN_BASE_URL: `${ours.url}/` } })).status, 0);
  assert.equal((await run(["whoami", "--base-url", other.url], { env })).json.base_url, other.url);
});

test("an environment that contradicts itself, or has a key without an address, is refused", async () => {
  const both = await run(["whoami"], { env: { ...LIVE, POSTERN_BASE_URL: ours.url, POSTERN_PROFILE: "test" } });
  assert.deepEqual([both.status, /POSTERN_API_KEY and POSTERN_PROFILE are both set/.test(both.err)], [2, true]);
  const nowhere = await run(["whoami"], { env: LIVE });
  assert.deepEqual([nowhere.status, /set POSTERN_BASE_URL too/.test(nowhere.err)], [2, true]);
  assert.deepEqual(ours.asked, []);
  assert.equal((await run(["whoami"], { env: { POSTERN_PROFILE: "test" } })).json.environment, "test");
});

test("use says when the environment goes before the profile", async () => {
  const plain = await run(["use", "test"], { tty: true });
  assert.equal(plain.out, 'Commands are run as "test" now.\n');
  const hidden = await run(["use", "prod"], { tty: true, env: LIVE });
  assert.match(hidden.err, /POSTERN_API_KEY is set and goes before the profile: unset it, or say --profile prod/);
  assert.doesNotMatch(hidden.out, /are run as/);
  assert.equal((await run(["use", "prod"], { env: LIVE })).json.overridden_by, "POSTERN_API_KEY");
});

test("login asks for the key at a terminal, and takes none from the environment", async () => {
  const typed = new PassThrough();
  const ended = nothingYet();
  const login = run(["login", "--base-url", ours.url], { tty: true, stdin: typed, env: LIVE }, ended);
  await until("it asks", () => ended.err.includes(`API key for ${ours.url}: `));
  typed.write("svc_test_typed\r");
  await login;
  assert.equal(ended.status, 0, ended.err);
  assert.deepEqual(ours.asked, ["GET /v1/me svc_test_typed"]);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).profiles.default.api_key, "svc_test_typed");
  const piped = await run(["login", "--profile", "piped", "--base-url", ours.url], { env: LIVE });
  assert.deepEqual([piped.status, /--key-stdin/.test(piped.err)], [2, true]);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).profiles.piped, undefined);
});

test("Ctrl-C at the question of login ends it with 130, and keeps nothing", async () => {
  const typed = new PassThrough();
  const ended = nothingYet();
  const login = run(["login", "--base-url", ours.url], { tty: true, stdin: typed }, ended);
  await until("it asks", () => ended.err.includes("API key"));
  typed.write("svc_live_half\x03");
  await login;
  assert.equal(ended.status, 130);
  assert.doesNotMatch(ended.err, /interrupted|svc_live|at /);
  assert.deepEqual(ours.asked, []);
});

test("after a logout no other profile takes its place, and the next command says which there are", async () => {
  const out = await run(["logout"], { tty: true });
  assert.match(out.err, /No profile is chosen now: postern use NAME \(there are: test\)/);
  const next = await run(["whoami"]);
  assert.equal(next.status, 3);
  assert.match(next.err, /there are: test.*'postern use NAME'.*--profile NAME/);
  assert.deepEqual(ours.asked, []);
  assert.equal((await run(["use", "test"])).status, 0);
  assert.equal((await run(["whoami"])).json.environment, "test");
});

test("a file of profiles that is not as login writes it is named, with what to do", async () => {
  for (const text of ["[]", "null", "3", "{}", '{"current":null,"profiles":{"a":{"base_url":"x"}}}']) {
    writeFileSync(file, text);
    for (const words of [["whoami"], ["use", "a"], ["logout"]]) {
      const { status, err } = await run(words);
      assert.equal(status, 1, text);
      assert.match(err, /^postern: .*profiles\.json does not hold profiles.*remove it and log in again\n$/, text);
    }
  }
});

test("options before a wrong name of a group do not hide which word is wrong", () => {
  const program = new Command("postern");
  const groups = [program, program.command("domains"), program.command("masked").command("aliases")];
  for (const group of groups) group.command("list").option("--json");
  program.command("certificates").command("show", { isDefault: true }).option("--json");
  const read = (line: string) => wordsFor(program, line.split(" ")).join(" ");
  assert.equal(read("--json nonsense"), "nonsense");
  assert.equal(read("--json --quiet domains nonsense"), "domains nonsense");
  assert.equal(read("domains --profile a nonsense --limit 1"), "domains nonsense --limit 1");
  assert.equal(read("masked --json aliases --base-url=b nonsense"), "masked aliases nonsense");
  assert.equal(read("masked --json aliases list"), "masked aliases list --json");
  assert.equal(read("--json certificates"), "certificates --json");
});
