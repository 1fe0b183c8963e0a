// `npm test [-- words or files] [--no-check]`: the checks (biome, tsc), then every test file in a process of its own
// against one temporary PostgreSQL. Words choose the files whose path holds one of them, and leave the checks out.
// Ends with one line of counts, and with exit code 1 when anything failed.
import { execFile } from "node:child_process";
import { chmodSync, existsSync, globSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import type { TestServer } from "./support/test-server.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const OLDEST_NODE = 24;
const FREE_MIB_MIN = 500; // the template, a clone for each file that runs, and the log
const CONCURRENCY_MAX = 3;
const TEST_TIMEOUT_MS = 120_000;
/** Below that of .ci/run, which would cut it short without a word. */
const RUN_TIMEOUT_MS = 55 * 60_000;
const CHECKS: [name: string, script: string, ...options: string[]][] = [
  ["biome check", "node_modules/@biomejs/biome/bin/biome", "check", "."],
  ["tsc --noEmit", "node_modules/typescript/bin/tsc", "--noEmit"],
];

type Counts = { passed: number; failed: number; skipped: number };

async function main(): Promise<void> {
  const started = performance.now();
  const { words, check } = readArguments(process.argv.slice(2));
  const missing = missingPrerequisites();
  if (missing.length > 0) return refuse(missing);
  const files = chooseFiles(words);
  if (files.length === 0) return refuse([`No test file's path holds ${words.join(" or ")}.`]);
  const signal = abortOnSignal();
  const counts = check ? await runChecks() : { passed: 0, failed: 0, skipped: 0 };
  if (!signal.aborted) add(counts, await runOnServer(files, signal));
  process.exitCode = signal.aborted ? 130 : counts.failed > 0 ? 1 : 0;
  process.stdout.write(`\ntotal ${seconds(performance.now() - started)}\n`);
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
}

function refuse(sentences: string[]): void {
  process.stderr.write(`${sentences.join("\n")}\n`);
  process.exitCode = 1;
}

function readArguments(given: string[]): { words: string[]; check: boolean } {
  const words = given.filter((word) => !word.startsWith("--"));
  const unknown = given.filter((word) => word.startsWith("--") && word !== "--no-check");
  if (unknown.length > 0) {
    process.stderr.write(`${unknown.join(" ")} is not known; use: npm test -- [--no-check] [words or files …]\n`);
    process.exit(2);
  }
  return { words, check: words.length === 0 && !given.includes("--no-check") };
}

function missingPrerequisites(): string[] {
  const missing: string[] = [];
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
    missing.push(
      `Node ${OLDEST_NODE} or newer is needed, this is ${process.versions.node}: run npm ci, then npm test.`,
    );
  }
  if (!existsSync(join(ROOT, "node_modules/pg"))) missing.push("The packages are not installed: run npm ci.");
  const { bavail, bsize } = statfsSync(tmpdir());
  const freeMib = Math.floor((bavail * bsize) / 1024 / 1024);
  if (freeMib < FREE_MIB_MIN) {
    missing.push(`${tmpdir()} has ${freeMib} MiB free and the test database needs ${FREE_MIB_MIN}: set TMPDIR.`);
  }
  return missing;
}

function chooseFiles(words: string[]): string[] {
  const all = globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { cwd: ROOT }).sort();
  const chosen = all.filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  return chosen.map((path) => join(ROOT, path));
}

/** Ctrl-C and SIGTERM end the run in good order, a second one at once; so does the time limit. */
function abortOnSignal(): AbortSignal {
  const abort = new AbortController();
  const stop = (why: string) => {
    if (abort.signal.aborted) process.exit(130);
    process.stdout.write(`\nstopping: ${why}\n`);
    abort.abort(); // with a reason of its own the runner of Node 24.21 never ends
  };
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("SIGTERM", () => stop("SIGTERM"));
  setTimeout(() => stop(`more than ${RUN_TIMEOUT_MS / 60_000} minutes have passed`), RUN_TIMEOUT_MS).unref();
  return abort.signal;
}

// Checks -------------------------------------------------------------------------------------------------------------

async function runChecks(): Promise<Counts> {
  const results = await Promise.all(CHECKS.map(runCheck));
  const passed = results.filter((result) => result).length;
  return { passed, failed: results.length - passed, skipped: 0 };
}

async function runCheck([name, script, ...options]: (typeof CHECKS)[number]): Promise<boolean> {
  const started = performance.now();
  const { failed, output } = await new Promise<{ failed: boolean; output: string }>((resolve) => {
    execFile(
      process.execPath,
      [join(ROOT, script), ...options],
      { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve({ failed: error !== null, output: stdout + stderr }),
    );
  });
  const time = seconds(performance.now() - started);
  process.stdout.write(failed ? `✖ ${name} (${time})\n${output}\n` : `✔ ${name} (${time})\n`);
  return !failed;
}

// Tests --------------------------------------------------------------------------------------------------------------

async function runOnServer(files: string[], signal: AbortSignal): Promise<Counts> {
  // Imported here, so that a missing package has been reported in a sentence before.
  const { makeRunFolder, removeLeftOvers, startTestServer } = await import("./support/test-server.ts");
  const removed = await removeLeftOvers();
  if (removed > 0) process.stdout.write(`removed what killed runs had left in ${tmpdir()} (${removed})\n`);
  const folder = await makeRunFolder();
  let server: TestServer | undefined;
  try {
    server = await startTestServer(process.env.DATABASE_URL, folder);
    tellTests(server, folder);
    return await runFiles(files, signal);
  } catch (error) {
    process.stdout.write(`✖ the run itself: ${(error as Error).message}\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Through the environment, which the files' processes inherit; what they leave in the temporary folder goes with it. */
function tellTests(server: TestServer, folder: string): void {
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  chmodSync(temporary, 0o1777);
  process.env.TMPDIR = temporary;
  process.env.POSTERN_TEST_DATABASE_URL = server.admin_url;
  process.env.POSTERN_TEST_TEMPLATE_URL = server.template_url;
}

async function runFiles(files: string[], signal: AbortSignal): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const stream = run({
    files,
    cwd: ROOT,
    concurrency: Math.min(availableParallelism(), CONCURRENCY_MAX),
    execArgv: [`--test-timeout=${TEST_TIMEOUT_MS}`, "--import", join(ROOT, "test/support/end-in-time.ts")],
    signal,
  });
  stream.on("test:pass", (event) => {
    // A file that registers no test is reported as one test that passed: it tests nothing.
    if (!files.includes(event.name)) return;
    process.stdout.write(`✖ ${event.name} holds no test\n`);
    add(counts, { passed: -1, failed: 1, skipped: 0 });
  });
  stream.on("test:summary", (event) => {
    if (event.file !== undefined) return;
    const { tests, passed, skipped, todo } = event.counts;
    add(counts, { passed, failed: tests - passed - skipped - todo, skipped: skipped + todo });
  });
  const printed = stream.compose<NodeJS.ReadWriteStream>(new spec());
  for await (const text of printed) process.stdout.write(text);
  return counts;
}

function add(counts: Counts, more: Counts): void {
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

await main();
