import assert from "node:assert/strict";
import { test } from "node:test";
import { fnv1a } from "./fnv.ts";

test("the hashes are those of the authors' test vectors", () => {
  const vectors: [string, number][] = [
    ["", 0x811c9dc5],
    ["a", 0xe40c292c],
    ["foobar", 0xbf9cf968],
  ];
  for (const [text, hash] of vectors) assert.equal(fnv1a(text), hash, text);
});
