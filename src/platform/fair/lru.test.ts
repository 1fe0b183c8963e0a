import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLru } from "./lru.ts";

describe("createLru", () => {
  it("forgets what was used longest ago when it is full", () => {
    const known = createLru<number>(2);
    known.set("a", 1);
    known.set("b", 2);
    known.get("a");
    known.set("c", 3);
    assert.deepEqual(
      ["a", "b", "c"].map((name) => known.get(name)),
      [1, undefined, 3],
    );
  });

  it("reserves no memory for what is not there yet", () => {
    const before = process.memoryUsage();
    const empty = Array.from({ length: 100 }, () => createLru<number>(1_000_000));
    const after = process.memoryUsage();
    const grown = after.heapUsed + after.external - before.heapUsed - before.external;
    assert.ok(grown < 50_000_000, `${empty.length} empty maps take ${grown} bytes`);
  });
});
