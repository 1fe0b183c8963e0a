// `postern certificates`: what the ACME server gave, until when, and why it gave nothing; `renew` asks for another one now.
import type { Command } from "commander";
import { findCertificate, renewNow, type Stored } from "../certificates/queries.ts";
import { CERTIFICATES_CHANNEL } from "../certificates/renew.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import type { World } from "../platform/world.ts";
import { openWorld } from "../world.ts";
import { commandConfig, logBeside } from "./command-config.ts";
import { explained } from "./with-world.ts";

/** Puts the commands into the program. */
export function addCertificateCommands(program: Command): void {
  const group = program.command("certificates").description("certificates from the ACME server (POSTERN_ACME)");
  group
    .command("show", { isDefault: true })
    .description("show its names, when it ends, the next renewal, and why the last attempt failed")
    .option("--json", "one JSON object")
    .action(show);
  group
    .command("renew")
    .description("order a new certificate now; a running Postern does the work")
    .option("--json", "one JSON object")
    .action(renew);
}

async function withDirectory(work: (world: World, directory: string) => Promise<void>): Promise<void> {
  const config = await commandConfig();
  if (config.acme === null) throw new UsageError("POSTERN_ACME is off: Postern asks for no certificates.");
  const opened = await explained(config, openWorld(config, logBeside(config)));
  try {
    await work(opened.world, config.acme.directory);
  } finally {
    await opened.close();
  }
}

function show(options: { json?: boolean }): Promise<void> {
  return withDirectory(async ({ db }, directory) => {
    const [row] = await findCertificate(db, directory);
    console.log(options.json ? JSON.stringify(fieldsOf(directory, row)) : lines(directory, row));
  });
}

function fieldsOf(directory: string, row: Stored | undefined) {
  const { names = [], not_before = null, not_after = null, renew_at = null, failures = 0, failure = null } = row ?? {};
  return { directory, names, not_before, not_after, renew_at, failures, failure };
}

function lines(directory: string, row: Stored | undefined): string {
  if (!row) return `No certificate was asked for at ${directory} yet: a running Postern does so.`;
  const { names, not_after, renew_at, failure } = row;
  const rows: [string, string][] = [
    ["from", directory],
    ["names", names.length === 0 ? "(no certificate yet)" : names.join("\n            ")],
    ["valid until", shown(not_after)],
    [failure === null ? "renewed at" : "asked at", shown(renew_at)],
    ...(failure === null ? [] : [["failed", failure] as [string, string]]),
  ];
  return rows.map(([name, value]) => `${name.padEnd(11)} ${value}`).join("\n");
}

function shown(at: Date | null): string {
  return at === null ? "-" : `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function renew(options: { json?: boolean }): Promise<void> {
  return withDirectory(async ({ db, clock }, directory) => {
    const isThere = await renewNow(db, directory, new Date(clock.now()));
    if (!isThere) throw new Error("no certificate was asked for yet: start Postern, which does so");
    await db.query("select pg_notify($1, '')", [CERTIFICATES_CHANNEL]);
    const text = "A running Postern asks for a new certificate now; `postern certificates` shows what came of it.";
    console.log(options.json ? JSON.stringify({ asked: true }) : text);
  });
}
