// `npm run clients [-- <library> …] [--json]`: plays the conformance set with every client library, on each version of its
// language that is found here. What is missing is named with its remedy and skipped. Ends with 1 when a case fails, and with
// --json prints as its last line {"libraries":[{"name","cases","passed","failed","versions","skipped"}]}.
import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { readCases, startConformanceServer } from "./conformance/server.ts";

const ROOT = resolve(import.meta.dirname, "..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients");
const RUN_TIMEOUT_MS = 300_000;

/** A command that plays the set on one version of a language. */
type Version = { version: string; command: string; arguments: string[]; cwd?: string; env?: Record<string, string> };
type Found = { versions: Version[]; skipped: string[] };
type Library = { name: string; find(): Found };
type Verdict = { name: string; cases: number; passed: number; failed: number; versions: string[]; skipped: string[] };

const LIBRARIES: Library[] = [
  { name: "node", find: findNode },
  { name: "python", find: findPython },
  { name: "ruby", find: findRuby },
  { name: "php", find: findPhp },
  { name: "go", find: findGo },
];

async function main(given: string[]): Promise<void> {
  const names = given.filter((word) => word !== "--json");
  const unknown = names.filter((name) => !LIBRARIES.some((library) => library.name === name));
  if (unknown.length > 0) {
    process.stderr.write(
      `${unknown.join(" ")} is no library; there are ${LIBRARIES.map(({ name }) => name).join(", ")}\n`,
    );
    process.exitCode = 2;
    return;
  }
  const server = await startConformanceServer(readCases());
  const verdicts: Verdict[] = [];
  try {
    for (const library of LIBRARIES) {
      if (names.length === 0 || names.includes(library.name)) verdicts.push(await play(library, server.url));
    }
  } finally {
    await server.stop();
  }
  process.exitCode = verdicts.some(({ failed }) => failed > 0) ? 1 : 0;
  if (given.includes("--json")) process.stdout.write(`${JSON.stringify({ libraries: verdicts })}\n`);
}

async function play({ name, find }: Library, url: string): Promise<Verdict> {
  const { versions, skipped } = find();
  const verdict: Verdict = { name, cases: 0, passed: 0, failed: 0, versions: [], skipped };
  for (const one of versions) {
    const { output, code } = await run(one, { CONFORMANCE_URL: url });
    const counts = countsOf(output) ?? { cases: 0, passed: 0, failed: 1 };
    if (counts.failed === 0 && code !== 0) counts.failed = 1;
    verdict.cases += counts.cases;
    verdict.passed += counts.passed;
    verdict.failed += counts.failed;
    verdict.versions.push(one.version);
    if (counts.failed > 0) process.stdout.write(`${output.trim()}\n`);
    const sign = counts.failed > 0 ? "✖" : "✔";
    process.stdout.write(`${sign} ${name} ${one.version}: ${counts.passed} of ${counts.cases} cases\n`);
  }
  for (const sentence of skipped) process.stdout.write(`- ${name}: ${sentence}\n`);
  return verdict;
}

function countsOf(output: string): { cases: number; passed: number; failed: number } | null {
  const line = output.split("\n").findLast((text) => text.startsWith('{"cases"'));
  return line === undefined ? null : JSON.parse(line);
}

async function run(one: Version, env: Record<string, string>): Promise<{ output: string; code: number | null }> {
  const child = spawn(one.command, one.arguments, {
    cwd: one.cwd ?? ROOT,
    env: { ...process.env, ...one.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: RUN_TIMEOUT_MS,
  });
  let output = "";
  child.stdout.on("data", (piece) => {
    output += piece;
  });
  child.stderr.on("data", (piece) => {
    output += piece;
  });
  return new Promise((done) => {
    child.on("error", (error) => done({ output: `${output}${error.message}\n`, code: 1 }));
    child.on("close", (code) => done({ output, code }));
  });
}

// Languages ----------------------------------------------------------------------------------------------------------

/** What a command prints; null where there is none. */
function ask(command: string, ...given: string[]): string | null {
  const answer: SpawnSyncReturns<string> = spawnSync(command, given, { encoding: "utf8" });
  return answer.status === 0 ? answer.stdout.trim() : null;
}

/** Throws with what the command printed. */
function must(command: string, given: string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, given, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${given.join(" ")}: ${error?.message ?? stdout + stderr}`);
}

/** The library is compiled once; this Node plays it, and the machine's own where it is another one. */
function findNode(): Found {
  must(process.execPath, [
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "-p",
    join(ROOT, "clients/node/tsconfig.json"),
  ]);
  const test = join(ROOT, "clients/node/test/conformance.mjs");
  const commands = [process.execPath, ...(process.env.PATH ?? "").split(":").map((folder) => join(folder, "node"))];
  const versions = new Map<string, Version>();
  for (const command of commands) {
    const version = existsSync(command) ? ask(command, "-p", "process.versions.node") : null;
    if (version === null || Number.parseInt(version, 10) < 20 || versions.has(version)) continue;
    versions.set(version, { version, command, arguments: [test] });
  }
  return { versions: [...versions.values()], skipped: [] };
}

/** Each has a virtual environment with httpx, which is made once. */
function findPython(): Found {
  const test = join(ROOT, "clients/python/test/conformance.py");
  const inPyenv = globSync("versions/3.1?.*/bin/python3", { cwd: join(homedir(), ".pyenv") });
  const commands = ["python3", ...inPyenv.map((path) => join(homedir(), ".pyenv", path))];
  const versions = new Map<string, Version>();
  const skipped: string[] = [];
  for (const command of commands) {
    const version = ask(command, "-c", "import platform; print(platform.python_version())");
    if (version === null || Number.parseInt(version.split(".")[1] ?? "0", 10) < 10 || versions.has(version)) continue;
    const folder = join(CACHE, `python-${version}`);
    const python = join(folder, "bin/python");
    try {
      if (ask(python, "-c", "import httpx") === null) {
        mkdirSync(CACHE, { recursive: true });
        must(command, ["-m", "venv", folder]);
        must(python, ["-m", "pip", "install", "-q", "--disable-pip-version-check", "httpx>=0.27,<1"]);
      }
      versions.set(version, { version, command: python, arguments: [test] });
    } catch (error) {
      skipped.push(`Python ${version} could not be set up (python3-venv?): ${(error as Error).message.split("\n")[0]}`);
    }
  }
  if (versions.size === 0) skipped.push("there is no Python of 3.10 or newer: apt-get install python3 python3-venv");
  return { versions: [...versions.values()], skipped };
}

function findRuby(): Found {
  const version = ask("ruby", "-e", "print RUBY_VERSION");
  if (version === null) return { versions: [], skipped: ["there is no Ruby: apt-get install ruby"] };
  const test = join(ROOT, "clients/ruby/test/conformance.rb");
  return { versions: [{ version, command: "ruby", arguments: ["-w", test] }], skipped: [] };
}

function findPhp(): Found {
  const version = ask("php", "-r", "echo extension_loaded('curl') ? PHP_VERSION : '';");
  if (!version) return { versions: [], skipped: ["there is no PHP with curl: apt-get install php-cli php-curl"] };
  const test = join(ROOT, "clients/php/test/conformance.php");
  return { versions: [{ version, command: "php", arguments: [test] }], skipped: [] };
}

/** The oldest version that the library is for comes as a toolchain through Go's own proxy. */
function findGo(): Found {
  const own = ask("go", "env", "GOVERSION");
  const [, minor = "0"] = /^go1\.(\d+)/.exec(own ?? "") ?? [];
  if (Number(minor) < 21) return { versions: [], skipped: ["there is no Go of 1.21 or newer (Debian 12 has 1.19)"] };
  const version = (toolchain: string): Version => ({
    version: toolchain.replace(/^go/, ""),
    command: "go",
    arguments: ["test", "-count=1", "-v", "./..."],
    cwd: join(ROOT, "clients/go"),
    env: { GOTOOLCHAIN: toolchain, GOFLAGS: "-mod=mod" },
  });
  const oldest = "go1.21.13";
  const reached = spawnSync("go", ["version"], {
    env: { ...process.env, GOTOOLCHAIN: oldest },
    cwd: join(ROOT, "clients/go"),
  });
  const skipped = reached.status === 0 ? [] : [`the toolchain ${oldest} could not be had`];
  return { versions: [version(own as string), ...(reached.status === 0 ? [version(oldest)] : [])], skipped };
}

await main(process.argv.slice(2));
