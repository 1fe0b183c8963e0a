// What strangers make of /openapi.json: clients by three generators, and what two linters say of it. Each client is generated
// without a warning, has no model without a name of its own, compiles, and sends a mail through a real Postern. The tools are
// fetched once into node_modules/.cache; what cannot be fetched here is skipped with a sentence.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients/generators");
const NPM = { "@hey-api/openapi-ts": "0.99.0", typescript: "5.9.3", "@stoplight/spectral-cli": "6.16.3" };
const PYPI = ["openapi-python-client==0.29.1", "ruff==0.17.6"];
const OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
/** Not below node_modules: TypeScript compiles nothing there. */
const OUT = mkdtempSync(join(tmpdir(), "postern-generators-"));
const DESCRIPTION = join(OUT, "openapi.json");
const MAIL = { from: "orders@shop.example", to: ["anna@recipient.example"], text_body: "Hello" };

let scene: Scene;
let names: Set<string>;

before(async () => {
  scene = await setScene();
  receiveAt(scene.dns, "recipient.example");
  await scene.start();
  await addVerifiedDomain(scene, scene.dns, "shop.example");
  const text = await (await fetch(`${scene.base_url}/openapi.json`)).text();
  writeFileSync(DESCRIPTION, text);
  names = new Set(Object.keys(JSON.parse(text).components.schemas).map((name) => name.toLowerCase()));
});

after(async () => {
  rmSync(OUT, { recursive: true, force: true });
  await scene?.close();
});

describe("@hey-api/openapi-ts", { skip: npmTools() }, () => {
  it("makes a client that compiles and sends", async () => {
    const out = join(OUT, "hey");
    const said = await run(process.execPath, [tool("openapi-ts"), "-i", DESCRIPTION, "-o", join(out, "api")], {
      cwd: OUT,
    });
    assert.doesNotMatch(said, /warn|error/i);
    const types = readFileSync(join(out, "api/types.gen.ts"), "utf8");
    const ofComponents = types
      .split(/^export type /m)
      .filter((text) => names.has(/^\w*/.exec(text)?.[0].toLowerCase() ?? ""));
    assert.ok(ofComponents.length > 100, `only ${ofComponents.length} types are components`);
    const nameless = ofComponents.filter((text) => /(: |<|\| )\{\s*$(?!\s*\[key: string\])/m.test(text));
    assert.deepEqual(nameless, []);
    writeFileSync(join(out, "call.ts"), HEY_CALL);
    writeFileSync(join(out, "package.json"), '{"type":"commonjs"}');
    const options = ["--strict", "--skipLibCheck", "--module", "commonjs", "--target", "es2022", "--lib", "es2022,dom"];
    await run(process.execPath, [tool("tsc"), ...options, "--outDir", join(out, "js"), join(out, "call.ts")]);
    await checkCall(await run(process.execPath, [join(out, "js/call.js")]), "hey");
  });
});

describe("openapi-python-client", { skip: pythonTools() }, () => {
  it("makes a client that compiles and sends", async () => {
    const out = join(OUT, "python");
    mkdirSync(out);
    // Of the generator's settings the only one: it knows no media type but JSON and text, and asks how to read others.
    writeFileSync(
      join(out, "settings.yml"),
      'content_type_overrides: {"message/rfc822": "application/octet-stream"}\n',
    );
    const given = ["generate", "--path", DESCRIPTION, "--output-path", join(out, "api"), "--meta", "none"];
    const config = ["--config", join(out, "settings.yml"), "--fail-on-warning"];
    await run(join(CACHE, "python/bin/openapi-python-client"), [...given, ...config], { cwd: out });
    const models = join(out, "api/models");
    const classes = readdirSync(models)
      .map((file) => readFileSync(join(models, file), "utf8"))
      .flatMap((text) => [...text.matchAll(/^@_attrs_define\nclass (\w+)/gm)].map(([, name]) => name ?? ""));
    assert.ok(classes.length > 100, `only ${classes.length} models`);
    assert.deepEqual(
      classes.filter((name) => !names.has(name.toLowerCase())),
      [],
    );
    const python = join(CACHE, "python/bin/python");
    await run(python, ["-m", "compileall", "-q", join(out, "api")]);
    writeFileSync(join(out, "call.py"), PYTHON_CALL);
    await checkCall(await run(python, [join(out, "call.py")]), "python");
  });
});

describe("oapi-codegen", { skip: goTools() }, () => {
  it("makes a client that compiles and sends", async () => {
    const out = join(OUT, "go");
    mkdirSync(join(out, "api"), { recursive: true });
    const given = ["-generate", "types,client", "-package", "api", "-o", join(out, "api/api.go"), DESCRIPTION];
    assert.equal((await run(join(CACHE, "go/oapi-codegen"), given)).trim(), "");
    const text = readFileSync(join(out, "api/api.go"), "utf8");
    const structs = [...text.matchAll(/^type (\w+) struct/gm)].map(([, name]) => name ?? "");
    const ofOperations = /(Params|Response|Headers|Client|ClientWithResponses)$/;
    assert.ok(structs.length > 100, `only ${structs.length} structs`);
    assert.deepEqual(
      // A field of several forms is a struct of the name of its owner and its own: Batch_To.
      structs.filter((name) => !names.has(name.toLowerCase().replace(/_.*/, "")) && !ofOperations.test(name)),
      [],
    );
    writeFileSync(join(out, "main.go"), GO_CALL);
    writeFileSync(join(out, "go.mod"), "module stranger\n\ngo 1.21\n");
    await run("go", ["mod", "tidy"], { cwd: out });
    await run("go", ["vet", "./..."], { cwd: out });
    await checkCall(await run("go", ["run", "."], { cwd: out }), "go");
  });
});

describe("spectral", { skip: npmTools() }, () => {
  it("finds nothing by its recommended rules", async () => {
    writeFileSync(join(OUT, "spectral.yaml"), 'extends: ["spectral:oas"]\n');
    const given = [
      "lint",
      DESCRIPTION,
      "--ruleset",
      join(OUT, "spectral.yaml"),
      "--fail-severity",
      "hint",
      "-f",
      "json",
    ];
    assert.match(await run(process.execPath, [tool("spectral"), ...given]), /^\[\]/);
  });
});

/** The programs print the id of the mail that they sent, and the code of the error for an unknown one. */
async function checkCall(printed: string, subject: string): Promise<void> {
  const line = printed.trim().split("\n").at(-1) ?? "";
  const [id, code] = line.split(" ");
  assert.equal(code, "not_found", printed);
  const { body } = await scene.ask("GET", `/v1/emails/${id}`);
  assert.equal((body.email as unknown as { subject?: string } | undefined)?.subject, subject, line);
  await until(`the mail ${subject}`, () =>
    scene.sink.messages.find(({ bytes }) => bytes.includes(`Subject: ${subject}`)),
  );
}

const HEY_CALL = `
import { client } from "./api/client.gen";
import { getEmail, sendEmail } from "./api/sdk.gen";
import type { SendRequest } from "./api/types.gen";

const body: SendRequest = { ...${JSON.stringify(MAIL)}, subject: "hey" };
client.setConfig({ baseUrl: process.env.POSTERN_BASE_URL, auth: () => process.env.POSTERN_API_KEY });
void (async () => {
  const sent = await sendEmail({ body, headers: { "idempotency-key": "hey" } });
  const unknown = await getEmail({ path: { id: "00000000-0000-7000-8000-000000000000" } });
  console.log(sent.data?.id, unknown.error?.code);
})();
`;

const PYTHON_CALL = `
import os
from api.api.sending import get_email, send_email
from api.client import AuthenticatedClient
from api.models.error import Error
from api.models.send_answer import SendAnswer
from api.models.send_request import SendRequest

client = AuthenticatedClient(base_url=os.environ["POSTERN_BASE_URL"], token=os.environ["POSTERN_API_KEY"])
mail = SendRequest.from_dict({**${JSON.stringify(MAIL)}, "subject": "python"})
sent = send_email.sync(client=client, body=mail, idempotency_key="python")
assert isinstance(sent, SendAnswer), sent
unknown = get_email.sync("00000000-0000-7000-8000-000000000000", client=client)
assert isinstance(unknown, Error), unknown
print(sent.id, unknown.code)
`;

const GO_CALL = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"stranger/api"
)

func main() {
	key := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("POSTERN_API_KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("POSTERN_BASE_URL"), api.WithRequestEditorFn(key))
	if err != nil {
		panic(err)
	}
	var mail api.SendRequest
	if err := json.Unmarshal([]byte(\`${JSON.stringify({ ...MAIL, subject: "go" })}\`), &mail); err != nil {
		panic(err)
	}
	sent, err := client.SendEmailWithResponse(context.Background(), &api.SendEmailParams{}, mail)
	if err != nil || sent.JSON202 == nil {
		panic(fmt.Sprint(err, sent))
	}
	unknown, err := client.GetEmailWithResponse(context.Background(), "00000000-0000-7000-8000-000000000000")
	if err != nil || unknown.JSONDefault == nil {
		panic(fmt.Sprint(err, unknown))
	}
	fmt.Println(sent.JSON202.Id, unknown.JSONDefault.Code)
}
`;

// Tools --------------------------------------------------------------------------------------------------------------

function tool(name: string): string {
  return join(CACHE, "npm/node_modules/.bin", name);
}

/** What a command prints, both streams; it throws with all of it when the command fails. */
async function run(command: string, given: string[], options: { cwd?: string } = {}): Promise<string> {
  const path = [join(CACHE, "python/bin"), process.env.PATH].join(delimiter);
  const keys = { POSTERN_API_KEY: scene.live_key, POSTERN_BASE_URL: scene.base_url };
  const env = { ...inheritedEnv(), HOME: process.env.HOME ?? CACHE, PATH: path, GOFLAGS: "-mod=mod", ...keys };
  const done = promisify(execFile)(command, given, { ...options, env, maxBuffer: 64 * 1024 * 1024 });
  return done.then(
    ({ stdout, stderr }) => stdout + stderr,
    ({ stdout, stderr }) => assert.fail(`${command} ${given[0]}: ${stdout}${stderr}`),
  );
}

function answers(command: string, ...given: string[]): boolean {
  return spawnSync(command, given, { cwd: CACHE }).status === 0;
}

/** False once they are there, else why they are not. */
function npmTools(): string | false {
  const wanted = Object.entries(NPM).map(([name, version]) => `${name}@${version}`);
  mkdirSync(join(CACHE, "npm"), { recursive: true });
  const isThere = () => existsSync(tool("openapi-ts")) && existsSync(tool("spectral"));
  const prefix = ["--prefix", join(CACHE, "npm"), "--no-audit", "--no-fund", "--ignore-scripts"];
  if (!isThere()) answers("npm", "install", ...prefix, ...wanted);
  return isThere() ? false : `no ${wanted.join(", ")}: they take npm and its registry`;
}

function pythonTools(): string | false {
  mkdirSync(CACHE, { recursive: true });
  const program = join(CACHE, "python/bin/openapi-python-client");
  if (!answers(program, "--version")) {
    answers("python3", "-m", "venv", join(CACHE, "python"));
    answers(join(CACHE, "python/bin/python"), "-m", "pip", "install", "-q", ...PYPI);
  }
  return answers(program, "--version") ? false : "no openapi-python-client: it takes python3-venv and a package index";
}

function goTools(): string | false {
  mkdirSync(CACHE, { recursive: true });
  const program = join(CACHE, "go/oapi-codegen");
  if (!answers(program, "-version"))
    spawnSync("go", ["install", OAPI_CODEGEN], { env: { ...process.env, GOBIN: join(CACHE, "go") } });
  return answers(program, "-version") ? false : "no oapi-codegen: it takes Go and its module proxy";
}
