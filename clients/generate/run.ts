// `node clients/generate/run.ts [--check]`: writes the generated part of every library; `--check` compares instead, and
// ends with 1 where something differs.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { emitCases, emitDispatch } from "./cases.ts";
import { emitCli } from "./cli.ts";
import { emitDocs } from "./docs.ts";
import { emitGo } from "./go.ts";
import { emitNode } from "./node.ts";
import { emitPhp } from "./php.ts";
import { emitPython } from "./python.ts";
import { readDescription } from "./read.ts";
import { emitRuby } from "./ruby.ts";
import { emitRubySignatures } from "./ruby-signatures.ts";

const CLIENTS = resolve(import.meta.dirname, "..");

/** Every generated file, by its path below clients/. */
export function generate(): Map<string, string> {
  const read = (name: string) => JSON.parse(readFileSync(join(CLIENTS, name), "utf8"));
  const description = readDescription(read("openapi.json"), read("surface.json"));
  const files = new Map([["conformance/cases/requests.json", emitCases(description)]]);
  files.set("conformance/operations.json", emitDispatch(description));
  files.set("cli/operations.json", emitCli(description));
  files.set("../src/api/docs/examples.json", emitDocs(description, read("openapi.json").components.schemas));
  for (const [name, text] of emitNode(description)) files.set(`node/src/generated/${name}`, text);
  for (const [name, text] of emitPython(description)) files.set(`python/src/postern_mail/_generated/${name}`, text);
  for (const [name, text] of emitRuby(description)) files.set(`ruby/lib/postern/generated/${name}`, text);
  for (const [name, text] of emitRubySignatures(description)) files.set(`ruby/sig/generated/${name}`, text);
  for (const [name, text] of emitPhp(description)) files.set(`php/src/Generated/${name}`, text);
  for (const [name, text] of emitGo(description)) files.set(`go/${name}`, text);
  return files;
}

/** Go's files are laid out by gofmt where there is one, so that their white space does not count. */
export function folded(path: string, text: string): string {
  return path.endsWith(".go") ? text.replaceAll(/\s+/g, " ") : text;
}

function layOutGo(): void {
  const { error } = spawnSync("gofmt", ["-w", join(CLIENTS, "go")], { stdio: "inherit" });
  if (error) process.stderr.write("there is no gofmt here: the Go files are not laid out\n");
}

/** The dashboard is a client of the same description. */
function writeDashboardTypes(): void {
  spawnSync(process.execPath, [resolve(CLIENTS, "../dashboard/run.ts"), "types"], { stdio: "inherit" });
}

if (import.meta.main) {
  const check = process.argv.includes("--check");
  for (const [path, text] of generate()) {
    const file = join(CLIENTS, path);
    if (check && folded(path, readFileSync(file, "utf8")) !== folded(path, text)) {
      process.stderr.write(`clients/${path} is not what the description gives: run node clients/generate/run.ts\n`);
      process.exitCode = 1;
    } else if (!check) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }
  if (!check) {
    layOutGo();
    writeDashboardTypes();
  }
}
