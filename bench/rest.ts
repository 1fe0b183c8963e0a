// Memory at rest: Postern with all roles after its start, and its embedded PostgreSQL apart. Resident memory of Postern's own
// process, of the one for heavy requests where the bench's first requests have started it (it ends after five idle minutes), and
// of PostgreSQL the proportional share (PSS), as its processes share most of theirs. Linux only.
import { readdirSync, readFileSync } from "node:fs";
import { residentMib } from "../test/support/resident.ts";
import { type BenchResult, conditions, round, setStage } from "./support/bench.ts";

/** By then what follows a start (partitions, first looks, plans) is over. */
const REST_MS = 20_000;

/** Runs the benchmark. */
export async function benchRest(): Promise<BenchResult> {
  const stage = await setStage();
  try {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    const services = stage.processes.map(({ pid }) => pid);
    const all = family(services);
    const database = family(all.filter(isPostmaster));
    const others = all.filter((pid) => !database.includes(pid) && !services.includes(pid));
    return {
      name: "rest",
      conditions: conditions({ roles: "all", rest_ms: REST_MS }, stage),
      ours: {
        postern_mib: round(sum(services.map((pid) => residentMib(pid) ?? 0))),
        heavy_process_mib: round(sum(others.map((pid) => residentMib(pid) ?? 0))),
        database_mib: round(sum(database.map(proportionalMib))),
        database_processes: database.length,
      },
      peers: {},
      ratio: {},
    };
  } finally {
    await stage.close();
  }
}

/** These processes and everything that they started. */
function family(roots: number[]): number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const parent = /^PPid:\s+(\d+)$/m.exec(read(`/proc/${name}/status`))?.[1];
      return parent === undefined ? [] : [{ pid: Number(name), parent: Number(parent) }];
    });
  const found = [...roots];
  for (const pid of found) found.push(...parents.filter(({ parent }) => parent === pid).map((child) => child.pid));
  return found;
}

function isPostmaster(pid: number): boolean {
  return read(`/proc/${pid}/cmdline`).split("\0")[0]?.endsWith("/postgres") ?? false;
}

function proportionalMib(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024;
}

/** Nothing of a process that has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
