import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { createLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { atMostEvery, startRounds, sweep } from "./rounds.ts";

function quietWorld() {
  const lines: string[] = [];
  return {
    lines,
    metrics: createMetrics(),
    log: createLog({ level: "info", role: "test", destination: { write: (line) => void lines.push(line) } }),
  };
}

test("a round that fails is logged and comes again; stopping waits for the one under way", async () => {
  const world = quietWorld();
  let rounds = 0;
  let ended = false;
  const work = startRounds(world, {
    name: "sweeping",
    every_ms: 1,
    async round(signal) {
      rounds += 1;
      if (rounds === 1) throw new Error("a bug");
      if (rounds === 3) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        ended = true;
      }
    },
  });
  await until("the third round begins", () => rounds === 3);
  await work.stop();
  assert.equal(ended, true);
  assert.equal(rounds, 3);
  assert.match(world.lines.join(""), /"work":"sweeping".*a round of background work failed/);
});

test("work that is due at most every so often is due again at once when it failed", async () => {
  let nowMs = 0;
  let done = 0;
  let fails = true;
  const clock = { now: () => nowMs };
  const work = atMostEvery({ clock }, 1_000, async () => {
    if (fails) throw new Error("the database was away");
    done += 1;
  });
  await assert.rejects(work());
  fails = false;
  await work();
  await work();
  assert.equal(done, 1);
  nowMs = 1_000;
  await work();
  assert.equal(done, 2);
  nowMs = 10;
  await work();
  await work();
  assert.equal(done, 3, "a clock that was set back holds nothing up");
});

test("a sweep goes on until there is nothing more, ends when it is asked to, and is bounded", async () => {
  const left = [5, 5, 2, 0, 9];
  await sweep(undefined, async () => left.shift() ?? 0);
  assert.deepEqual(left, [9]);
  const ending = new AbortController();
  let steps = 0;
  await sweep(ending.signal, async () => {
    steps += 1;
    if (steps === 3) ending.abort();
    return 1;
  });
  assert.equal(steps, 3);
  steps = 0;
  await sweep(undefined, async () => {
    steps += 1;
    return 1;
  });
  assert.equal(steps, 40);
});
