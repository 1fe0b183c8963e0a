import assert from "node:assert/strict";
import { it } from "node:test";
import { getHeapSpaceStatistics } from "node:v8";
import { trimMemory } from "./trim-memory.ts";

/** Bytes that V8 has of the system for what was made last. */
const youngBytes = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")!.space_size;

it("what a start left behind is given back to the system, and nobody else gets a way to collect garbage", () => {
  const kept: object[] = [];
  for (let n = 0; n < 400_000; n += 1) kept.push({ n });
  const before = youngBytes();
  assert.ok(kept.length > 0);
  trimMemory();
  assert.ok(youngBytes() <= before / 2, `${before} bytes before, ${youngBytes()} after`);
  assert.equal("gc" in globalThis, false);
});
