// The user that Postern and its database run as when root started them: `postern`, or where there is none a number that
// nobody else uses. Never `nobody`, which any service may run as. And giving a folder to a user without following a link that
// somebody put there.
import { createHash } from "node:crypto";
import { lchown, lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunAs } from "./embedded-postgres-binaries.ts";

export type User = NonNullable<RunAs>;
/** `name`: null for a number without a line in /etc/passwd. */
export type NamedUser = User & { name: string | null };

export const NOBODY = 65_534;
/** The numbers that systemd gives to services without a user of their own; distributions leave them alone. */
const OWN_IDS = { first: 61_184, count: 4_336 };
const TRIES_MAX = 64;
const OTHERS_WRITE = 0o022;

type Entry = { name: string; uid: number; gid: number; shell: string };

/** The user `postern`, or a free number, the same for the same `seed` unless somebody uses it. */
export async function ownUser(seed: string): Promise<NamedUser> {
  const entries = await readPasswd();
  const named = entries.find(({ name, uid }) => name === "postern" && uid !== 0);
  if (named) return { uid: named.uid, gid: named.gid, name: named.name };
  const taken = new Set([...entries.flatMap(({ uid, gid }) => [uid, gid]), ...(await idsInUse())]);
  const start = createHash("sha256").update(seed).digest().readUInt32BE(0);
  for (let step = 0; step < TRIES_MAX; step += 1) {
    const id = OWN_IDS.first + ((start + step) % OWN_IDS.count);
    if (!taken.has(id)) return { uid: id, gid: id, name: null };
  }
  throw new Error("There is no free user id for Postern: make a user named postern.");
}

/** The user of this name or number; a number without a line in /etc/passwd has `gid`, or a group of its own number. */
export async function userNamed(text: string, gid?: number): Promise<NamedUser> {
  const entries = await readPasswd();
  const found = entries.find(({ name }) => name === text) ?? entries.find(({ uid }) => String(uid) === text);
  if (!found && !/^\d{1,9}$/.test(text)) throw new Error(`there is no user ${text}: make one, or give a number.`);
  const user = found ?? { uid: Number(text), gid: gid || Number(text), name: null };
  if (user.uid === 0 || user.uid === NOBODY)
    throw new Error(`Postern does not run as ${text}: make a user of its own.`);
  return { uid: user.uid, gid: user.gid, name: user.name };
}

export function nameOf({ name, uid }: NamedUser): string {
  return name ?? `user ${uid}`;
}

/**
 * `initdb` refuses a user without a line in /etc/passwd: then an account of the system that no process runs as makes the
 * cluster, empty as it is, which is handed over at once.
 */
export async function makerFor(user: User): Promise<User> {
  const entries = await readPasswd();
  if (entries.some(({ uid }) => uid === user.uid)) return user;
  const inUse = await idsInUse();
  const idle = entries.find(
    ({ uid, shell }) => uid > 0 && uid < 1_000 && /\/(nologin|false)$/.test(shell) && !inUse.has(uid),
  );
  if (idle) return { uid: idle.uid, gid: idle.gid };
  throw new Error(
    "The database cannot be made by root: make a user named postern, or start Postern as an ordinary user.",
  );
}

/** The name of a user for people, or its number. */
export async function userName(uid: number): Promise<string> {
  return (await readPasswd()).find((entry) => entry.uid === uid)?.name ?? `user ${uid}`;
}

/**
 * Gives `folder` and all in it to `user`. It must lie in a folder that nobody but root may write. From the top down: a folder
 * that is handed over already can no longer be changed by whom it belonged to, so that no name in it becomes a link.
 * Throws when it holds a second name of a file, which may be a file of root's.
 */
export async function handOver(folder: string, user: User): Promise<void> {
  const from = await lstat(folder);
  if (!from.isDirectory()) throw new Error(`${folder} is not a folder.`);
  await lchown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const found = await lstat(path);
    if (found.isDirectory()) {
      await handOver(path, user);
      continue;
    }
    const isKnown = found.uid === from.uid || found.uid === user.uid;
    if (found.isFile() && (found.nlink > 1 || !isKnown)) {
      throw new Error(`${path} may be a file of somebody else: look at it, and remove it if nothing needs it.`);
    }
    await lchown(path, user.uid, user.gid);
  }
}

/**
 * Gives `folder`, which is root's, and all of root's in it to `user`. The innermost first: while a folder is root's nobody else
 * changes a name in it, and after a cut the rest is given by the next call. Links themselves are given, never followed.
 */
export async function giveTo(folder: string, user: User): Promise<void> {
  const { mode } = await lstat(folder);
  if (mode & OTHERS_WRITE) throw new Error(`others may write in ${folder}: look what is in it, and chmod go-w it.`);
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await lstat(path);
    if (found.uid === user.uid) continue;
    if (found.uid === NOBODY && found.isDirectory()) await handOver(path, user);
    else if (found.uid !== 0 || (found.isFile() && found.nlink > 1)) {
      throw new Error(`${path} may be a file of somebody else: look at it, and remove it if nothing needs it.`);
    } else if (found.isDirectory()) await giveTo(path, user);
    else await lchown(path, user.uid, user.gid);
  }
  await lchown(folder, user.uid, user.gid);
}

async function readPasswd(): Promise<Entry[]> {
  const text = await readFile("/etc/passwd", "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [name = "", , uid = "", gid = "", , , shell = ""] = line.split(":");
    return /^\d+$/.test(uid) && /^\d+$/.test(gid) ? [{ name, uid: Number(uid), gid: Number(gid), shell }] : [];
  });
}

/** The user numbers of the processes that run; empty where there is no /proc. */
async function idsInUse(): Promise<Set<number>> {
  const ids = new Set<number>();
  for (const name of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const found = await lstat(join("/proc", name)).catch(() => null);
    if (found) ids.add(found.uid);
  }
  return ids;
}
