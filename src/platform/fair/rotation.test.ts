import assert from "node:assert/strict";
import { test } from "node:test";
import { createRotation } from "./rotation.ts";

function rotationOf(groups: Record<string, string[]>) {
  const rotation = createRotation<string>();
  for (const [group, items] of Object.entries(groups)) for (const item of items) rotation.add(group, item);
  return rotation;
}

function takeAll(rotation: ReturnType<typeof rotationOf>, may?: (group: string) => boolean): string {
  const taken: string[] = [];
  for (let next = rotation.next(may); next !== null; next = rotation.next(may)) taken.push(next);
  return taken.join(" ");
}

test("groups take turns, and their items keep their order", () => {
  assert.equal(takeAll(rotationOf({ a: ["a1", "a2", "a3"], b: ["b1"], c: ["c1", "c2"] })), "a1 b1 c1 a2 c2 a3");
});

test("a group that may not have a turn keeps its place", () => {
  const rotation = rotationOf({ a: ["a1", "a2"], b: ["b1", "b2"] });
  assert.equal(
    takeAll(rotation, (group) => group === "b"),
    "b1 b2",
  );
  rotation.add("b", "b3");
  assert.equal(takeAll(rotation), "a1 b3 a2");
});

test("what was removed is not given, and what was added twice is given once", () => {
  const rotation = rotationOf({ a: ["a1", "a2", "a2"], b: ["b1"] });
  rotation.remove("a", "a1");
  rotation.remove("a", "never there");
  assert.deepEqual([rotation.items(), rotation.sizeOf("a"), rotation.sizeOf("b")], [2, 1, 1]);
  rotation.remove("b", "b1");
  assert.equal(rotation.first(), "a2");
  assert.equal(takeAll(rotation), "a2");
  assert.deepEqual([rotation.items(), rotation.first(), rotation.sizeOf("b")], [0, null, 0]);
});
