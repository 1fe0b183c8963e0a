// The milters of the peers: OpenDKIM and OpenDMARC, each at a socket in a folder. Not over TCP: a milter writes its last
// answer in two pieces, and Nagle's algorithm holds the second until the delayed acknowledgement of the first, 40 ms that
// every message would wait for nothing.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { until } from "../../test/support/until.ts";

export type Milter = { pid: number; stop(): void };

/** Starts the program and waits for its socket. Ends with this process at the latest. */
export async function startMilter([program, ...args]: [string, ...string[]], socket: string): Promise<Milter> {
  const child = spawn(program, args, { stdio: "ignore" });
  const end = () => void child.kill("SIGKILL");
  process.once("exit", end);
  const stop = () => {
    process.off("exit", end);
    child.kill("SIGTERM");
  };
  try {
    await until(`${args.join(" ")} listens`, () => isOpen(child, socket));
  } catch (error) {
    stop();
    throw error;
  }
  return { pid: child.pid as number, stop };
}

function isOpen(child: ChildProcess, socket: string): boolean {
  if (child.exitCode !== null) throw new Error(`${child.spawnfile} did not start (exit code ${child.exitCode})`);
  return existsSync(socket);
}
