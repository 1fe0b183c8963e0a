import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { garbageOfThread } from "./garbage.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test("a pause of this thread is known soon after it, and only where it was", async () => {
  const garbage = garbageOfThread();
  const inside = (fromMs: number, toMs: number) =>
    new Promise<number>((done) => garbage.within({ fromMs, toMs }, done));
  const fromMs = performance.now();
  collect();
  const toMs = performance.now();
  const [all, half, after] = await Promise.all([
    inside(fromMs, toMs),
    inside(fromMs, (fromMs + toMs) / 2),
    inside(toMs, toMs + 1_000),
  ]);
  assert.ok(all > 0 && all <= toMs - fromMs, `${all} of ${toMs - fromMs} ms`);
  assert.ok(half < all, `${half} of ${all} ms in the first half`);
  assert.ok(after < all / 2, `${after} ms afterwards`);
});
