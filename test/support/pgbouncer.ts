// Debian's PgBouncer on loopback, in front of every database of one server.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

export type PoolMode = "session" | "transaction";

export type PgBouncer = {
  pid: number;
  /** Its own console, for `show pools`. */
  console_url: string;
  /** The same database through it. */
  through(url: string): string;
  stop(): Promise<void>;
};

const START_MS = 10_000;

/** True if the program is there. Tests that need it are skipped with a message otherwise. */
export function hasPgBouncer(): boolean {
  return spawnSync("pgbouncer", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Starts it before the server of `url`, with so many connections to each of its databases. */
export async function startPgBouncer(
  url: string,
  server_connections: number,
  mode: PoolMode = "transaction",
): Promise<PgBouncer> {
  const port = await freePort();
  const server = new URL(url);
  const host = server.searchParams.get("host") ?? server.hostname;
  const dir = mkdtempSync(join(tmpdir(), "postern-pgbouncer-"));
  const login = `user=${decodeURIComponent(server.username)} password=${decodeURIComponent(server.password)}`;
  const settings = [
    ...["[databases]", `* = host=${host} port=${server.port || 5432} ${login}`, "[pgbouncer]"],
    ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    ...[`pool_mode = ${mode}`, `default_pool_size = ${server_connections}`, "max_client_conn = 2000"],
    ...["server_tls_sslmode = disable", "log_connections = 0", "log_disconnections = 0"],
  ];
  writeFileSync(join(dir, "pgbouncer.ini"), `${settings.join("\n")}\n`);
  const child = spawn("pgbouncer", [join(dir, "pgbouncer.ini")], {
    stdio: ["ignore", "ignore", "pipe"],
    ...(process.getuid?.() === 0 ? unprivileged(host, dir) : {}),
  });
  try {
    await started(child);
  } catch (error) {
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  const at = `postgresql://any@127.0.0.1:${port}`;
  return {
    pid: child.pid as number,
    console_url: `${at}/pgbouncer`,
    through: (direct) => `${at}${new URL(direct).pathname}`,
    async stop() {
      child.kill("SIGINT");
      if (child.exitCode === null) await once(child, "exit");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** It does not run as root: it runs as the one to whom the server's socket belongs. */
function unprivileged(host: string, dir: string): { uid: number; gid: number } {
  const { uid, gid } = host.startsWith("/") ? statSync(host) : { uid: 65_534, gid: 65_534 };
  chmodSync(dir, 0o755);
  chownSync(dir, uid, gid);
  return { uid, gid };
}

async function started(child: ChildProcess): Promise<void> {
  let said = "";
  const ready = new Promise<void>((resolve) =>
    child.stderr?.on("data", (piece: Buffer) => {
      said += piece;
      if (said.includes("process up")) resolve();
    }),
  );
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`pgbouncer ended: ${said}`)));
  const late = AbortSignal.timeout(START_MS);
  const tooLate = once(late, "abort").then(() => Promise.reject(new Error(`pgbouncer did not start: ${said}`)));
  await Promise.race([ready, ended, tooLate]);
  ended.catch(() => undefined);
  tooLate.catch(() => undefined);
}
