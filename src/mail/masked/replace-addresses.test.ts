// What is left of an address after replacing: nothing that reads as it, disguised or as it stands.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createReplacer } from "./replace-addresses.ts";

const replacer = createReplacer([{ from: "anna@home.example", to: "k3x@mask.example" }]);

test("an address is found where what stands before it makes a code of its first letters", () => {
  for (const text of ["%4anna@home.example", "&#4anna@home.example", "&aanna@home.example", "%25%4anna@home.example"]) {
    assert.doesNotMatch(replacer.text(text).text, /anna@home/i, text);
    assert.doesNotMatch(replacer.html(text).text, /anna@home/i, text);
  }
});
