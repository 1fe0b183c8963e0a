// The command line of `npm run simulation`; what it plays: simulation.test.ts.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

test("no seeds are no pass", () => {
  const run = join(import.meta.dirname, "run.ts");
  for (const wrong of ["--seeds=0", "--seeds=", "--seeds=x", "--seed=-1"]) {
    const { status, stdout } = spawnSync(process.execPath, [run, wrong], { encoding: "utf8" });
    assert.deepEqual([status, stdout], [2, ""], wrong);
  }
});
