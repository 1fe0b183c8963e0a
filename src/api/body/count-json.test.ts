import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { countJson } from "./count-json.ts";

const LIMITS = { depth_max: 4, values_max: 10 };

function count(json: string, limits = LIMITS) {
  return countJson(Buffer.from(json), limits);
}

/** The same body, too large for strings to be passed over. */
function large(json: string): string {
  return `${json}${" ".repeat(20_000)}`;
}

test("members and elements of all levels are counted, whatever strings hold", () => {
  assert.deepEqual(count('{"a":1,"b":[1,2,3],"c":{"d":null}}'), { kind: "counted", values: 7, marks: 0 });
  assert.deepEqual(count('["a,b,{[","\\",[,",1]'), { kind: "counted", values: 3, marks: 0 });
  assert.deepEqual(count('"only a text"'), { kind: "counted", values: 0, marks: 0 });
});

test("tags, entities, expressions and escapes within strings are counted as marks", () => {
  const body = '{"html_body":"<p>&amp;{{a}}\\n</p>"}';
  assert.deepEqual(count(large(body)), { kind: "counted", values: 1, marks: 6 });
  assert.deepEqual(
    count(body),
    { kind: "counted", values: 1, marks: 0 },
    "a small body holds no number that costs anything",
  );
});

test("a small body is counted as a large one, whatever is in its strings", () => {
  const piece = fc.constantFrom('"', "\\", '\\"', "{", "[", "}", "]", ",", ":", "a", '"b":', '"c",');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const [small, whole] = [count(pieces.join("")), count(large(pieces.join("")))];
      assert.deepEqual({ ...small, marks: 0 }, { ...whole, marks: 0 });
    }),
    { numRuns: rounds(1_000, 20_000) },
  );
});

test("one value more than the limit is too many, and the field that holds it is named", () => {
  const members = (count: number) => Array.from({ length: count }, (_none, n) => `"k${n}":1`).join();
  assert.equal(count(`{"a":{${members(9)}}}`).kind, "counted");
  assert.deepEqual(count(`{"from":"x","a":{${members(10)}}}`), { kind: "too_many", field: "a" });
  assert.deepEqual(count(`{"emails":[{},{"to":"x","headers":{${members(9)}}}]}`), {
    kind: "too_many",
    field: "emails[1].headers",
  });
  assert.deepEqual(count(`[${"1,".repeat(20)}1]`), { kind: "too_many", field: "" });
});

test("one level more than the limit is too deep, and the field is named", () => {
  assert.equal(count('{"a":[[[1]]]}').kind, "counted");
  assert.deepEqual(count('{"b":1,"a":[[[[1]]]]}'), { kind: "too_deep", field: "a[0][0]" });
});

test("what is not JSON ends as well: open strings, lone brackets, an escape at the end", () => {
  for (const text of ['{"a', '"\\', "]]]}}}", "", '{"a"', ",,,", '{,"a":[']) count(text);
});

test("a body costs a few nanoseconds a byte, whatever is in it", () => {
  const limits = { depth_max: 32, values_max: Number.POSITIVE_INFINITY };
  const bytes = 8 * 1024 * 1024;
  for (const piece of ['"\\"",', '{"a":', "[", ",", "<&{", '"",', "\\\\", "é"]) {
    const body = Buffer.from(piece.repeat(Math.floor(bytes / Buffer.byteLength(piece))));
    assert.ok(processorMs(() => countJson(body, limits)) < 400, piece);
  }
});
