// That each step of the proof run is a command there is: a scenario that was renamed would be "not known" only there. And
// that a step that fails is reported with its reasons.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { SCENARIOS } from "../faults/scenarios.ts";
import { STEPS } from "./steps.ts";
import { whyFailed } from "./why-failed.ts";

const ROOT = resolve(import.meta.dirname, "../..");

test("every step has a name of its own and a command that is there", () => {
  assert.equal(new Set(STEPS.map(({ name }) => name)).size, STEPS.length);
  for (const { name, command } of STEPS) {
    const [script = "", word = ""] = command;
    assert.ok(existsSync(join(ROOT, script)), `${name}: ${script}`);
    if (script === "test/faults/run.ts") assert.ok(SCENARIOS.has(word), `${name}: there is no scenario ${word}`);
  }
});

test("a step that there is not is reported with those that there are", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "test/proof/run.ts"), "nonsense"], {
    encoding: "utf8",
  });
  assert.equal(status, 2);
  assert.match(stderr, /^No step is called nonsense\..*\n\n {2}simulation /);
});

test("of a step that failed the failures are said again, and its last lines where none is marked", () => {
  const story = [
    "✔ signs in",
    "✖ adds a domain",
    "  at /domains",
    "  a timeout",
    "✔ signs out",
    "… 20 s",
    "57 stories",
  ];
  assert.deepEqual(whyFailed(story), ["✖ adds a domain", "  at /domains", "  a timeout"]);
  const listed = ["  ✖ sends (1 ms)", "ℹ fail 1", "✖ failing tests:", "", "  ✖ sends (1 ms)", "  1 !== 2"];
  assert.deepEqual(whyFailed(listed), ["  ✖ sends (1 ms)", "✖ failing tests:", "  1 !== 2"]);
  const plain = Array.from({ length: 50 }, (_, n) => `line ${n}`);
  assert.deepEqual(whyFailed(plain), plain.slice(30));
});
