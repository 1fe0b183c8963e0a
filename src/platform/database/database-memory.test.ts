import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { databaseMemory } from "./database-memory.ts";

const MIB = 1024 * 1024;

function write(file: string, text: string): void {
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
}

test("what the processes have for themselves is added up, what they share counts once, what has ended not at all", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "postern-memory-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const [cluster, proc] = [join(dir, "cluster"), join(dir, "proc")];
  assert.equal(await databaseMemory(cluster, proc), 0, "it does not run");
  write(join(cluster, "postmaster.pid"), "100\n/data\n1790000000\n");
  assert.equal(await databaseMemory(cluster, proc), 0, "a left-over file of a server that has ended");
  write(join(proc, "100/task/100/children"), "101 102 103 ");
  for (const [pid, own, shared] of [
    [100, 4, 20],
    [101, 10, 130],
    [102, 30, 90],
  ]) {
    write(
      join(proc, `${pid}/status`),
      `Name:\tpostgres\nRssAnon:\t   ${own! * 1024} kB\nRssShmem:\t  ${shared! * 1024} kB\n`,
    );
  }
  assert.equal(await databaseMemory(cluster, proc), (4 + 10 + 30 + 130) * MIB);
});

test("a process is found where the system shows it", { skip: process.platform !== "linux" }, async (t) => {
  const cluster = mkdtempSync(join(tmpdir(), "postern-memory-"));
  t.after(() => rmSync(cluster, { recursive: true }));
  write(join(cluster, "postmaster.pid"), `${process.pid}\n`);
  assert.ok((await databaseMemory(cluster)) > MIB, "this process in the place of a server");
});
