// What every client command works with: its output, and the client of the person who is logged in.
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { Postern } from "../node/src/postern.ts";
import { CliError, Interrupted, STATUS, sentenceOf, statusOf } from "./exit.ts";
import { type Output, openOutput, type Streams } from "./output.ts";
import { type Access, type Asked, chooseAccess } from "./profiles.ts";

export type Env = Record<string, string | undefined>;
export type Surroundings = Streams & {
  env: Env;
  stdin: AsyncIterable<Buffer | string> & { isTTY?: boolean };
  /** Aborts when the person wants out (Ctrl-C). */
  signal: AbortSignal;
  /** Ends the program with this status. */
  exit(status: number): void;
};

export type Session = Surroundings & {
  out: Output;
  /** The client; throws where nobody is logged in. */
  client(): Postern;
  access(): Access;
};

type Globals = Asked & { json?: boolean; quiet?: boolean; color?: boolean };

/** The options that every client command takes. */
export function withGlobals(command: Command): Command {
  return command
    .helpGroup("Over the API:")
    .option(
      "--profile <name>",
      "the profile to use, also where POSTERN_API_KEY is set; without it the one that 'postern use' chose",
    )
    .option("--base-url <url>", "where Postern is; goes before the address of the profile and of POSTERN_BASE_URL")
    .option("--json", "JSON, also on a terminal")
    .option("--quiet", "no words beside the data");
}

/** Runs a command's work with its session; what it throws becomes a sentence and an exit status. */
export function acting<A extends unknown[]>(
  around: Surroundings,
  work: (session: Session, ...args: A) => Promise<unknown>,
) {
  return async (...args: unknown[]): Promise<void> => {
    const command = args.at(-1) as Command;
    const given = command.optsWithGlobals() as Globals;
    const out = openOutput(around, { ...given, noColor: Boolean(around.env.NO_COLOR) });
    try {
      await work(openSession(around, out, given), ...(args as A));
      if (around.signal.aborted) around.exit(STATUS.interrupted);
    } catch (error) {
      if (around.signal.aborted || error instanceof Interrupted) return around.exit(STATUS.interrupted);
      around.stderr.write(`postern: ${sentenceOf(error)}\n`);
      around.exit(statusOf(error));
    }
  };
}

function openSession(around: Surroundings, out: Output, asked: Asked): Session {
  let client: Postern | null = null;
  const access = () => chooseAccess(asked, around.env);
  return {
    ...around,
    out,
    access,
    client() {
      const { api_key, base_url } = access();
      client ??= new Postern({ apiKey: api_key, baseUrl: base_url });
      return client;
    },
  };
}

/** All of standard input. */
export async function readInput({ stdin }: Pick<Surroundings, "stdin">): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stdin) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

/** A file that an option names. */
export function readNamed(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" ? "there is no such file" : code === "EISDIR" ? "it is a folder" : (error as Error).message;
    throw new CliError(`${option}: ${path} cannot be read: ${why}`);
  }
}
