// `postern organizations export|import|keep|remove`: an organization moves from one cell to another. The work is done in ../moving/,
// which is read in when it is asked for: it reaches most of the program, and `organizations list` does not.
import type { Command } from "commander";
import { listOrganizations } from "../accounts/accounts.ts";
import { noteCommand } from "../audit/audit.ts";
import type { ExportResult } from "../moving/export.ts";
import type { ImportResult } from "../moving/import.ts";
import { isUuid } from "../platform/database/db.ts";
import { ownVersion } from "../platform/own-version.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { keysOf, locksOf, sized, targetOf, together } from "./backup-files.ts";
import { withWorld } from "./with-world.ts";

type ExportOptions = { recipient?: string[]; json?: boolean };
type ImportOptions = { identity?: string; json?: boolean };
type PlainOptions = { json?: boolean };

/** Puts them among the commands of organizations. */
export function addMoveCommands(organizations: Command): void {
  organizations
    .command("export")
    .description("hold an organization still and write all of it into an encrypted file, for another cell")
    .argument("<id>", "its id: `postern organizations list`")
    .argument("<file>", "where to write it: a path or s3://bucket/key; nothing is there before the file is complete")
    .option("--recipient <age key>", "an age public key that can open it; may be given several times", together)
    .option("--json", "one JSON object")
    .action(exportCommand);
  organizations
    .command("import")
    .description("put an organization that another cell exported into this one, where it goes on at once")
    .argument("<file>", "a path or s3://bucket/key")
    .option(
      "--identity <file>",
      "a file with the age secret key that opens it; without it POSTERN_BACKUP_PASSPHRASE is used",
    )
    .option("--json", "one JSON object")
    .action(importCommand);
  organizations
    .command("keep")
    .description("let an organization that was exported go on here; never one that was imported elsewhere")
    .argument("<id>", "its id")
    .option("--json", "one JSON object")
    .action(keepCommand);
  organizations
    .command("remove")
    .description("remove an organization that was exported, after its import in the other cell")
    .argument("<id>", "its id")
    .option("--anyway", "even if mail was accepted after the file was written: that mail is lost")
    .option("--json", "one JSON object")
    .action(removeCommand);
}

function exportCommand(id: string, file: string, { recipient, json }: ExportOptions): Promise<void> {
  return withWorld(async (world) => {
    refuseOtherId(id);
    const locks = locksOf(world.config, recipient ?? []);
    const target = targetOf(file, world.config);
    await target.refuseTaken();
    const [{ hold }, { exportOrganization }] = await Promise.all([
      import("../moving/hold.ts"),
      import("../moving/export.ts"),
    ]);
    const isNew = await hold(world.db, id, new Date(world.clock.now()));
    if (isNew) await noteCommand(world, id, { command: "organizations export" });
    const result = await exportOrganization(world, {
      ...{ organization: id, target, locks, version: ownVersion(), progress: teller("export") },
    });
    console.log(json ? JSON.stringify({ file, ...result }) : exportedText(file, result));
  });
}

function importCommand(file: string, { identity, json }: ImportOptions): Promise<void> {
  return withWorld(async (world) => {
    const keys = keysOf(world.config, identity);
    const target = targetOf(file, world.config);
    const { importOrganization } = await import("../moving/import.ts");
    const result = await importOrganization(world, { target, keys, progress: teller("import") });
    await noteCommand(world, result.organization.id, { command: "organizations import" });
    console.log(json ? JSON.stringify({ file, ...result }) : importedText(file, result));
  });
}

function keepCommand(id: string, { json }: PlainOptions): Promise<void> {
  return withWorld(async (world) => {
    refuseOtherId(id);
    const { keep } = await import("../moving/hold.ts");
    const { state_before: state } = await keep(world, id);
    await noteCommand(world, id, { command: "organizations keep" });
    console.log(json ? JSON.stringify({ organization_id: id, state }) : `It goes on here, ${state} as before.`);
  });
}

function removeCommand(id: string, { json, anyway = false }: PlainOptions & { anyway?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    refuseOtherId(id);
    const { removeOrganization } = await import("../moving/remove.ts");
    const rows = await removeOrganization(world, { organization: id, anyway, progress: teller("remove") });
    const left = (await listOrganizations(world)).length;
    console.log(
      json ? JSON.stringify({ organization_id: id, rows, organizations_left: left }) : removedText(rows, left),
    );
  });
}

function refuseOtherId(id: string): void {
  if (!isUuid(id))
    throw new UsageError(`${id} is not the id of an organization: \`postern organizations list\` shows them.`);
}

/** On standard error, each text once: the result alone is on standard output. */
function teller(what: string): (text: string) => void {
  let said = "";
  return (text) => {
    if (text !== said) console.error(`${what}: ${text}`);
    said = text;
  };
}

function exportedText(file: string, result: ExportResult): string {
  const { organization, rows, tables, bodies, bodies_missing, stored_bytes, held_seconds } = result;
  return [
    `${file}: "${organization.name}", ${rows} rows of ${tables} tables and ${bodies} large bodies, ${sized(stored_bytes)}, in ${held_seconds} s.`,
    ...(bodies_missing > 0 ? [`${bodies_missing} large bodies were lost before.`] : []),
    "It is held still here: requests are answered 503, mail 451. In the other cell: postern organizations import.",
    `Then here: postern organizations remove ${organization.id} (or, if it is to stay: keep). The file holds its secrets: delete it afterwards.`,
  ].join("\n");
}

function importedText(file: string, result: ImportResult): string {
  const { organization, rows, tables, bodies, bodies_missing, addresses_left, seconds } = result;
  return [
    `"${organization.name}" (${organization.id}) is here, ${organization.state}: ${rows} rows of ${tables} tables and ${bodies} large bodies of ${file}, in ${seconds} s.`,
    ...(bodies_missing > 0 ? [`${bodies_missing} large bodies were lost before.`] : []),
    ...(addresses_left.length > 0
      ? [`Addresses of its pools stayed where they are: ${addresses_left.join(", ")}. Give it others of this cell.`]
      : []),
    `In the cell that it came from: postern organizations remove ${organization.id}.`,
  ].join("\n");
}

function removedText(rows: number, left: number): string {
  return [
    `It was removed: ${rows} rows.`,
    ...(left > 0
      ? []
      : [
          "No organization is left here: the next start makes one. Unset POSTERN_BOOTSTRAP_LIVE_KEY and _TEST_KEY before.",
        ]),
  ].join("\n");
}
