// `npm run clients [-- <library> …] [--every-version] [--json]`: plays the conformance set with every client library, on each
// version of its language that is found here; with --every-version also on the oldest and newest that npm and Maven have
// (500 MB, once). What is missing is named with its remedy and skipped. Ends with 1 when a case fails, and with --json prints as its last line {"libraries":[{"name","cases","passed","failed","versions","skipped"}]}.
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { readOptions, refuse } from "../test/support/options.ts";
import { readCases, startConformanceServer } from "./conformance/server.ts";
import { type Found, findGo, findNode, findPhp, findPython, findRuby, type Version } from "./versions.ts";

const ROOT = resolve(import.meta.dirname, "..");
const USE = "npm run clients -- [library …] [--every-version] [--json]";
const RUN_TIMEOUT_MS = 300_000;

type Library = { name: string; find(isEvery: boolean): Found };
type Verdict = { name: string; cases: number; passed: number; failed: number; versions: string[]; skipped: string[] };

const LIBRARIES: Library[] = [
  { name: "node", find: findNode },
  { name: "python", find: findPython },
  { name: "ruby", find: findRuby },
  { name: "php", find: findPhp },
  { name: "go", find: findGo },
];

async function main(): Promise<void> {
  const { values, positionals: names } = readOptions(
    {
      allowPositionals: true,
      options: { "every-version": { type: "boolean", default: false }, json: { type: "boolean", default: false } },
    },
    USE,
  );
  const unknown = names.filter((name) => !LIBRARIES.some((library) => library.name === name));
  if (unknown.length > 0) {
    return refuse(
      `${unknown.join(" ")} is not a library; there are ${LIBRARIES.map(({ name }) => name).join(", ")}`,
      USE,
    );
  }
  const server = await startConformanceServer(readCases());
  const verdicts: Verdict[] = [];
  try {
    for (const library of LIBRARIES) {
      if (names.length === 0 || names.includes(library.name))
        verdicts.push(await play(library, server.url, values["every-version"]));
    }
  } finally {
    await server.stop();
  }
  process.exitCode = verdicts.some(({ failed }) => failed > 0) ? 1 : 0;
  if (values.json) process.stdout.write(`${JSON.stringify({ libraries: verdicts })}\n`);
}

async function play({ name, find }: Library, url: string, isEvery: boolean): Promise<Verdict> {
  const { versions, skipped } = find(isEvery);
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

await main();
