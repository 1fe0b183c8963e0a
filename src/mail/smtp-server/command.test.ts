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

test("a path is within 254 octets as it is given and as it is stored (RFC 5321 §4.5.3.1.3)", () => {
  const fits = ".".repeat(254 - "@xn--bcher-kva.example".length);
  assert.equal(parsePathCommand(`TO:<${fits}@b\u00fccher.example>`, "TO")?.path.text.length, 254);
  assert.equal(parsePathCommand(`TO:<${fits}.@b\u00fccher.example>`, "TO"), null);
  assert.equal(parsePathCommand(`TO:<${".".repeat(245)}@b.example>`, "TO"), null);
});
