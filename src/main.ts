// The command line: which commands there are, and where each is. A command is read in only when it is named, as most of the
// program takes a second to read. The commands of clients are in clients/cli.
import { Command, CommanderError } from "commander";
import { ConfigProblems, useEnvFile } from "./config.ts";
import { ownVersion } from "./platform/own-version.ts";
import { fileWords } from "./platform/process/file-words.ts";
import { noticeLostOutput } from "./platform/process/output-problem.ts";
import { UsageError } from "./platform/process/usage-error.ts";
import { envFileProblem } from "./settings/gather.ts";

/** As of most programs: the command line is wrong, as against work that failed (1). */
const USAGE_STATUS = 2;

type Group = { names: string[]; add(program: Command): Promise<void> };

/** Commands for this machine, in the order of the help; all others talk to a server over its API. */
const GROUPS: Group[] = [
  { names: ["start"], add: async (program) => (await import("./commands/start.ts")).addStartCommand(program) },
  { names: ["doctor"], add: async (program) => (await import("./commands/doctor.ts")).addDoctorCommand(program) },
  { names: ["config"], add: async (program) => (await import("./commands/config.ts")).addConfigCommand(program) },
  {
    names: ["dns", "mail"],
    add: async (program) => (await import("./commands/own-names.ts")).addOwnNameCommands(program),
  },
  {
    names: ["backup", "restore"],
    add: async (program) => (await import("./commands/backup.ts")).addBackupCommands(program, ownVersion()),
  },
  {
    names: ["certificates"],
    add: async (program) => (await import("./commands/certificates.ts")).addCertificateCommands(program),
  },
  { names: ["cells"], add: async (program) => (await import("./commands/cells.ts")).addCellCommands(program) },
  { names: ["upgrade"], add: async (program) => (await import("./commands/upgrade.ts")).addUpgradeCommand(program) },
  { names: ["setup"], add: async (program) => (await import("./commands/setup.ts")).addSetupCommand(program) },
  {
    names: ["settings", "organizations"],
    add: async (program) => (await import("./commands/organizations.ts")).addOrganizationCommands(program),
  },
  { names: ["people"], add: async (program) => (await import("./commands/people.ts")).addPeopleCommands(program) },
  {
    names: ["migrate", "sql", "resume", "accept-master-key"],
    add: async (program) => (await import("./commands/database.ts")).addDatabaseCommands(program),
  },
  {
    names: ["master-key"],
    add: async (program) => (await import("./commands/master-key.ts")).addMasterKeyCommands(program),
  },
  { names: ["keys"], add: async (program) => (await import("./commands/keys.ts")).addKeyCommands(program) },
];

const program = new Command("postern")
  .description("Self-hosted e-mail for products")
  .version(ownVersion(), "--version", "print which version this is")
  .option("--env-file <file>", "read settings from this file too, NAME=value one a line; the environment goes first")
  .on("option:env-file", useEnvFile)
  // Help that was asked for is a success; all else that ends a command line before its work is wrong usage.
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_STATUS));

async function run(): Promise<void> {
  const words = process.argv.slice(2);
  const first = commandIn(words);
  const isOwn = GROUPS.some(({ names }) => names.includes(first));
  const client = isOwn ? null : await import("../clients/cli/cli.ts");
  const name = client === null ? first : client.commandIn(words);
  const named = GROUPS.find(({ names }) => names.includes(name));
  const around = client !== null && !named ? client.processSurroundings() : null;
  // The help, completions and suggestions know all commands; a command of clients and the version need none of these.
  const isAlone = first === "--version" || (around !== null && client?.isAlone(name, around));
  const unnamed = isAlone ? [] : GROUPS;
  for (const group of named ? [named] : unnamed) await group.add(program);
  for (const command of program.commands) command.helpGroup("On this machine:");
  program.hook("preAction", () => refuseEnvFile(name));
  if (named && name !== "start") noticeLostOutput();
  if (around !== null) client?.addClientCommands(program, around);
  await program.parseAsync(client === null ? words : client.wordsFor(program, words), { from: "user" });
}

/** The command that is named, also behind `--env-file`. */
function commandIn([first = "", ...rest]: string[]): string {
  if (first === "--env-file") return commandIn(rest.slice(1));
  return first.startsWith("--env-file=") ? commandIn(rest) : first;
}

/** Before a command's work. `postern setup` makes the file where it is absent. */
function refuseEnvFile(command: string): void {
  const { envFile } = program.opts<{ envFile?: string }>();
  const problem = envFile === undefined ? null : envFileProblem(envFile, { mayBeAbsent: command === "setup" });
  if (problem !== null) throw new UsageError(problem);
}

/** A failure of the file system that nobody caught has a path and a code; sentences have neither. */
function wordsOf(error: Error): string {
  const words = /^E[A-Z]+: /.test(error.message) ? fileWords(error) : null;
  return words === null ? error.message : `${words}.`;
}

run().catch((error) => {
  if (error instanceof CommanderError) return; // said already, and the status is set
  console.error(error instanceof ConfigProblems ? error.message : `postern: ${wordsOf(error as Error)}`);
  process.exit(error instanceof UsageError ? USAGE_STATUS : 1);
});
