import assert from "node:assert/strict";
import { test } from "node:test";
import { KEEP_TRYING_MS, retryDelayMs } from "./retry.ts";

const MINUTE_MS = 60_000;

test("waits 5, 10, 20, 40 minutes, 1, 2, 4 hours, then 6 hours each time", () => {
  const minutes = Array.from({ length: 10 }, (_, n) => retryDelayMs(n + 1, 0.5) / MINUTE_MS);
  assert.deepEqual(minutes, [5, 10, 20, 40, 60, 120, 240, 360, 360, 360]);
});

test("spreads a wait by at most 15 % to either side", () => {
  assert.equal(retryDelayMs(1, 0) / MINUTE_MS, 5 * 0.85);
  assert.ok(Math.abs(retryDelayMs(1, 0.999999) / MINUTE_MS - 5 * 1.15) < 0.001);
});

test("never comes back to a greylisting server sooner than it asks", () => {
  assert.equal(retryDelayMs(1, 0, 5), 5 * MINUTE_MS);
  assert.equal(retryDelayMs(4, 0.5, 5), 40 * MINUTE_MS);
});

test("four tries fall into the first forty minutes and the last within 72 hours", () => {
  const tries = [0];
  for (let n = 1; (tries.at(-1) as number) < KEEP_TRYING_MS; n += 1)
    tries.push((tries.at(-1) as number) + retryDelayMs(n, 0.5));
  assert.ok(tries.filter((time) => time <= 40 * MINUTE_MS).length >= 4);
  assert.ok(tries.filter((time) => time < KEEP_TRYING_MS).length >= 16);
});
