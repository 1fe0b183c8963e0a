// A fresh, migrated database for a test file: a clone of the run's template (10–40 ms). Under `npm test` the server is
// the run's; a file run on its own (`node --test src/x.test.ts`) starts one for itself and stops it with its last database.
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { citusDatabase } from "./citus.ts";
import {
  cloneTemplate,
  dropDatabase,
  makeRunFolder,
  removeLeftOvers,
  startTestServer,
  type TestServer,
} from "./test-server.ts";

type Server = Pick<TestServer, "admin_url" | "template_url">;

export type TestDatabase = {
  /** As the role that owns the database: row-level security binds it. */
  url: string;
  /** As the superuser, on this same database: to look past row-level security. */
  admin_url: string;
  /** With POSTERN_TEST_CITUS Citus keeps its schema, on one of two workers. */
  distributed?: boolean;
  /** Removes the database, cutting sessions that are left on it. */
  drop(): Promise<void>;
};

let own: Promise<TestServer> | null = null;
let openDatabases = 0;

/** A database of its own with the current schema and no rows. Call it in `before`, and `drop` in `after`. */
export async function testDatabase(): Promise<TestDatabase> {
  return await (process.env.POSTERN_TEST_CITUS ? citusDatabase() : plainDatabase());
}

/** The same, never on Citus: what is restored or first made there needs the whole of a database. */
export async function plainDatabase(): Promise<TestDatabase> {
  const server = await serverOfRun();
  const name = `postern_test_${randomBytes(8).toString("hex")}`;
  const url = await cloneTemplate(server, name);
  const admin = new URL(server.admin_url);
  admin.pathname = `/${name}`;
  openDatabases += 1;
  const drop = async (): Promise<void> => {
    await dropDatabase(server, name);
    await stopIfUnused();
  };
  return { url, admin_url: admin.href, drop };
}

/** Not a hook: hooks run in the order of their registration, so one of this module runs before those of the file. */
async function stopIfUnused(): Promise<void> {
  openDatabases -= 1;
  if (openDatabases > 0) return;
  const server = await own;
  own = null;
  await server?.stop();
}

async function serverOfRun(): Promise<Server> {
  const { POSTERN_TEST_DATABASE_URL: admin_url, POSTERN_TEST_TEMPLATE_URL: template_url } = process.env;
  if (admin_url && template_url) return { admin_url, template_url };
  own ??= ownServer();
  return await own;
}

async function ownServer(): Promise<TestServer> {
  await removeLeftOvers();
  const folder = await makeRunFolder();
  const server = await startTestServer(process.env.DATABASE_URL, folder);
  process.once("exit", () => endAtOnce(server, folder));
  return server;
}

/** When the process ends before its tests did (an exception, process.exit), its databases were never dropped. */
function endAtOnce(server: TestServer, folder: string): void {
  if (own !== null && server.pid !== null) process.kill(server.pid, "SIGQUIT");
  rmSync(folder, { recursive: true, force: true });
}
