// Where the embedded database's files lie. In the data folder; but PostgreSQL refuses to run as root, and the ordinary
// user it then runs as may not be able to pass through the folders above (a home folder, a private temporary one). Then
// the files go below /var/lib/postern, under a name that the data folder remembers. Where a database was made it stays,
// whoever starts Postern later and whatever has become of the folders' modes: another place would be another, empty one.
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolders } from "../storage/make-folders.ts";

const ELSEWHERE = "/var/lib/postern";
const NAME_FILE = "database-name";
/** In a database's folder elsewhere: the data folder that it belongs to. */
const OWNER_FILE = "data-folder";
const PASS_THROUGH = 0o001;

export type DatabasePlace = {
  folder: string;
  /** True if the database is not inside the data folder. */
  moved: boolean;
  /** A second database of the data folder, which is not used: it was made when an older version had lost the first. */
  unused: string | null;
};

/**
 * Where the database of `dataDir` is, or null when there is none yet. Only looks. Throws one sentence when it cannot be
 * found where it was made, or when it belongs to another folder, of which this one is a copy.
 */
export async function findDatabase(dataDir: string, elsewhere: string = ELSEWHERE): Promise<DatabasePlace | null> {
  const inside = join(dataDir, "postgres");
  const named = await namedFolder(dataDir, elsewhere);
  if (await isThere(join(inside, "cluster"))) {
    const unused = named !== null && (await isThere(join(named, "cluster"))) ? named : null;
    return { folder: inside, moved: false, unused };
  }
  if (named === null) return null;
  if (!(await isThere(named))) {
    throw new Error(
      `The database of ${dataDir} was in ${named}, which is not there: put it back from a backup, or remove ${join(dataDir, NAME_FILE)} to begin with an empty one.`,
    );
  }
  await refuseCopy(dataDir, named);
  return { folder: named, moved: true, unused: null };
}

/** True if there is a database of `dataDir`, wherever it lies. */
export async function isDatabaseMade(dataDir: string, elsewhere: string = ELSEWHERE): Promise<boolean> {
  const place = await findDatabase(dataDir, elsewhere);
  return place !== null && (await isThere(join(place.folder, "cluster")));
}

/** The folder to give to the embedded database: where it is, or where a first start makes it. */
export async function databaseFolder(dataDir: string, elsewhere: string = ELSEWHERE): Promise<DatabasePlace> {
  const place = (await findDatabase(dataDir, elsewhere)) ?? (await newPlace(dataDir, elsewhere));
  if (process.getuid?.() !== 0) return place;
  if (place.moved) await claim(place.folder, dataDir);
  else await openFor(join(place.folder, "cluster"), dataDir);
  return place;
}

/** Our own folder is opened for passing through when the database in it is another user's. */
async function openFor(cluster: string, dataDir: string): Promise<void> {
  const { mode, uid } = await stat(dataDir);
  const owner = (await stat(cluster).catch(absentOr(dataDir, null)))?.uid;
  if (owner !== uid && !(mode & PASS_THROUGH)) await chmod(dataDir, mode | PASS_THROUGH);
}

async function newPlace(dataDir: string, elsewhere: string): Promise<DatabasePlace> {
  const inside = { folder: join(dataDir, "postgres"), moved: false, unused: null };
  if (process.getuid?.() !== 0) return inside;
  makeFolders(dataDir, 0o711);
  if (await canPass(dirname(dataDir))) return inside;
  const name = randomBytes(16).toString("hex");
  const folder = join(elsewhere, name);
  // Before its name: a name without its folder means that the database is gone.
  await mkdir(folder, { recursive: true, mode: 0o711 });
  await writeFile(join(dataDir, NAME_FILE), `${name}\n`, { mode: 0o600, flush: true });
  return { folder, moved: true, unused: null };
}

async function canPass(folder: string): Promise<boolean> {
  for (let path = folder; ; path = dirname(path)) {
    if (!((await stat(path)).mode & PASS_THROUGH)) return false;
    if (path === dirname(path)) return true;
  }
}

async function namedFolder(dataDir: string, elsewhere: string): Promise<string | null> {
  const name = (await readText(join(dataDir, NAME_FILE), dataDir))?.trim() ?? "";
  if (/^[0-9a-f]{32}$/.test(name)) return join(elsewhere, name);
  if (name === "") return null; // absent, or cut short before the database was made
  throw new Error(`${join(dataDir, NAME_FILE)} is damaged: it names the folder of the database below ${elsewhere}.`);
}

/** Two data folders on one database would each take it for their own: sending, files and backups would not fit. */
async function refuseCopy(dataDir: string, folder: string): Promise<void> {
  const owner = (await readText(join(folder, OWNER_FILE), dataDir))?.trim();
  if (!owner || owner === (await realpath(dataDir))) return;
  const name = await readFile(join(owner, NAME_FILE), "utf8").catch(() => null);
  if (name === null || !folder.endsWith(name.trim())) return; // it was moved here, or restored in another place
  throw new Error(
    `${dataDir} is a copy of ${owner}, and the database in ${folder} belongs to that one: copy it as well and name the copy in ${join(dataDir, NAME_FILE)}, or remove that file to begin with an empty one.`,
  );
}

async function claim(folder: string, dataDir: string): Promise<void> {
  const path = join(folder, OWNER_FILE);
  const line = `${await realpath(dataDir)}\n`;
  if ((await readText(path, dataDir)) === line) return;
  const draft = `${path}.${process.pid}`;
  try {
    await writeFile(draft, line, { mode: 0o644, flush: true });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

async function readText(path: string, dataDir: string): Promise<string | null> {
  return await readFile(path, "utf8").catch(absentOr(dataDir, null));
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(() => true, absentOr("", false));
}

function absentOr<T>(dataDir: string, absent: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return absent;
    const whose = dataDir === "" ? "The database" : `The database of ${dataDir}`;
    throw new Error(`${whose} was made by another user (${error.message}): start Postern as that user, or as root.`);
  };
}
