import assert from "node:assert/strict";
import { test } from "node:test";
import { delayAfterMs } from "./schedule.ts";

test("the delays are the contract's table, never early and at most a second late", () => {
  const minutes = [1, 5, 30, 120, 480, 1_440];
  for (const [index, minute] of minutes.entries()) {
    assert.equal(delayAfterMs(index + 1, 0), minute * 60_000);
    const latest = delayAfterMs(index + 1, 1 - Number.EPSILON) ?? 0;
    assert.ok(latest > minute * 60_000 && latest < minute * 60_000 + 1_000, String(latest));
  }
});

test("there is nothing after the seventh attempt, and the whole schedule takes 34 h 36 min", () => {
  assert.equal(delayAfterMs(7, 0), null);
  const total = [1, 2, 3, 4, 5, 6].reduce((sum, attempt) => sum + (delayAfterMs(attempt, 0) ?? 0), 0);
  assert.equal(total, (34 * 60 + 36) * 60_000);
});
