import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkDocstrings, checkWords } from "./tidy-words.ts";

describe("the words", () => {
  it("are the plain ones", () => {
    const said = (text: string) => checkWords(new Map([["docs/a.md", text]])).map(({ message }) => message);
    assert.deepEqual(said("The mail is deferred.\nIts author is notified."), []);
    assert.match(said("The mail is put off.").join(), /says "put off"; plainer: deferred/);
    assert.match(said("It puts the next look off.").join(), /says "puts the next look off"/);
    assert.match(said("Nobody is\ntold.").join(), /says "told"/);
  });
});

describe("the docstrings", () => {
  it("say what is so, name their subject, and ask nothing", () => {
    const said = (text: string) => checkDocstrings(new Map([["src/a.ts", text]])).map(({ line }) => line);
    assert.deepEqual(
      said("/** True for a day. */\n/** A glob (`*`, `?`). */\n/** Says it. Why? */\nconst a = b ? 1 : 2;"),
      [],
    );
    assert.deepEqual(said("\n/** Is it a day? */"), [2]);
    assert.deepEqual(said("/** Of one mail. */\nconst LINES_MAX = 5;"), [1]);
    assert.deepEqual(said("/**\n * Has the organization\n * any (of `a?`)? Null: none.\n */"), [1]);
  });
});
