// One story for each client library against a real Postern: send, wait for the event, verify the webhook, walk over a list,
// meet each kind of error. A language that is not on this machine is skipped with its remedy.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import { compileNodeLibrary } from "../support/node-library.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients");
const WAIT_MS = 20_000;
const KINDS = {
  validation: "ValidationError",
  authentication: "AuthenticationError",
  permission: "PermissionError",
  not_found: "NotFoundError",
  conflict: "ConflictError",
  all_suppressed: "AllSuppressedError",
  rate_limit: "RateLimitError",
  connection: "ConnectionError",
  signature: "WebhookSignatureError",
};

type Library = { name: string; command: string; given: string[]; cwd?: string; missing: string | null };
type Shown = { id: string; event: string; webhook: string; ids: number; unique: number; errors: typeof KINDS };

let scene: Scene;
let hooks: Server;
let env: Record<string, string>;

before(async () => {
  scene = await setScene();
  receiveAt(scene.dns, "recipient.example");
  await scene.start();
  await addVerifiedDomain(scene, scene.dns, "shop.example");
  const hook = await scene.ask("POST", "/v1/webhooks", {
    url: `${scene.receiver.url}/hook`,
    events: ["email.delivered"],
  });
  for (const name of ["ada", "ben", "cleo", "dan", "eva"]) await send(`${name}@recipient.example`);
  hooks = await lendWebhooks();
  env = {
    ...inheritedEnv(),
    POSTERN_API_KEY: scene.live_key,
    POSTERN_BASE_URL: scene.base_url,
    STORY_SECRET: String((hook.body as { secret?: unknown }).secret),
    STORY_HOOKS: `http://127.0.0.1:${(hooks.address() as AddressInfo).port}`,
    STORY_LIMITED_KEY: await limitedKey(),
  };
});

after(async () => {
  hooks?.close();
  await scene?.close();
});

for (const library of [node(), python(), ruby(), php(), go()]) {
  describe(library.name, { skip: library.missing ?? false }, () => {
    it("sends, hears of it, verifies the webhook, walks over a list and tells the errors apart", async () => {
      const { stdout } = await promisify(execFile)(library.command, library.given, { cwd: library.cwd ?? ROOT, env });
      const line = stdout.split("\n").find((text) => text.startsWith('{"')) ?? "{}";
      const { id, event, webhook, ids, unique, errors }: Shown = JSON.parse(line);
      assert.deepEqual({ event, webhook, errors }, { event: "email.delivered", webhook: id, errors: KINDS });
      assert.ok(ids >= 6 && ids === unique, `${ids} e-mails, ${unique} different ones, over pages of two`);
    });
  });
}

async function send(to: string): Promise<void> {
  const mail = { from: "orders@shop.example", to: [to], subject: "A story", text_body: "Hello" };
  const { status, body } = await scene.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
}

/** Gives the webhook call about an e-mail on, as it came: `GET /<id>`. */
async function lendWebhooks(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const id = request.url?.slice(1) ?? "";
    const { body, headers } = await scene.receiver.waitFor((one) => one.body.includes(`"email_id":"${id}"`), WAIT_MS);
    response.end(JSON.stringify({ body: body.toString("base64"), headers }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

/** A key of an organization that may ask once a second. */
async function limitedKey(): Promise<string> {
  const command = ["organizations", "create", "--name", "Limited", "--requests-per-second", "1", "--json"];
  const main = join(ROOT, "src/main.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...command], {
    env: { ...inheritedEnv(), ...scene.env },
  });
  return JSON.parse(stdout).live_key;
}

// Languages ----------------------------------------------------------------------------------------------------------

function answers(command: string, ...given: string[]): boolean {
  return spawnSync(command, given).status === 0;
}

function node(): Library {
  const missing = compileNodeLibrary();
  return { name: "Node", command: process.execPath, given: [join(ROOT, "clients/node/test/story.mjs")], missing };
}

/** In a virtual environment of its own, which is made once. */
function python(): Library {
  const command = join(CACHE, "story/bin/python");
  if (!existsSync(command) || !answers(command, "-c", "import httpx")) {
    mkdirSync(CACHE, { recursive: true });
    answers("python3", "-m", "venv", join(CACHE, "story"));
    answers(command, "-m", "pip", "install", "-q", "httpx>=0.27,<1");
  }
  const missing = answers(command, "-c", "import httpx") ? null : "no Python with httpx: apt-get install python3-venv";
  return { name: "Python", command, given: [join(ROOT, "clients/python/test/story.py")], missing };
}

function ruby(): Library {
  const missing = answers("ruby", "-v") ? null : "no Ruby: apt-get install ruby";
  return { name: "Ruby", command: "ruby", given: [join(ROOT, "clients/ruby/test/story.rb")], missing };
}

function php(): Library {
  const missing = answers("php", "-r", "exit(extension_loaded('curl') ? 0 : 1);") ? null : "no PHP with curl: php-curl";
  return { name: "PHP", command: "php", given: [join(ROOT, "clients/php/test/story.php")], missing };
}

function go(): Library {
  const missing = answers("go", "version") ? null : "no Go";
  const given = ["test", "-count=1", "-v", "-run", "TestStory", "."];
  return { name: "Go", command: "go", given, cwd: join(ROOT, "clients/go"), missing };
}
