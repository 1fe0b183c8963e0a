import assert from "node:assert/strict";
import { test } from "node:test";
import { createProcessorShares } from "./processor-shares.ts";

function shares() {
  const time = { ms: 0 };
  return { time, ...createProcessorShares({ monotonic: () => time.ms }) };
}

test("ordinary work costs nothing, however much there is of it", () => {
  const { spend, waitMs } = shares();
  for (let n = 0; n < 100_000; n += 1) spend("a", "here", 0.4);
  assert.equal(waitMs("a", "here"), 0);
});

test("an organization that used its part waits until it has flowed off; others do not", () => {
  const { time, spend, waitMs } = shares();
  for (let n = 0; n < 400; n += 1) spend("a", "here", 5.5);
  assert.equal(waitMs("a", "here"), 4_000);
  assert.equal(waitMs("b", "here"), 0);
  assert.equal(waitMs("a", "aside"), 0);
  time.ms += 4_000;
  assert.equal(waitMs("a", "here"), 0);
});

test("work that holds the shared thread for long counts many times, aside it counts once", () => {
  const { spend, waitMs } = shares();
  spend("a", "here", 100);
  assert.ok(waitMs("a", "here") > 3_000);
  spend("a", "aside", 100);
  assert.equal(waitMs("a", "aside"), 0);
});
