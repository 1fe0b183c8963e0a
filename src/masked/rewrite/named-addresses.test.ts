import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { collectNamed } from "./named-addresses.ts";

const namedIn = (text: string): string[] => {
  const named = new Set<string>();
  collectNamed(text, named);
  return [...named].sort();
};

test("an address is named in words, over two lines and in quotes", () => {
  for (const text of [
    "write to anna (at) home.example",
    "anna at home dot example, please",
    "> anna [arroba] home [punto] example",
    "anna at\n> home.example",
  ]) {
    assert.deepEqual(
      namedIn(text).filter((one) => one === "anna@home.example"),
      ["anna@home.example"],
      text,
    );
  }
});

test("what a text names does not hang on a code that stands behind it", () => {
  const piece = fc.constantFrom(
    ...["anna", "home", "example", "com", "at", "AT", "a", "t", "dot", "arroba", "punkt", "urldefense", "-40"],
    ...[" ", "\n", "\r\n", "\t", ".", "-", "_", "(", ")", "[", "]", "{", "}", ">", "|", "> ", "\n> "],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
      const text = pieces.join("");
      assert.deepEqual(namedIn(`${text}\n.`), namedIn(`${text}\n.&`));
    }),
    { numRuns: 20_000 },
  );
});
