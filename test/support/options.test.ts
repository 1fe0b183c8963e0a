// A developer who mistypes an option, or asks for help, reads how the command is used, and no stack.
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
    ["demo", "test/demo/demo.ts"],
    ["check", "test/check.ts"],
    ["clients", "clients/run.ts"],
    ["sbom", "release/sbom.ts"],
    ["test", "test/run.ts"],
  ] as const) {
    const { status, stdout, stderr } = run(script, "--rouns", "3");
    const [sentence, use] = stderr.trim().split("\n");
    assert.deepEqual([status, stdout, sentence], [2, "", "Unknown option '--rouns'."], script);
    assert.match(use ?? "", useOf(name));
  }
});

test("--help prints how a command is used, and does nothing else", () => {
  for (const [name, script] of [
    ["faults", "test/faults/run.ts"],
    ["scale", "test/scale/run.ts"],
    ["fuzz", "test/fuzz/run.ts"],
    ["check", "test/check.ts"],
    ["test", "test/run.ts"],
  ] as const) {
    const { status, stdout, stderr } = run(script, "--help");
    assert.deepEqual([status, stderr, stdout.trim().split("\n").length], [0, "", 1], script);
    assert.match(stdout, useOf(name));
  }
});

test("a wrong number, or one out of its range, is named before anything begins", () => {
  for (const [script, words, said] of [
    ["test/demo/demo.ts", ["--keep", "--days", "five"], '--days "five" is not a whole number from 1 to 30.'],
    ["test/demo/demo.ts", ["--keep", "--days", "31"], '--days "31" is not a whole number from 1 to 30.'],
    ["test/demo/demo.ts", ["--days", "5"], "--days goes with --keep: only then a shop lives some days first."],
    ["test/masks/run.ts", ["--attacks", "many"], '--attacks "many" is not a whole number of 0 or more.'],
    ["test/masks/run.ts", ["--seed", "x"], /^--seed "x" is not a whole number from 0 to \d+\.$/],
    ["test/masks/run.ts", ["--kinds", "nobody"], /^--kinds: unknown nobody; there are /],
    ["test/simulation/run.ts", ["--seeds", "1.5"], '--seeds "1.5" is not a whole number of 1 or more.'],
    ["test/faults/run.ts", ["kill", "--rounds", "0"], '--rounds "0" is not a whole number from 1 to 999999999999.'],
    ["test/api/contract.ts", ["--examples", ""], '--examples "" is not a whole number of 1 or more.'],
    ["test/scale/run.ts", ["--cells", "-"], '--cells "-" is not a whole number from 1 to 999.'],
    ["test/scale/run.ts", ["--cells", "9"], /^--organizations 8 is less than --cells 9: /],
  ] as const) {
    const { status, stdout, stderr } = run(script, ...words);
    const [sentence = "", use] = stderr.trim().split("\n");
    if (typeof said === "string") assert.equal(sentence, said);
    else assert.match(sentence, said);
    assert.deepEqual([status, stdout, use?.startsWith("npm run ")], [2, "", true], script);
  }
});

test("what a command does not take is named: a word for the checks, a library that is not there", () => {
  assert.match(run("test/check.ts", "src").stderr, /^Unexpected argument 'src'\./);
  assert.match(run("clients/run.ts", "rust").stderr, /^rust is not a library; there are node, python/);
});

function run(script: string, ...words: string[]) {
  return spawnSync(process.execPath, [join(ROOT, script), ...words], { encoding: "utf8" });
}

function useOf(name: string): RegExp {
  return new RegExp(`^npm ${name === "test" ? "" : "run "}${name}( \\[?-- |$)`, "m");
}
