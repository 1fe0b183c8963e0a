import assert from "node:assert/strict";
import { test } from "node:test";
import { arrayWriter, type ElementType } from "../../src/platform/database/binary-arrays.ts";
import { readArray } from "./read-array.ts";

const CASES: [ElementType, unknown[]][] = [
  ["bool", [true, false, null]],
  ["bytea", [Buffer.from("a"), Buffer.alloc(0)]],
  ["bigint", [1, -5, 2 ** 52]],
  ["smallint", [1, -5]],
  ["int", [7, null, -7]],
  ["text", ["", "é", null, "é"]],
  ["timestamptz", [new Date("2026-11-20T12:00:00.123Z")]],
  ["uuid", ["01a1f947-d594-73ec-8b66-635575bed4f1"]],
  ["text", []],
];

for (const [type, values] of CASES) {
  test(`an array of ${type} with ${values.length} elements is read as it was written`, () => {
    assert.deepEqual(readArray(arrayWriter().array(type, values)), values);
  });
}

test("what is no array stays as it is", () => {
  for (const value of [5, "x", null, [1], Buffer.from("Subject: simulated\r\n\r\nHello\r\n")]) {
    assert.equal(readArray(value), value);
  }
});
