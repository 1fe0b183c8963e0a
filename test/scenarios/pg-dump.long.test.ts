// The backup that docs/operations.md describes, with the real pg_dump and pg_restore: as the role that row-level security
// binds, and as one for backups. What is restored has every row of every organization.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import pg from "pg";
import { bootstrap, createOrganization } from "../../src/accounts/accounts.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { createLog } from "../../src/platform/process/log.ts";
import { buildWorld } from "../../src/world.ts";
import { testConfig } from "../support/api.ts";
import { type SystemPostgres, startSystemPostgres } from "../support/system-postgres.ts";
import { makeRunFolder } from "../support/test-server.ts";

const run = promisify(execFile);

let dir: string;
let server: SystemPostgres | null = null;
let counted: Record<string, number>;

before(async () => {
  dir = await makeRunFolder();
  server = await startSystemPostgres(join(dir, "pg"));
  if (!server) return;
  await migrate(server.url);
  const world = buildWorld(testConfig(), createLog({ level: "silent", role: "test" }), server.url);
  await bootstrap(world, { live_key: null, test_key: null });
  await createOrganization(world, { name: "Another" });
  await world.db.close();
  counted = await countAll(server.url);
});
after(async () => {
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function asRoot<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client((server as SystemPostgres).admin_url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Rows by table, of all organizations. */
async function countAll(url: string): Promise<Record<string, number>> {
  const client = new pg.Client({ connectionString: url, options: "-c postern.scope=system" });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      "select relname as name from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace",
    );
    const counts: Record<string, number> = {};
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ n: number }>(`select count(*)::int as n from ${pg.escapeIdentifier(name)}`);
      counts[name] = rows[0]?.n ?? 0;
    }
    return counts;
  } finally {
    await client.end();
  }
}

/** A command of the documentation with the names of this test in it. */
function documented(first: string): string {
  const page = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const line = page.split("\n").find((text) => text.startsWith(first));
  assert.ok(line, `docs/operations.md has no line that begins with ${first}`);
  return line.replace(/\s+#.*$/, "");
}

function urlFor(database: string, role?: { name: string; password: string }): string {
  const url = new URL((server as SystemPostgres).url);
  url.search = "";
  url.pathname = `/${database}`;
  if (role) Object.assign(url, { username: role.name, password: role.password });
  return url.href;
}

async function shell(command: string, env: Record<string, string>): Promise<void> {
  const path = `${(server as SystemPostgres).bin_dir}:${process.env.PATH}`;
  await run("sh", ["-ec", command], { cwd: dir, env: { ...env, PATH: path } });
}

async function restored(name: string): Promise<Record<string, number>> {
  await asRoot((client) => client.query(`create database ${name} owner postern`));
  await shell(documented("pg_restore --no-owner"), { DATABASE_URL: urlFor(name) });
  return countAll(urlFor(name));
}

describe("a backup with pg_dump", () => {
  it("has every row, made as the role of DATABASE_URL", async (t) => {
    if (!server) return t.skip("no PostgreSQL of the distribution here");
    assert.equal(counted.organization, 2);
    await shell(documented(`PGOPTIONS="-c postern.scope=system" pg_dump`), { DATABASE_URL: urlFor("postern") });
    assert.deepEqual(await restored("from_owner"), counted);
  });

  it("has every row, made as a role for backups, which may change nothing", async (t) => {
    if (!server) return t.skip("no PostgreSQL of the distribution here");
    const role = documented("create role postern_backup").replace("…", "secret");
    const grant = documented("grant pg_read_all_data");
    await asRoot((client) => client.query(`${role}\n${grant}`));
    const url = urlFor("postern", { name: "postern_backup", password: "secret" });
    await shell(documented('pg_dump -Fc "$BACKUP_URL"'), { BACKUP_URL: url });
    assert.deepEqual(await restored("from_backup_role"), counted);
    const client = new pg.Client(url);
    await client.connect();
    await assert.rejects(client.query("delete from organization"), /permission denied/);
    await client.end();
  });

  it("is refused by pg_dump in the plain way, rather than made without rows", async (t) => {
    if (!server) return t.skip("no PostgreSQL of the distribution here");
    const plain = shell('pg_dump -Fc "$DATABASE_URL" > plain.dump', { DATABASE_URL: urlFor("postern") });
    await assert.rejects(plain, /row-level security/);
  });
});
