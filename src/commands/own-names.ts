// `postern dns zone` and `postern mail`: the service's own names, and what is sent to them.
import type { Command } from "commander";
import { ownZone } from "../doctor/own-zone.ts";
import { describeOperatorMail, readOperatorMail } from "../inbound/inbound.ts";
import { withWorld } from "./with-world.ts";

/** Puts both into the program. */
export function addOwnNameCommands(program: Command): void {
  program
    .command("dns")
    .description("the service's own names")
    .command("zone")
    .description("print every DNS record that they need, as a zone file")
    .option("--json", "one JSON object")
    .action(dnsZone);
  program
    .command("mail")
    .description("what came for postmaster@, abuse@ and the feedback addresses of this host")
    .argument("[id]", "print this mail as it came; without it the newest are listed")
    .action(operatorMail);
}

function dnsZone(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const { records, text } = await ownZone(world);
    console.log(options.json ? JSON.stringify({ records }) : text);
  });
}

function operatorMail(id: string | undefined): Promise<void> {
  return withWorld(async (world) => {
    if (id === undefined) return console.log(await describeOperatorMail(world));
    const bytes = await readOperatorMail(world, id);
    if (!bytes) throw new Error(`there is no mail for the operator with the id ${id}`);
    process.stdout.write(bytes);
  });
}
