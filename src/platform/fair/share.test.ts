import assert from "node:assert/strict";
import { test } from "node:test";
import { isWithinShare, mayTakeMore } from "./share.ts";

/** What each of the tenants has once none may take more, one by one in turn. */
function fill(tenants: number, max: number): number[] {
  const held = Array.from({ length: tenants }, () => 0);
  let [taken, before] = [0, -1];
  while (taken !== before) {
    before = taken;
    for (const [at, own] of held.entries()) {
      if (!mayTakeMore(own, { max, taken })) continue;
      held[at] = own + 1;
      taken += 1;
    }
  }
  return held;
}

test("a lone tenant has half, several have equal shares, and as much is left for a newcomer", () => {
  for (const tenants of [1, 2, 3, 9]) {
    const share = 100 / (tenants + 1);
    const held = fill(tenants, 100);
    for (const own of held) assert.ok(Math.abs(own - share) <= 1, `${held}`);
  }
});

test("what a tenant took last may use up its share, and not more", () => {
  assert.ok(isWithinShare(50, { max: 100, taken: 50 }));
  assert.ok(!isWithinShare(51, { max: 100, taken: 51 }));
});
