// `postern backup`, `postern backup verify` and `postern restore`: reads the command line, says how far it is, prints the
// result. The work is done in ../backup/.
import type { Command } from "commander";
import { type BackupResult, makeBackup, type Progress } from "../backup/backup.ts";
import { type RestoreResult, restoreBackup } from "../backup/restore.ts";
import { type VerifyResult, verifyBackup } from "../backup/verify.ts";
import { createClock } from "../platform/clock.ts";
import { databaseFolder } from "../platform/postgres/database-folder.ts";
import { startEmbeddedPostgres } from "../platform/postgres/embedded-postgres.ts";
import { openOwnDatabase } from "../platform/postgres/own-database.ts";
import { scratchDatabase } from "../platform/postgres/scratch-database.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { blobsOf, keysOf, locksOf, sized, targetOf, together } from "./backup-files.ts";
import { commandConfig, logBeside } from "./command-config.ts";
import { explained } from "./with-world.ts";

const TELL_EVERY_MS = 2_000;

type BackupOptions = { bodies: "include" | "reference"; recipient?: string[]; json?: boolean };
type OpenOptions = { identity?: string; json?: boolean };
type RestoreOptions = OpenOptions & { replace?: boolean; otherMasterKey?: boolean };

/** Puts the three commands into the program. */
export function addBackupCommands(program: Command, version: string): void {
  const backup = program
    .command("backup")
    .description("write an encrypted backup of the database and of large bodies, while mail flows")
    .argument("<file>", "where to write it: a path or s3://bucket/key; nothing is there before the backup is complete")
    .option("--recipient <age key>", "an age public key that can open it; may be given several times", together)
    .option(
      "--bodies <how>",
      "include large bodies, or reference them: then back up blobs/ or the bucket yourself",
      "include",
    )
    .option("--json", "one JSON object")
    .action((file: string, options: BackupOptions) => makeCommand(file, options, version));
  backup
    .command("verify")
    .description("restore a backup into a scratch database and compare every row and body")
    .argument("<file>", "a path or s3://bucket/key")
    .option(
      "--identity <file>",
      "a file with the age secret key that opens it; without it POSTERN_BACKUP_PASSPHRASE is used",
    )
    .option("--json", "one JSON object")
    .action(verifyCommand);
  program
    .command("restore")
    .description("fill an empty database from a backup; mail waits until `postern resume`")
    .argument("<file>", "a path or s3://bucket/key")
    .option(
      "--identity <file>",
      "a file with the age secret key that opens it; without it POSTERN_BACKUP_PASSPHRASE is used",
    )
    .option("--replace", "delete all that the database holds now; without it only an empty one is filled")
    .option(
      "--other-master-key",
      "restore although the backup's master key is lost for good; what it sealed stays lost. Then: accept-master-key",
    )
    .option("--json", "one JSON object")
    .action(restoreCommand);
}

async function makeCommand(path: string, options: BackupOptions, version: string): Promise<void> {
  if (!["include", "reference"].includes(options.bodies)) throw new UsageError("--bodies is include or reference");
  const config = await commandConfig();
  const locks = locksOf(config, options.recipient ?? []);
  const target = targetOf(path, config);
  await target.refuseTaken();
  const clock = createClock({ offsetFile: config.testing.clock_file });
  const own = config.database_url ? null : await openOwnDatabase(config.data_dir, logBeside(config));
  try {
    const database_url = config.database_url ?? (own?.url as string);
    const world = { database_url, blobs: blobsOf(config), master_key: config.master_key, clock };
    const bodies = options.bodies === "include" ? ("included" as const) : ("referenced" as const);
    const progress = teller("backup");
    const making = makeBackup(world, { target, locks, bodies, version, progress });
    const result = await explained(config, making);
    console.log(options.json ? JSON.stringify({ file: path, ...result }) : madeText(path, result));
  } finally {
    await own?.stop();
  }
}

async function verifyCommand(path: string, options: OpenOptions, command: Command): Promise<void> {
  const { json } = { ...command.parent?.opts(), ...options };
  const scratch = scratchDatabase("postern-verify");
  const config = await commandConfig(scratch.prepareFor);
  const clock = createClock({ offsetFile: config.testing.clock_file });
  const verify = () =>
    verifyBackup({
      ...{ target: targetOf(path, config), keys: keysOf(config, options.identity), clock, progress: teller("verify") },
      scratch,
    });
  const result = await Promise.try(verify).finally(scratch.remove);
  console.log(json ? JSON.stringify({ file: path, ...result }) : verifiedText(path, result));
  if (!result.ok) process.exitCode = 1;
}

async function restoreCommand(path: string, options: RestoreOptions): Promise<void> {
  const config = await commandConfig();
  const clock = createClock({ offsetFile: config.testing.clock_file });
  const target = targetOf(path, config);
  const keys = keysOf(config, options.identity);
  // By itself, not joined: nobody may work on the database meanwhile.
  const own = config.database_url
    ? null
    : await startEmbeddedPostgres({ data_dir: (await databaseFolder(config.data_dir)).folder });
  try {
    const database_url = config.database_url ?? (own?.url as string);
    const master_key = options.otherMasterKey ? null : config.master_key;
    const restoring = restoreBackup(
      { database_url, blobs: blobsOf(config), clock },
      { target, keys, master_key, replace: options.replace ?? false, progress: teller("restore") },
    );
    const result = await explained(config, restoring);
    console.log(options.json ? JSON.stringify({ file: path, ...result }) : restoredText(path, result));
  } finally {
    await own?.stop();
  }
}

// What is said -------------------------------------------------------------------------------------------------------

/** Every two seconds on standard error: the result alone is on standard output. */
function teller(what: string): Progress {
  const startedAtMs = performance.now();
  let toldAtMs = startedAtMs;
  return ({ step, rows, bodies, bytes }) => {
    const now = performance.now();
    if (now - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = now;
    const seconds = Math.round((now - startedAtMs) / 1000);
    console.error(`${what}: ${step}; ${rows} rows, ${bodies} large bodies, ${sized(bytes)}, ${seconds} s`);
  };
}

function madeText(path: string, made: BackupResult): string {
  const size = `${sized(made.stored_bytes)} (${sized(made.bytes)} before compression)`;
  return [
    `${path}: ${made.rows} rows of ${made.tables} tables and ${made.bodies} large bodies, ${size}, in ${made.seconds} s.`,
    `sha256 ${made.sha256}`,
    ...(made.bodies_missing > 0 ? [`${made.bodies_missing} large bodies were deleted meanwhile, or are lost.`] : []),
    ...(made.bodies_referenced > 0
      ? [`${made.bodies_referenced} large bodies are not in it: back up blobs/ or the bucket as well, after this.`]
      : []),
    "The master key is not in it: keep a copy of that in another place.",
  ].join("\n");
}

function verifiedText(path: string, found: VerifyResult): string {
  if (!found.ok) {
    return `${path} is NOT whole: after it was restored these tables differ: ${found.different.join(", ") || "(bodies)"}.`;
  }
  return `${path} is whole: ${found.rows} rows of ${found.tables} tables and ${found.bodies} large bodies of ${found.created_at} were restored into a scratch database and are those that were written (${found.seconds} s).`;
}

function restoredText(path: string, restored: RestoreResult): string {
  const { rows, tables, bodies, created_at, seconds, bodies_missing } = restored;
  return [
    `${path} of ${created_at} was restored: ${rows} rows of ${tables} tables, ${bodies} large bodies, in ${seconds} s.`,
    ...(bodies_missing > 0 ? [`${bodies_missing} large bodies were missing when it was made.`] : []),
    "Sending is paused: mail in its queue may have left after the backup was made. Start Postern, look at",
    "GET /v1/emails?status=queued, cancel what must not leave twice, then: postern resume",
  ].join("\n");
}
