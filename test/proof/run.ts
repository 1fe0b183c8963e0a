// npm run proof [-- names …] [--json]: what is random or takes long, one after the other, each as its own command prints it.
// `npm test` plays the same with few rounds. Ends with one line of counts; exit code 1 when a step failed. A step that this
// machine lacks something for says so itself and counts as skipped.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { STEPS, type Step } from "./steps.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** What `npm run faults` ends with where the machine lacks what a scenario takes. */
const LACKING = 3;

type Outcome = "passed" | "failed" | "skipped";
type Result = { name: string; outcome: Outcome; seconds: number };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } },
});
const unknown = positionals.filter((name) => !STEPS.some((step) => step.name === name));
if (unknown.length > 0) {
  console.error(`No step is called ${unknown.join(", ")}. npm run proof -- [names …] [--json]\n`);
  for (const { name, what } of STEPS) console.error(`  ${name.padEnd(16)} ${what}`);
  process.exit(2);
}

const results: Result[] = [];
for (const step of STEPS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  results.push(await play(step));
}
const count = (outcome: Outcome): number => results.filter((result) => result.outcome === outcome).length;
const counts = { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
console.log();
for (const { name, outcome, seconds } of results) console.log(`${outcome.padEnd(8)} ${name.padEnd(16)} ${seconds} s`);
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
if (values.json) console.log(JSON.stringify({ steps: results, ...counts }));
process.exitCode = counts.failed > 0 ? 1 : 0;

async function play(step: Step): Promise<Result> {
  const started = performance.now();
  console.log(`\n--- ${step.name}: ${step.what}`);
  const outcome = await outcomeOf(step);
  return { name: step.name, outcome, seconds: Math.round((performance.now() - started) / 1000) };
}

async function outcomeOf({ command, needs, seconds_max }: Step): Promise<Outcome> {
  if (needs !== undefined && !existsSync(join(ROOT, needs))) {
    console.log(`${needs} is not there (CONTRIBUTING.md says what it is): skipped`);
    return "skipped";
  }
  const code = await exitCode(command, seconds_max);
  if (code === 0) return "passed";
  return code === LACKING ? "skipped" : "failed";
}

/** Null when it took too long and was ended. */
function exitCode([script = "", ...given]: readonly string[], secondsMax: number): Promise<number | null> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [join(ROOT, script), ...given], {
      cwd: ROOT,
      stdio: ["ignore", "inherit", "inherit"],
    });
    const timer = setTimeout(() => {
      console.log(`it takes more than ${secondsMax} s: ended`);
      child.kill("SIGTERM");
    }, secondsMax * 1000);
    child.once("error", fail);
    child.once("exit", (code) => {
      clearTimeout(timer);
      done(code);
    });
  });
}
