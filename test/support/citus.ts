// Citus on loopback: a coordinator and workers, each a PostgreSQL of its own with the extension, in folders that are given. Citus is
// not part of this project: POSTERN_CITUS names the folder of a server's programs that has it (`/usr/lib/postgresql/15/bin`), else
// the newest server of the distribution with a `citus.so` is taken.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import pg from "pg";
import { addCell, distribute } from "../../src/platform/database/citus/cells.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";

export type Citus = {
  coordinator: EmbeddedPostgres;
  workers: EmbeddedPostgres[];
  /** Of a database on the coordinator, `postern` if no other is named: as the role of Postern, and as a superuser. */
  urlOf(database?: string): string;
  adminUrlOf(database?: string): string;
  /** Another one on all servers, with the extension. */
  makeDatabase(name: string): Promise<void>;
  /** As a superuser on the coordinator's `postern`. */
  rows<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  stop(): Promise<void>;
};

/** What a test says that is skipped; false where Citus is there. */
export const lacksCitus: string | false =
  findCitus() === null
    ? "Citus is not installed: install it for PostgreSQL 15 or newer, or name its programs in POSTERN_CITUS"
    : false;

const SETTINGS = {
  shared_preload_libraries: "citus",
  wal_level: "logical",
  max_prepared_transactions: "200",
  max_connections: "300",
  max_wal_senders: "20",
  max_replication_slots: "20",
  shared_buffers: "64MB",
  max_worker_processes: "64", // one for each database
  "citus.node_conninfo": "sslmode=disable",
};
const DATABASE = "postern";
const SUITE_WORKERS = 2;
const TRUST = "host all all 127.0.0.1/32 trust\n";

let suite: { citus: Promise<Citus>; dir: string; databases: number } | null = null;

/**
 * A cell of its own on a Citus that others use too, whose address as a superuser POSTERN_TEST_CITUS is, or (POSTERN_TEST_CITUS=1) a
 * database of its own whose schema Citus keeps; those servers end with the last one. Not durable.
 */
export async function citusDatabase() {
  const shared = process.env.POSTERN_TEST_CITUS ?? "";
  return await (URL.canParse(shared) ? cellOn(shared) : databaseOfSuite());
}

/** What cells are named after a test file, before 8 digits that differ. */
export function cellPrefix(file: string): string {
  return `${basename(file)
    .replace(/(\.long)?\.test\.ts$/, "")
    .replaceAll("-", "_")}_`;
}

/** It stays: who started the servers removes them. */
async function cellOn(shared: string) {
  const name = cellPrefix(process.argv[1] ?? "") + randomBytes(4).toString("hex");
  const url = await addCell(shared, { name, password: "-" });
  return { url, admin_url: withSchema(shared, name), distributed: true, drop: async () => undefined };
}

async function databaseOfSuite() {
  if (suite === null) {
    const dir = mkdtempSync(join(tmpdir(), "postern-citus-"));
    chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
    suite = { citus: startCitus(dir, SUITE_WORKERS, { fsync: "off", synchronous_commit: "off" }), dir, databases: 0 };
    process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  }
  const used = suite;
  used.databases += 1;
  const citus = await used.citus;
  const database = `postern_test_${randomBytes(8).toString("hex")}`;
  await citus.makeDatabase(database);
  const url = citus.urlOf(database);
  const drop = async (): Promise<void> => {
    used.databases -= 1;
    if (used.databases > 0) return;
    suite = null;
    await citus.stop();
    rmSync(used.dir, { recursive: true, force: true });
  };
  try {
    await migrate(url);
    await distribute(url);
    return { url, admin_url: withSchema(citus.adminUrlOf(database), DATABASE), distributed: true, drop };
  } catch (error) {
    await drop();
    throw error;
  }
}

function findCitus(): string | null {
  const named = process.env.POSTERN_CITUS;
  const majors = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql").map(Number) : [];
  const folders = named ? [named] : majors.sort((a, b) => b - a).map((major) => `/usr/lib/postgresql/${major}/bin`);
  return folders.find(hasCitus) ?? null;
}

function hasCitus(bin: string): boolean {
  const config = join(bin, "pg_config");
  if (!existsSync(config)) return false;
  return existsSync(join(execFileSync(config, ["--pkglibdir"], { encoding: "utf8" }).trim(), "citus.so"));
}

/** Starts them in folders of `dir` and joins them. `settings` win over those of a test. */
export async function startCitus(dir: string, workers: number, settings: Record<string, string> = {}): Promise<Citus> {
  const bin_dir = findCitus();
  if (bin_dir === null) throw new Error(String(lacksCitus));
  const servers: EmbeddedPostgres[] = [];
  // A process that ends before it has stopped them leaves none behind.
  process.once("exit", () => {
    for (const server of servers) if (server.alive()) process.kill(server.pid, "SIGQUIT");
  });
  try {
    for (const name of ["coordinator", ...Array.from({ length: workers }, (_none, n) => `worker-${n + 1}`)]) {
      const options = { bin_dir, tcp: true, settings: { ...SETTINGS, ...settings } };
      const server = await startEmbeddedPostgres({ ...options, data_dir: join(dir, name) });
      servers.push(server);
      await letInOthers(server, join(dir, name));
    }
    const citus = faceOf(servers as [EmbeddedPostgres, ...EmbeddedPostgres[]]);
    await joinServers(servers, DATABASE);
    return citus;
  } catch (error) {
    for (const server of servers) await server.stop();
    throw error;
  }
}

function faceOf(servers: [EmbeddedPostgres, ...EmbeddedPostgres[]]): Citus {
  const [coordinator, ...workers] = servers;
  return {
    coordinator,
    workers,
    urlOf: (database = DATABASE) => urlTo(coordinator.url, database),
    adminUrlOf: (database = DATABASE) => urlTo(coordinator.admin_url, database),
    rows: (text, values) => query(urlTo(coordinator.admin_url, DATABASE), text, values),
    async makeDatabase(name) {
      for (const { admin_url } of servers) await query(admin_url, `create database "${name}" owner postern`);
      await joinServers(servers, name);
    },
    async stop() {
      for (const server of servers) await server.stop();
    },
  };
}

/** An address of a superuser whose statements find the tables of this schema. */
export function withSchema(address: string, schema: string): string {
  const url = new URL(address);
  url.searchParams.set("options", `-c search_path=${schema} -c timezone=UTC`);
  return url.href;
}

/** Without the name of a process that would supervise it. */
function urlTo(address: string, database: string): string {
  const url = new URL(address);
  url.pathname = `/${database}`;
  url.search = "";
  return url.href;
}

/** On this machine without a password: each server has its own. The first line that fits decides. */
async function letInOthers(server: EmbeddedPostgres, data_dir: string): Promise<void> {
  const file = join(data_dir, "cluster", "pg_hba.conf");
  const text = readFileSync(file, "utf8");
  if (!text.includes(TRUST)) writeFileSync(file, TRUST + text);
  await query(server.admin_url, "select pg_reload_conf()");
}

/** The servers reach each other without passwords; the extension registers them, for each database by itself. */
async function joinServers(servers: EmbeddedPostgres[], database: string): Promise<void> {
  const [coordinator, ...workers] = servers as [EmbeddedPostgres, ...EmbeddedPostgres[]];
  for (const { admin_url } of servers) await query(urlTo(admin_url, database), "create extension if not exists citus");
  const admin = urlTo(coordinator.admin_url, database);
  await query(admin, "select citus_set_coordinator_host('127.0.0.1', $1)", [coordinator.port]);
  for (const { port } of workers) await query(admin, "select citus_add_node('127.0.0.1', $1)", [port]);
}

async function query<Row>(url: string, text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end().catch(() => undefined);
  }
}
