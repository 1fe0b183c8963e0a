// Files that are encrypted as backups are, for the commands: what opens them, where they lie, and how large they are.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Keys, Locks } from "../backup/envelope.ts";
import { isTooShort, LONGER_PASSPHRASE, PASSPHRASE_CHARACTERS_MIN } from "../backup/passphrase.ts";
import { fileTarget, type Target } from "../backup/store.ts";
import { isS3Address, s3Target } from "../backup/store-s3.ts";
import type { Config } from "../config.ts";
import { processEnder } from "../platform/process/end-process.ts";
import { fileWords } from "../platform/process/file-words.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { type Blobs, createFolderBlobs, createS3Blobs } from "../platform/storage/blobs.ts";
import { logBeside } from "./command-config.ts";

/** For an option that may be said several times. */
export function together(value: string, before: string[] = []): string[] {
  return [...before, value];
}

export function locksOf({ backup }: Config, recipients: string[]): Locks {
  const named = recipients.length > 0 ? recipients : backup.recipients;
  if (named.length > 0) return { passphrase: null, recipients: named };
  if (backup.passphrase !== null) return { passphrase: longEnough(backup.passphrase), recipients: [] };
  throw new UsageError(
    "a backup is encrypted: set POSTERN_BACKUP_PASSPHRASE (or POSTERN_BACKUP_PASSPHRASE_FILE), or name an age public key with --recipient.",
  );
}

function longEnough(passphrase: string): string {
  if (!isTooShort(passphrase)) return passphrase;
  throw new UsageError(
    `POSTERN_BACKUP_PASSPHRASE has fewer than ${PASSPHRASE_CHARACTERS_MIN} characters, and a stolen backup can be tried with as many as one likes: ${LONGER_PASSPHRASE}, or name an age public key with --recipient.`,
  );
}

export function keysOf({ backup }: Config, identityFile: string | undefined): Keys {
  const text = identityFile === undefined ? "" : readIdentities(identityFile);
  const identities = text.split(/\r?\n/).filter((line) => line.startsWith("AGE-SECRET-KEY-"));
  if (identities.length > 0) return { passphrase: null, identities };
  if (identityFile !== undefined) throw new UsageError(`${identityFile} holds no age identity (AGE-SECRET-KEY-…)`);
  if (backup.passphrase !== null) return { passphrase: backup.passphrase, identities: [] };
  throw new UsageError("what opens the backup is missing: set POSTERN_BACKUP_PASSPHRASE, or name --identity <file>.");
}

function readIdentities(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`${fileWords(error, path) ?? `${path} cannot be read`}.`);
  }
}

export function blobsOf(config: Config): Blobs {
  if (config.s3) return createS3Blobs(config.s3);
  return createFolderBlobs(join(config.data_dir, "blobs"), processEnder(logBeside(config)));
}

export function targetOf(name: string, { backup }: Config): Target {
  return isS3Address(name) ? s3Target(name, backup.s3) : fileTarget(name);
}

/** For people. */
export function sized(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
