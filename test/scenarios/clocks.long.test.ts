// Clocks that are set while Postern runs. Every size in both directions: `npm run faults -- clocks`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { playSteps, type Step } from "../faults/clocks.ts";

const DAY_S = 86_400;

test("a clock that is set forward and back again, the database's too, stops nothing", async () => {
  const steps: Step[] = [
    { which: "database", seconds: 31 * DAY_S },
    { which: "database", seconds: 0 },
    { which: "processes", seconds: 400 * DAY_S },
    { which: "processes", seconds: 0 },
  ];
  const { troubles, lost, duplicates, status_500 } = await playSteps(steps);
  assert.deepEqual({ troubles, lost, duplicates, status_500 }, { troubles: [], lost: 0, duplicates: 0, status_500: 0 });
});
