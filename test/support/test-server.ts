// The PostgreSQL a test run uses: an embedded one in a temporary folder, or the one DATABASE_URL names. It holds one
// migrated template, which every test file clones. Nothing on it outlives the run, so it does not wait for the disk.
import { randomBytes } from "node:crypto";
import { chmod, glob, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { migrate } from "../../src/platform/database/migrate.ts";
import { startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { isServerOf, readPidFile } from "../../src/platform/postgres/embedded-postgres-cluster.ts";
import { isAlive } from "../../src/platform/process/process-alive.ts";

export type TestServer = {
  /** May create and drop databases. */
  admin_url: string;
  /** The template, as the role that owns every clone and that row-level security binds. */
  template_url: string;
  /** Of the embedded server; null for one that DATABASE_URL names. */
  pid: number | null;
  stop(): Promise<void>;
};

const TEMPLATE = "postern_template";
const LEFT_OVER_TIMEOUT_MS = 10_000;

const SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  wal_level: "minimal",
  max_wal_senders: "0",
  max_connections: "300", // pools of every test file that runs at a time
  shared_buffers: "128MB",
};

/** A temporary folder that names this process, so that a later run knows when nobody needs it any more. */
export async function makeRunFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `postern-test-${process.pid}-`));
  await chmod(folder, 0o711); // a server started by root runs as another user, who must be able to pass
  return folder;
}

/**
 * Starts the server (an embedded one lives in `folder`) and migrates the template. Throws one sentence when the server or
 * a migration is at fault.
 */
export async function startTestServer(databaseUrl: string | undefined, folder: string): Promise<TestServer> {
  const server = databaseUrl ? await externalServer(databaseUrl) : await embeddedServer(folder);
  try {
    await migrate(server.template_url);
    // A session on the template would make cloning it fail.
    const name = databaseOf(server.template_url);
    await withClient(server.admin_url, (client) => client.query(`alter database "${name}" allow_connections false`));
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Clones the template into a database `name` and answers its URL. Copying files takes 10–40 ms, copying by log 200. */
export async function cloneTemplate(server: Pick<TestServer, "admin_url" | "template_url">, name: string) {
  const template = new URL(server.template_url);
  const owner = decodeURIComponent(template.username);
  await withClient(server.admin_url, (client) =>
    client.query(
      `create database "${name}" template "${databaseOf(server.template_url)}" owner "${owner}" strategy file_copy`,
    ),
  );
  template.pathname = `/${name}`;
  return template.href;
}

/** Drops a clone, cutting sessions that are still on it. */
export async function dropDatabase(server: Pick<TestServer, "admin_url">, name: string): Promise<void> {
  await withClient(server.admin_url, (client) => client.query(`drop database if exists "${name}" with (force)`));
}

async function embeddedServer(folder: string): Promise<TestServer> {
  const server = await startEmbeddedPostgres({ data_dir: join(folder, "pg"), settings: SETTINGS });
  const template = new URL(server.url);
  template.pathname = `/${TEMPLATE}`;
  await withClient(server.admin_url, (client) => client.query(`create database ${TEMPLATE} owner postern`));
  return { admin_url: server.admin_url, template_url: template.href, pid: server.pid, stop: server.stop };
}

/** Names carry a random part: several runs may share the server. */
async function externalServer(adminUrl: string): Promise<TestServer> {
  const mark = randomBytes(4).toString("hex");
  const template = new URL(adminUrl);
  template.pathname = `/${TEMPLATE}_${mark}`;
  const name = databaseOf(template.href);
  const made = await withClient(adminUrl, async (client) => {
    const { rows } = await client.query(
      "select rolsuper, rolcreatedb, rolbypassrls, rolname from pg_roles where rolname = current_user",
    );
    const admin = rows[0];
    if (!admin.rolsuper && !admin.rolcreatedb) {
      throw new Error(`DATABASE_URL: the role ${admin.rolname} must have CREATEDB, or leave DATABASE_URL out.`);
    }
    const owner = admin.rolsuper || admin.rolbypassrls ? `postern_test_${mark}` : admin.rolname;
    if (owner !== admin.rolname) {
      template.username = owner;
      template.password = randomBytes(16).toString("hex");
      await client.query(`create role "${owner}" login nosuperuser nobypassrls password '${template.password}'`);
    }
    await client.query(`create database "${name}" owner "${owner}"`);
    return { owner, is_ours: owner !== admin.rolname };
  });
  const stop = () =>
    withClient(adminUrl, async (client) => {
      await client.query(`drop database if exists "${name}" with (force)`);
      if (made.is_ours) await client.query(`drop role "${made.owner}"`);
    }).then(() => undefined);
  return { admin_url: adminUrl, template_url: template.href, pid: null, stop };
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1));
}

/** Removes the folders of runs that were killed, and ends the servers in them. Answers how many there were. */
export async function removeLeftOvers(): Promise<number> {
  let removed = 0;
  for (const name of await readdir(tmpdir())) {
    const maker = /^postern-test-(\d+)-/.exec(name)?.[1];
    if (maker === undefined || isAlive(Number(maker))) continue;
    const folder = join(tmpdir(), name);
    const owner = await stat(folder).catch(() => null);
    if (owner === null || (process.getuid && owner.uid !== process.getuid())) continue;
    for await (const file of glob("**/cluster/postmaster.pid", { cwd: folder })) {
      await endServer(join(folder, dirname(file)));
    }
    await rm(folder, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}

async function endServer(clusterDir: string): Promise<void> {
  const file = await readPidFile({ cluster_dir: clusterDir });
  if (file === null || !isAlive(file.pid) || !(await isServerOf(file.pid, clusterDir))) return;
  process.kill(file.pid, "SIGQUIT");
  const deadline = performance.now() + LEFT_OVER_TIMEOUT_MS;
  while (isAlive(file.pid) && performance.now() < deadline) await sleep(20);
}
