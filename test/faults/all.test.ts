// `npm run faults -- all`: what it hands on, and its table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsOf, table } from "./all.ts";
import { type Figures, lineOf, lineWithout } from "./line.ts";

function figures([acknowledged, lost, duplicates, flagged]: [number, number, number, number], ok: boolean): Figures {
  return { acknowledged, lost, duplicates, flagged, ok };
}

test("the table says of each scenario whether it passed, failed or was not played, and why", () => {
  const run = { rounds: 1, seed: 1, seconds: 1 };
  const lines = table([
    lineOf({ ...run, scenario: "kill", seconds: 12.5 }, figures([500, 0, 3, 3], true)),
    lineOf({ ...run, scenario: "bad-mx" }, figures([100, 1, 0, 0], false)),
    lineWithout({ ...run, scenario: "power-cut" }, { skipped: "mounting a loop device needs root" }),
    lineWithout({ ...run, scenario: "upgrade" }, { error: "ended with 1" }),
  ]);
  assert.match(lines[0] as string, /^scenario +verdict +acknowledged +lost +duplicates +flagged +seconds$/);
  assert.match(lines[1] as string, /^kill +passed +500 +0 +3 +3 +12\.5$/);
  assert.match(lines[2] as string, /^bad-mx +FAILED +100 +1 +0 +0 +1$/);
  assert.match(lines[3] as string, /^power-cut +not played .*mounting a loop device needs root$/);
  assert.match(lines[4] as string, /^upgrade +FAILED .*ended with 1$/);
});

test("rounds that were asked for are those of each scenario; else each has its own", () => {
  const given = ["--rounds", "5", "--seed", "7", "--sends", "200"];
  assert.deepEqual(argumentsOf({ rounds: 5, seed: 7, sends: 200 }), given);
  assert.deepEqual(argumentsOf({ rounds: 0, seed: 0, rows: 10 }), ["--seed", "0", "--rows", "10"]);
});
