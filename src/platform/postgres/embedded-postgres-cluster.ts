// What lies in the folder of the embedded database: the cluster, the folder of its socket, its settings, the passwords
// (Windows only), and what postmaster.pid says about a server left over from before. Starts no server and stops none.
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmod,
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir, totalmem } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { isAlive } from "../process/process-alive.ts";
import { makeFolders } from "../storage/make-folders.ts";
import type { Cluster } from "./embedded-postgres-admission.ts";
import { admission, writeAs } from "./embedded-postgres-admission.ts";
import { type PostgresBinaries, program, type RunAs } from "./embedded-postgres-binaries.ts";
import { handOver, makerFor, NOBODY, ownUser, type User } from "./own-user.ts";

const run = promisify(execFile);

const SETTINGS_FILE = "postern.conf";
const SOCKET_PORT = 5432; // only the name of the socket: .s.PGSQL.5432
/** sun_path holds 108 bytes on Linux, 104 on macOS; the server adds `.lock` to a second file. */
const SOCKET_PATH_BYTES_MAX = 100;
const INITDB_TIMEOUT_MS = 300_000; // 0.8 s on a quiet disk
const MIB = 1024 * 1024;

/** Makes and checks the folders around the cluster. Throws a sentence when the server's user cannot reach them. */
export async function prepareFolders(dataDir: string, tcp: boolean, user?: User): Promise<Cluster> {
  const asRoot = process.getuid?.() === 0;
  makeFolders(dataDir, asRoot ? 0o711 : 0o700);
  const folder = await realpath(dataDir);
  const clusterDir = join(folder, "cluster");
  const runAs = user ?? (asRoot ? await unprivilegedUser(folder, clusterDir) : null);
  await refuseForeignCluster(clusterDir);
  if (runAs) await refuseUnreachable(folder, runAs);
  return {
    data_dir: folder,
    cluster_dir: clusterDir,
    run_as: runAs,
    socket_dir: tcp ? null : await socketFolder(folder, runAs),
    passwords: await passwords(folder),
  };
}

/** PostgreSQL refuses to run as root: the owner of the cluster, else a user of its own. */
async function unprivilegedUser(folder: string, clusterDir: string): Promise<User> {
  const owner = await lstat(clusterDir).catch(() => null);
  if (owner && owner.uid !== 0 && owner.uid !== NOBODY) return { uid: owner.uid, gid: owner.gid };
  // A number that is free now is in use once another process has started the database.
  if (!owner) return agreed(join(folder, "database-user.json"), () => ownUser(folder));
  // One that runs stays as it is until it was stopped.
  const file = await readPidFile({ cluster_dir: clusterDir });
  const isUp = file !== null && isAlive(file.pid) && (await isServerOf(file.pid, clusterDir));
  if (isUp) return { uid: owner.uid, gid: owner.gid };
  const user = await ownUser(folder);
  await handOver(clusterDir, user);
  return user;
}

async function refuseForeignCluster(clusterDir: string): Promise<void> {
  const uid = process.getuid?.();
  const owner = await stat(clusterDir).catch(() => null);
  if (!owner || uid === undefined || uid === 0 || owner.uid === uid) return;
  throw new Error(`The database in ${clusterDir} belongs to user ${owner.uid}: start Postern as that user or as root.`);
}

/** Our own folder is opened for passing through (never for listing); a folder above it is the operator's to change. */
async function refuseUnreachable(folder: string, runAs: NonNullable<RunAs>): Promise<void> {
  for (let path = folder; ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const bit = uid === runAs.uid ? 0o100 : gid === runAs.gid ? 0o010 : 0o001;
    if (!(mode & bit)) {
      if (path !== folder) {
        throw new Error(
          `The database runs as user ${runAs.uid} (PostgreSQL refuses root) and cannot reach ${folder}: run chmod o+x ${path}, choose another data folder, or start Postern as an ordinary user.`,
        );
      }
      await chmod(path, mode | bit);
    }
    if (path === dirname(path)) return;
  }
}

async function socketFolder(dataDir: string, runAs: RunAs): Promise<string> {
  const beside = join(dataDir, "run");
  const short = join(tmpdir(), `postern-${createHash("sha256").update(dataDir).digest("hex").slice(0, 16)}`);
  const fits = Buffer.byteLength(join(beside, `.s.PGSQL.${SOCKET_PORT}`)) <= SOCKET_PATH_BYTES_MAX;
  const folder = fits ? beside : short;
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  // In a shared temporary folder somebody else may have been first: take a real folder that is ours, nothing else.
  const found = await lstat(folder);
  const owner = runAs?.uid ?? process.getuid?.();
  const isOurs = found.uid === owner || found.uid === process.getuid?.() || (runAs !== null && found.uid === NOBODY);
  if (!found.isDirectory() || !isOurs) {
    throw new Error(`${folder} is needed for the database's socket and belongs to somebody else: remove it.`);
  }
  if (runAs) await lchown(folder, runAs.uid, runAs.gid);
  await chmod(folder, 0o700);
  return folder;
}

function passwords(dataDir: string): Promise<{ admin: string; owner: string }> {
  const password = () => randomBytes(24).toString("base64url");
  return agreed(join(dataDir, "passwords.json"), async () => ({ admin: password(), owner: password() }));
}

/** What `path` holds, for all processes of the folder; of those that begin at once the first makes it. */
async function agreed<T>(path: string, make: () => Promise<T>): Promise<T> {
  if ((await lstat(path).catch(() => null)) === null) {
    const draft = `${path}.${process.pid}`;
    try {
      await writeFile(draft, `${JSON.stringify(await make())}\n`, { mode: 0o600, flush: true });
      // Linked when whole.
      await link(draft, path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
    } finally {
      await rm(draft, { force: true });
    }
  }
  return JSON.parse(await readFile(path, "utf8"));
}

// The cluster --------------------------------------------------------------------------------------------------------

/** The major version the cluster was made by; null when there is no cluster yet. */
export async function clusterMajor(cluster: Pick<Cluster, "cluster_dir">): Promise<number | null> {
  const text = await readFile(join(cluster.cluster_dir, "PG_VERSION"), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return null;
  });
  return text === null ? null : Number.parseInt(text, 10);
}

/** Makes the cluster beside its place and moves it there when complete: a killed first start leaves nothing half-made. */
export async function createCluster(cluster: Cluster, binaries: PostgresBinaries, sync: boolean): Promise<void> {
  await removeUnfinished(cluster.data_dir);
  const fresh = `${cluster.cluster_dir}.new-${process.pid}`;
  const maker = cluster.run_as ? await makerFor(cluster.run_as) : null;
  await mkdir(fresh, { mode: 0o700 });
  if (maker) await lchown(fresh, maker.uid, maker.gid);
  try {
    await initdb(cluster, binaries, { folder: fresh, maker, more: sync ? [] : ["--no-sync"] });
    if (cluster.run_as) await handOver(fresh, cluster.run_as);
    // Flushed: initdb has synced its own files, and a power cut would leave these with the right length and no content.
    await writeAs(cluster.run_as, join(fresh, "pg_hba.conf"), { text: admission(cluster), sync });
    const include = `\ninclude_if_exists '${SETTINGS_FILE}'\n`;
    await writeAs(cluster.run_as, join(fresh, "postgresql.conf"), { text: include, sync, appended: true });
    if (sync) await syncFolder(fresh);
    await rename(fresh, cluster.cluster_dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error; // else another process was faster
    });
    await syncFolder(cluster.data_dir);
  } catch (error) {
    // Where it is in the temporary folder, the next start would take it for somebody else's, if that is another user's.
    if (cluster.socket_dir !== null) await rmdir(cluster.socket_dir).catch(() => undefined);
    throw error;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

type Making = { folder: string; maker: RunAs; more: string[] };

async function initdb(cluster: Cluster, binaries: PostgresBinaries, { folder, maker, more }: Making): Promise<void> {
  const options = [`--pgdata=${folder}`, "--username=postgres", "--no-instructions", ...more];
  // Byte order sorts the same on every machine and needs no rebuilding of indexes when a C library changes.
  options.push("--locale=C", "--encoding=UTF8", "--data-checksums");
  const passwordFile = `${folder}.password`;
  await rm(passwordFile, { force: true });
  await writeFile(passwordFile, cluster.passwords.admin, { mode: 0o600, flag: "wx" });
  if (maker) await lchown(passwordFile, maker.uid, maker.gid);
  options.push(`--pwfile=${passwordFile}`, "--auth=scram-sha-256");
  try {
    await run(program(binaries, "initdb"), options, {
      env: { LC_ALL: "C" },
      timeout: INITDB_TIMEOUT_MS,
      ...(maker ?? {}),
    });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(
      `The database could not be created in ${cluster.data_dir}: ${initdbWords((stderr || message).trim(), cluster)}`,
    );
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** A number without a name cannot make a database; root gives it one that an account of the system made. */
function initdbWords(says: string, { data_dir }: Cluster): string {
  const uid = /could not look up effective user ID (\d+)/.exec(says)?.[1];
  if (uid === undefined) return says;
  return `PostgreSQL cannot be set up by user ${uid}, who has no name on this machine. As root: chown -R root:root ${dirname(data_dir)}, then postern start; or make a user of that number (useradd --system --uid ${uid} postern).`;
}

async function removeUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const maker = /^cluster\.new-(\d+)(\.password)?$/.exec(name)?.[1];
    if (maker === undefined || (Number(maker) !== process.pid && isAlive(Number(maker)))) continue;
    await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there; NTFS journals the rename
  const handle = await open(path, "r");
  await handle.sync().finally(() => handle.close());
}

// Settings -----------------------------------------------------------------------------------------------------------

type Setting = [name: string, value: string, reason: string];

/** Durable, and sized for one small machine that also runs Postern. The operator's ALTER SYSTEM overrides them all. */
function ourSettings(memoryBytes: number, lz4: boolean): Setting[] {
  const sharedMib = memoryBytes < 4096 * MIB ? 128 : 256;
  const cacheMib = Math.max(sharedMib, Math.floor(memoryBytes / MIB / 2));
  return [
    ["fsync", "on", "what was answered 202 or 250 survives a power cut"],
    ["synchronous_commit", "on", "the same: the answer follows the commit record on disk"],
    ["full_page_writes", "on", "the same: a page torn by a power cut is repaired"],
    ["shared_buffers", `${sharedMib}MB`, "the queue's hot pages; the rest is the kernel's cache"],
    ["effective_cache_size", `${cacheMib}MB`, "half the memory is likely cache; only steers the planner"],
    ["work_mem", "8MB", "statements are short; 100 connections must not use up the memory"],
    ["maintenance_work_mem", "64MB", "indexes and vacuum of partitions of a day"],
    ["wal_compression", lz4 ? "lz4" : "on", "the full pages that follow a checkpoint compress well"],
    ["wal_buffers", "16MB", "one segment: many bodies of 256 KiB commit at once"],
    ["max_wal_size", "4GB", "checkpoints by time, not by volume, while mail with bodies comes in"],
    ["min_wal_size", "256MB", "recycled segments need no new disk blocks"],
    ["checkpoint_timeout", "15min", "fewer full pages in the log; the price is a longer recovery"],
    ["max_connections", "100", "the pools of all roles on one machine, and a person with psql"],
    ["random_page_cost", "1.1", "solid state disks"],
    ["jit", "off", "compiling costs more than our longest statement"],
    ["max_parallel_workers_per_gather", "0", "short statements; also containers have only 64 MB of /dev/shm"],
    ["autovacuum_naptime", "15s", "queue rows die within seconds of their birth"],
    ["autovacuum_vacuum_scale_factor", "0.05", "the same: index scans over dead rows slow every claim"],
    ["autovacuum_vacuum_cost_limit", "1000", "solid state disks; the default is for spinning ones"],
    ["idle_in_transaction_session_timeout", "60s", "no transaction waits for anything; a stuck one blocks vacuum"],
    ["temp_file_limit", "2GB", "a runaway sort must not fill the disk the log is on"],
    ["timezone", "UTC", "days and partitions are UTC days"],
    ["log_timezone", "UTC", "the same clock in all logs"],
    ["log_checkpoints", "off", "one line every 15 minutes that says nothing is wrong"],
    ["log_line_prefix", "[%p] ", "our own log adds the time"],
    ["log_error_verbosity", "terse", "no DETAIL: it quotes rows, and logs hold no addresses"],
    ["log_min_error_statement", "panic", "no statement texts: they may quote addresses"],
    ["log_parameter_max_length", "0", "nor parameters"],
    ["cluster_name", "postern", "seen in ps"],
  ];
}

/** The text of postern.conf. `overrides` win over our settings, not over how the server is reached. */
export function settingsText(cluster: Cluster, port: number, lz4: boolean, overrides: Record<string, string>): string {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  const lines = ["# Written by Postern at every start. Use ALTER SYSTEM for settings of your own."];
  for (const [name, value, reason] of ourSettings(memory, lz4)) lines.push(`${setting(name, value)} # ${reason}`);
  for (const [name, value] of Object.entries(overrides)) lines.push(setting(name, value));
  lines.push(setting("port", String(port)));
  lines.push(setting("listen_addresses", cluster.socket_dir === null ? "127.0.0.1" : ""));
  lines.push(setting("unix_socket_directories", cluster.socket_dir ?? ""));
  if (cluster.socket_dir !== null) lines.push(setting("unix_socket_permissions", "0700"));
  // The kernel tells a busy backend that its client is gone, so a killed process's statements end too.
  if (process.platform === "linux") lines.push(setting("client_connection_check_interval", "10s"));
  return `${lines.join("\n")}\n`;
}

function setting(name: string, value: string): string {
  if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw new Error(`"${name}" is not the name of a PostgreSQL setting.`);
  if (/[\r\n\0]/.test(value)) throw new Error(`The value of the PostgreSQL setting ${name} must be one line.`);
  return `${name} = '${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

/** The settings the cluster was last started with; null when it has not been. */
export async function readSettings(cluster: Cluster): Promise<string | null> {
  return await readFile(join(cluster.cluster_dir, SETTINGS_FILE), "utf8").catch(() => null);
}

/** Replaces postern.conf as a whole; another process may be doing the same. */
export async function writeSettings(cluster: Cluster, text: string): Promise<void> {
  await writeAs(cluster.run_as, join(cluster.cluster_dir, SETTINGS_FILE), { text, sync: true });
  await syncFolder(cluster.cluster_dir);
}

/** Whether this server was built with lz4: the npm package is not, distributions are. */
export async function hasLz4(cluster: Cluster, binaries: PostgresBinaries): Promise<boolean> {
  const options = ["-D", cluster.cluster_dir, "-C", "wal_compression", "-c", "wal_compression=lz4"];
  return await run(program(binaries, "postgres"), options, { env: {}, ...(cluster.run_as ?? {}) }).then(
    () => true,
    () => false,
  );
}

// postmaster.pid -----------------------------------------------------------------------------------------------------

export type PidFile = { pid: number; port: number; socket_dir: string; status: string };

/** postmaster.pid (src/include/utils/pidfile.h of PostgreSQL): eight lines, the last ones appear while it starts. */
export async function readPidFile(cluster: Pick<Cluster, "cluster_dir">): Promise<PidFile | null> {
  const text = await readFile(join(cluster.cluster_dir, "postmaster.pid"), "utf8").catch(() => null);
  const lines = text?.split("\n") ?? [];
  const pid = Math.abs(Number.parseInt(lines[0] ?? "", 10)); // negative: single-user mode
  if (!(pid > 0)) return null;
  return { pid, port: Number(lines[3] ?? 0), socket_dir: lines[4] ?? "", status: (lines[7] ?? "").trim() };
}

/**
 * The server of this cluster that is alive, or null. A pid file whose process is gone, or whose number now belongs to
 * another program, is removed with the socket's lock file: PostgreSQL itself would take any living process for a server.
 */
export async function leftOverServer(cluster: Cluster): Promise<PidFile | null> {
  const file = await readPidFile(cluster);
  if (file === null) return null;
  if (isAlive(file.pid) && (await isServerOf(file.pid, cluster.cluster_dir))) return file;
  if (await answers(file)) {
    throw new Error(
      `The database in ${cluster.data_dir} is in use by a server this process cannot see, perhaps in another container: stop that one first.`,
    );
  }
  // Another process may have started a server meanwhile, and PostgreSQL ends when its pid file goes.
  if ((await readPidFile(cluster))?.pid !== file.pid) return await leftOverServer(cluster);
  await rm(join(cluster.cluster_dir, "postmaster.pid"), { force: true });
  if (file.socket_dir !== "") {
    await rm(join(file.socket_dir, `.s.PGSQL.${file.port}.lock`), { force: true });
    await rm(join(file.socket_dir, `.s.PGSQL.${file.port}`), { force: true });
  }
  return null;
}

/** Whether process `pid` is a PostgreSQL server working in `clusterDir`: process numbers are used again. */
export async function isServerOf(pid: number, clusterDir: string): Promise<boolean> {
  if (process.platform === "win32") return true; // no cheap way to ask; the server's own check decides
  if (process.platform !== "linux") {
    const { stdout } = await run("/bin/ps", ["-o", "command=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
    return stdout.includes("postgres") && stdout.includes(clusterDir);
  }
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  const [program = "", ...options] = command.split("\0");
  if (basename(program) !== "postgres") return false;
  const folder = await readlink(`/proc/${pid}/cwd`).catch(() => null); // a server works inside its cluster
  return folder === clusterDir || options.includes(clusterDir);
}

async function answers(file: PidFile): Promise<boolean> {
  if (file.socket_dir === "") return false;
  const socket = connect(join(file.socket_dir, `.s.PGSQL.${file.port}`));
  return (await new Promise((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy())) as boolean;
}

/** Where the server listens: the fixed name of its socket, or on Windows a TCP port that is free now. */
export async function choosePort(cluster: Cluster): Promise<number> {
  if (cluster.socket_dir !== null) return SOCKET_PORT;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
