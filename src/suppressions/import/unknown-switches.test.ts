// Columns of yes and no whose name nobody knows: their no never suppresses, and they are asked about.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { FINE, no, words } from "./import-reader.fixture.ts";
import { createImportReader } from "./import-reader.ts";

const ASKED = "says no, and its meaning is not known";

function asks(content: string, filename = ""): string[] {
  const reader = createImportReader({ provider: null, filename, now_ms: Date.UTC(2026, 10, 20) });
  reader.push(Buffer.from(content));
  reader.end();
  return reader.asks();
}

describe("a column of yes and no that is not known", () => {
  const cases: [string, string, string[], string[]][] = [
    [
      "in words of English",
      "Email,Is Excluded From Campaigns\na@x.example,false\nb@x.example,true\nc@x.example,\n",
      [no("Is Excluded From Campaigns", ASKED), "manual", "manual"],
      ["Is Excluded From Campaigns"],
    ],
    [
      "in digits and single letters",
      "email,gsx,zq\na@x.example,0,Y\nb@x.example,1,N\nc@x.example,1,Y\n",
      [no("gsx", ASKED), no("zq", ASKED), "manual"],
      ["gsx", "zq"],
    ],
    [
      "in another language",
      "E-Mail;Newsletter aus\na@x.example;nein\nb@x.example;ja\n",
      [no("Newsletter aus", ASKED), "manual"],
      ["Newsletter aus"],
    ],
    [
      "beside a reason that is known",
      "email,reason,vip\na@x.example,hard bounce,no\nb@x.example,,no\n",
      ["hard_bounce", no("vip", ASKED)],
      ["vip"],
    ],
    [
      "in JSON",
      '[{"email":"a@x.example","gsx":false},{"email":"b@x.example","gsx":true}]',
      [no("gsx", ASKED), "manual"],
      ["gsx"],
    ],
    ["in a list without a heading", "a@x.example,N\nb@x.example,Y\n", [no("2", ASKED), "manual"], ["2"]],
    [
      "whose name is a known one after all",
      "email,unsub\na@x.example,0\nb@x.example,1\n",
      [no("unsub", FINE), "unsubscribe"],
      [],
    ],
    ["that holds other words too", "email,tier\na@x.example,no\nb@x.example,gold\n", ["manual", "manual"], []],
  ];
  for (const [name, content, expected, asked] of cases) {
    it(name, () => {
      assert.deepEqual(words(content), expected);
      assert.deepEqual(asks(content), asked);
    });
  }

  it("does not suppress by its no either where the file's name says what the list is", () => {
    const content = "email,gsx\na@x.example,no\nb@x.example,yes\n";
    assert.deepEqual(words(content, { filename: "unsubscribes.csv" }), [no("gsx", ASKED), "unsubscribe"]);
  });

  it("is found among the first rows, and a no far below counts as well", () => {
    const rows = Array.from({ length: 500 }, (_, n) => `r${n}@x.example,${n === 400 ? "No" : ""}`);
    const found = words(`email,gsx\n${rows.join("\n")}\n`);
    assert.equal(found[400], no("gsx", ASKED));
    assert.equal(found.filter((word) => word === "manual").length, 499);
  });

  it("never suppresses by a no, whatever its name", () => {
    const letters = fc.string({
      unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz_ "),
      minLength: 1,
      maxLength: 30,
    });
    const noWord = fc.constantFrom("0", "no", "No", "FALSE", "n", "off", "nein");
    fc.assert(
      fc.property(letters, noWord, (heading, word) => {
        const rows = words(`email,q${heading}\na@x.example,${word}\nb@x.example,${word}\n`);
        assert.ok(
          rows.every((row) => row.startsWith("no: ")),
          `${heading}: ${rows.join(" | ")}`,
        );
      }),
      { numRuns: rounds(200, 1_000) },
    );
  });
});
