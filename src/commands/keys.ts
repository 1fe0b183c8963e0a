// `postern keys create`.
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import { createKey, organizationNamed } from "../accounts/accounts.ts";
import { noteCommand } from "../audit/audit.ts";
import { withWorld } from "./with-world.ts";

/** Puts it into the program. */
export function addKeyCommands(program: Command): void {
  program
    .command("keys")
    .description("API keys")
    .command("create")
    .description("create an API key and print its secret once")
    .requiredOption("--name <name>", "what the key is for")
    .requiredOption("--env <env>", "live or test", parseEnvironment)
    .option("--organization <id>", "the id of the organization that it is for; without it the first one")
    .option("--json", "one JSON object")
    .action(createKeyCommand);
}

function parseEnvironment(text: string): string {
  if (text !== "live" && text !== "test") throw new InvalidArgumentError("it is live or test");
  return text;
}

type KeyOptions = { name: string; env: "live" | "test"; organization?: string; json?: boolean };

function createKeyCommand(options: KeyOptions): Promise<void> {
  return withWorld(async (world) => {
    const org_id = await organizationNamed(world, options.organization ?? null);
    const account = { org_id, acts_on_live: true };
    const created = await createKey(world, account, { name: options.name, environment: options.env });
    await noteCommand(world, org_id, { command: "keys create", target: { id: created.key.id } });
    console.log(options.json ? JSON.stringify(created) : created.secret);
  });
}
