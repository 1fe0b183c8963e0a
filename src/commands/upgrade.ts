// `postern upgrade --check`: prints what a start of this version would do to the database. The upgrade itself is a start.
import type { Command } from "commander";
import {
  checkUpgrade,
  type OpenMigration,
  type TableEffect,
  type UpgradeCheck,
} from "../platform/database/upgrade-check.ts";
import { openOwnDatabase } from "../platform/postgres/own-database.ts";
import { scratchDatabase } from "../platform/postgres/scratch-database.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { commandConfig, logBeside } from "./command-config.ts";
import { explained } from "./with-world.ts";

type Options = { check?: boolean; json?: boolean };

/** Puts it into the program. */
export function addUpgradeCommand(program: Command): void {
  program
    .command("upgrade")
    .description(
      "with --check: show the migrations that a start of this version would apply, their locks and how long they take",
    )
    .option("--check", "look, and change nothing (needed: the upgrade itself is a start of the new version)")
    .option("--json", "one JSON object")
    .action(upgradeCommand);
}

async function upgradeCommand({ check, json }: Options): Promise<void> {
  if (!check) throw new UsageError("say --check; the upgrade itself is a start of the new version.");
  const scratch = scratchDatabase("postern-upgrade");
  const config = await commandConfig(scratch.prepareFor);
  const own = config.database_url ? null : await openOwnDatabase(config.data_dir, logBeside(config));
  try {
    const database_url = config.database_url ?? (own?.url as string);
    const found = await explained(config, checkUpgrade(database_url, undefined, scratch));
    console.log(json ? JSON.stringify(found) : textOf(found));
  } finally {
    await own?.stop();
    await scratch.remove();
  }
}

function textOf({ applied, open, about_seconds, old_processes_may_run_on }: UpgradeCheck): string {
  if (open.length === 0) return `The database is up to date: all ${applied} migrations are applied.`;
  return [
    `${open.length} of ${applied + open.length} migrations are open. A start of this version applies them, in about ${about_seconds} s:`,
    ...open.flatMap(linesOf),
    old_processes_may_run_on
      ? "Processes of the version before may run on beside this one: start new ones, then stop the old ones."
      : "Stop the processes of the version before first: their statements would fail.",
  ].join("\n");
}

function linesOf({ number, name, tables, about_seconds, breaks_old }: OpenMigration): string[] {
  return [
    `${String(number).padStart(4, "0")} ${name.replaceAll("_", " ")}: about ${about_seconds} s`,
    ...tables.map((table) => `       ${effectOf(table)}`),
    ...breaks_old.map((why) => `       older processes: ${why}`),
  ];
}

function effectOf({ table, waits, lock, is_read_whole, rows, bytes }: TableEffect): string {
  const size = `${rows === null ? "an unknown number of" : `about ${rows}`} rows, ${Math.ceil(bytes / 1e6)} MB`;
  const waiting = waits === "nobody" ? "nobody waits" : `${waits} wait meanwhile (${lock})`;
  return `${table}: ${waiting}${is_read_whole ? `; it is read whole: ${size}` : ""}`;
}
