// The client half of the command line: all that talks to a Postern over its API. It stands beside the server's own commands
// in one program (src/main.ts), and alone in the package postern-mail-cli (main.ts). Not here: what the server's commands do.
import { Command, type CommanderError } from "commander";
import { addApi } from "./commands/api.ts";
import { addCompletion } from "./commands/completion.ts";
import { addDomains } from "./commands/domains.ts";
import { addListen } from "./commands/listen.ts";
import { addLogin } from "./commands/login.ts";
import { addMcp } from "./commands/mcp.ts";
import { addResources } from "./commands/resources.ts";
import { addSend } from "./commands/send.ts";
import { addTemplates } from "./commands/templates.ts";
import { addWhy } from "./commands/why.ts";
import { STATUS } from "./exit.ts";
import { COMMON_OPTIONS, leadingOptions, optionsBehindName } from "./options-first.ts";
import type { Surroundings } from "./session.ts";

/** What goes on is closed in this time after Ctrl-C. */
const TIDY_MS = 200;

/** Adds every client command to `program`. */
export function addClientCommands(program: Command, around: Surroundings): void {
  addLogin(program, around);
  addSend(program, around);
  addWhy(program, around);
  addListen(program, around);
  addResources(program, around);
  addDomains(program, around);
  addTemplates(program, around);
  addApi(program, around);
  addMcp(program, around);
  addCompletion(program, around);
  program.addHelpText("after", `\n${COMMON_OPTIONS.join(", ")} may stand before a command as well as behind it.`);
  for (const command of all(program)) {
    command
      .exitOverride((error) => endUsage(error, around))
      .showSuggestionAfterError(true)
      .showHelpAfterError("(--help says more)");
  }
}

/** The command that is named, also behind options that every command takes; "" for none. */
export function commandIn(words: readonly string[]): string {
  return leadingOptions(words).rest[0] ?? "";
}

/** True for a command here that is about no other one: what completes command lines knows all. */
export function isAlone(name: string, around: Surroundings): boolean {
  const here = new Command();
  addClientCommands(here, around);
  return name !== "completion" && here.commands.some((command) => command.name() === name);
}

/** The words of a command line as commander reads them: such options stand behind the command's name. */
export function wordsFor(program: Command, words: readonly string[]): string[] {
  return optionsBehindName(words, program);
}

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap((one) => all(one))];
}

/** Help that was asked for is a success; a wrong command line is usage. */
function endUsage(error: CommanderError, { exit }: Surroundings): never {
  exit(error.exitCode === 0 ? STATUS.ok : STATUS.usage);
  throw error;
}

/** The surroundings of this process. Ctrl-C ends what goes on, and the program with 130. */
export function processSurroundings(): Surroundings {
  const wanted = new AbortController();
  process.once("SIGINT", () => {
    process.exitCode = STATUS.interrupted;
    wanted.abort();
    setTimeout(() => process.exit(STATUS.interrupted), TIDY_MS).unref();
  });
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(STATUS.ok); // a reader that has enough (`| head`) is no failure
    process.stderr.write(`postern: the output could not be written: ${error.message}\n`);
    process.exit(STATUS.failed);
  });
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: wanted.signal,
    exit: (status) => {
      process.exitCode = status;
    },
  };
}
