// `postern doctor`.
import type { Command } from "commander";
import { examine, printable } from "../doctor.ts";

/** Puts it into the program. */
export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("look for what is wrong with this machine and its settings")
    .option("--json", "one JSON object")
    .option("--try-smtp <host>", "also try whether mail can leave: connect to port 25 of this mail server")
    .action(doctor);
}

async function doctor(options: { json?: boolean; trySmtp?: string }): Promise<void> {
  const checks = await examine({ try_smtp: options.trySmtp ?? null });
  const isWell = checks.every(({ status }) => status !== "problem");
  const text = options.json ? JSON.stringify({ ok: isWell, checks }) : printable(checks);
  await new Promise<void>((done) => process.stdout.write(`${text}\n`, () => done()));
  process.exit(isWell ? 0 : 1); // what has not answered in time is not waited for
}
