// PostgreSQL as an operator runs it, for stories of backups and failovers: clusters made by initdb, standbys and copies by
// pg_basebackup, dumps by pg_dump. Needs PostgreSQL of the machine with its tools (the embedded one brings none).
import { execFile } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../support/free-port.ts";
import { Lacking } from "./lacking.ts";

const run = promisify(execFile);

export type Cluster = {
  folder: string;
  port: number;
  /** Of the database `postern` by default, as the role that owns it. */
  url(database?: string): string;
  start(settings?: Record<string, string>): Promise<void>;
  /** `immediate`: as a crash ends it. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  promote(): Promise<void>;
  /** One of its tools, connected to it as the superuser. */
  tool(name: string, args: string[]): Promise<string>;
  sql(text: string, database?: string): Promise<string>;
  /** A copy of its files, taken while it runs; `standby` follows it once it is started. */
  baseBackup(folder: string, standby?: boolean): Promise<Cluster>;
};

/** Those of the machine; Lacking where one is missing. */
function toolFolder(): string {
  const found = globSync("/usr/lib/postgresql/*/bin").find((folder) => existsSync(join(folder, "pg_basebackup")));
  if (!found) throw new Lacking("PostgreSQL with pg_basebackup and pg_dump is needed (/usr/lib/postgresql/*/bin)");
  return found;
}

/** PostgreSQL refuses to run as root. */
function runAs(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const ids = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  return ids ? { uid: Number(ids[1]), gid: Number(ids[2]) } : { uid: 65_534, gid: 65_534 };
}

/** Makes and starts a cluster with the role and the database `postern`. */
export async function makeCluster(folder: string, settings: Record<string, string> = {}): Promise<Cluster> {
  makeOwn(folder);
  await asServer(join(toolFolder(), "initdb"), [
    ...["--pgdata", folder, "--username=postgres", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync"],
  ]);
  const cluster = await clusterIn(folder);
  writeFileSync(join(folder, "postern.conf"), "wal_level = replica\nmax_wal_senders = 4\n");
  appendFileSync(join(folder, "postgresql.conf"), "include 'postern.conf'\n");
  await cluster.start(settings);
  await cluster.sql("create role postern login", "postgres");
  await cluster.sql("create database postern owner postern", "postgres");
  return cluster;
}

/** A cluster whose files are there. */
async function clusterIn(folder: string): Promise<Cluster> {
  const bin = toolFolder();
  const port = await freePort();
  const control = (...args: string[]) => asServer(join(bin, "pg_ctl"), ["--pgdata", folder, "-w", ...args]);
  const tool = (name: string, args: string[]) =>
    asServer(join(bin, name), ["--host=127.0.0.1", `--port=${port}`, "--username=postgres", ...args]);
  return {
    folder,
    port,
    tool,
    url: (database = "postern") => `postgresql://postern@127.0.0.1:${port}/${database}`,
    async start(settings = {}) {
      const own = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
      appendFileSync(join(folder, "postern.conf"), own.join(""));
      const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''`;
      await control("--log", join(folder, "server.log"), "--options", options, "start");
    },
    stop: async (mode = "fast") => void (await control("--mode", mode, "stop")),
    promote: async () => void (await control("promote")),
    sql: (text, database = "postern") => tool("psql", ["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text]),
    async baseBackup(to, standby = false) {
      makeOwn(to);
      await tool("pg_basebackup", ["--pgdata", to, "--checkpoint=fast", ...(standby ? ["--write-recovery-conf"] : [])]);
      return clusterIn(to);
    },
  };
}

/** A folder of the server's own. */
export function makeOwn(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = runAs();
  if (owner) chownSync(folder, owner.uid, owner.gid);
}

/** Removes it; whoever calls it has stopped the server. */
export function removeCluster({ folder }: Cluster): void {
  rmSync(folder, { recursive: true, force: true });
}

async function asServer(program: string, args: string[]): Promise<string> {
  const { stdout } = await run(program, args, { ...runAs(), cwd: "/", env: { LC_ALL: "C", PATH: "/usr/bin:/bin" } });
  return stdout.trim();
}
