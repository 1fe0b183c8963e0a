// What tells a restored embedded database from the one that was backed up, and what must not.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { identityOf, isSame } from "./database-identity.ts";

const root = mkdtempSync(join(tmpdir(), "postern-identity-"));
after(() => rmSync(root, { recursive: true, force: true }));

const NAME = "0123456789abcdef0123456789abcdef";
let data: string;

function ask(): Promise<string> {
  const db = { query: async () => [{ cluster: "7/1" }] };
  const config = { database_url: null, data_dir: data };
  return identityOf({ db, config } as unknown as Parameters<typeof identityOf>[0], join(root, "elsewhere"));
}

function makeCluster(folder: string): void {
  mkdirSync(join(folder, "cluster/global"), { recursive: true });
  writeFileSync(join(folder, "cluster/PG_VERSION"), "18\n");
  writeFileSync(join(folder, "cluster/global/pg_control"), "state 1");
}

/** As PostgreSQL does it at each checkpoint: in its place. */
function writeControl(): void {
  writeFileSync(join(data, "postgres/cluster/global/pg_control"), `state ${Date.now()}`, { flag: "r+" });
}

beforeEach(() => {
  data = mkdtempSync(join(root, "data-"));
});

describe("the identity of the embedded database", () => {
  it("stays over a restart, a kill and checkpoints, and when its folder is moved within its disk", async () => {
    makeCluster(join(data, "postgres"));
    const noted = await ask();
    writeControl();
    renameSync(data, `${data}-moved`);
    data = `${data}-moved`;
    assert.equal(await ask(), noted);
  });

  it("is that of its files where the database lies outside of the data folder", async () => {
    const folder = join(root, "elsewhere", NAME);
    makeCluster(folder);
    writeFileSync(join(data, "database-name"), `${NAME}\n`);
    const noted = await ask();
    cpSync(folder, `${folder}-backup`, { recursive: true, preserveTimestamps: true });
    rmSync(folder, { recursive: true });
    await sleep(1_100);
    execFileSync("cp", ["-a", `${folder}-backup`, folder]);
    assert.equal(isSame(noted, await ask()), false);
  });

  it("is another one after the files were copied back over themselves, which keeps every inode", async () => {
    makeCluster(join(data, "postgres"));
    const noted = await ask();
    execFileSync("cp", ["-a", data, `${data}-backup`]);
    await sleep(1_100);
    execFileSync("cp", ["-a", `${data}-backup/.`, data]);
    assert.equal(isSame(noted, await ask()), false);
  });

  it("is another one where only what had changed was replaced, as rsync does it", async () => {
    makeCluster(join(data, "postgres"));
    const noted = await ask();
    const control = join(data, "postgres/cluster/global/pg_control");
    const backup = readFileSync(control);
    writeControl();
    writeFileSync(`${control}.new`, backup);
    renameSync(`${control}.new`, control);
    assert.equal(isSame(noted, await ask()), false);
  });

  it("is the same where an older version noted less of it", async () => {
    makeCluster(join(data, "postgres"));
    const actual = await ask();
    const [system, timeline, inode] = actual.split("/");
    assert.equal(isSame(`${system}/${timeline}/${inode}`, actual), true);
    assert.equal(isSame(`${system}/${timeline}`, actual), true, "where the database lay outside of the data folder");
    assert.equal(isSame(`${system}/${timeline}/1`, actual), false);
    assert.equal(isSame(`${system}/2`, actual), false);
  });
});
