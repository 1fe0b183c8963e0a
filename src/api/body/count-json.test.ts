import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { countJson } from "./count-json.ts";

const LIMITS = { depth_max: 4, values_max: 10 };

function count(json: string, limits = LIMITS) {
  return countJson(Buffer.from(json), limits);
}

test("members and elements of all levels are counted, whatever strings hold", () => {
  assert.deepEqual(count('{"a":1,"b":[1,2,3],"c":{"d":null}}'), { kind: "counted", values: 7, marks: 0 });
  assert.deepEqual(count('["a,b,{[","\\",[,",1]'), { kind: "counted", values: 3, marks: 2 });
  assert.deepEqual(count('"only a text"'), { kind: "counted", values: 0, marks: 0 });
});

test("tags, entities, expressions and escapes within strings are counted as marks", () => {
  assert.deepEqual(count('{"html_body":"<p>&amp;{{a}}\\n</p>"}'), { kind: "counted", values: 1, marks: 6 });
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

test("what is no JSON ends as well: open strings, lone brackets, an escape at the end", () => {
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
