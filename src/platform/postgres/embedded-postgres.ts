// The database for one machine: a real PostgreSQL of our own, started, watched and stopped by this process. Data is as
// durable as in any PostgreSQL; the server keeps running when this process is killed, and the next start adopts it.
// Nobody can reach it but this user (and root): passwords, over a socket in a private folder, on Windows over 127.0.0.1.
// One process supervises a data folder: it holds an advisory lock in the database, which the kernel frees when it dies.
// As root the server runs as the owner of the cluster, else as `postern` if there is such a user, else under a number of its
// own; a cluster that an earlier version gave to `nobody` is handed over to that user.
// Not here: connection pools (db.ts), migrations (migrate.ts), upgrades between major versions.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { isAlive } from "../process/process-alive.ts";
import type { Cluster } from "./embedded-postgres-admission.ts";
import { admitAll, givePasswords, oldAdmission } from "./embedded-postgres-admission.ts";
import { findPostgres, type PostgresBinaries, program, removeOldCopies } from "./embedded-postgres-binaries.ts";
import {
  choosePort,
  clusterMajor,
  createCluster,
  hasLz4,
  isServerOf,
  leftOverServer,
  prepareFolders,
  readPidFile,
  readSettings,
  settingsText,
  writeSettings,
} from "./embedded-postgres-cluster.ts";
import { ANSWER_TIMEOUT_MS, hasOtherUsers, isAbandoned, SUPERVISOR_LOCK, USER_NAME } from "./supervision.ts";

const run = promisify(execFile);

const OWNER = "postern";
const MADE =
  "select exists (select from pg_roles where rolname = $1) as role, exists (select from pg_database where datname = $1) as database";
const POLL_MS = 10;
const START_TIMEOUT_MS = 15 * 60_000; // crash recovery of 4 GB of log on a slow disk
const STILL_STARTING_EVERY_MS = 10_000;
const OLD_BACKENDS_TIMEOUT_MS = 30_000;
const FAST_STOP_TIMEOUT_MS = 60_000;
const ADMIN_SHUTDOWN = "57P01"; // what a session gets when the server stops; 57P02 would be another's crash
const IMMEDIATE_STOP_TIMEOUT_MS = 20_000;
const RELOCK_TIMEOUT_MS = 60_000;
const LAST_LINES_MAX = 20;
const LINE_CHARACTERS_MAX = 2_000;

export type EmbeddedPostgresOptions = {
  data_dir: string;
  /** PostgreSQL settings that win over ours. */
  settings?: Record<string, string>;
  log?: (line: string) => void;
  /** The folder with `postgres` and `initdb` to use instead of the npm package or what the machine has. */
  bin_dir?: string;
  /** TCP on 127.0.0.1 with passwords instead of a private socket; always so on Windows. */
  tcp?: boolean;
};

export type ServerExit = { code: number | null; signal: string | null };

export type EmbeddedPostgres = {
  /** As role `postern`, which owns database `postern` and is neither superuser nor exempt from row-level security. */
  readonly url: string;
  readonly admin_url: string;
  readonly socket_dir: string | null;
  readonly port: number;
  readonly pid: number;
  readonly version: string;
  /** True when the server was left over from a killed process and went on running. */
  readonly adopted: boolean;
  alive(): boolean;
  /** Starts the server again, after a crash or to make settings take effect; the addresses stay the same. */
  restart(): Promise<void>;
  /** Ends all sessions, writes a checkpoint, and resolves when the process is gone. Calling it twice is fine. */
  stop(): Promise<void>;
  /** Stops it unless our other processes use it: then it goes on, and one of them may supervise it. */
  leave(): Promise<void>;
  /** Calls `listener` when the server ends and nobody asked for it. */
  onExit(listener: (exit: ServerExit) => void): void;
};

type Server = {
  cluster: Cluster;
  binaries: PostgresBinaries;
  settings: string;
  log: (line: string) => void;
  port: number;
  pid: number;
  adopted: boolean;
  child: ChildProcess | null;
  /** Resolves when the child has gone and all it said has been read. */
  closed: Promise<void>;
  last_lines: string[];
  supervision: pg.Client | null;
  /** Only the end of a `running` server is news: while starting it is an error, while ending it is wanted. */
  phase: "starting" | "running" | "ending";
  listeners: ((exit: ServerExit) => void)[];
};

/** Thrown when another process supervises this cluster, or has begun to. */
export class DatabaseInUse extends Error {}

/**
 * Starts PostgreSQL in `data_dir` (creating the cluster at the first start), or adopts the one a killed process left
 * running there. Throws one sentence when no PostgreSQL can be run, or when another process supervises this folder.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const server = await prepare(options);
  if (server.pid !== 0) await adopt(server);
  if (!server.adopted) await startFresh(server);
  try {
    await createOwner(server);
  } catch (error) {
    await stop(server);
    throw error;
  }
  return face(server);
}

/**
 * True if the role and the database that Postern works with exist: the process that supervises the server makes them.
 */
export async function isMade(adminUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: adminUrl, connectionTimeoutMillis: ANSWER_TIMEOUT_MS });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(MADE, [OWNER]);
    return rows[0].role && rows[0].database;
  } catch {
    return false; // it stops, or its sessions are cut by a crash: to be looked at again
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The addresses of the server that runs in `data_dir` under another process's care; null when none does. */
export async function runningEmbeddedPostgres(dataDir: string): Promise<{ url: string; admin_url: string } | null> {
  const folder = await realpath(dataDir).catch(() => null);
  if (folder === null) return null;
  const file = await readPidFile({ cluster_dir: join(folder, "cluster") });
  if (file === null || file.status !== "ready" || !(await isServerOf(file.pid, join(folder, "cluster")))) return null;
  const cluster = await prepareFolders(folder, file.socket_dir === "");
  return addresses(cluster, file.port);
}

async function prepare(options: EmbeddedPostgresOptions): Promise<Server> {
  const cluster = await prepareFolders(options.data_dir, options.tcp ?? process.platform === "win32");
  const major = await clusterMajor(cluster);
  const search = { data_dir: cluster.data_dir, run_as: cluster.run_as, bin_dir: options.bin_dir, cluster_major: major };
  const binaries = await findPostgres(search);
  if (major === null) await createCluster(cluster, binaries, options.settings?.fsync !== "off");
  const running = await leftOverServer(cluster);
  const port = running?.port ?? (await choosePort(cluster));
  return {
    cluster,
    binaries,
    settings: settingsText(cluster, port, await hasLz4(cluster, binaries), options.settings ?? {}),
    log: options.log ?? (() => undefined),
    port,
    pid: running?.pid ?? 0,
    adopted: false,
    child: null,
    closed: Promise.resolve(),
    last_lines: [],
    supervision: null,
    phase: "starting",
    listeners: [],
  };
}

function face(server: Server): EmbeddedPostgres {
  let last: Promise<void> = Promise.resolve();
  const oneAtATime = (action: () => Promise<void>): Promise<void> => {
    last = last.then(action, action);
    return last;
  };
  return {
    ...addresses(server.cluster, server.port),
    socket_dir: server.cluster.socket_dir,
    port: server.port,
    version: server.binaries.version,
    adopted: server.adopted,
    get pid() {
      return server.pid;
    },
    alive: () => isRunning(server),
    restart: () => oneAtATime(() => restart(server)),
    stop: () => oneAtATime(() => stop(server)),
    leave: () => oneAtATime(() => leave(server)),
    onExit: (listener) => void server.listeners.push(listener),
  };
}

/** `localhost` is a placeholder (the `host` parameter wins); without it `new URL` refuses the address. */
function addresses(cluster: Cluster, port: number): { url: string; admin_url: string } {
  const name = `application_name=${encodeURIComponent(USER_NAME)}`;
  const { admin, owner } = cluster.passwords;
  if (cluster.socket_dir === null) {
    return {
      url: `postgresql://${OWNER}:${owner}@127.0.0.1:${port}/${OWNER}?${name}`,
      admin_url: `postgresql://postgres:${admin}@127.0.0.1:${port}/postgres`,
    };
  }
  const socket = `host=${encodeURIComponent(cluster.socket_dir)}`;
  return {
    url: `postgresql://${OWNER}:${owner}@localhost:${port}/${OWNER}?${socket}&${name}`,
    admin_url: `postgresql://postgres:${admin}@localhost:${port}/postgres?${socket}`,
  };
}

// Starting -----------------------------------------------------------------------------------------------------------

/** Takes over the server that is alive; stops it when it runs another version or with other settings than wanted. */
async function adopt(server: Server): Promise<void> {
  await untilReady(server);
  try {
    if (isRunning(server)) await supervise(server);
  } catch (error) {
    if (error instanceof DatabaseInUse || !(await gone(server, FAST_STOP_TIMEOUT_MS))) throw error;
  }
  if (server.supervision === null) return; // it was on its way down
  const { rows } = await server.supervision.query("select split_part(version(), ' ', 2) as version");
  const sameVersion = rows[0].version === server.binaries.version;
  if (sameVersion && (await readSettings(server.cluster)) === server.settings) {
    server.adopted = true;
    server.phase = "running";
    server.log(`adopted the PostgreSQL ${server.binaries.version} that was left running as process ${server.pid}`);
  } else {
    server.log(`the PostgreSQL left running as process ${server.pid} has another version or settings: starting again`);
    await stop(server);
  }
}

async function startFresh(server: Server): Promise<void> {
  server.phase = "starting";
  await writeSettings(server.cluster, server.settings);
  const before = await oldAdmission(server.cluster);
  if (before !== null) await admitAll(server.cluster);
  await launchUntilOldBackendsAreGone(server);
  try {
    await supervise(server);
    if (before !== null) await givePasswords(server.cluster, server.supervision as pg.Client, before);
  } catch (error) {
    if (error instanceof DatabaseInUse) disown(server);
    else await stop(server);
    throw error;
  }
  server.phase = "running";
  await removeOldCopies(server.cluster.data_dir, server.binaries);
}

/** Another process adopted our server in the moment before we could lock it: it is theirs now. */
function disown(server: Server): void {
  server.child?.unref();
  server.child?.stderr?.destroy();
}

/** Backends outlive a kill -9 of their postmaster for a moment; an empty lock file is of a server that another process starts. */
async function launchUntilOldBackendsAreGone(server: Server): Promise<void> {
  const deadline = performance.now() + OLD_BACKENDS_TIMEOUT_MS;
  for (;;) {
    launch(server);
    await untilReady(server);
    if (isRunning(server)) return;
    await server.closed;
    const lines = server.last_lines.join("\n");
    if (lines.includes('lock file "postmaster.pid" already exists')) {
      throw new DatabaseInUse(
        `The database in ${server.cluster.data_dir} is already in use by another Postern, which started it at the same moment: ${lines}`,
      );
    }
    if (!/shared memory block|"postmaster.pid" is empty/.test(lines) || performance.now() > deadline) {
      const first = lines.includes("No space left on device") ? "its disk is full, make room on it.\n" : "";
      throw new Error(`PostgreSQL did not start in ${server.cluster.data_dir}: ${first}${lines || "it said nothing"}`);
    }
    await sleep(POLL_MS * 10);
  }
}

function launch(server: Server): void {
  server.last_lines = [];
  const child = spawn(program(server.binaries, "postgres"), ["-D", server.cluster.cluster_dir], {
    cwd: server.cluster.data_dir,
    env: {}, // PGPORT, PGOPTIONS and the like of the operator's shell are not for this server
    detached: true, // Ctrl-C ends this process in good order, then this process ends the server
    stdio: ["ignore", "ignore", "pipe"],
    windowsHide: true,
    ...(server.cluster.run_as ?? {}),
  });
  server.child = child;
  server.pid = child.pid ?? 0;
  server.adopted = false;
  readLines(child, server);
  child.once("error", (error) => rememberLine(server, error.message));
  child.once("exit", (code, signal) => announce(server, { code, signal }));
  server.closed = new Promise((resolve) => child.once("close", () => resolve()));
}

function readLines(child: ChildProcess, server: Server): void {
  let rest = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = (lines.pop() ?? "").slice(0, LINE_CHARACTERS_MAX);
    for (const line of lines) {
      rememberLine(server, line.slice(0, LINE_CHARACTERS_MAX));
      server.log(line.slice(0, LINE_CHARACTERS_MAX));
    }
  });
}

function rememberLine(server: Server, line: string): void {
  server.last_lines.push(line);
  if (server.last_lines.length > LAST_LINES_MAX) server.last_lines.shift();
}

/** Resolves when the server accepts connections, or when its process is gone. */
async function untilReady(server: Server): Promise<void> {
  const started = performance.now();
  let nextLine = started + STILL_STARTING_EVERY_MS;
  while (isRunning(server)) {
    const file = await readPidFile(server.cluster);
    if (file?.pid === server.pid && file.status === "ready") return;
    if (performance.now() > nextLine) {
      nextLine += STILL_STARTING_EVERY_MS;
      server.log("still waiting for PostgreSQL: it recovers what a crash left, or checks its disk");
    }
    if (performance.now() - started > START_TIMEOUT_MS) {
      throw new Error(`PostgreSQL (process ${server.pid}) is not ready after ${START_TIMEOUT_MS / 60_000} minutes.`);
    }
    await sleep(POLL_MS);
  }
}

function isRunning(server: Server): boolean {
  if (server.child?.pid === server.pid) return server.child.exitCode === null && server.child.signalCode === null;
  return server.pid !== 0 && isAlive(server.pid);
}

// Supervision --------------------------------------------------------------------------------------------------------

/** Takes the lock that says "this process cares for this cluster". Throws when another process holds it. */
async function supervise(server: Server): Promise<void> {
  const client = new pg.Client({
    connectionString: addresses(server.cluster, server.port).admin_url,
    application_name: `postern supervisor ${process.pid}`,
    connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  });
  client.on("error", () => undefined); // "end" follows, and that is where it is handled
  await client.connect();
  const { rows } = await client.query("select pg_try_advisory_lock($1) as locked", [SUPERVISOR_LOCK]);
  if (!rows[0].locked) {
    const holder = await client.query(
      "select application_name from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory' and objid = $1",
      [SUPERVISOR_LOCK],
    );
    await client.end();
    const process_id = /\d+$/.exec(holder.rows[0]?.application_name ?? "")?.[0] ?? "unknown";
    throw new DatabaseInUse(
      `The database in ${server.cluster.data_dir} is already in use by another Postern (process ${process_id}): stop that one first, or give this one a data folder of its own.`,
    );
  }
  server.supervision = client;
  client.once("end", () => void supervisionLost(server, client));
}

/** A backend's crash ends all sessions while the server goes on: then take the lock again. */
async function supervisionLost(server: Server, client: pg.Client): Promise<void> {
  if (server.supervision !== client) return;
  server.supervision = null;
  const deadline = performance.now() + RELOCK_TIMEOUT_MS;
  let why = "";
  while (server.phase === "running" && isRunning(server)) {
    try {
      await supervise(server);
      return;
    } catch (error) {
      why = (error as Error).message;
    }
    if (performance.now() > deadline) return server.log(`PostgreSQL runs, but no longer under our lock: ${why}`);
    await sleep(POLL_MS * 10);
  }
  if (server.child === null) announce(server, { code: null, signal: null }); // an adopted server is no child of this process
}

function announce(server: Server, exit: ServerExit): void {
  if (server.phase !== "running") return;
  server.phase = "ending";
  for (const listener of server.listeners) listener(exit);
}

// Stopping -----------------------------------------------------------------------------------------------------------

async function restart(server: Server): Promise<void> {
  await stop(server);
  const other = await leftOverServer(server.cluster);
  if (other) throw new Error(`Another process (${other.pid}) has started the database in ${server.cluster.data_dir}.`);
  await startFresh(server);
}

async function stop(server: Server): Promise<void> {
  server.phase = "ending";
  const session = server.supervision;
  server.supervision = null;
  if (!isRunning(server)) return;
  if (session !== null && (await stopsInOrder(server, session)) && (await gone(server, FAST_STOP_TIMEOUT_MS))) return;
  server.log("stopping PostgreSQL at once; the next start recovers from its log");
  await signal(server, "SIGQUIT"); // immediate
  if (await gone(server, IMMEDIATE_STOP_TIMEOUT_MS)) return;
  throw new Error(`PostgreSQL (process ${server.pid}) does not stop; look at it before you start Postern again.`);
}

/** Who has given the lock up looks once more: the others may have ended, and found it taken, in the same moment. */
async function leave(server: Server): Promise<void> {
  const session = server.supervision;
  if (session === null || !(await hasOtherUsers(session).catch(() => false))) return await stop(server);
  server.phase = "ending";
  server.supervision = null;
  await session.end().catch(() => undefined);
  disown(server);
  if (await isAbandoned(addresses(server.cluster, server.port).admin_url)) await stop(server);
}

/**
 * Asks for a fast stop: sessions end, a checkpoint is written. Answers whether that is what happens. When a backend has
 * just crashed it is not: our session ends for that reason, and PostgreSQL 18.4, recovering, then never ends (seen with
 * SIGINT 0 to 40 ms after the crash). There is nothing to checkpoint in that state.
 */
async function stopsInOrder(server: Server, session: pg.Client): Promise<boolean> {
  let reason: string | undefined;
  session.on("error", (error: Error & { code?: string }) => {
    reason ??= error.code;
  });
  const ended = new Promise<boolean>((resolve) => session.once("end", () => resolve(reason === ADMIN_SHUTDOWN)));
  await signal(server, "SIGINT");
  return await Promise.race([ended, sleep(ANSWER_TIMEOUT_MS, true, { ref: false })]);
}

async function signal(server: Server, name: "SIGINT" | "SIGQUIT"): Promise<void> {
  if (process.platform === "win32") {
    const mode = name === "SIGINT" ? "fast" : "immediate";
    const options = ["stop", "-D", server.cluster.cluster_dir, "-m", mode, "-W"]; // no signals on Windows
    await run(program(server.binaries, "pg_ctl"), options);
    return;
  }
  if (server.child === null && !(await isServerOf(server.pid, server.cluster.cluster_dir))) return;
  try {
    process.kill(server.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function gone(server: Server, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (isRunning(server)) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

// Roles --------------------------------------------------------------------------------------------------------------

/** The role and the database Postern works with: no superuser, so that forced row-level security holds for it too. */
async function createOwner(server: Server): Promise<void> {
  const client = server.supervision!;
  const { rows } = await client.query(MADE, [OWNER]);
  if (!rows[0].role) {
    const password = `password '${server.cluster.passwords.owner}'`;
    await client.query(`create role ${OWNER} login nosuperuser nobypassrls nocreatedb nocreaterole ${password}`);
  }
  if (!rows[0].database) await client.query(`create database ${OWNER} owner ${OWNER}`);
}
