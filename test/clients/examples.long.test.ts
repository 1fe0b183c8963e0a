// The examples of the documentation do what they show. The guides' shell examples run, in order, against a real Postern. Each
// operation's example in curl and in five languages runs against a server that notes what it was asked: all six must ask the
// same, and that is the description's own example. A language that is not on this machine is skipped with its remedy.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import { compileNodeLibrary } from "../support/node-library.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { publish } from "../support/verified-domain.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients");
const EXAMPLES_FILE = join(ROOT, "src/api/docs/examples.json");
const EXAMPLES: { [id: string]: { [language: string]: string } } = JSON.parse(readFileSync(EXAMPLES_FILE, "utf8"));
const GUIDES = ["basics", "first-mail", "receive", "webhooks", "masks", "moving", "deliver-well"];
const run = promisify(execFile);

async function listen(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the guides", { skip: hasAll("bash", "jq", "openssl", "curl") }, () => {
  let scene: Scene;
  let publisher: Server;
  let publishUrl: string;

  before(async () => {
    scene = await setScene();
    receiveAt(scene.dns, "recipient.example");
    await scene.start();
    publisher = createServer(async (_request, response) => {
      const { body } = await scene.ask("GET", "/v1/domains");
      for (const { id } of body.domains as unknown as { id: string }[]) {
        publish(scene.dns, (await scene.ask("GET", `/v1/domains/${id}/dns`)).body.records as never);
      }
      response.end();
    });
    publishUrl = await listen(publisher);
  });

  after(async () => {
    publisher?.close();
    await scene?.close();
  });

  for (const name of GUIDES) {
    it(`do what they show: ${name}`, async () => {
      const text = readFileSync(join(ROOT, `docs/guides/${name}.md`), "utf8");
      const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block as string);
      assert.ok(blocks.length > 0, "a guide has examples");
      // Whoever reads it publishes the records between two examples.
      const script = ["set -euo pipefail", ...blocks.flatMap((block) => [block, `curl -s "$PUBLISH"`])].join("\n");
      const env = {
        ...inheritedEnv(),
        POSTERN_BASE_URL: scene.base_url,
        POSTERN_API_KEY: scene.live_key,
        MAIL_HOST: scene.env.POSTERN_HOSTNAME,
        PUBLISH: publishUrl,
      };
      await run("bash", ["-c", script], { env }).catch((error) => assert.fail(`${error.stderr}\n${error.stdout}`));
    });
  }
});

type Asked = { method: string; path: string; body: string };

describe("the examples of the reference", () => {
  const asked = new Map<string, Asked>();
  const folder = mkdtempSync(join(tmpdir(), "postern-examples-"));
  let recorder: Server;
  let env: Record<string, string>;

  before(async () => {
    recorder = createServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const [, language, id, path] = /^\/([^/]+)\/([^/]+)(\/.*)$/.exec(request.url ?? "") ?? [];
      const url = new URL(path ?? "", "http://localhost");
      const body = Buffer.concat(pieces).toString();
      asked.set(`${language} ${id}`, { method: request.method ?? "", path: url.href.replace(url.origin, ""), body });
      response.setHeader("content-type", "application/json");
      response.end("{}");
    });
    env = {
      ...inheritedEnv(),
      RECORDER: await listen(recorder),
      EXAMPLES: EXAMPLES_FILE,
      POSTERN_API_KEY: "svc_test_examples",
    };
    writeFileSync(join(folder, "file"), "bytes");
    await playCurl();
  });

  after(() => {
    recorder?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function playCurl(): Promise<void> {
    const lines = Object.entries(EXAMPLES).map(
      ([id, { curl }]) => `POSTERN_BASE_URL="$RECORDER/curl/${id}"\n${curl} -s -o out`,
    );
    await run("bash", ["-c", lines.join("\n")], { env, cwd: folder });
  }

  it("in curl ask what the description shows", () => {
    const { paths, components } = JSON.parse(readFileSync(join(ROOT, "clients/openapi.json"), "utf8"));
    const known = Object.entries(paths).flatMap(([path, verbs]) =>
      Object.entries(verbs as object).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
    );
    assert.equal(Object.keys(EXAMPLES).length, known.length);
    for (const { path, verb, operation } of known) {
      const {
        method,
        path: given,
        body,
      } = asked.get(`curl ${operation.operationId}`) ?? assert.fail(operation.operationId);
      const pattern = new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, "[^/]+")}(\\?.*)?$`);
      assert.equal(method, verb, operation.operationId);
      assert.match(given, pattern);
      const ref = operation.requestBody?.content?.["application/json"]?.schema?.$ref?.split("/").at(-1);
      if (ref) assert.deepEqual(JSON.parse(body), components.schemas[ref].example ?? {}, operation.operationId);
    }
  });

  for (const [language, { command, missing, write }] of Object.entries(players())) {
    it(`in ${language} ask the same`, { skip: missing ?? false }, async () => {
      const given = write(folder);
      await run(command, given, { env, cwd: language === "go" ? join(folder, "go") : ROOT });
      for (const id of Object.keys(EXAMPLES)) {
        assert.deepEqual(
          compared(asked.get(`${language} ${id}`)),
          compared(asked.get(`curl ${id}`)),
          `${language} ${id}`,
        );
      }
    });
  }
});

/** An address in a path may be written in two ways, and JSON in many. */
function compared(one: Asked | undefined): object {
  if (!one) return {};
  const path = decodeURIComponent(one.path);
  return { method: one.method, path, body: /^[[{]/.test(one.body) ? JSON.parse(one.body) : one.body };
}

// Languages ----------------------------------------------------------------------------------------------------------

type Player = { command: string; missing: string | null; write(folder: string): string[] };

function answers(command: string, ...given: string[]): boolean {
  return spawnSync(command, given).status === 0;
}

function hasAll(...commands: string[]): string | false {
  const missing = commands.filter((command) => !answers("sh", "-c", `command -v ${command}`));
  return missing.length === 0 ? false : `missing: apt-get install ${missing.join(" ")}`;
}

/** Each plays its examples; that an answer lacks its record, which counts as none, does not matter here. */
function players(): { [language: string]: Player } {
  return { node: node(), python: python(), ruby: ruby(), php: php(), go: go() };
}

function node(): Player {
  const missing = compileNodeLibrary();
  const script = `import { readFileSync } from "node:fs";
const { Postern } = await import(${JSON.stringify(join(ROOT, "clients/node/dist/postern.js"))});
const Play = Object.getPrototypeOf(async () => {}).constructor;
for (const [id, { node }] of Object.entries(JSON.parse(readFileSync(process.env.EXAMPLES, "utf8")))) {
  const postern = new Postern({ baseUrl: process.env.RECORDER + "/node/" + id, maxRetries: 0 });
  await new Play("postern", "bytes", node)(postern, Buffer.from("bytes")).catch((error) => {
    if (error instanceof SyntaxError) throw error;
  });
}`;
  return { command: process.execPath, missing, write: () => ["--input-type=module", "-e", script] };
}

function python(): Player {
  const command = join(CACHE, "examples/bin/python");
  if (!existsSync(command) || !answers(command, "-c", "import httpx")) {
    mkdirSync(CACHE, { recursive: true });
    answers("python3", "-m", "venv", join(CACHE, "examples"));
    answers(command, "-m", "pip", "install", "-q", "httpx>=0.27,<1");
  }
  const missing = answers(command, "-c", "import httpx") ? null : "no Python with httpx: apt-get install python3-venv";
  const script = `import json, os, sys
sys.path.insert(0, ${JSON.stringify(join(ROOT, "clients/python/src"))})
from postern_mail import Postern
from postern_mail.errors import ConnectionError
for name, example in json.load(open(os.environ["EXAMPLES"])).items():
    postern = Postern(base_url=os.environ["RECORDER"] + "/python/" + name, max_retries=0)
    code = compile(example["python"], name, "exec")
    try:
        exec(code, {"postern": postern, "bytes": b"bytes"})
    except ConnectionError:
        pass
`;
  return { command, missing, write: () => ["-c", script] };
}

function ruby(): Player {
  const script = `require "json"
require ${JSON.stringify(join(ROOT, "clients/ruby/lib/postern"))}
JSON.parse(File.read(ENV["EXAMPLES"])).each do |id, example|
  postern = Postern::Client.new(base_url: "#{ENV["RECORDER"]}/ruby/#{id}", max_retries: 0)
  bytes = "bytes"
  answer = eval(example["ruby"], binding, id)
  answer.items if answer.is_a?(Postern::Page)
rescue Postern::ConnectionError
end`;
  const missing = answers("ruby", "-v") ? null : "no Ruby: apt-get install ruby";
  return { command: "ruby", missing, write: () => ["-e", script] };
}

function php(): Player {
  const script = `error_reporting(E_ERROR);
spl_autoload_register(static function (string $class): void {
    require ${JSON.stringify(join(ROOT, "clients/php/src/"))} . str_replace(['Postern\\\\', '\\\\'], ['', '/'], $class) . '.php';
});
foreach (json_decode(file_get_contents(getenv('EXAMPLES')), true) as $id => $example) {
    $postern = new Postern\\Client(null, ['base_url' => getenv('RECORDER') . "/php/{$id}", 'max_retries' => 0]);
    $bytes = 'bytes';
    try {
        eval($example['php']);
    } catch (Postern\\ConnectionError) {
    }
}`;
  const missing = answers("php", "-r", "exit(extension_loaded('curl') ? 0 : 1);") ? null : "no PHP with curl: php-curl";
  return { command: "php", missing, write: () => ["-r", script] };
}

/** Compiled together, so that every name and type is right. */
function go(): Player {
  const functions = Object.entries(EXAMPLES).map(
    ([id, { go: text }]) =>
      `func ${id}(ctx context.Context, client *postern.Client, content []byte) {\n${text}\n\t_, _ = answer, err\n}\n`,
  );
  const calls = Object.keys(EXAMPLES).map((id) => `\t${id}(ctx, of("${id}"), []byte("bytes"))\n`);
  const text = `package main

import (
	"context"
	"os"

	postern "github.com/postern-mail/postern/clients/go"
)

func of(id string) *postern.Client {
	client, err := postern.New(postern.Options{BaseURL: os.Getenv("RECORDER") + "/go/" + id, MaxRetries: postern.Ptr(0)})
	if err != nil {
		panic(err)
	}
	return client
}

func main() {
	ctx := context.Background()
${calls.join("")}}

${functions.join("\n")}`;
  const library = "github.com/postern-mail/postern/clients/go";
  const module = `module examples\n\ngo 1.21\n\nrequire ${library} v0.0.0\n\nreplace ${library} => ${join(ROOT, "clients/go")}\n`;
  const write = (folder: string): string[] => {
    mkdirSync(join(folder, "go"));
    writeFileSync(join(folder, "go/main.go"), text);
    writeFileSync(join(folder, "go/go.mod"), module);
    return ["run", "."];
  };
  return { command: "go", missing: answers("go", "version") ? null : "no Go", write };
}
