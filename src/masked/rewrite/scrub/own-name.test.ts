// The author's own name, in text that they wrote.
import assert from "node:assert/strict";
import { test } from "node:test";
import { replaceName, replaceNameBeside } from "./own-name.ts";

const MARK = "\u{e000}";

for (const author of [
  "Anne-Marie O'Brien",
  "Free-Quilting.com",
  "J. (Jo) Müller-Lüdenscheidt",
  "A+B [c] {d} ^e$ f* g? h| i\\\\j /k",
  "Ünal & Söhne #1 ~ 50% <x> = !",
]) {
  test(`a name of any letters and marks is found, and its text around it stays: ${author}`, () => {
    const found = replaceName(`I am ${author}. Yours`, author, "Shop");
    assert.deepEqual(found, { text: "I am Shop. Yours", count: 1 });
    const beside = { author, name: "Shop", mark: MARK, own: { email: "a@mask.example" } };
    const { text, count } = replaceNameBeside(`${author} <${MARK}a@mask.example> wrote`, beside);
    assert.deepEqual([text, count], [`Shop <${MARK}a@mask.example> wrote`, 1]);
    assert.deepEqual(replaceNameBeside(`${author} wrote`, beside), { text: `${author} wrote`, count: 0 });
  });
}

test("a name within a longer word is another word", () => {
  assert.equal(replaceName("Ann-Marieke", "Ann-Marie", "Shop").count, 0);
});
