// Does a data folder belong to a database that is not there? Its volume may not be mounted, or DATABASE_URL may name another
// one: an empty database would answer mail for all its domains with 550, and API keys with 401. So each start notes the
// database's id in the folder, and an empty database is refused where the folder holds anything of another. A master key
// alone counts too, unless the folder says that it was made here and has had no database yet (an empty list of ids).
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolders } from "./make-folders.ts";

/** One id a line. It is made empty, before the master key, by the first start. */
export const IDS_FILE = "database-ids";

const AFRESH =
  "To begin with an empty one, set POSTERN_DATA to another folder, and POSTERN_MASTER_KEY where a key that you have is to be used.";

/** Throws one sentence where the folder has had a database, and the embedded one is not there and would be made. */
export async function refuseLostDatabase(dataDir: string, isThere: () => Promise<boolean>): Promise<void> {
  const found = await tracesIn(dataDir);
  if (found === "" || (await isThere())) return;
  throw new Error(
    `the database of ${dataDir} is not there, but ${found} of it: is its volume mounted? Put the database back. ${AFRESH}`,
  );
}

/** Throws one sentence where an empty database meets the folder of another one. */
export async function refuseEmptyDatabase(dataDir: string, isEmpty: () => Promise<boolean>): Promise<void> {
  // In this order: beside us another process may be at its first start, which notes the database before its folder.
  const found = await tracesIn(dataDir);
  if (found === "" || !(await isEmpty())) return;
  throw new Error(
    `the database is empty, but the data folder ${dataDir} holds ${found} of another one: does DATABASE_URL name the right database, and is its volume mounted? ${AFRESH}`,
  );
}

/** Notes that the folder serves this database; it may serve several. */
export async function noteDatabase(dataDir: string, id: string): Promise<void> {
  const known = (await idsIn(dataDir)) ?? "";
  if (known.split("\n").includes(id)) return;
  makeFolders(dataDir);
  await appendFile(join(dataDir, IDS_FILE), `${id}\n`, { mode: 0o600, flush: true });
}

/** What there is of a database, in words; "" for nothing. */
async function tracesIn(dataDir: string): Promise<string> {
  const names = await readdir(dataDir).catch(absentAs<string[]>([]));
  const ids = await idsIn(dataDir);
  const found = [
    names.includes("master.key") && ids === null ? "the master key" : "",
    ids ? "the id" : "",
    names.some((name) => /^sending-.+\.mark$/.test(name)) ? "the sending mark" : "",
    (await holdsBlobs(join(dataDir, "blobs"))) ? "the large bodies" : "",
  ];
  return found.filter((name) => name !== "").join(", ");
}

/** Null: the folder has no list. */
function idsIn(dataDir: string): Promise<string | null> {
  return readFile(join(dataDir, IDS_FILE), "utf8").catch(absentAs(null));
}

/** Blobs are files `ab/cd/<key>`; folders alone are left when the last of them went. There may be millions. */
async function holdsBlobs(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(absentAs([]));
  if (entries.some((entry) => entry.isFile())) return true;
  for (const entry of entries) {
    if (entry.isDirectory() && (await holdsBlobs(join(folder, entry.name)))) return true;
  }
  return false;
}

function absentAs<T>(absent: T): (error: { code?: string }) => T {
  return (error) => {
    if (error.code === "ENOENT") return absent;
    throw error;
  };
}
