// `postern master-key rotate` and `status`: gives the database another master key while Postern runs, says each step, and
// what is to be done on each machine. The work is done in ../platform/storage/rotate-master-key.ts.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { organizationNamed } from "../accounts/accounts.ts";
import { noteCommand } from "../audit/audit.ts";
import { masterKeyId, newestDataKey, openRing, readRings, shortKeyId } from "../platform/storage/key-ring.ts";
import { countLeft } from "../platform/storage/reseal.ts";
import {
  abandonRotation,
  beginRotation,
  endRotation,
  goOnRotating,
  type KeyUse,
  listUses,
  type Say,
} from "../platform/storage/rotate-master-key.ts";
import type { World } from "../platform/world.ts";
import { keyInFile, makeMasterKey } from "../settings/master-key-file.ts";
import { SEALED_COLUMNS } from "../setup/sealed-columns.ts";
import { withWorld } from "./with-world.ts";

type RotateOptions = { newKeyFile?: string; removeOld?: boolean; abandon?: boolean; json?: boolean };
/** `uses`: processes that are alive. */
type KeyShown = { key: string; made_at: Date; is_ours: boolean; used_by: Pick<KeyUse, "machine" | "pid">[] };

const TELL_EVERY_MS = 2_000;

/** Puts the two commands into the program. */
export function addMasterKeyCommands(program: Command): void {
  const masterKey = program
    .command("master-key")
    .description("the key that all secrets in the database are sealed with");
  masterKey
    .command("rotate")
    .description("replace the master key while Postern runs; an interrupted rotation continues when it is run again")
    .option(
      "--new-key-file <file>",
      "a file that holds the new key; without it a key is made in master.key.new of the data folder",
    )
    .option("--remove-old", "end the old key even if a process still uses it")
    .option("--abandon", "undo a rotation that has not ended: the new key no longer opens the database")
    .option("--json", "one JSON object")
    .action((options: RotateOptions) => withWorld((world) => rotate(world, options)));
  masterKey
    .command("status")
    .description(
      "which master keys open the database, which processes use them, and how much is sealed with an old data key",
    )
    .option("--json", "one JSON object")
    .action((options: { json?: boolean }) => withWorld((world) => showStatus(world, options)));
}

async function rotate(world: World, options: RotateOptions): Promise<void> {
  const tell = options.json ? () => undefined : (text: string) => console.log(text);
  if (options.abandon) return await abandon(world, options, tell);
  const new_key_file = await begin(world, options, tell);
  const resealed = await goOnRotating(world, SEALED_COLUMNS, teller());
  const { sealed_again, unreadable } = resealed;
  tell(`${sealed_again} values were sealed with the new data key; none are left under another one.`);
  if (unreadable > 0) tell(`${unreadable} values are unreadable, as a lost master key left them, and stay so.`);
  const keys = await keysOf(world);
  const isMoved = keys.at(-1)?.is_ours === true;
  if (!isMoved && options.removeOld)
    throw new Error("this machine still has the old master key: give it the new one first");
  const used_by = isMoved ? await endRotation(world, { force: options.removeOld ?? false }) : (keys[0]?.used_by ?? []);
  const finished = isMoved && used_by.length === 0;
  if (finished) await note(world, "master-key rotate: ended");
  if (options.json)
    console.log(JSON.stringify({ finished, new_key_file, ...resealed, old_key_used_by: namedOnce(used_by) }));
  else console.log(finished ? FINISHED : nextSteps(world, { isMoved, used_by, new_key_file }));
}

const FINISHED =
  "The rotation has ended: the old master key opens the database no more. Backups from before need it still, so make a new one.";

/** Where the new key is; null when it is this process's own already. */
async function begin(world: World, options: RotateOptions, tell: (text: string) => void): Promise<string | null> {
  const { db, config } = world;
  const rows = await readRings(db);
  if (rows.length === 0) throw new Error("the database has no key ring yet: start Postern once, then rotate");
  const fallback = join(config.data_dir, "master.key.new");
  if (rows.length > 1) {
    tell("A rotation has begun already; it goes on.");
    if (options.newKeyFile) await beginRotation(world, keyInFile(options.newKeyFile));
    if (rows.at(-1)?.master_key.equals(masterKeyId(config.master_key))) return null;
    return options.newKeyFile ?? (existsSync(fallback) ? fallback : null);
  }
  const path = options.newKeyFile ?? fallback;
  if (!options.newKeyFile && !existsSync(path)) makeMasterKey(path);
  const key = keyInFile(path);
  if (key.equals(config.master_key)) throw new Error(`${path} holds the master key that the database has already`);
  await beginRotation(world, key);
  await note(world, "master-key rotate: begun");
  tell(`The new master key is in ${path}. Keep a copy in another place, as of the old one.`);
  const [old, fresh] = await keysOf(world);
  tell(`Both master keys open the database now: the old one (${old?.key}) and the new one (${fresh?.key}).`);
  return path;
}

async function abandon(world: World, options: RotateOptions, tell: (text: string) => void): Promise<void> {
  if ((await readRings(world.db)).length < 2) throw new Error("there is no rotation that could be undone");
  const used_by = await abandonRotation(world, { force: false });
  if (used_by.length > 0)
    throw new Error(`the new master key is in use: ${used_by.map(nameOf).join(", ")}; give the old one back first`);
  await note(world, "master-key rotate: abandoned");
  if (options.json) console.log(JSON.stringify({ abandoned: true }));
  else tell("The rotation is undone: the new master key opens the database no more, the old one goes on.");
}

/** In the log of the first organization, whose operator this is. */
async function note(world: World, command: string): Promise<void> {
  await noteCommand(world, await organizationNamed(world, null), { command });
}

async function showStatus(world: World, { json }: { json?: boolean }): Promise<void> {
  const keys = await keysOf(world);
  const ring = openRing(world.config.master_key, await readRings(world.db));
  const data_key = ring ? newestDataKey(ring) : 0;
  const left = data_key === 0 ? 0 : await countLeft(world.db, SEALED_COLUMNS, data_key);
  const rotating = keys.length > 1;
  if (json) return console.log(JSON.stringify({ rotating, master_keys: keys, data_key, left }));
  for (const { key, made_at, is_ours, used_by } of keys) {
    const since = made_at.toISOString().slice(0, 16).replace("T", " ");
    console.log(`master key ${key}, since ${since} UTC${is_ours ? ", the one here" : ""}: ${usedText(used_by)}`);
  }
  if (keys.length === 0) console.log("The database has no key ring yet: the next start makes it.");
  console.log(`data key ${data_key}; ${left} values are sealed with an older one`);
  console.log(rotating ? "A rotation has not ended: run postern master-key rotate." : "No rotation is under way.");
}

function usedText(uses: KeyShown["used_by"]): string {
  return uses.length === 0 ? "no process has it" : uses.map(nameOf).join(", ");
}

/** The oldest first. */
async function keysOf({ db, config }: World): Promise<KeyShown[]> {
  const [rows, uses] = [await readRings(db), await listUses(db)];
  const own = masterKeyId(config.master_key);
  return rows.map(({ master_key, made_at }) => ({
    key: shortKeyId(master_key),
    made_at,
    is_ours: master_key.equals(own),
    used_by: namedOnce(uses.filter((use) => use.master_key.equals(master_key))),
  }));
}

type Named = { machine: string; pid: number };

function named({ machine, pid }: Named): Named {
  return { machine, pid };
}

/** A process has a thread more that reads the ring. */
function namedOnce(uses: Named[]): Named[] {
  return [...new Map(uses.map((use) => [nameOf(use), named(use)])).values()];
}

function nameOf({ machine, pid }: Named): string {
  return `${machine} (process ${pid})`;
}

type Next = { isMoved: boolean; used_by: Named[]; new_key_file: string | null };

function nextSteps({ config }: World, { isMoved, used_by, new_key_file }: Next): string {
  const who = namedOnce(used_by).map((use) => `  - ${nameOf(use)}`);
  const file = join(config.data_dir, "master.key");
  const source = new_key_file ?? "the file with the new key";
  return [
    isMoved
      ? "These processes still have the old master key, so it opens the database still:"
      : "What is left: on each machine, one after the other, put the new master key in the place of the old one, and start Postern again.",
    ...(isMoved ? [] : [`  - where the key is in the data folder: mv ${source} ${file}`]),
    ...(isMoved ? [] : [`  - where it is in POSTERN_MASTER_KEY or another file: the content of ${source}`]),
    ...(isMoved || who.length === 0 ? [] : ["The old one is in use by:"]),
    ...who,
    "Then run postern master-key rotate once more, with the new key: it ends the old one. Nothing has to be stopped meanwhile.",
  ].join("\n");
}

/** On standard error: the result alone is on standard output. */
function teller(): Say {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (step) => {
    const now = performance.now();
    if (now - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = now;
    if (step.kind === "waiting")
      console.error(`waiting until these know the new data key: ${usedText(namedOnce(step.for))}`);
    else console.error(`sealed again: ${step.done.sealed_again}; left: ${step.done.left}`);
  };
}
