// Where the embedded database's files lie. In the data folder; but PostgreSQL refuses to run as root, and the ordinary
// user it then runs as may not be able to pass through the folders above (a home folder, a private temporary one). Then
// the files go below /var/lib/postern, under a name that the data folder remembers.
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const ELSEWHERE = "/var/lib/postern";
const PASS_THROUGH = 0o001;

/** The folder to give to the embedded database; `moved` tells that it is not inside `dataDir`. */
export async function databaseFolder(dataDir: string): Promise<{ folder: string; moved: boolean }> {
  const inside = join(dataDir, "postgres");
  if (process.getuid?.() !== 0) return { folder: inside, moved: false };
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const { mode } = await stat(dataDir);
  if (!(mode & PASS_THROUGH)) await chmod(dataDir, mode | PASS_THROUGH);
  if (await canPass(dirname(dataDir))) return { folder: inside, moved: false };
  return { folder: join(ELSEWHERE, await nameOf(dataDir)), moved: true };
}

async function canPass(folder: string): Promise<boolean> {
  for (let path = folder; ; path = dirname(path)) {
    if (!((await stat(path)).mode & PASS_THROUGH)) return false;
    if (path === dirname(path)) return true;
  }
}

/** A data folder that was deleted and made anew gets a new database, as it would with the files inside. */
async function nameOf(dataDir: string): Promise<string> {
  const file = join(dataDir, "database-name");
  const known = await readFile(file, "utf8").catch(() => "");
  if (/^[0-9a-f]{32}$/.test(known.trim())) return known.trim();
  const name = randomBytes(16).toString("hex");
  await writeFile(file, `${name}\n`, { mode: 0o600, flush: true });
  return name;
}
