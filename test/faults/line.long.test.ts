// The last line of each scenario: whoever reads it as JSON finds the same fields, however the run ended.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { type Figures, lineOf, lineWithout, sumOf } from "./line.ts";
import { SCENARIOS } from "./scenarios.ts";

const RUN = join(import.meta.dirname, "run.ts");
const NUMBERS = ["rounds", "seed", "acknowledged", "lost", "duplicates", "flagged", "seconds"];

/** What a scenario's run resolves with; tsc holds every one of scenarios.ts to it. */
const figures: Figures = { acknowledged: 42, lost: 1, duplicates: 2, flagged: 2, ok: false };
const run = { scenario: "kill", rounds: 2, seed: 7, seconds: 1.5 };

function assertWhole(line: Record<string, unknown>, scenario: string): void {
  assert.equal(line.scenario, scenario);
  for (const name of NUMBERS) assert.equal(typeof line[name], "number", `${name} of ${JSON.stringify(line)}`);
  assert.equal(typeof line.ok, "boolean");
}

test("a scenario's own figures stand between the fixed ones, and ok is the last", () => {
  const line = lineOf(run, { ...figures, kills: { mta: 3 } } as Figures);
  assert.deepEqual(line, { ...run, ...figures, kills: { mta: 3 } });
  assert.equal(Object.keys(line).at(-1), "ok");
});

test("what was not played, or failed before its verdict, has counted nothing and is not ok", () => {
  for (const why of [{ skipped: "needs root" }, { error: "ended with 1" }]) {
    const nothing = { acknowledged: 0, lost: 0, duplicates: 0, flagged: 0 };
    assert.deepEqual(lineWithout(run, why), { ...run, rounds: 0, ...nothing, ...why, ok: false });
  }
});

test("without a round, or an acknowledged request, nothing passes", () => {
  assert.equal(lineOf(run, { ...figures, ok: true }).ok, true);
  assert.equal(lineOf({ ...run, rounds: 0 }, { ...figures, ok: true }).ok, false);
  assert.equal(lineOf(run, { ...figures, acknowledged: 0, ok: true }).ok, false);
});

test("`all` has the sums, and is ok when each is", () => {
  const good = { ...figures, ok: true };
  assert.deepEqual(sumOf([good, good]), { acknowledged: 84, lost: 2, duplicates: 4, flagged: 4, ok: true });
  assert.equal(sumOf([good, figures]).ok, false);
  assert.equal(sumOf([]).ok, false);
});

function play(args: string[], env: Record<string, string>) {
  return spawnSync(process.execPath, [RUN, ...args], { encoding: "utf8", env });
}

test("the program prints it, whether a scenario failed at once or the machine lacks what it takes", () => {
  const cases: [string, Record<string, string>, number, "error" | "skipped"][] = [
    ["kill", { TMPDIR: "/nowhere" }, 1, "error"],
    ["power-cut", { PATH: "/nowhere" }, 3, "skipped"],
  ];
  for (const [name, env, code, why] of cases) {
    assert.ok(SCENARIOS.has(name));
    const ran = play([name, "--json"], env);
    const line = JSON.parse(ran.stdout.trim().split("\n").at(-1) ?? "");
    assertWhole(line, name);
    const seen = [line.ok, line.rounds, ran.status, typeof line[why]];
    assert.deepEqual(seen, [false, 0, code, "string"], ran.stdout + ran.stderr);
  }
});

test("the program plays nothing with no rounds, sends or rows, and names the option that is wrong", () => {
  for (const wrong of ["--rounds=0", "--sends=0", "--rows=0", "--rounds=1.5", "--rounds=", "--sends=-1", "--seed=x"]) {
    const { status, stdout, stderr } = play(["kill", wrong, "--json"], { PATH: "/nowhere", TMPDIR: "/nowhere" });
    assert.deepEqual([status, stdout], [2, ""], wrong);
    const [option, value] = wrong.split("=");
    assert.match(stderr, new RegExp(`^${option} "${value}" is not a whole number .*\\nnpm run faults -- `));
  }
});

test("one round is played, and shown, where more make no difference", () => {
  const ran = play(["deep-queue", "--rounds", "5"], { PATH: "/nowhere", TMPDIR: "/nowhere" });
  assert.match(ran.stdout, /^deep-queue: .* \(1 rounds, seed \d+\)/);
});
