// The checks of the source itself, at the same time: lint and format, types, and the rules of the house.
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { seconds } from "./times.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

export type Check = readonly [name: string, ...command: string[]];

const TSC = ["node_modules/typescript/bin/tsc", "--noEmit", "--incremental", "--tsBuildInfoFile"] as const;

/** The compiler keeps what it found, and looks again at what has changed since: 4 s instead of 18. */
export const CHECKS: readonly Check[] = [
  ["biome check", "node_modules/@biomejs/biome/bin/biome", "check", "."],
  ["tsc", ...TSC, "node_modules/.cache/tsc.tsbuildinfo"],
  ["tsc of the dashboard", ...TSC, "node_modules/.cache/tsc-dashboard.tsbuildinfo", "-p", "dashboard"],
];
/** In `npm test` it is one of the test files. */
export const TIDY: Check = ["tidy", "--test", "--test-reporter=dot", "test/tidy.test.ts"];

/** Runs them, prints how each went, and answers how many passed. */
export async function runChecks(checks: readonly Check[]): Promise<number> {
  const results = await Promise.all(checks.map(runCheck));
  return results.filter((isGood) => isGood).length;
}

async function runCheck([name, ...command]: Check): Promise<boolean> {
  const started = performance.now();
  const { failed, output } = await new Promise<{ failed: boolean; output: string }>((done) => {
    execFile(process.execPath, command, { cwd: ROOT, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) =>
      done({ failed: error !== null, output: stdout + stderr }),
    );
  });
  const time = seconds(performance.now() - started);
  process.stdout.write(failed ? `✖ ${name} (${time})\n${output}\n` : `✔ ${name} (${time})\n`);
  return !failed;
}
