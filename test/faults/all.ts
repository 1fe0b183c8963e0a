// `all`: every scenario in order, each in a process of its own, so that none meets what another left; a table at the end.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type Figures, type Line, lineWithout, sumOf } from "./line.ts";
import type { ScenarioOptions } from "./round.ts";

/** The sums of what was played, the rounds too, and the line of each. */
export type AllResult = Figures & { rounds: number; results: Line[] };

const RUN = `${import.meta.dirname}/run.ts`;
const COLUMNS: (keyof Line)[] = ["acknowledged", "lost", "duplicates", "flagged", "seconds"];

/** Plays them with these options; 0 rounds: as many as each has by itself. `ok` only when each was played and passed. */
export async function runAll(
  names: string[],
  { say = () => undefined, ...options }: ScenarioOptions,
): Promise<AllResult> {
  const results: Line[] = [];
  for (const name of names) results.push(await playOne(name, options, say));
  for (const line of table(results)) say(line);
  return { rounds: results.reduce((sum, { rounds }) => sum + rounds, 0), ...sumOf(results), results };
}

async function playOne(name: string, options: ScenarioOptions, say: (text: string) => void): Promise<Line> {
  const child = spawn(process.execPath, [RUN, name, "--json", ...argumentsOf(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = (): void => void child.kill("SIGTERM");
  process.once("exit", end);
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  let last = "";
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith("{")) say(line);
    last = line;
  }
  const code = await exited;
  process.off("exit", end);
  const run = { scenario: name, rounds: 0, seed: options.seed, seconds: 0 };
  const line = parse(last) ?? lineWithout(run, { error: `ended with ${code}` });
  return { ...line, ok: code === 0 && line.ok };
}

/** What a scenario of `all` is called with. */
export function argumentsOf({ rounds, seed, sends, rows }: ScenarioOptions): string[] {
  const given = { rounds: rounds > 0 ? rounds : undefined, seed, sends, rows };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]));
}

function parse(line: string): Line | null {
  try {
    return line.startsWith("{") ? (JSON.parse(line) as Line) : null;
  } catch {
    return null;
  }
}

/** Lines with a column for each figure. */
export function table(results: Line[]): string[] {
  const head = ["scenario".padEnd(18), "verdict".padEnd(10), ...COLUMNS.map((name) => name.padStart(12))].join(" ");
  const rows = results.map((result) => {
    const why = result.skipped ?? result.error;
    const figures = COLUMNS.map((name) => String(why === undefined ? result[name] : "–").padStart(12));
    return [result.scenario.padEnd(18), verdictOf(result).padEnd(10), ...figures, why ?? ""].join(" ").trimEnd();
  });
  return [head, ...rows];
}

function verdictOf({ ok, skipped }: Line): string {
  if (skipped !== undefined) return "not played";
  return ok ? "passed" : "FAILED";
}
