// Which test files share a process.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { groupFiles } from "./groups.ts";

const ROOT = join(import.meta.dirname, "../..");
const ALL = globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { cwd: ROOT }).sort();

test("every test file is in one group, whatever shares a process", () => {
  assert.deepEqual(groupFiles(ALL).flat().sort(), ALL);
});

test("a file that changes its process, or starts Postern as its users do, is alone; others share one", () => {
  const groups = groupFiles(ALL);
  const neighboursOf = (file: string): number => (groups.find((group) => group.includes(file))?.length ?? 0) - 1;
  for (const file of ["src/config.test.ts", "test/scenarios/stopping.long.test.ts"]) {
    assert.ok(neighboursOf(file) >= 0, `${file} is not there`);
  }
  assert.equal(neighboursOf("test/scenarios/stopping.long.test.ts"), 0);
  assert.equal(neighboursOf("src/platform/process/watchdog.long.test.ts"), 0);
  assert.ok(neighboursOf("src/mail/address.test.ts") > 0);
  assert.ok(groups.length < ALL.length / 2, `${groups.length} processes for ${ALL.length} files`);
});

test("nothing that test files share registers hooks by itself: only the first file of a process would have them", () => {
  const shared = globSync(["src/**/*.ts", "test/**/*.ts"], { cwd: ROOT }).filter((path) => !path.endsWith(".test.ts"));
  const hook = /^(?:before|after)(?:Each)?\(/m;
  assert.deepEqual(
    shared.filter((path) => hook.test(readFileSync(join(ROOT, path), "utf8"))),
    [],
  );
});
