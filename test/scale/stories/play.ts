// Test files of the scenarios, each played as `npm test` plays it, but that its database is a cell of a Citus that all of them share.
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { join, resolve } from "node:path";
import { listCells } from "../../../src/platform/database/citus/cells.ts";
import { cellPrefix, startCitus } from "../../support/citus.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const FOLDER = join(ROOT, "test/scenarios");
/** What a cell cannot be, as it is about a whole database or about a server. */
const NOT_IN_CELLS: Record<string, string> = {
  "cells.long.test.ts": "plays cells on a Citus of its own",
  "clocks.long.test.ts": "sets the clock of a whole database",
};
const WORKERS = 2;
const SETTINGS = { fsync: "off", synchronous_commit: "off", max_connections: "800" };
/** Against what hangs. */
const FILE_MS = 400_000;
const SHOWN_LINES = 80;
/** Frames of TAP, and tests that passed. */
const NOISE =
  /^ *(---|\.\.\.|1\.\.\d+|ok .*|duration_ms.*|type: .*|location: .*|failureType: .*|code: .ERR_TEST.*|# [a-z_]+ [\d.]+|)$/;

export type Stories = { dir: string; cells: number; files: string[]; say(text: string): void };
export type StoriesPlayed = {
  /** Played in a cell. */
  files: number;
  tests: number;
  tests_skipped: number;
  failed: string[];
  /** Files that made databases of their own, as their matter is a database's start, its copies or its loss. */
  elsewhere: string[];
};

type Ended = { file: string; passed: boolean; tests: number; skipped: number; output: string; seconds: number };

/** The scenarios whose names hold one of the words; all without words. */
export function storiesOf(words: string[]): string[] {
  const all = globSync("*.test.ts", { cwd: FOLDER }).filter((file) => !(file in NOT_IN_CELLS));
  return all.filter((file) => words.length === 0 || words.some((word) => file.includes(word))).sort();
}

export async function playStories({ dir, cells, files, say }: Stories): Promise<StoriesPlayed> {
  const citus = await startCitus(dir, WORKERS, SETTINGS);
  try {
    const ended: Ended[] = [];
    const waiting = [...files];
    const playNext = async (): Promise<void> => {
      for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
        const one = await playFile(file, citus.adminUrlOf());
        ended.push(one);
        say(`${one.passed ? "passed" : "FAILED"} ${file}: ${one.tests} tests, ${one.seconds} s`);
        if (!one.passed) say(one.output);
      }
    };
    await Promise.all(Array.from({ length: cells }, playNext));
    const { cells: made } = await listCells(citus.adminUrlOf());
    return summed(ended, new Set(made.map(({ name }) => name.replace(/[0-9a-f]{8}$/, ""))));
  } finally {
    await citus.stop();
  }
}

function summed(ended: Ended[], prefixes: Set<string>): StoriesPlayed {
  const inCells = ended.filter(({ file }) => prefixes.has(cellPrefix(file)));
  const sum = (of: "tests" | "skipped"): number => inCells.reduce((total, one) => total + one[of], 0);
  return {
    files: inCells.length,
    tests: sum("tests"),
    tests_skipped: sum("skipped"),
    failed: ended.filter(({ passed }) => !passed).map(({ file }) => file),
    elsewhere: ended.filter((one) => !inCells.includes(one)).map(({ file }) => file),
  };
}

function playFile(file: string, citus: string): Promise<Ended> {
  const { NODE_TEST_CONTEXT: _of_this, ...env } = process.env;
  const startedAt = performance.now();
  const own = { POSTERN_TEST_CITUS: citus, POSTERN_TEST_LOG_LEVEL: "error" };
  const options = { cwd: ROOT, env: { ...env, ...own }, timeout: FILE_MS, maxBuffer: 2 ** 26 };
  return new Promise((done) =>
    execFile(process.execPath, ["--test", "--test-reporter=tap", join(FOLDER, file)], options, (error, stdout) => {
      const counted = (word: string): number => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(stdout)?.[1] ?? 0);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      const found = { tests: counted("pass"), skipped: counted("skipped"), output: failuresOf(stdout) };
      done({ file, passed: error === null, ...found, seconds });
    }),
  );
}

/** What says something in the lines of a file that failed: what it printed, and its assertions. */
function failuresOf(tap: string): string {
  const lines = tap.split("\n").filter((line) => !NOISE.test(line));
  return lines.slice(-SHOWN_LINES).join("\n");
}
