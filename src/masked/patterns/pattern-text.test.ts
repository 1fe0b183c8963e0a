// Which pattern takes which address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choosePattern, isTakenBy, readPattern } from "./pattern-text.ts";

test("a pattern takes what has something in the place of its star, and no name of a service", () => {
  const cases: [pattern: string, local: string, taken: boolean][] = [
    ["*.lena", "shop.lena", true],
    ["*.lena", "a.b.lena", true],
    ["*.lena", ".lena", false],
    ["*.lena", "lena", false],
    ["*.lena", "shop..lena", false],
    ["lena-*", "lena-", false],
    ["lena-*", "lena-x_1", true],
    ["a*a", "a", false],
    ["a*a", "aa", false],
    ["a*a", "aba", true],
    ["*", "anything", true],
    ["*", "postmaster", false],
    ["*", "abuse", false],
    ["*", `r.${"a".repeat(26)}`, false],
    ["*", "r.x", false],
    ["*", "-x", false],
    ["*", "x.", false],
    ["*", "jo\u00e3o", false],
    ["*", "x".repeat(65), false],
  ];
  for (const [pattern, local, taken] of cases) assert.equal(isTakenBy(pattern, local), taken, `${pattern} ${local}`);
});

test("what has more fixed characters goes first, then what was there first", () => {
  const patterns = ["*", "*.lena", "shop*", "s*.lena"].map((local_pattern, at) => ({ id: String(at), local_pattern }));
  const chosen = (local: string) => choosePattern(patterns, local)?.local_pattern;
  assert.deepEqual(["shop.lena", "a.lena", "shops", "b"].map(chosen), ["s*.lena", "*.lena", "shop*", "*"]);
  const tie = [
    { id: "b", local_pattern: "*a" },
    { id: "a", local_pattern: "b*" },
  ];
  assert.equal(choosePattern(tie, "bca")?.id, "a");
  assert.equal(choosePattern(patterns, "abuse"), null);
});

test("what is written is read without regard to case, and refused with what is wrong", () => {
  assert.deepEqual(readPattern(" *.Lena@Own.Example "), {
    ok: true,
    pattern: { local: "*.lena", domain: "own.example" },
  });
  for (const text of ["", "@own.example", "lena@own.example", "**@own.example", "?*@own.example", "*"]) {
    assert.equal(readPattern(text).ok, false, text);
  }
});
