// System calls of running processes while something is measured (`--calls`), as strace counts them. Such a run is
// slower: its counts are a measure, its times are none. Not here: which processes, and how many messages they are divided by.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** By name. */
export type Calls = Map<string, number>;

const ATTACHED_WITHIN_MS = 20_000;

export function canCountCalls(): boolean {
  return spawnSync("strace", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Counts from when it resolves, in all threads, until the function that it resolves to is called. */
export async function countCalls(pids: readonly number[]): Promise<() => Promise<Calls>> {
  const dir = mkdtempSync(join(tmpdir(), "postern-calls-"));
  const file = join(dir, "calls");
  const targets = pids.flatMap((pid) => ["-p", String(pid)]);
  const strace = spawn("strace", ["-f", "-c", "-U", "calls,name", "-o", file, ...targets], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise<void>((done) => strace.once("exit", () => done()));
  await attached(strace, pids.length);
  return async () => {
    strace.kill("SIGINT");
    await ended;
    const calls = readCounts(readFileSync(file, "utf8"));
    rmSync(dir, { recursive: true, force: true });
    return calls;
  };
}

/** strace says of each process when it has it; later threads follow by themselves. */
function attached(strace: ChildProcess, count: number): Promise<void> {
  return new Promise((done, fail) => {
    let text = "";
    const refuse = (): void => fail(new Error(`strace did not attach: ${text}`));
    const timer = setTimeout(refuse, ATTACHED_WITHIN_MS);
    strace.once("exit", refuse);
    strace.stderr?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split("attached").length <= count) return;
      clearTimeout(timer);
      done();
    });
  });
}

/** Lines of `<calls> <name>` between two rules (strace(1), `-c`). */
function readCounts(table: string): Calls {
  const rows = table.matchAll(/^ *(\d+) +([a-z_0-9]+)$/gm);
  return new Map(
    [...rows].filter(([, , name]) => name !== "total").map(([, calls, name]) => [name as string, Number(calls)]),
  );
}
