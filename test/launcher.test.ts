// `bin/postern` on a machine whose Node is too old: what it says has to be what helps there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const LAUNCHER = join(import.meta.dirname, "../bin/postern");
let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-launcher-"));
  mkdirSync(join(dir, "old"));
  const old = "#!/bin/sh\ncase $1 in -p) echo 20 ;; *) echo v20.1.0 ;; esac\n";
  writeFileSync(join(dir, "old/node"), old, { mode: 0o755 });
});
after(() => rmSync(dir, { recursive: true, force: true }));

function saidOf(main: string): [number | null, string] {
  const root = join(dir, main);
  mkdirSync(join(root, "bin"), { recursive: true });
  mkdirSync(join(root, "src"));
  cpSync(LAUNCHER, join(root, "bin/postern"));
  writeFileSync(join(root, "src", main), "");
  const env = { PATH: `${join(dir, "old")}:/usr/bin:/bin` };
  const { status, stderr } = spawnSync(join(root, "bin/postern"), [], { env, encoding: "utf8" });
  return [status, stderr.replace(root, "ROOT")];
}

test("a Node that is too old is named, with what helps in a clone and in a package", () => {
  const needs = "Postern needs Node 24 or newer and found v20.1.0: ";
  assert.deepEqual(saidOf("main.ts"), [1, `${needs}run 'npm ci' in ROOT, or install Node 24.\n`]);
  assert.deepEqual(saidOf("main.js"), [1, `${needs}install Node 24 or newer.\n`]);
});
