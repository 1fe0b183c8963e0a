// npm run proof [-- names …] [--json]: what is random or takes long, each as its own command prints it, its name before each
// line. The dashboard's steps, which wait for a browser most of the time, are played beside the others. `npm test` plays the
// same with few rounds. Ends with why steps failed and one line of counts; exit code 1 when one did. A step that this machine
// lacks something for says so itself and counts as skipped.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { COMPILE_CACHE } from "../support/compile-cache.ts";
import { readOptions } from "../support/options.ts";
import { STEPS, type Step } from "./steps.ts";
import { whyFailed } from "./why-failed.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** What `npm run faults` ends with where the machine lacks what a scenario takes. */
const LACKING = 3;
const OUTPUT_WITHIN_MS = 5_000;

type Outcome = "passed" | "failed" | "skipped";
/** `why`: of one that failed, what it said of it. */
type Result = { name: string; outcome: Outcome; seconds: number; why: string[] };

const USE = "npm run proof -- [names …] [--json]";
const { values, positionals } = readOptions(
  {
    allowPositionals: true,
    options: { json: { type: "boolean", default: false } },
  },
  USE,
);
const unknown = positionals.filter((name) => !STEPS.some((step) => step.name === name));
if (unknown.length > 0) {
  console.error(`No step is called ${unknown.join(", ")}. ${USE}\n`);
  for (const { name, what } of STEPS) console.error(`  ${name.padEnd(16)} ${what}`);
  process.exit(2);
}

process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
const chosen = STEPS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const placed = (place: Step["place"]) => playAll(chosen.filter((step) => step.place === place));
const results = [...(await Promise.all([placed("one"), placed("other")])).flat(), ...(await placed("alone"))];
const count = (outcome: Outcome): number => results.filter((result) => result.outcome === outcome).length;
const counts = { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
for (const { name, why } of results) {
  if (why.length > 0) console.log(`\nwhy ${name} failed:\n${why.map((line) => `  ${line}`).join("\n")}`);
}
console.log();
for (const { name, outcome, seconds } of results) console.log(`${outcome.padEnd(8)} ${name.padEnd(16)} ${seconds} s`);
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
if (values.json) console.log(JSON.stringify({ steps: results.map(({ why, ...step }) => step), ...counts }));
process.exitCode = counts.failed > 0 ? 1 : 0;

async function playAll(steps: readonly Step[]): Promise<Result[]> {
  const played: Result[] = [];
  for (const step of steps) played.push(await play(step));
  return played;
}

async function play(step: Step): Promise<Result> {
  const { name, what } = step;
  const started = performance.now();
  const lines: string[] = [];
  const say = (line: string) => {
    console.log(`${name}: ${line}`);
    lines.push(line);
  };
  say(`--- ${what}`);
  const outcome = await outcomeOf(step, say);
  const seconds = Math.round((performance.now() - started) / 1000);
  const why = outcome === "failed" ? whyFailed(lines) : [];
  say(`--- ${outcome} after ${seconds} s`);
  return { name, outcome, seconds, why };
}

async function outcomeOf({ command, needs, seconds_max }: Step, say: (line: string) => void): Promise<Outcome> {
  if (needs !== undefined && !existsSync(join(ROOT, needs))) {
    say(`${needs} is not there (CONTRIBUTING.md says what it is): skipped`);
    return "skipped";
  }
  const code = await exitCode(command, seconds_max, say);
  if (code === 0) return "passed";
  return code === LACKING ? "skipped" : "failed";
}

/** Null when it took too long and was ended. */
function exitCode(
  [script = "", ...given]: readonly string[],
  secondsMax: number,
  say: (line: string) => void,
): Promise<number | null> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [join(ROOT, script), ...given], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const input of [child.stdout, child.stderr]) createInterface({ input }).on("line", say);
    const timer = setTimeout(() => {
      say(`it takes more than ${secondsMax} s: ended`);
      child.kill("SIGTERM");
    }, secondsMax * 1000);
    child.once("error", fail);
    child.once("exit", (code) => {
      clearTimeout(timer);
      // What it started may hold its output open.
      const late = setTimeout(() => done(code), OUTPUT_WITHIN_MS);
      child.once("close", () => {
        clearTimeout(late);
        done(code);
      });
    });
  });
}
