// What is done to the database of this installation: `postern migrate`, `sql`, `resume`, `accept-master-key`.
import type { Command } from "commander";
import { resumeSending } from "../outbound/outbound.ts";
import { answerJson, answerLines, askDatabase } from "../platform/database/ask-database.ts";
import { migrate } from "../platform/database/migrate.ts";
import { acceptMasterKey } from "../platform/storage/master-key.ts";
import { openWorld } from "../world.ts";
import { commandConfig, logBeside } from "./command-config.ts";
import { explained, withAnyKey, withWorld } from "./with-world.ts";

/** Puts them into the program. */
export function addDatabaseCommands(program: Command): void {
  program.command("migrate").description("bring the database up to date").action(migrateOnly);
  program
    .command("sql")
    .description("ask the database, over every organization's rows; it only reads")
    .argument("<query>", "a select")
    .option("--json", "one JSON object")
    .action(sql);
  program
    .command("resume")
    .description("send again after a backup was restored: until then its old queue waits")
    .action(resume);
  program
    .command("accept-master-key")
    .description("go on with the present master key after the right one was lost for good")
    .action(acceptMasterKeyCommand);
}

async function migrateOnly(): Promise<void> {
  const config = await commandConfig();
  if (config.database_url) {
    const applied = await explained(config, migrate(config.database_url));
    console.log(applied.length ? `Applied: ${applied.join(", ")}` : "The database is up to date.");
    return;
  }
  const opened = await openWorld(config, logBeside(config));
  console.log("The embedded database is up to date.");
  await opened.close();
}

function sql(query: string, options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const answer = await askDatabase(world.db, query);
    console.log(options.json ? answerJson(answer) : answerLines(answer));
  });
}

function resume(): Promise<void> {
  return withWorld(async (world) => {
    console.log((await resumeSending(world)) ? "Mail leaves again." : "Sending was not paused.");
  });
}

function acceptMasterKeyCommand(): Promise<void> {
  return withAnyKey(async (world) => {
    await acceptMasterKey(world);
    console.log("This master key counts from now on. docs/operations.md says what has to be made again.");
  });
}
