import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { type CsvRecord, createCsvReader, detectSeparator, FIELDS_MAX, ROW_CHARS_MAX } from "./csv.ts";

function read(text: string, separator = ",", pieceLength = Number.POSITIVE_INFINITY): CsvRecord[] {
  const reader = createCsvReader(separator);
  const records: CsvRecord[] = [];
  for (let at = 0; at < text.length; at += pieceLength) {
    records.push(...reader.push(text.slice(at, at + pieceLength)));
    if (pieceLength === Number.POSITIVE_INFINITY) break;
  }
  return [...records, ...reader.end()];
}
const fields = (records: CsvRecord[]) => records.map((record) => ("fields" in record ? record.fields : record.defect));

describe("well-formed CSV", () => {
  it("is read as csv-parse reads it, in pieces of any size", () => {
    const field = fc.stringMatching(/^[ab,;"\n\r\u00e9]{0,6}$/);
    const rows = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(
        rows,
        fc.constantFrom("\n", "\r\n"),
        fc.constantFrom(",", ";"),
        fc.integer({ min: 1, max: 9 }),
        (table, end, separator, piece) => {
          const text = table
            .map((row) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(separator) + end)
            .join("");
          const expected: string[][] = parse(text, {
            delimiter: separator,
            record_delimiter: end,
            relax_column_count: true,
          });
          const filled = expected.filter((row) => row.some((cell) => cell.trim() !== ""));
          assert.deepEqual(fields(read(text, separator)), filled);
          assert.deepEqual(fields(read(text, separator, piece)), filled);
        },
      ),
      { numRuns: 500 },
    );
  });

  for (const [name, end] of [
    ["CRLF", "\r\n"],
    ["LF", "\n"],
    ["CR", "\r"],
  ] as const) {
    it(`ends its rows with ${name}, with or without one at the end`, () => {
      const text = ["a,b", 'c,"d', '"', "", "e,f"].join(end);
      for (const piece of [1, 2, 3, 100]) {
        assert.deepEqual(fields(read(text, ",", piece)), [
          ["a", "b"],
          ["c", `d${end}`],
          ["e", "f"],
        ]);
        assert.deepEqual(fields(read(text + end, ",", piece)), [
          ["a", "b"],
          ["c", `d${end}`],
          ["e", "f"],
        ]);
      }
    });
  }

  it("leaves out blank rows and rows of separators, keeps empty fields", () => {
    assert.deepEqual(fields(read('\n ,\t\n,,\na,,\n,""\n')), [["a", "", ""]]);
  });

  it("may have blanks around quoted fields", () => {
    assert.deepEqual(fields(read('a, "b,c" ,d')), [["a", "b,c", "d"]]);
  });
});

describe("damaged CSV", () => {
  it("keeps a bare quote in an unquoted field, and one inside a quoted field on one line", () => {
    assert.deepEqual(fields(read('a "b" c,d\n"550 "User" unknown",x\n')), [
      ['a "b" c', "d"],
      ['550 "User" unknown', "x"],
    ]);
  });

  it("takes a field that only begins with a quoted text as it stands, and loses nothing that follows", () => {
    const text =
      'to,why\n"Doe, Jane" <jane@there.example>,x\n"a b"@there.example,"y"\nlast,"He said "no\nthanks"\n"Z" z';
    for (const piece of [1, 2, 5, 1_000]) {
      assert.deepEqual(fields(read(text, ",", piece)), [
        ["to", "why"],
        ['"Doe, Jane" <jane@there.example>', "x"],
        ['"a b"@there.example', "y"],
        ["last", 'He said "no\nthanks'],
        ['"Z" z'],
      ]);
    }
    assert.deepEqual(fields(read('"a" x\t "b"\n', "\t")), [['"a" x', "b"]]);
  });

  it("gives back every line that a quote swallows to the end of the file", () => {
    for (const piece of [1, 5, 1_000]) {
      assert.deepEqual(read('h\na,"never\n\nb,c\nd', ",", piece), [
        { fields: ["h"] },
        { defect: "unclosed_quote", raw: 'a,"never' },
        { defect: "inside_unclosed_quote", raw: "b,c" },
        { defect: "inside_unclosed_quote", raw: "d" },
      ]);
    }
  });

  it("goes on after the line where the next quoted field shows that a quote was never closed", () => {
    for (const piece of [1, 7, 1_000]) {
      assert.deepEqual(read('a,"never\nb,c\nd,"fine",x\ne,"f"\n', ",", piece), [
        { defect: "unclosed_quote", raw: 'a,"never' },
        { defect: "inside_unclosed_quote", raw: "b,c" },
        { defect: "inside_unclosed_quote", raw: 'd,"fine",x' },
        { fields: ["e", "f"] },
      ]);
    }
  });

  it("goes on after a row over the limit, and holds no more than the limit", () => {
    const long = "x".repeat(2 * ROW_CHARS_MAX);
    assert.deepEqual(read(`${long}\na,b\n`, ",", 64 * 1024), [
      { defect: "row_too_long", raw: "x".repeat(200) },
      { fields: ["a", "b"] },
    ]);
    const swallowed = read(`"open\n${"line without quotes\n".repeat(40_000)}`, ",", 64 * 1024);
    assert.equal(swallowed.length, 40_001);
    assert.equal("defect" in swallowed[0]! && swallowed[0].defect, "unclosed_quote");
    assert.ok(swallowed.filter((record) => "defect" in record).length < 20_000);
  });

  it("refuses a row of more than 1,000 fields", () => {
    const row = ",x".repeat(FIELDS_MAX);
    const quoted = `"a"${row}`;
    assert.deepEqual(fields(read(`${row}\n${quoted}\nok`)), ["too_many_fields", "too_many_fields", ["ok"]]);
    assert.equal((fields(read(",x".repeat(FIELDS_MAX - 1)))[0] as string[]).length, FIELDS_MAX);
    for (const piece of [1, 100, 1_500]) {
      assert.deepEqual(fields(read(`${quoted}${row}\nok`, ",", piece)), ["too_many_fields", ["ok"]], `in ${piece}s`);
    }
  });

  it("never loses a line and never throws, whatever the bytes", () => {
    const text = fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", " ", ";", "\0"), maxLength: 60 });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 7 }), (input, piece) => {
        const whole = read(input);
        assert.deepEqual(read(input, ",", piece), whole);
        const letters = (part: string) => part.replace(/[^a]/g, "").length;
        const kept = whole.map((record) => ("fields" in record ? record.fields.join("") : record.raw)).join("");
        assert.equal(letters(kept), letters(input));
      }),
      { numRuns: rounds(200, 2_000) },
    );
  });

  it("takes time in proportion to its length", () => {
    const reader = createCsvReader(",");
    const used = startProcessorTime();
    for (const nasty of [
      '"'.repeat(100_000),
      '" '.repeat(100_000),
      '",'.repeat(100_000),
      '"\n'.repeat(100_000),
      " ".repeat(300_000),
      '"a" x\n'.repeat(100_000),
    ]) {
      for (let at = 0; at < nasty.length; at += 64 * 1024) reader.push(nasty.slice(at, at + 64 * 1024));
      reader.end();
    }
    assert.ok(used() < 2_000);
  });
});

describe("the separator", () => {
  for (const [first, separator] of [
    ["email,reason", ","],
    ["email;reason;date", ";"],
    ["email\treason", "\t"],
    ["email|reason", "|"],
    ['"a;b;c",reason', ","],
    ["\n\nemail;reason", ";"],
    ["email", ","],
    ['"first\nline",x;y;z', ";"],
  ]) {
    it(`of ${JSON.stringify(first)} is ${JSON.stringify(separator)}`, () => {
      assert.deepEqual(detectSeparator(`${first}\na@example.com\n`), { separator, skip: 0 });
    });
  }

  it("is what a sep= line says", () => {
    assert.deepEqual(detectSeparator("sep=;\r\na,b,c;d"), { separator: ";", skip: 7 });
  });
});
