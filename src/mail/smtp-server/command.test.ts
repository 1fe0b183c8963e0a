// Paths as clients write them: what is stored of one is read the same again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePathCommand } from "./command.ts";

test("an address in UTF-8 is one whose local part is: of the domain the ASCII form is kept, for odd local parts too", () => {
  for (const local of ["a", ".a", "a..b", "a@b"]) {
    const path = parsePathCommand(`TO:<${local}@b\u00fccher.example>`, "TO")?.path;
    assert.deepEqual([path?.text, path?.smtputf8], [`${local}@xn--bcher-kva.example`, false], local);
    assert.deepEqual(parsePathCommand(`TO:<${path?.text}>`, "TO")?.path, path);
  }
  assert.equal(parsePathCommand("TO:<.\u00fc@b.example>", "TO")?.path.smtputf8, true);
});
