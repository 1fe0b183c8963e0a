// Who the embedded database runs as, who is let into it, and that root follows no link there.
import assert from "node:assert/strict";
import { chmod, lchown, link, lstat, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./embedded-postgres.ts";
import { handOver, NOBODY, ownUser } from "./own-user.ts";

const asRoot = process.getuid?.() === 0;
const OLD_ADMISSION = "local all all trust\nlocal replication postgres trust\n";

let home = "";
let server: EmbeddedPostgres | null = null;

before(async () => {
  home = await mkdtemp(join(tmpdir(), "postern-own-user-"));
  await chmod(home, 0o711);
});

after(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

async function ask(url: string, text: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

function withoutPassword(url: string): string {
  const open = new URL(url);
  open.password = "";
  return open.href;
}

/** A cluster as an earlier version made it: open to everybody who reaches the socket, and as root given to `nobody`. */
async function makeOld(data_dir: string): Promise<void> {
  const made = await startEmbeddedPostgres({ data_dir });
  await ask(made.url, "create table note as select 'kept' as text");
  await made.stop();
  await rm(join(data_dir, "passwords.json"));
  await writeFile(join(data_dir, "cluster", "pg_hba.conf"), OLD_ADMISSION);
  if (asRoot) {
    await handOver(join(data_dir, "cluster"), { uid: NOBODY, gid: NOBODY });
    await lchown(join(data_dir, "run"), NOBODY, NOBODY);
  }
}

describe("the embedded database", () => {
  it("lets nobody in without a password", { skip: process.platform === "win32" }, async () => {
    server = await startEmbeddedPostgres({ data_dir: join(home, "fresh") });
    assert.deepEqual(await ask(server.url, "select 1 as one"), [{ one: 1 }]);
    for (const url of [server.url, server.admin_url])
      await assert.rejects(ask(withoutPassword(url), "select 1"), /password/);
    assert.equal((await stat(server.socket_dir as string)).mode & 0o777, 0o700);
  });

  it("runs as a user of its own when root starts it, never as nobody", { skip: !asRoot }, async () => {
    const { uid } = await stat(join(home, "fresh", "cluster"));
    assert.ok(uid !== 0 && uid !== NOBODY);
    assert.equal((await stat(`/proc/${server?.pid}`)).uid, uid);
    await server?.stop();
    server = await startEmbeddedPostgres({ data_dir: join(home, "fresh") });
    assert.equal((await stat(`/proc/${server.pid}`)).uid, uid, "the next start too");
  });

  it("of an earlier version keeps its rows, and asks for passwords from now on", async () => {
    await server?.stop();
    const data_dir = join(home, "old");
    await makeOld(data_dir);
    server = await startEmbeddedPostgres({ data_dir });
    assert.deepEqual(await ask(server.url, "select text from note"), [{ text: "kept" }]);
    for (const url of [server.url, server.admin_url])
      await assert.rejects(ask(withoutPassword(url), "select 1"), /password/);
    if (asRoot) assert.notEqual((await stat(join(data_dir, "cluster", "PG_VERSION"))).uid, NOBODY);
    await server.stop();
    server = await startEmbeddedPostgres({ data_dir });
    assert.deepEqual(await ask(server.url, "select text from note"), [{ text: "kept" }]);
  });

  it("of an earlier version keeps lines that its operator wrote", async () => {
    await server?.stop();
    const data_dir = join(home, "lines");
    await makeOld(data_dir);
    const hba = join(data_dir, "cluster", "pg_hba.conf");
    await writeFile(hba, `${OLD_ADMISSION}host all reports 127.0.0.1/32 scram-sha-256\n`);
    server = await startEmbeddedPostgres({ data_dir });
    const text = await readFile(hba, "utf8");
    assert.match(text, /^host all reports/m);
    assert.doesNotMatch(text, /trust/);
  });

  it("gives no file of root's away through a link in its folder", { skip: !asRoot }, async () => {
    await server?.stop();
    const data_dir = join(home, "attacked");
    await makeOld(data_dir);
    const victim = join(home, "victim");
    await writeFile(victim, "root's own", { mode: 0o600 });
    for (const name of ["postern.conf", `postern.conf.${process.pid}`, `pg_hba.conf.${process.pid}`]) {
      await rm(join(data_dir, "cluster", name), { force: true });
      await symlink(victim, join(data_dir, "cluster", name));
    }
    server = await startEmbeddedPostgres({ data_dir });
    assert.deepEqual(await ask(server.url, "select text from note"), [{ text: "kept" }]);
    assert.equal(await readFile(victim, "utf8"), "root's own");
    assert.equal((await lstat(victim)).uid, 0);
    assert.equal((await lstat(victim)).mode & 0o777, 0o600);
  });
});

describe("handing a folder over", { skip: !asRoot }, () => {
  it("refuses what has a second name, and leaves the file a link points to", async () => {
    const folder = join(home, "folder");
    const victim = join(home, "second");
    const user = await ownUser(folder);
    await mkdir(join(folder, "inner"), { recursive: true });
    await writeFile(victim, "root's own");
    await symlink(victim, join(folder, "inner", "link"));
    await handOver(folder, user);
    assert.equal((await stat(victim)).uid, 0);
    assert.equal((await lstat(join(folder, "inner", "link"))).uid, user.uid);
    await link(victim, join(folder, "inner", "hard"));
    await assert.rejects(handOver(folder, user), /may be a file of somebody else/);
    assert.equal((await stat(victim)).uid, 0);
  });
});
