// Root is for binding ports only. Started by root, Postern makes what only root can make, gives the data folder to a user of
// its own, holds the low ports open, and becomes that user for good: without root's groups and without a way back. Its
// threads and the processes that it starts have that user too. Nothing is written as root in a folder that another user may
// write, and no link is followed there. Not here: which number is free, and who has which name (own-user.ts).
import { spawnSync } from "node:child_process";
import { chmod, lstat, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FoundConfig } from "../../config.ts";
import { type HeldPlaces, NONE_HELD } from "../net/held-places.ts";
import { findDatabase } from "../postgres/database-folder.ts";
import { makeCluster, serverOf } from "../postgres/embedded-postgres-maker.ts";
import { giveTo, type NamedUser, NOBODY, nameOf, ownUser, userNamed } from "../postgres/own-user.ts";
import { makeFolders } from "../storage/make-folders.ts";
import { fileWords } from "./file-words.ts";
import { UsageError } from "./usage-error.ts";

type RootConfig = Pick<FoundConfig, "data_dir" | "database_url" | "tls_cert_file" | "tls_key_file" | "testing">;

const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
const PASS_THROUGH = 0o011;
/** One of these is in every data folder that has had a start. */
const OURS = /^(master\.key|database-ids|database-name|postgres|blobs|outbound)$/;
const PROGRAM = fileURLToPath(new URL("../../main.ts", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../../package.json", import.meta.url));

type Rooted = { named: string | null; exposed: boolean; hold(): Promise<HeldPlaces> };
type Left = { user: NamedUser | null; held: HeldPlaces; warning: string | null };

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * At the start: becomes Postern's own user, with the low ports held open by `hold`. Where that user could not go on, Postern
 * refuses to start if others can reach it (`exposed`); on loopback, where it is only tried out, it stays root and says so.
 */
export async function leaveRoot(config: RootConfig, { named, exposed, hold }: Rooted): Promise<Left> {
  if (!isRoot()) {
    if (named !== null && (await userNamed(named)).uid !== process.getuid?.()) {
      throw new UsageError("--user is for a start by root; this one is not root's");
    }
    return { user: null, held: NONE_HELD, warning: null };
  }
  const user = await chooseUser(config, named);
  const warning = (await whyUnreachable(config, user)) ?? (await whyNotGiven(config, user));
  if (warning !== null && (exposed || named !== null)) throw new Error(warning);
  if (warning !== null) return { user: null, held: NONE_HELD, warning };
  await giveDataFolder(config, user);
  const held = await hold();
  becomeUser(user);
  return { user, held, warning: null };
}

/**
 * For a command: started by root it becomes the user whom the data folder belongs to, once `asRoot` is done, and stays root
 * where that is root.
 */
export async function becomeOwner(config: RootConfig, asRoot?: (user: NamedUser) => Promise<void>): Promise<void> {
  if (!isRoot() || (await nearest(config.data_dir)).uid === 0) return;
  const user = await chooseUser(config, null);
  const why = await whyUnreachable(config, user);
  if (why !== null) throw new Error(why);
  await asRoot?.(user);
  becomeUser(user);
}

/**
 * As root: the user to become. That whom the operator named; else the owner of the data folder or of the folder that it will
 * be made in, or of the database in it; else `postern`, or a number of its own.
 */
async function chooseUser(config: RootConfig, named: string | null): Promise<NamedUser> {
  if (named !== null) return await userNamed(named);
  const folder = await nearest(config.data_dir);
  if (folder.uid !== 0) return await userNamed(`${folder.uid}`, folder.gid);
  const cluster = await clusterOf(config);
  const owner = cluster && (await lstat(cluster).catch(() => null));
  if (owner && owner.uid !== 0 && owner.uid !== NOBODY) return await userNamed(`${owner.uid}`, owner.gid);
  return await ownUser(config.data_dir);
}

/** The first thing that the user could not read or pass through, in a sentence with the remedy; null when all is well. */
async function whyUnreachable(config: RootConfig, user: NamedUser): Promise<string | null> {
  const socket = config.database_url && new URL(config.database_url).searchParams.get("host");
  const folder = await nearest(config.data_dir);
  const needed: [right: "-r" | "-x", path: string | null][] = [
    ["-r", PROGRAM],
    ["-r", PACKAGES],
    ["-x", process.execPath],
    ["-x", folder.path === config.data_dir ? dirname(folder.path) : folder.path],
    ["-x", socket?.startsWith("/") ? socket : null],
    ["-r", config.tls_cert_file],
    ["-r", config.tls_key_file],
    ["-r", config.testing.clock_file],
  ];
  for (const [right, path] of needed) {
    if (path === null || may(user, right, path)) continue;
    return `started by root, Postern goes on as ${nameOf(user)}, who cannot reach ${path}: let that user read it and pass through the folders above it (chmod o+x), or move it to a folder such as /opt or /var/lib.`;
  }
  return null;
}

/** Asked with that user's rights, so that access lists count too. */
function may({ uid, gid }: NamedUser, right: "-r" | "-x", path: string): boolean {
  const options = { uid, gid, env: {}, cwd: "/" };
  return spawnSync("/bin/sh", ["-c", `test ${right} "$1"`, "sh", path], options).status === 0;
}

/** Why root cannot give the data folder to that user in safety, in a sentence with the remedy; null when it can. */
async function whyNotGiven(config: RootConfig, user: NamedUser): Promise<string | null> {
  const { path, uid } = await nearest(config.data_dir);
  if (uid === user.uid) return null;
  if (uid !== 0) return `${path} belongs to ${nameOf(await userNamed(`${uid}`))}: start Postern with --user ${uid}.`;
  const open = await openFolder(path);
  if (open !== null) {
    return `others than root may write in ${open}: chown it to root and chmod go-w it, or set POSTERN_DATA to another folder.`;
  }
  if (path !== config.data_dir && path !== (await realpath(config.data_dir).catch(() => null))) return null;
  const stranger = await strangeThing(path);
  if (stranger !== null)
    return `${path} holds ${stranger} and nothing of Postern: set POSTERN_DATA to a folder of its own.`;
  const server = config.database_url === null ? await serverOf(await databaseIn(path)) : null;
  if (server === null || server.uid === user.uid) return null;
  return `the database of ${path} still runs as user ${server.uid}: stop it with kill -INT ${server.pid}, and start again.`;
}

/** What root does in a folder that others may write can be turned elsewhere by them; in a sticky one (/tmp) names stay. */
async function openFolder(folder: string): Promise<string | null> {
  for (let path = folder; ; path = dirname(path)) {
    const { uid, mode } = await lstat(path);
    if (uid !== 0 || ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)) return path;
    if (path === dirname(path)) return null;
  }
}

/** An empty folder may become ours, and one that has had a start is. */
async function strangeThing(folder: string): Promise<string | null> {
  const names = (await readdir(folder)).filter((name) => name !== "lost+found");
  return names.some((name) => OURS.test(name)) ? null : (names[0] ?? null);
}

/**
 * Gives the data folder to `user`, with the database in it: that is made here, as a number without a line in /etc/passwd
 * cannot make one. May be cut short at any moment and done again.
 */
async function giveDataFolder(config: RootConfig, user: NamedUser): Promise<void> {
  const { uid } = await nearest(config.data_dir);
  if (uid === user.uid) return; // what is absent is made by that user
  try {
    makeFolders(config.data_dir, 0o711);
  } catch (error) {
    const why = fileWords(error) ?? (error as Error).message;
    throw new Error(`the data folder ${config.data_dir} cannot be used (${why}); set POSTERN_DATA to another folder.`);
  }
  const folder = await realpath(config.data_dir);
  if (config.database_url === null) {
    const database = await databaseIn(folder);
    // What makes the database passes through the folder before it has it.
    const { mode } = await lstat(folder);
    await chmod(folder, mode | PASS_THROUGH);
    await makeCluster(database, user);
    await chmod(folder, mode);
    if (!database.startsWith(`${folder}/`)) await giveTo(database, user);
  }
  await giveTo(folder, user);
}

async function databaseIn(folder: string): Promise<string> {
  return (await findDatabase(folder))?.folder ?? join(folder, "postgres");
}

/** For good: group and user are set for all threads, and root's groups are left. */
function becomeUser(user: NamedUser): void {
  if (user.name === null) process.setgroups?.([]);
  else (process as typeof process & { initgroups(name: string, gid: number): void }).initgroups(user.name, user.gid);
  process.setgid?.(user.gid);
  process.setuid?.(user.uid);
  try {
    process.setuid?.(0);
  } catch {
    return;
  }
  throw new Error("the rights of root could not be given up");
}

/** The data folder, or the nearest folder above it that is there. */
async function nearest(dataDir: string): Promise<{ path: string; uid: number; gid: number }> {
  for (let path = dataDir; ; path = dirname(path)) {
    const found = await lstat(path).catch(() => null);
    // A link of root's is the operator's; one of somebody else is theirs, wherever it leads.
    if (found?.isSymbolicLink() && found.uid === 0) return await nearest(await realpath(path));
    if (found) return { path, uid: found.uid, gid: found.gid };
  }
}

async function clusterOf({ data_dir, database_url }: RootConfig): Promise<string | null> {
  const place = database_url === null ? await findDatabase(data_dir).catch(() => null) : null;
  return place && join(place.folder, "cluster");
}
