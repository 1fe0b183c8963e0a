// A developer who mistypes an option reads a sentence and how the command is used, and no stack.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");

test("an option that is not known is named, with how the command is used", () => {
  for (const [name, script] of [
    ["proof", "test/proof/run.ts"],
    ["simulation", "test/simulation/run.ts"],
    ["faults", "test/faults/run.ts"],
    ["dashboard", "dashboard/run.ts"],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, script as string), "--rouns", "3"], {
      encoding: "utf8",
    });
    const [sentence, use] = stderr.trim().split("\n");
    assert.deepEqual([status, sentence], [2, "Unknown option '--rouns'."]);
    assert.match(use ?? "", new RegExp(`^npm run ${name} -- `));
  }
});
