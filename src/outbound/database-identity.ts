// Which database this is: its cluster and, of the embedded one, its files. A copy of the files that was set back in their
// place holds the same cluster; what a backup cannot bring back are numbers and times that the file system itself gives.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { findDatabase } from "../platform/database-folder.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./guard-queries.ts";

const UNKNOWN = "unknown";

/**
 * `<system identifier>/<timeline>`, then of the embedded database `/<files>`: the same after a restart, a kill and an upgrade.
 * A cluster that may not be asked who it is, as some providers have it, is "unknown". `elsewhere` is the tests'.
 */
export async function identityOf({ db, config }: Pick<World, "db" | "config">, elsewhere?: string): Promise<string> {
  const [row] = await queries.findCluster(db).catch(unlessRefused);
  if (!row) return UNKNOWN;
  const place = config.database_url === null ? await findDatabase(config.data_dir, elsewhere) : null;
  const files = place && (await filesOf(join(place.folder, "cluster")));
  return files ? `${row.cluster}/${files}` : row.cluster;
}

/** Is it the noted one? Older versions noted less of the embedded database: the beginning of what is noted now. */
export function isSame(noted: string, actual: string): boolean {
  return noted === actual || noted === UNKNOWN || actual === UNKNOWN || isBeginning(noted, actual);
}

/** Is `noted` what an older version noted of `actual`? */
export function isBeginning(noted: string, actual: string): boolean {
  return actual.startsWith(`${noted}/`);
}

/**
 * PostgreSQL never touches PG_VERSION and writes pg_control in its place. The first has another ctime after `tar` and `cp`,
 * even where it got its old inode; `rsync` leaves it alone and replaces the second. Whole seconds: some file systems keep
 * no more on disk than that.
 */
async function filesOf(cluster: string): Promise<string | null> {
  const [version, control] = await Promise.all(
    ["PG_VERSION", "global/pg_control"].map((name) => stat(join(cluster, name), { bigint: true }).catch(unlessAbsent)),
  );
  return version && control ? `${version.ino}/${version.ctimeMs / 1000n}/${control.ino}` : null;
}

/** A role without the right, or a server without these functions. A lost connection is no answer: it must not end the check. */
function unlessRefused(error: { code?: string }): [] {
  if (error.code === "42501" || error.code === "42883") return [];
  throw error;
}

function unlessAbsent(error: { code?: string }): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
