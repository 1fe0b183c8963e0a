// npm run fuzz -- <target …|all> [--seconds n] [--seed s] [--workers n] [--json], or <target> --input file, or list.
// `--seconds` is the time of the whole run: n seconds on w workers give each of t targets n × w / t seconds. Exit code 0:
// nothing found; 1: a crash or a hang (inputs are in test/fuzz/found/), or a target that got no input; 2: not known.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { readOptions } from "../support/options.ts";
import { runCosts } from "./costs.ts";
import { type Finding, FOUND_DIR, hunt, type TargetResult, untried } from "./hunt.ts";
import { TARGETS } from "./targets.ts";

const SECONDS_DEFAULT = 60;
const WORKERS_DEFAULT = 2;
const SHOWN_MAX = 3;
const SHOWN_CHARS_MAX = 1_500;
/** Of an input: a log is often all that is left of the machine that found it. */
const SHOWN_BYTES_MAX = 12 * 1024;

const USAGE =
  "npm run fuzz -- <target …|all|list|costs> [--seconds n] [--seed s] [--workers n] [--input file] [--json]";

function usage(problem: string): never {
  console.error(`${problem}\n${USAGE}\n`);
  for (const { name, holds } of TARGETS) console.error(`  ${name.padEnd(22)} ${holds}`);
  process.exit(2);
}

type Arguments = {
  names: string[];
  seconds: number;
  seed: number;
  workers: number;
  input: string | undefined;
  json: boolean;
};

function readArguments(): Arguments {
  const { values, positionals } = readOptions(
    {
      allowPositionals: true,
      options: {
        seconds: { type: "string", default: String(SECONDS_DEFAULT) },
        seed: { type: "string" },
        workers: { type: "string", default: String(Math.min(WORKERS_DEFAULT, availableParallelism())) },
        input: { type: "string" },
        json: { type: "boolean", default: false },
      },
    },
    USAGE,
  );
  const number = (option: string, text: string, min: number): number => {
    const value = Number(text);
    return Number.isFinite(value) && value >= min ? value : usage(`--${option} takes a number from ${min} on`);
  };
  const known = TARGETS.map(({ name }) => name);
  const names = positionals.includes("all") ? known : [...new Set(positionals)];
  if (names.length === 0) usage("Which target?");
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) usage(`No target is called ${unknown.join(", ")}.`);
  return {
    ...{ names, input: values.input, json: values.json },
    seconds: number("seconds", values.seconds, 0.1),
    seed: values.seed === undefined ? Date.now() % 1_000_000 : Math.trunc(number("seed", values.seed, 0)),
    workers: Math.trunc(number("workers", values.workers, 1)),
  };
}

const shown = new Map<string, number>();

function showFound({ target, kind, what, input, path }: Finding): void {
  const times = (shown.get(target) ?? 0) + 1;
  shown.set(target, times);
  if (times > SHOWN_MAX) return;
  const where = path ? `: ${relative(".", path)}` : "";
  console.log(`\n✖ ${kind.toUpperCase()} in ${target} (${input.length} bytes)${where}`);
  console.log(what.slice(0, SHOWN_CHARS_MAX));
  if (input.length > SHOWN_BYTES_MAX) console.log("the input is too long to be shown; the seed gives it again");
  else console.log(`the input in base64:\n${input.toString("base64").replace(/.{1000}/g, "$&\n")}`);
}

function showDone({ name, inputs, crashes, hangs, outcomes, slowest_ms, seconds }: TargetResult): void {
  const rate = Math.round(inputs / Math.max(seconds, 0.1)).toLocaleString("en");
  const figures = `${inputs.toLocaleString("en").padStart(11)} inputs, ${rate.padStart(7)}/s, ${outcomes} outcomes`;
  const mark = crashes + hangs === 0 ? "✔" : "✖";
  console.log(`${mark} ${name.padEnd(22)}${figures}, slowest ${slowest_ms} ms, ${crashes} crashes, ${hangs} hangs`);
}

/** No target: it plays against a whole process, and looks for dear inputs where the others look for wrong ones. */
async function playCosts(): Promise<void> {
  const { values } = readOptions(
    {
      args: process.argv.slice(3),
      options: {
        seconds: { type: "string", default: String(SECONDS_DEFAULT) },
        seed: { type: "string", default: String(Date.now() % 1_000_000) },
        json: { type: "boolean", default: false },
      },
    },
    USAGE,
  );
  const [seconds, seed] = [Number(values.seconds), Math.trunc(Number(values.seed))];
  if (!(seconds > 0) || !(seed >= 0)) usage("--seconds takes a number above 0, --seed one from 0 on");
  // Its servers end with this process.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
  process.exitCode = await runCosts({ seconds, seed, json: values.json });
}

async function main(): Promise<void> {
  if (process.argv[2] === "list") {
    for (const { name, holds } of TARGETS) console.log(`${name.padEnd(22)} ${holds}`);
    return;
  }
  if (process.argv[2] === "costs") return playCosts();
  const { names, seconds, seed, workers, input, json } = readArguments();
  const lanes = Math.min(workers, names.length);
  const ms = (seconds * 1_000 * lanes) / names.length;
  const each = (ms / 1_000).toFixed(1);
  console.log(`${names.length} targets, ${each} s each on ${lanes} threads, ${seconds} s in all, seed ${seed}`);
  const results = await hunt({
    ...{ targets: names, seed, ms: input === undefined ? ms : Number.POSITIVE_INFINITY, workers: lanes },
    ...(input === undefined ? {} : { inputs: [readFileSync(input)] }),
    ...{ found_dir: input === undefined ? FOUND_DIR : null, onFound: showFound, onDone: showDone },
    onProgress: ({ target, inputs, seconds_left }) => {
      if (process.stdout.isTTY) process.stdout.write(`\r${target} ${inputs} inputs, ${seconds_left} s left \x1b[K\r`);
    },
  });
  const sum = (field: "inputs" | "crashes" | "hangs") => results.reduce((total, result) => total + result[field], 0);
  const found = sum("crashes") + sum("hangs");
  console.log(`\n${sum("inputs").toLocaleString("en")} inputs, ${sum("crashes")} crashes, ${sum("hangs")} hangs`);
  if (json) console.log(JSON.stringify({ seed, seconds, targets: results }));
  const idle = untried(results);
  if (idle.length > 0) console.log(`FAILED: no input in its time: ${idle.join(", ")}; give --seconds more`);
  process.exitCode = found > 0 || idle.length > 0 ? 1 : 0;
}

await main();
