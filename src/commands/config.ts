// `postern config`.
import type { Command } from "commander";
import { findConfig, ownSettings } from "../config.ts";
import { settingLines, settingsInForce } from "../settings/in-force.ts";

/** Puts it into the program. */
export function addConfigCommand(program: Command): void {
  program
    .command("config")
    .description("print every setting that is in force and where it came from, without secrets")
    .option("--json", "one JSON object")
    .action(config);
}

/** Prints the settings as they are: nothing is made, and root stays root. */
function config(options: { json?: boolean }): void {
  const found = findConfig();
  const settings = settingsInForce(found, ownSettings().origins);
  const { unused } = found;
  console.log(options.json ? JSON.stringify({ settings, unused }) : settingLines(settings, unused));
}
