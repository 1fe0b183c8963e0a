import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { safeFilename } from "./filename.ts";

describe("safeFilename", () => {
  const cases: [string, string][] = [
    ["report.pdf", "report.pdf"],
    ["Übersicht 2024 (final).pdf", "Übersicht 2024 (final).pdf"],
    ["請求書.pdf", "請求書.pdf"],
    ["👨‍👩‍👧.png", "👨‍👩‍👧.png"],
    [".gitignore", ".gitignore"],
    ["../../etc/passwd", "passwd"],
    ["C:\\Windows\\system32\\cmd.exe", "cmd.exe"],
    ["/etc/", "attachment"],
    ["a/..", "attachment"],
    ["..", "attachment"],
    [".", "attachment"],
    ["", "attachment"],
    ["   ", "attachment"],
    ["a\r\nBcc: x.pdf", "aBcc_ x.pdf"],
    ["a\0b\x1b[31m\x7f\u0085.txt", "ab[31m.txt"],
    ["invoice\u202efdp.exe", "invoicefdp.exe"],
    ["a\u200b\u2066\ufeff\u2028b.txt", "ab.txt"],
    ["\ud800a.txt", "a.txt"],
    ['a<b>c:d"e|f?g*h.txt', "a_b_c_d_e_f_g_h.txt"],
    ["a.exe. . ", "a.exe"],
    ["  a.txt", "a.txt"],
  ];
  for (const [given, want] of cases)
    it(`makes ${JSON.stringify(want)} of ${JSON.stringify(given)}`, () => assert.equal(safeFilename(given), want));

  it("cuts at 200 and keeps the extension and whole characters", () => {
    assert.equal(safeFilename(`${"x".repeat(300)}.pdf`), `${"x".repeat(196)}.pdf`);
    assert.equal(safeFilename("x".repeat(10_000)).length, 200);
    const emoji = safeFilename(`x${"😀".repeat(200)}.pdf`);
    assert.ok(emoji.length <= 200 && emoji.isWellFormed() && emoji.endsWith(".pdf"));
    assert.equal(safeFilename(`a.${"x".repeat(300)}`).length, 200);
    assert.equal(safeFilename(`a. .${" ".repeat(300)}${"x".repeat(30)}`), "a");
    assert.equal(safeFilename(`${".".repeat(300)}${"x".repeat(30)}`), "attachment");
  });

  it("is safe for any string, and a fixed point", () => {
    const unit = fc.oneof(
      fc.constantFrom("/", "\\", ".", " ", "\u202e", "\ud83d", "a", "x".repeat(60)),
      fc.string({ unit: "binary", maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 20, size: "max" }), (given) => {
        const name = safeFilename(given);
        assert.ok(name.length >= 1 && name.length <= 200 && name.isWellFormed());
        assert.doesNotMatch(name, /[/\\\p{Cc}\u202a-\u202e\u2066-\u2069]|^\.{1,2}$/u);
        assert.equal(safeFilename(name), name);
      }),
      { numRuns: rounds(200, 2_000) },
    );
  });
});
