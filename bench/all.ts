// npm run bench -- all: every bench in a process of its own, one after the other, so that one that fails takes nothing with
// it. What is done is kept in bench/results/all.json until all is: --resume goes on where an interrupted run of this commit was.
// Ends with one table.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BenchResult, commitOf } from "./support/bench.ts";

const FOLDER = join(import.meta.dirname, "results");
const KEPT = join(FOLDER, "all.json");
const RUN = join(import.meta.dirname, "run.ts");
/** No bench of the usual size takes half as long. */
const EACH_MS_MAX = 15 * 60_000;

type Failed = { name: string; error: string };
type Done = BenchResult | Failed;

export type AllOptions = { names: string[]; json: boolean; resume: boolean };

/** Runs them; false when one failed. */
export async function benchAll({ names, json, resume }: AllOptions): Promise<boolean> {
  const done = new Map<string, Done>((resume ? readKept() : []).map((result) => [result.name, result]));
  for (const name of names) {
    const known = done.get(name);
    if (known && !isFailed(known)) continue;
    console.log(`bench ${name}: a minute or more`);
    done.set(name, await runOne(name));
    keep([...done.values()]);
  }
  const results = names.flatMap((name) => done.get(name) ?? []);
  console.log(`\n${toTable(results)}`);
  if (json) console.log(JSON.stringify({ name: "all", results }));
  // Or --resume would find everything done, and measure nothing.
  if (!results.some(isFailed)) rmSync(KEPT);
  return !results.some(isFailed);
}

export function isFailed(result: Done): result is Failed {
  return "error" in result;
}

function readKept(): Done[] {
  const kept = existsSync(KEPT) ? (JSON.parse(readFileSync(KEPT, "utf8")) as Done[]) : [];
  const commit = commitOf();
  return kept.filter((result) => !isFailed(result) && result.conditions.commit === commit);
}

function keep(results: Done[]): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(KEPT, `${JSON.stringify(results, null, 1)}\n`);
}

type Extra = { args?: string[]; env?: Record<string, string> };

/** Its figures go to history.csv by itself; its last line is its result. */
export function runOne(name: string, { args = [], env = {} }: Extra = {}): Promise<Done> {
  const child = spawn(process.execPath, [RUN, name, "--json", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = () => void child.kill("SIGTERM");
  process.once("exit", end);
  const late = setTimeout(() => child.kill("SIGTERM"), EACH_MS_MAX);
  let output = "";
  let complaint = "";
  child.stdout.on("data", (piece) => {
    output += piece;
  });
  child.stderr.on("data", (piece) => {
    complaint = (complaint + piece).slice(-2_000);
  });
  return new Promise((resolve) => {
    child.once("close", (code, signal) => {
      clearTimeout(late);
      process.off("exit", end);
      const last = output.trim().split("\n").at(-1) ?? "";
      if (code === 0 && last.startsWith("{")) resolve(JSON.parse(last) as BenchResult);
      else resolve({ name, error: `ended with ${signal ?? code}: ${complaint.trim().slice(-500)}` });
    });
  });
}

/** One line a figure: name, ours, then each peer's figure of the same name and the ratio to it. */
function toTable(results: Done[]): string {
  const lines = results.flatMap((result) => (isFailed(result) ? [`${result.name}: ${result.error}`] : linesOf(result)));
  return lines.join("\n");
}

function linesOf({ name, ours, peers, ratio }: BenchResult): string[] {
  return Object.entries(ours).map(([figure, value]) => {
    const beside = Object.entries(peers).flatMap(([peer, figures]) => {
      const theirs = figures[figure];
      if (theirs === undefined) return [];
      const times = ratio[peer] === undefined ? "" : ` (${ratio[peer]} times)`;
      return [`${peer} ${theirs}${times}`];
    });
    return [name.padEnd(14), figure.padEnd(42), String(value).padStart(10), beside.join("  ")].join(" ").trimEnd();
  });
}
