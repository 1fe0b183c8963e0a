// The way back from Citus: a cell is backed up while its mail flows, and the backup is restored into one PostgreSQL by itself.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import type { Cell } from "./cells.ts";

export type BackedUp = {
  tables: number;
  rows: number;
  seconds: number;
  /** Tables whose rows were others once they were restored. */
  different: string[];
};

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const PASSPHRASE = "words for a backup";

/** By the commands of an operator. */
export async function backUp({ stage }: Cell): Promise<BackedUp> {
  const env = { ...inheritedEnv(), ...stage.settings.env, POSTERN_BACKUP_PASSPHRASE: PASSPHRASE };
  const file = join(stage.dir, "cell.backup");
  const command = async (...args: string[]) =>
    JSON.parse((await promisify(execFile)(process.execPath, [MAIN, ...args, file, "--json"], { env })).stdout);
  const made: BackedUp = await command("backup");
  const verified: BackedUp & { ok: boolean } = await command("backup", "verify");
  if (!verified.ok && verified.different.length === 0) throw new Error("the restored backup lacks tables or bodies");
  return { tables: made.tables, rows: made.rows, seconds: made.seconds, different: verified.different };
}
