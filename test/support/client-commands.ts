// Runs one client command line as the program does, in this process, and collects what it writes.
import { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { addClientCommands } from "../../clients/cli/cli.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; the assertions are the check
export type Ended = { status: number; out: string; err: string; json: any };
export type Given = {
  env: Record<string, string>;
  stdin?: string | Readable;
  tty?: boolean;
  signal?: AbortSignal;
  columns?: number;
};

/** `json` is what it wrote, where that is JSON. `ended` shows the output while a command goes on. */
export async function runClient(words: string[], given: Given, ended = nothingYet()): Promise<Ended> {
  const { env, stdin = "", tty = false, signal = new AbortController().signal, columns = 100 } = given;
  const into = (name: "out" | "err") => {
    const write = (piece: Buffer, _encoding: string, done: () => void): void => {
      ended[name] += piece;
      done();
    };
    return Object.assign(new Writable({ write }), { isTTY: tty, columns });
  };
  const [stdout, stderr] = [into("out"), into("err")];
  const program = new Command("postern").configureOutput({
    writeErr: (text) => stderr.write(text),
    writeOut: (text) => stdout.write(text),
  });
  addClientCommands(program, {
    env: { NO_COLOR: "1", ...env },
    stdin: Object.assign(typeof stdin === "string" ? Readable.from([Buffer.from(stdin)]) : stdin, { isTTY: tty }),
    stdout,
    stderr,
    signal,
    exit: (status) => {
      ended.status = status;
    },
  });
  for (const command of program.commands) copyOutput(command, program);
  await program.parseAsync(words, { from: "user" }).catch((error) => {
    if (!String((error as { code?: string }).code).startsWith("commander.")) throw error;
  });
  try {
    ended.json = JSON.parse(ended.out);
  } catch {}
  return ended;
}

export function nothingYet(): Ended {
  return { status: 0, out: "", err: "", json: undefined };
}

function copyOutput(command: Command, from: Command): void {
  command.copyInheritedSettings(from);
  for (const below of command.commands) copyOutput(below, from);
}
