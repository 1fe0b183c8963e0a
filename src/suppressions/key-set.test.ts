import assert from "node:assert/strict";
import { it } from "node:test";
import { createKeySet } from "./key-set.ts";

it("tells new keys from seen ones through many growths, whatever the seed", () => {
  for (const seed of [0, 1, 0xffffffff]) {
    const set = createKeySet(seed);
    for (let key = 0; key < 100_000; key += 1) assert.equal(set.add(`user${key}@example.com\norg\n`), true);
    for (let key = 0; key < 100_000; key += 1) assert.equal(set.add(`user${key}@example.com\norg\n`), false);
    assert.equal(set.size(), 100_000);
  }
});

it("tells apart keys that differ in one character, in their order, or in being empty", () => {
  const set = createKeySet(7);
  for (const key of ["", "a", "b", "ab", "ba", "a\n", "\na"]) assert.equal(set.add(key), true, JSON.stringify(key));
});
