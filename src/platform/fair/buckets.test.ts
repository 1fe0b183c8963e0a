import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createBuckets } from "./buckets.ts";

describe("createBuckets", () => {
  it("lets a burst through, then so many a second, name by name", () => {
    const buckets = createBuckets({ per_s: 2, burst: 3, names_max: 10 });
    const taken = (name: string, times: number, nowMs: number) =>
      Array.from({ length: times }, () => buckets.take(name, nowMs)).filter((wait) => wait === 0).length;
    assert.equal(taken("a", 10, 0), 3);
    assert.equal(taken("b", 1, 0), 1);
    assert.equal(taken("a", 10, 400), 0);
    assert.equal(taken("a", 10, 500), 1);
    assert.equal(taken("a", 10, 60_000), 3);
  });

  it("says how long to wait", () => {
    const buckets = createBuckets({ per_s: 0.1, burst: 1, names_max: 10 });
    assert.equal(buckets.take("a", 0), 0);
    assert.equal(buckets.take("a", 0), 10);
    assert.ok(Math.abs(buckets.take("a", 4_000) - 6) < 1e-9);
    assert.deepEqual(
      [buckets.isEmpty("a", 9_000), buckets.isEmpty("a", 10_000), buckets.isEmpty("b", 0)],
      [true, false, false],
    );
    assert.equal(buckets.take("a", 10_000), 0, "looking takes nothing");
  });

  it("loses nothing when the clock is set back", () => {
    const buckets = createBuckets({ per_s: 1, burst: 2, names_max: 2 });
    assert.equal(buckets.take("a", 400 * 86_400_000), 0);
    assert.equal(buckets.take("a", 0), 0);
    assert.ok(buckets.take("a", 0) <= 1);
    assert.equal(buckets.take("a", 1_000), 0, "and fills again from then on");
  });

  it("forgets the name used longest ago", () => {
    const buckets = createBuckets({ per_s: 1, burst: 1, names_max: 2 });
    for (const name of ["a", "b", "a", "c"]) buckets.take(name, 0);
    assert.ok(buckets.take("a", 0) > 0, "a is remembered");
    assert.equal(buckets.take("b", 0), 0, "b is forgotten");
  });
});
