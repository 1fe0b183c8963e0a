// A PostgreSQL of the distribution with its own tools (pg_dump, pg_restore), for tests that need these or a server with
// settings of its own. The embedded one brings neither. Null where the machine has none.
import { readdir } from "node:fs/promises";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";

export type SystemPostgres = EmbeddedPostgres & { bin_dir: string };

const OLDEST = 15;

/** Starts the newest there is in `data_dir`, over TCP with passwords. */
export async function startSystemPostgres(
  data_dir: string,
  settings: Record<string, string> = {},
): Promise<SystemPostgres | null> {
  const majors = (await readdir("/usr/lib/postgresql").catch(() => [])).map(Number).filter((major) => major >= OLDEST);
  if (majors.length === 0) return null;
  const bin_dir = `/usr/lib/postgresql/${Math.max(...majors)}/bin`;
  return { ...(await startEmbeddedPostgres({ data_dir, bin_dir, tcp: true, settings })), bin_dir };
}
