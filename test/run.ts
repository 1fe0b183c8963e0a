// `npm test [-- words, folders or files] [--no-check] [--long] [--profile]`: the checks (biome, tsc), then the test files
// against one temporary PostgreSQL, several of them in a process (runner/groups.ts). Words choose the files whose path holds
// one of them, and leave the checks out. What takes long is left to `npm run proof`: --long plays the files that are only
// for there (`*.long.test.ts`, each of them also by its path) and those that play few rounds here (support/rounds.ts), with all. --profile ends with the slowest files. The last line says what passed; exit code 1 when
// anything failed.
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { CHECKS, runChecks } from "./runner/checks.ts";
import { groupFiles, writeGroup } from "./runner/groups.ts";
import { ofProcess } from "./runner/processor.ts";
import { makeRsaKeys } from "./runner/rsa-keys.ts";
import { readNotes, seconds, startProgress, tableOf } from "./runner/times.ts";
import { COMPILE_CACHE } from "./support/compile-cache.ts";
import { readOptions } from "./support/options.ts";
import { ALL_ROUNDS } from "./support/rounds.ts";
import type { TestServer } from "./support/test-server.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const OLDEST_NODE = 24;
const FREE_MIB_MIN = 500; // the template, a clone for each file that runs, and the log
/** Beyond one a core: tests wait for timers, sockets and the database for half of their time. */
const BEYOND_CORES = 2;
const CONCURRENCY_MAX = 8;
/** Each process of tests lives a minute or two: with little room for what is young, a tenth of its time went into sweeping it. */
const YOUNG_MIB = 64;
/** Against what hangs, not against what is slow on a busy machine. */
const TEST_TIMEOUT_MS = 300_000;
/** Below that of .ci/run, which would cut it short without a word. */
const RUN_TIMEOUT_MS = 55 * 60_000;
const LONG = ".long.test.ts";
/** A file that imports it plays few rounds, and all of them with --long. */
const ROUNDS = /\bsupport\/rounds\.ts"/;
const SLOWEST_SHOWN = 40;

type Counts = { passed: number; failed: number; skipped: number };
type Asked = { words: string[]; check: boolean; long: boolean; profile: boolean };

async function main(): Promise<void> {
  const started = performance.now();
  const asked = readArguments();
  const missing = missingPrerequisites();
  if (missing.length > 0) return refuse(missing);
  const { files, left } = chooseFiles(asked);
  if (files.length === 0) return refuse([noFile(asked, left)]);
  const signal = abortOnSignal();
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  if (asked.check) {
    const passed = await runChecks(CHECKS);
    add(counts, { passed, failed: CHECKS.length - passed, skipped: 0 });
  }
  if (!signal.aborted) add(counts, await runOnServer(files, asked, signal));
  process.exitCode = signal.aborted ? 130 : counts.failed > 0 ? 1 : 0;
  if (left.length > 0) process.stdout.write(`\nleft to npm run proof, or npm test -- --long: ${left.join(", ")}\n`);
  process.stdout.write(`\ntotal ${seconds(performance.now() - started)}\n`);
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
}

function refuse(sentences: string[]): void {
  process.stderr.write(`${sentences.join("\n")}\n`);
  process.exitCode = 1;
}

function readArguments(): Asked {
  const { values, positionals } = readOptions(
    {
      allowPositionals: true,
      options: {
        "no-check": { type: "boolean", default: false },
        long: { type: "boolean", default: false },
        profile: { type: "boolean", default: false },
      },
    },
    "npm test -- [--no-check] [--long] [--profile] [words, folders or files …]",
  );
  const { long, profile } = values;
  const check = positionals.length === 0 && !long && !values["no-check"];
  return { words: positionals.map(pathOf), check, long, profile };
}

/** As paths are compared: from the root of the repository. */
function pathOf(word: string): string {
  const path = relative(ROOT, resolve(word));
  return existsSync(resolve(word)) && !path.startsWith("..") ? path : word;
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

/** Paths from the root of the repository, and those of long ones that are not played now. */
function chooseFiles({ words, long }: Asked): { files: string[]; left: string[] } {
  const all = globSync(["src/**/*.test.ts", "test/**/*.test.ts", "dashboard/lib/*.test.ts"], { cwd: ROOT }).sort();
  const chosen = all.filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  const isLong = (path: string): boolean => path.endsWith(LONG);
  if (long) return { files: chosen.filter((path) => isLong(path) || hasRounds(path)), left: [] };
  const isNow = (path: string): boolean => !isLong(path) || words.includes(path);
  return { files: chosen.filter(isNow), left: chosen.filter((path) => !isNow(path)) };
}

function hasRounds(path: string): boolean {
  return ROUNDS.test(readFileSync(join(ROOT, path), "utf8"));
}

function noFile({ words, long }: Asked, left: string[]): string {
  if (left.length > 0) return `What the path of holds ${words.join(" or ")} is long: add --long.`;
  return `No ${long ? "long " : ""}test file's path holds ${words.join(" or ")}.`;
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

// Tests --------------------------------------------------------------------------------------------------------------

async function runOnServer(files: string[], asked: Asked, signal: AbortSignal): Promise<Counts> {
  // Imported here, so that a missing package has been reported in a sentence before.
  const { makeRunFolder, removeLeftOvers, startTestServer } = await import("./support/test-server.ts");
  const removed = await removeLeftOvers();
  if (removed > 0) process.stdout.write(`removed what killed runs had left in ${tmpdir()} (${removed})\n`);
  const folder = await makeRunFolder();
  const notes = join(folder, "notes.jsonl");
  const began = performance.now();
  let server: TestServer | undefined;
  try {
    const keys = makeRsaKeys(folder);
    server = await startTestServer(process.env.DATABASE_URL, folder);
    await keys;
    tellTests(server, folder, asked);
    const counts = await runFiles(files, { folder, notes, signal });
    const database = server.pid === null ? null : ofProcess(server.pid);
    const totals = { wall_ms: performance.now() - began, database };
    if (asked.profile) process.stdout.write(`\n${tableOf(readNotes(notes), SLOWEST_SHOWN, totals).join("\n")}\n`);
    return counts;
  } catch (error) {
    process.stdout.write(`✖ the run itself: ${(error as Error).message}\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Through the environment, which the files' processes inherit; what they leave in the temporary folder goes with it. */
function tellTests(server: TestServer, folder: string, { long }: Asked): void {
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  chmodSync(temporary, 0o1777);
  process.env.TMPDIR = temporary;
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  if (long) process.env[ALL_ROUNDS] = "all";
  process.env.POSTERN_TEST_DATABASE_URL = server.admin_url;
  process.env.POSTERN_TEST_TEMPLATE_URL = server.template_url;
}

type Place = { folder: string; notes: string; signal: AbortSignal };

async function runFiles(files: string[], { folder, notes, signal }: Place): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const groups = groupFiles(files).map((group) => writeGroup(group, folder, notes));
  const stream = run({
    files: groups,
    cwd: ROOT,
    concurrency: Math.min(availableParallelism() + BEYOND_CORES, CONCURRENCY_MAX),
    execArgv: [`--test-timeout=${TEST_TIMEOUT_MS}`, `--max-semi-space-size=${YOUNG_MIB}`],
    signal,
  });
  countFailedSuites(stream, files, counts);
  stream.on("test:summary", (event) => {
    if (event.file !== undefined) return;
    const { tests, passed, skipped, todo } = event.counts;
    add(counts, { passed, failed: tests - passed - skipped - todo, skipped: skipped + todo });
  });
  const stopProgress = startProgress(notes, files.length, (line) => process.stdout.write(`${line}\n`));
  const printed = stream.compose<NodeJS.ReadWriteStream>(new spec());
  for await (const text of printed) process.stdout.write(text);
  stopProgress();
  return counts;
}

/** The summary counts tests alone: not a file that cannot be read or whose hook fails, and not one that holds no test. */
function countFailedSuites(stream: ReturnType<typeof run>, files: readonly string[], counts: Counts): void {
  let tests = 0;
  const isFile = (name: string, type: string | undefined): boolean => type === "suite" && files.includes(name);
  stream.on("test:pass", ({ name, details, skip }) => {
    // Of a suite that is skipped the tests are not listed: it counts as one that says why.
    const isSkippedSuite = details.type === "suite" && typeof skip === "string";
    if (isSkippedSuite) counts.skipped += 1;
    if (details.type !== "suite" || isSkippedSuite) tests += 1;
    if (!isFile(name, details.type)) return;
    if (tests === 0) {
      process.stdout.write(`✖ ${name} holds no test\n`);
      counts.failed += 1;
    }
    tests = 0;
  });
  stream.on("test:fail", ({ name, details: { type, error } }) => {
    if (type !== "suite") tests += 1;
    const isOwn = (error as { failureType?: string }).failureType !== "subtestsFailed";
    if (type === "suite" && isOwn) counts.failed += 1;
    if (isFile(name, type)) tests = 0;
  });
}

function add(counts: Counts, more: Counts): void {
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
}

await main();
