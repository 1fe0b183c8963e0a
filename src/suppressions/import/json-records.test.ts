import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { createJsonReader, type JsonRecord, looksLikeJson, RECORD_CHARS_MAX } from "./json-records.ts";

function read(text: string, pieceLength = text.length + 1): JsonRecord[] {
  const reader = createJsonReader(text.slice(0, 16_384), (raw) => raw);
  const records: JsonRecord[] = [];
  for (let at = 0; at < text.length; at += pieceLength) records.push(...reader.push(text.slice(at, at + pieceLength)));
  return [...records, ...reader.end()];
}
const values = (records: JsonRecord[]) =>
  records.map((record) => ("values" in record ? Object.fromEntries(record.values) : record.defect));

describe("records in JSON", () => {
  for (const [name, text, expected] of [
    ["an array", '[{"email":"a"},\n {"email":"b"}]', [{ email: "a" }, { email: "b" }]],
    [
      "an object that holds the array",
      '{"total":2,"items":[{"a":"1"},{"a":"2"}],"paging":{"next":"x"}}',
      [{ a: "1" }, { a: "2" }],
    ],
    ["the first of several arrays", '{"results":[{"a":"1"}],"links":[{"href":"x"}]}', [{ a: "1" }]],
    ["one object a line", '{"a":"1"}\n{"a":"2"}\r\n\n{"a":"3"}', [{ a: "1" }, { a: "2" }, { a: "3" }]],
    ["one object over many lines", '{\n "a": "1",\n "b": {"c": "2"}\n}', [{ a: "1", "b.c": "2" }]],
    ["answers page after page", '{"items":[{"a":"1"}],"p":{}}\n{"items":[{"a":"2"}]}', [{ a: "1" }, { a: "2" }]],
    [
      "values of every kind",
      '[{"a":null,"b":true,"c":1.5,"d":["x","y"],"e":{"f":{"g":1},"h":"i"}}]',
      [{ a: "", b: "true", c: "1.5", d: "x,y", "e.f": "", "e.h": "i" }],
    ],
    ["brackets and quotes within strings", '[{"a":"}]{[\\"\\\\"},{"a":"\\\\"}]', [{ a: '}]{["\\' }, { a: "\\" }]],
    ["an array that holds other things too", '[["x"],{"a":"1"},[{"a":"9"},2],"y",{"a":"2"}]', [{ a: "1" }, { a: "2" }]],
    [
      "an array of addresses",
      ' [ "a@b.c",\n"\\u0064\\"@e.f" , ""] ',
      [{ email: "a@b.c" }, { email: 'd"@e.f' }, { email: "" }],
    ],
    ["an empty array", " [ ] ", []],
    ["nothing", "  ", []],
  ] as const) {
    it(`are read from ${name}, in pieces of any size`, () => {
      for (const piece of [1, 2, 3, 5, 8, 1_000]) assert.deepEqual(values(read(text, piece)), expected, `${piece}`);
    });
  }

  it("survive a broken line of NDJSON, which is one defect", () => {
    assert.deepEqual(values(read('{"a":"1"}\n{"a":\n{"a":"3"}\n')), [
      { a: "1" },
      "the line is not a JSON object",
      { a: "3" },
    ]);
  });

  it("end with a defect where brackets do not match, the text ends early, or nesting is too deep", () => {
    const broken = "the JSON is not well formed from here on";
    assert.deepEqual(values(read('[{"a":"1"},{"a":"2"]}]')), [{ a: "1" }, broken]);
    assert.deepEqual(values(read('[{"a":"1"},{"a":"2')), [{ a: "1" }, broken]);
    assert.deepEqual(values(read('[{"a":"1"}')), [{ a: "1" }, broken]);
    for (const [text, found] of [
      ['["a","b', 1],
      ['["a","b" "c"]', 2],
      ['["a",1,"c"]', 1],
      ['["a",{"b":"c"}]', 1],
      ['["a"', 1],
      [`["a","${"x".repeat(2 * RECORD_CHARS_MAX)}"]`, 1],
    ] as const) {
      const given = values(read(text, 3_000));
      assert.deepEqual(given.slice(found), ["from here on it is not an array of addresses alone"], text.slice(0, 20));
      assert.equal(given.length, found + 1);
    }
    assert.deepEqual(values(read(`[{"a":${"[".repeat(100_000)}`)), [broken]);
    assert.deepEqual(values(read(`[{"a":"${"x".repeat(2 * RECORD_CHARS_MAX)}"},{"a":"1"}]`, 10_000)), [broken]);
  });

  it("are what JSON.parse finds, however the text is cut", () => {
    const row = fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.string({ maxLength: 8 }), {
      minKeys: 1,
      maxKeys: 3,
    });
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        (rows, piece, wrapped) => {
          const text = JSON.stringify(wrapped ? { list: rows } : rows);
          assert.deepEqual(
            values(read(text, piece)),
            rows.map((given) => ({ ...given })),
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  it("never throw, whatever the text", () => {
    const text = fc.string({
      unit: fc.constantFrom("{", "}", "[", "]", '"', "\\", ":", ",", "a", "\n"),
      maxLength: 40,
    });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 7 }), (input, piece) => void read(input, piece)),
      { numRuns: rounds(200, 2_000) },
    );
  });

  it("begin with a bracket", () => {
    assert.deepEqual(['  {"a"', "[", "email,reason", ""].map(looksLikeJson), [true, true, false, false]);
  });
});
