// Runs one client command line as the program does, in this process, and collects what it writes.
import { Readable } from "node:stream";
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
  const into = (name: "out" | "err") => ({
    isTTY: tty,
    columns,
    write(text: string) {
      ended[name] += text;
    },
  });
  const program = new Command("postern").configureOutput({ writeErr: into("err").write, writeOut: into("out").write });
  addClientCommands(program, {
    env: { NO_COLOR: "1", ...env },
    stdin: Object.assign(typeof stdin === "string" ? Readable.from([Buffer.from(stdin)]) : stdin, { isTTY: tty }),
    stdout: into("out"),
    stderr: into("err"),
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
