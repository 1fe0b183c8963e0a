// `postern dns zone` and `postern mail`: the service's own names, and what is sent to them.
import type { Command } from "commander";
import { ownZone } from "../doctor/own-zone.ts";
import { describeOperatorMail, newestOperatorMail, readOperatorMail } from "../inbound/inbound.ts";
import { withWorld } from "./with-world.ts";

/** Puts both into the program. */
export function addOwnNameCommands(program: Command): void {
  program
    .command("dns")
    .description("the service's own names")
    .command("zone")
    .description("print every DNS record that the service's own names need, as a zone file")
    .option("--json", "one JSON object")
    .action(dnsZone);
  program
    .command("mail")
    .description("what came for postmaster@, abuse@ and the feedback addresses of this host")
    .argument("[id]", "print this mail as it came; without it the newest are listed")
    .option("--json", "one JSON object; of one mail its bytes in base64")
    .action(operatorMail);
}

function dnsZone(options: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    const { records, text } = await ownZone(world);
    console.log(options.json ? JSON.stringify({ records }) : text);
  });
}

function operatorMail(id: string | undefined, { json }: { json?: boolean }): Promise<void> {
  return withWorld(async (world) => {
    if (id === undefined) {
      const text = json ? JSON.stringify({ mail: await newestOperatorMail(world) }) : await describeOperatorMail(world);
      return console.log(text);
    }
    const bytes = await readOperatorMail(world, id);
    if (!bytes) throw new Error(`there is no mail for the operator with the id ${id}`);
    if (json) console.log(JSON.stringify({ id, raw_base64: bytes.toString("base64") }));
    else process.stdout.write(bytes);
  });
}
