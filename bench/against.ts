// npm run bench -- <name>|all --against <commit> [--turns N]: the version of that commit and this one in turns, in one run, with
// the load, the sink and the measuring of this tree: before, now, now, before, and so on. Peers are left out. Prints the
// mean of each figure and the ratio; of processor time the sum of Postern and its database as well.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isFailed, runOne } from "./all.ts";
import { mean, round } from "./support/bench.ts";

export type AgainstOptions = { names: string[]; commit: string; turns: number; rows?: string; json: boolean };

type Figures = Record<string, number>;
type Compared = { name: string; figure: string; before: number; now: number; ratio: number };

const ROOT = join(import.meta.dirname, "..");

/** Runs them; false when one failed. */
export async function benchAgainst({ names, commit, turns, rows, json }: AgainstOptions): Promise<boolean> {
  const program = checkOut(commit);
  const remove = (): void => rmSync(program, { recursive: true, force: true });
  process.once("exit", remove);
  const compared: Compared[] = [];
  for (const name of names) {
    const runs = await inTurns(name, { program, turns, args: rows === undefined ? [] : ["--rows", rows] });
    if (runs === null) return false;
    compared.push(...compare(name, runs));
  }
  console.log(`\n${toTable(compared, commit)}`);
  if (json) console.log(JSON.stringify({ name: "against", commit, turns, compared }));
  return true;
}

/** The tree of a commit, with the packages of this one where it asks for the same. */
function checkOut(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), "postern-before-"));
  const git = (...args: string[]) => execFileSync("git", args, { cwd: ROOT, maxBuffer: 512 * 1024 * 1024 });
  execFileSync("tar", ["-x", "-C", folder], { input: git("archive", commit) });
  const isSame = git("diff", "--name-only", commit, "--", "package-lock.json").length === 0;
  if (isSame) symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  else execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder, stdio: "pipe" });
  return folder;
}

type Runs = { before: Figures[]; now: Figures[] };

/** Null, with the reason printed, when a run failed. */
async function inTurns(
  name: string,
  { program, turns, args }: { program: string; turns: number; args: string[] },
): Promise<Runs | null> {
  const runs: Runs = { before: [], now: [] };
  for (let turn = 0; turn < turns; turn += 1) {
    for (const which of turn % 2 === 0 ? (["before", "now"] as const) : (["now", "before"] as const)) {
      console.log(`bench ${name}, turn ${turn + 1} of ${turns}, ${which}: a minute or more`);
      const env = { POSTERN_BENCH_ALONE: "1", ...(which === "before" ? { POSTERN_BENCH_PROGRAM: program } : {}) };
      const result = await runOne(name, { args, env });
      if (isFailed(result)) {
        console.error(`${name}: ${result.error}`);
        return null;
      }
      runs[which].push(withSum(result.ours));
    }
  }
  return runs;
}

function withSum(figures: Figures): Figures {
  const { postern_processor_us: postern, database_processor_us: database } = figures;
  return postern === undefined || database === undefined ? figures : { ...figures, processor_us: postern + database };
}

function compare(name: string, { before, now }: Runs): Compared[] {
  const figures = new Set([...before, ...now].flatMap((run) => Object.keys(run)));
  return [...figures].map((figure) => {
    const meanOf = (runs: Figures[]) => round(mean(runs.map((run) => run[figure] ?? 0)), 2);
    const [was, is] = [meanOf(before), meanOf(now)];
    return { name, figure, before: was, now: is, ratio: was === 0 ? 1 : round(is / was, 3) };
  });
}

function toTable(compared: Compared[], commit: string): string {
  const line = (...cells: string[]) => {
    const [name = "", figure = "", ...values] = cells;
    return [name.padEnd(14), figure.padEnd(44), ...values.map((value) => value.padStart(10))].join(" ");
  };
  const lines = compared.map(({ name, figure, before, now, ratio }) =>
    line(name, figure, String(before), String(now), String(ratio)),
  );
  return [line("", "", commit.slice(0, 10), "now", "now/before"), ...lines].join("\n");
}
