import assert from "node:assert/strict";
import { it } from "node:test";
import { createKeySet } from "./key-set.ts";

const FOREVER = { rank: 0, until_ms: null };
const HOUR_MS = 3_600_000;

it("tells new keys from seen ones through many growths, whatever the seed", () => {
  for (const seed of [0, 1, 0xffffffff]) {
    const set = createKeySet(seed);
    for (let key = 0; key < 100_000; key += 1) assert.equal(set.add(`user${key}@example.com\norg\n`, FOREVER), "new");
    for (let key = 0; key < 100_000; key += 1) assert.equal(set.add(`user${key}@example.com\norg\n`, FOREVER), "seen");
    assert.equal(set.size(), 100_000);
  }
});

it("tells apart keys that differ in one character, in their order, or in being empty", () => {
  const set = createKeySet(7);
  for (const key of ["", "a", "b", "ab", "ba", "a\n", "\na"]) {
    assert.equal(set.add(key, FOREVER), "new", JSON.stringify(key));
  }
});

it("says when a key comes back with a higher rank or for longer, and keeps the most of both, also when it grows", () => {
  const set = createKeySet(7);
  const at = Date.UTC(2030, 0, 1);
  assert.equal(set.add("a", { rank: 1, until_ms: at }), "new");
  assert.equal(set.add("a", { rank: 1, until_ms: at }), "seen");
  assert.equal(set.add("a", { rank: 0, until_ms: at - HOUR_MS }), "seen");
  assert.equal(set.add("a", { rank: 3, until_ms: at - HOUR_MS }), "stronger");
  assert.equal(set.add("a", { rank: 2, until_ms: at + 1 }), "stronger");
  assert.equal(set.add("a", { rank: 2, until_ms: Date.UTC(9999, 11, 31) }), "stronger");
  for (let key = 0; key < 10_000; key += 1) set.add(`${key}`, FOREVER);
  assert.equal(set.add("a", { rank: 3, until_ms: Date.UTC(9999, 11, 31) }), "seen");
  assert.equal(set.add("a", { rank: 0, until_ms: null }), "stronger");
  assert.equal(set.add("a", { rank: 3, until_ms: Date.UTC(9999, 11, 31) }), "seen");
});
