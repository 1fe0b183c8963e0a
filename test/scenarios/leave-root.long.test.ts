// Started by root, Postern binds its ports and becomes another user for good, with everything that it has.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort } from "../support/free-port.ts";
import { type PosternProcess, type Posterns, posternSettings, startPostern } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";

const MAIN = resolve(import.meta.dirname, "../../src/main.ts");
const OTHER = { uid: 61_000, gid: 61_000 };

/** The reason to leave these out; they need a user whose rights can be given up, and a program that others may read. */
function lacking(): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root on Linux has what it gives up";
  const isReadable = spawnSync("/bin/sh", ["-c", 'test -r "$1"', "sh", MAIN], { ...OTHER, cwd: "/" }).status === 0;
  return isReadable ? false : "this folder can be read by root only";
}

describe("a start by root", { skip: lacking(), timeout: 110_000 }, () => {
  let home: string;
  let data: string;
  let settings: Posterns;
  let running: PosternProcess | null = null;

  before(async () => {
    home = mkdtempSync(join(tmpdir(), "postern-leave-root-"));
    chmodSync(home, 0o711);
    data = join(home, "data");
    // As an older version left it: all of it root's, and a link that somebody planted.
    mkdirSync(join(data, "blobs/ab"), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, "of-root"), "keep", { mode: 0o600 });
    symlinkSync(join(home, "of-root"), join(data, "blobs/link"));
    symlinkSync("/etc", join(data, "blobs/ab/folder"));
    settings = await posternSettings(data, { POSTERN_MX: `127.0.0.1:${await lowPort()}` });
  });
  after(async () => {
    await running?.stop();
    rmSync(home, { recursive: true });
  });

  const statusOf = (path: string) =>
    Object.fromEntries(
      readFileSync(path, "utf8")
        .split("\n")
        .map((line) => line.split(/:\s*/))
        .filter(([name]) => /^(Uid|Gid|Groups|CapEff|CapPrm)$/.test(name ?? ""))
        .map(([name, value]) => [name, (value ?? "").trim()]),
    );
  const owners = (folder: string) => new Set(inside(folder).map((path) => lstatSync(path).uid));

  it("binds a low port, and no thread, child or group of it is root's afterwards", async () => {
    running = await startPostern(settings);
    const threads = globSync(`/proc/${running.pid}/task/*/status`);
    assert.ok(threads.length > 4);
    const { uid } = lstatSync(data);
    assert.ok(uid !== 0 && uid !== 65_534, `${uid}`);
    for (const path of [...threads, ...childrenOf(running.pid)]) {
      const status = statusOf(path);
      assert.equal(status.Uid, Array(4).fill(uid).join("\t"), path);
      assert.equal(status.Gid, Array(4).fill(lstatSync(data).gid).join("\t"), path);
      assert.ok(!status.Groups?.split(" ").includes("0"), `${path} ${status.Groups}`);
      assert.equal(BigInt(`0x${status.CapPrm}`), 0n, `${path} has rights left`);
    }
    const client = await rawSmtp(Number(settings.env.POSTERN_MX?.split(":")[1]));
    assert.equal((await client.reply()).code, 220);
    client.destroy();
  });

  it("has given the data folder to that user, and followed no link in it", () => {
    assert.deepEqual([...owners(data)], [lstatSync(data).uid]);
    assert.equal(lstatSync(join(home, "of-root")).uid, 0);
    assert.equal(lstatSync("/etc/passwd").uid, 0);
  });

  it("starts again as that user, and a command by root leaves nothing of root's there", async () => {
    const { uid } = lstatSync(data);
    const command = spawnSync(process.execPath, [MAIN, "organizations", "list", "--json"], {
      env: { PATH: process.env.PATH ?? "", ...settings.env },
    });
    assert.equal(command.status, 0, command.stderr.toString());
    await running?.stop();
    running = await startPostern(settings, ["api", "clock"]);
    assert.equal(statusOf(`/proc/${running.pid}/status`).Uid, Array(4).fill(uid).join("\t"));
    assert.deepEqual([...owners(data)], [uid]);
  });

  it("lets root back up and verify where that user is a number without a name", () => {
    const env = { PATH: process.env.PATH ?? "", ...settings.env, POSTERN_BACKUP_PASSPHRASE: "correct horse" };
    const file = join(home, "backups/first");
    mkdirSync(join(home, "backups"), { mode: 0o777 });
    chmodSync(join(home, "backups"), 0o777);
    for (const words of [
      ["backup", file],
      ["backup", "verify", file],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, [MAIN, ...words, "--json"], { env, timeout: 60_000 });
      assert.equal(status, 0, stderr.toString());
    }
    assert.deepEqual(globSync(join(tmpdir(), "postern-verify-*")), [], "the scratch database is gone");
  });

  it("says how a folder of a number without a name gets its database, and that way leads there", async () => {
    const folder = join(home, "of-number/data");
    mkdirSync(folder, { recursive: true });
    chownSync(folder, OTHER.uid, OTHER.gid);
    const env = { PATH: process.env.PATH ?? "", ...settings.env, POSTERN_DATA: folder };
    const { status, stderr } = spawnSync(process.execPath, [MAIN, "migrate"], { env, timeout: 60_000 });
    assert.equal(status, 1);
    const said = stderr.toString();
    assert.match(
      said,
      /cannot be set up by user 61000, who has no name on this machine\. As root: chown -R root:root /,
    );
    const remedy = /As root: (chown -R root:root \S+), then/.exec(said)?.[1] as string;
    assert.equal(spawnSync("/bin/sh", ["-c", remedy]).status, 0);
    await running?.stop();
    running = await startPostern(await posternSettings(folder), ["api"]);
    assert.ok(lstatSync(join(folder, "postgres/cluster")).uid > 0);
  });

  it("refuses, with the remedy, where others could reach it and its user cannot reach the data folder", async () => {
    const closed = join(home, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const env = { PATH: process.env.PATH ?? "", ...settings.env, POSTERN_DATA: join(closed, "data") };
    const open = { ...env, POSTERN_INTERNAL: "127.0.0.1:0", POSTERN_HTTP: `0.0.0.0:${await freePort()}` };
    const refused = spawnSync(process.execPath, [MAIN, "start", "--roles", "api"], { env: open, timeout: 60_000 });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr.toString(), /cannot reach .*closed.*chmod o\+x/);
    assert.deepEqual(globSync("*", { cwd: closed }), [], "nothing was made");
  });

  it("takes no folder that holds other things, and no folder of somebody else", async () => {
    const POSTERN_HTTP = `0.0.0.0:${await freePort()}`;
    const env = { PATH: process.env.PATH ?? "", ...settings.env, POSTERN_INTERNAL: "127.0.0.1:0", POSTERN_HTTP };
    const start = (folder: string, ...more: string[]) =>
      spawnSync(process.execPath, [MAIN, "start", "--roles", "api", ...more], {
        env: { ...env, POSTERN_DATA: folder },
      });
    const strange = join(home, "strange");
    mkdirSync(strange);
    writeFileSync(join(strange, "passwd"), "x");
    assert.match(start(strange).stderr.toString(), /holds passwd and nothing of Postern/);
    assert.equal(lstatSync(join(strange, "passwd")).uid, 0);
    assert.match(start(data, "--user", "61234").stderr.toString(), /belongs to .*--user/);
    assert.match(start(data, "--user", "root").stderr.toString(), /does not run as root/);
    assert.match(start(data, "--user", "nobody").stderr.toString(), /does not run as nobody/);
  });
});

/** All in the folder; not what links in it lead to. */
function inside(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [path, ...inside(path)] : [path];
  });
}

function childrenOf(pid: number): string[] {
  const isChild = (path: string): boolean => {
    try {
      return new RegExp(`^PPid:\\s*${pid}$`, "m").test(readFileSync(path, "utf8"));
    } catch {
      return false;
    }
  };
  const found = globSync("/proc/[0-9]*/status").filter(isChild);
  assert.ok(found.length > 0, "the database is a child");
  return found;
}

async function lowPort(): Promise<number> {
  for (let port = 700; port < 1_000; port += 1) {
    const server = createServer();
    const isFree = await new Promise<boolean>((done) => {
      server.once("error", () => done(false)).listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (isFree) return port;
  }
  throw new Error("there is no free port below 1000");
}
