import assert from "node:assert/strict";
import { test } from "node:test";
import { isSame, uuidBytes, uuidText } from "./token-bytes.ts";

test("bytes are the same or not, and another length is another value, never an exception", () => {
  const bytes = Buffer.from("0123456789");
  assert.equal(isSame(bytes, Buffer.from(bytes)), true);
  for (let at = 0; at < bytes.length; at += 1) {
    const other = Buffer.from(bytes);
    other[at] = (other[at] as number) ^ 1;
    assert.equal(isSame(bytes, other), false, `byte ${at}`);
  }
  for (const length of [0, 9, 11]) assert.equal(isSame(bytes, Buffer.alloc(length)), false);
  assert.equal(isSame(Buffer.alloc(0), Buffer.alloc(0)), true);
});

test("a UUID goes to its bytes and back", () => {
  const uuid = "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9fa0b1";
  assert.equal(uuidBytes(uuid).length, 16);
  assert.equal(uuidText(uuidBytes(uuid).toString("hex")), uuid);
});
