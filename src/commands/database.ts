// What is done to the database of this installation: `postern migrate`, `sql`, `resume`, `accept-master-key`.
import type { Command } from "commander";
import { resumeSending } from "../outbound/outbound.ts";
import { answerJson, answerLines, askDatabase } from "../platform/database/ask-database.ts";
import { migrateNoting } from "../platform/database/migrate.ts";
import { openOwnDatabase } from "../platform/postgres/own-database.ts";
import { acceptMasterKey } from "../platform/storage/master-key.ts";
import { commandConfig, logBeside } from "./command-config.ts";
import { explained, withAnyKey, withWorld } from "./with-world.ts";

/** Puts them into the program. */
export function addDatabaseCommands(program: Command): void {
  program
    .command("migrate")
    .description("bring the database up to date")
    .option("--json", "one JSON object")
    .action(migrateOnly);
  program
    .command("sql")
    .description("run a query over the rows of all organizations; it can change nothing")
    .argument("<query>", "a select")
    .option("--json", "one JSON object")
    .action(sql);
  program
    .command("resume")
    .description("start sending again after a backup was restored: until then its old queue waits")
    .option("--json", "one JSON object")
    .action(resume);
  program
    .command("accept-master-key")
    .description(
      "go on with the present master key, after the right one was lost for good: what that one sealed stays lost",
    )
    .option("--json", "one JSON object")
    .action(acceptMasterKeyCommand);
}

type Options = { json?: boolean };

async function migrateOnly({ json }: Options): Promise<void> {
  const config = await commandConfig();
  const own = config.database_url ? null : await openOwnDatabase(config.data_dir, logBeside(config));
  try {
    const url = config.database_url ?? (own?.url as string);
    const { applied, newer } = await explained(config, migrateNoting(url));
    if (newer !== null) console.error(`postern: ${newer} This version has nothing to bring up to date.`);
    const text = applied.length ? `Applied: ${applied.join(", ")}` : "The database is up to date.";
    console.log(json ? JSON.stringify({ applied }) : text);
  } finally {
    await own?.stop();
  }
}

function sql(query: string, options: Options): Promise<void> {
  return withWorld(async (world) => {
    const answer = await askDatabase(world.db, query);
    console.log(options.json ? answerJson(answer) : answerLines(answer));
  });
}

function resume({ json }: Options): Promise<void> {
  return withWorld(async (world) => {
    const resumed = await resumeSending(world);
    const text = resumed ? "Mail leaves again." : "Sending was not paused.";
    console.log(json ? JSON.stringify({ resumed }) : text);
  });
}

function acceptMasterKeyCommand({ json }: Options): Promise<void> {
  return withAnyKey(async (world) => {
    const accepted = await acceptMasterKey(world);
    const text = accepted
      ? "This master key counts from now on. docs/operations.md says what has to be made again."
      : "This master key is the right one already: nothing had to be done.";
    console.log(json ? JSON.stringify({ accepted }) : text);
  });
}
