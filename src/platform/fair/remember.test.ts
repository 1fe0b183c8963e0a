import assert from "node:assert/strict";
import { test } from "node:test";
import { remember } from "./remember.ts";

test("a value is known until its time is over, and may be nothing", () => {
  let nowMs = 0;
  const memory = remember<string | null>({ monotonic: () => nowMs }, { for_ms: 1_000, names_max: 10 });
  memory.set("a", "one");
  memory.set("b", null);
  memory.set("c", "longer", 5_000);
  nowMs = 999;
  assert.deepEqual([memory.get("a"), memory.get("b"), memory.get("x")], ["one", null, undefined]);
  nowMs = 1_000;
  assert.deepEqual([memory.get("a"), memory.get("c")], [undefined, "longer"]);
});

test("the one that was written longest ago goes when a small memory is full, and no other", () => {
  const memory = remember<number>({ monotonic: () => 0 }, { for_ms: 1_000, names_max: 3 });
  for (const [n, name] of ["a", "b", "c", "a", "d"].entries()) memory.set(name, n);
  assert.deepEqual(["a", "b", "c", "d"].map(memory.get), [3, undefined, 2, 4]);
});

test("a large memory that is full makes room for many at once, and never holds more", () => {
  const memory = remember<number>({ monotonic: () => 0 }, { for_ms: 1_000, names_max: 100 });
  for (let n = 0; n < 1_000; n += 1) memory.set(String(n), n);
  const known = Array.from({ length: 1_000 }, (_, n) => n).filter((n) => memory.get(String(n)) === n);
  assert.ok(known.length > 90 && known.length <= 100, String(known.length));
  assert.deepEqual(
    known,
    known.map((_, n) => 1_000 - known.length + n),
    "the youngest",
  );
});
