import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { decodeWords, headersMax, headerValues, headOctetsMax, splitMessage } from "./parse-head.ts";

const folder = fileURLToPath(new URL("../../../../shared/data/", import.meta.url));
const missing = existsSync(`${folder}mime-misc`) ? false : "third-party mails are not here (../shared/data/mime-misc)";

describe("splitMessage", () => {
  it("gives names, unfolded values, raw octets and the body's offset", () => {
    const bytes = Buffer.from("Subject: a\r\n b\r\n\tc\r\nTo : x\r\nX:\r\n\r\nbody\r\n");
    const head = splitMessage(bytes);
    assert.deepEqual(
      head.headers.map(({ name, value }) => [name, value]),
      [
        ["Subject", "a b\tc"],
        ["To", "x"],
        ["X", ""],
      ],
    );
    assert.equal(
      Buffer.concat(head.headers.map(({ raw }) => raw)).toString(),
      bytes.toString("utf8", 0, head.body_offset - 2),
    );
    assert.equal(bytes.toString("utf8", head.body_offset), "body\r\n");
    assert.deepEqual(head.defects, []);
  });

  const cases: [string, string, [string, string][], string, string[]][] = [
    [
      "bare LF",
      "A: 1\nB: 2\n 3\n\nx",
      [
        ["A", "1"],
        ["B", "2 3"],
      ],
      "x",
      [],
    ],
    [
      "mixed line ends",
      "A: 1\nB: 2\r\n\nx",
      [
        ["A", "1"],
        ["B", "2"],
      ],
      "x",
      [],
    ],
    ["no headers", "\r\nx", [], "x", []],
    ["nothing", "", [], "", ["no_empty_line"]],
    ["no body", "A: 1\r\n\r\n", [["A", "1"]], "", []],
    [
      "no empty line",
      "A: 1\r\nB: 2",
      [
        ["A", "1"],
        ["B", "2"],
      ],
      "",
      ["no_empty_line"],
    ],
    ["an mbox line first", "From a@b Thu Jan  1 00:00:00 1970\nA: 1\n\nx", [["A", "1"]], "x", ["line_without_field"]],
    [
      "a line that is no field",
      "A: 1\r\nnonsense\r\nB: 2\r\n\r\nx",
      [
        ["A", "1"],
        ["B", "2"],
      ],
      "x",
      ["line_without_field"],
    ],
    ["a continuation of nothing", " a\r\nB: 2\r\n\r\nx", [["B", "2"]], "x", ["line_without_field"]],
    [
      "a line of white space",
      "A: 1\r\n \r\nB: 2\r\n\r\nx",
      [
        ["A", "1"],
        ["B", "2"],
      ],
      "x",
      [],
    ],
    ["an empty name", ": 1\r\nB: 2\r\n\r\nx", [["B", "2"]], "x", ["line_without_field"]],
    ["a bare CR in a value", "A: 1\rB: 2\r\n\r\nx", [["A", "1\rB: 2"]], "x", []],
    ["__proto__", "__proto__: 1\r\n\r\n", [["__proto__", "1"]], "", []],
    ["NUL", "A: a\0b\r\n\r\n", [["A", "a\0b"]], "", []],
  ];
  for (const [what, text, headers, body, defects] of cases) {
    it(`reads a head with ${what}`, () => {
      const bytes = Buffer.from(text);
      const head = splitMessage(bytes);
      assert.deepEqual(
        head.headers.map(({ name, value }) => [name, value]),
        headers,
      );
      assert.equal(bytes.toString("utf8", head.body_offset), body);
      assert.deepEqual(head.defects, defects);
    });
  }

  it("reads raw UTF-8 as UTF-8 and other octets as Latin-1", () => {
    assert.equal(splitMessage(Buffer.from("A: é😀\n\n")).headers[0]!.value, "é😀");
    assert.equal(splitMessage(Buffer.from("A: \xe9\n\n", "latin1")).headers[0]!.value, "é");
  });

  it("keeps its limits, one past each, and still finds the body", () => {
    const many = splitMessage(Buffer.from(`${"A: 1\r\n".repeat(headersMax)}\r\nx`));
    assert.deepEqual([many.headers.length, many.defects], [headersMax, []]);
    const text = `${"A: 1\r\n".repeat(headersMax + 1)}\r\nx`;
    const tooMany = splitMessage(Buffer.from(text));
    assert.deepEqual(
      [tooMany.headers.length, tooMany.defects, tooMany.body_offset],
      [headersMax, ["head_too_large"], text.length - 1],
    );
    const fits = splitMessage(Buffer.from(`A: ${"x".repeat(headOctetsMax - 5)}\r\n\r\n`));
    assert.deepEqual([fits.headers.length, fits.defects], [1, []]);
    const tooLong = splitMessage(Buffer.from(`A: ${"x".repeat(headOctetsMax - 4)}\r\n\r\n`));
    assert.deepEqual([tooLong.headers.length, tooLong.defects], [0, ["head_too_large"]]);
  });

  it("answers any octets, and loses none of a clean head", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => {
        const head = splitMessage(Buffer.from(octets));
        assert.ok(head.body_offset >= 0 && head.body_offset <= octets.length);
      }),
    );
  });

  it("finds all values of a field in any case", () => {
    const { headers } = splitMessage(Buffer.from("Received: 1\nX: 2\nRECEIVED: 3\n\n"));
    assert.deepEqual(headerValues(headers, "received"), ["1", "3"]);
  });
});

describe("decodeWords", () => {
  const cases: [string, string][] = [
    ["plain", "plain"],
    ["=?UTF-8?Q?a_b=20c?=", "a b c"],
    ["=?utf-8?b?w7w=?=", "ü"],
    ["=?ISO-8859-1?Q?=FC?= and =?windows-1252?Q?=80?=", "ü and €"],
    ["=?UTF-8?Q?a?= =?UTF-8?Q?b?=", "ab"],
    ["=?UTF-8?Q?a?=\t  =?UTF-8?Q?b?= c", "ab c"],
    ["=?UTF-8?Q?a?= x =?UTF-8?Q?b?=", "a x b"],
    ["=?UTF-8?Q?=C3?= =?UTF-8?Q?=BC?=", "ü"],
    ["=?UTF-8?Q?=C3=BC?==?UTF-8?Q?=C3=BC?=", "üü"],
    ["=?UTF-8*en?Q?a?=", "a"],
    ["=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"],
    // Cut in the middle of a run of JIS; cut in the middle of base64; encoded piece by piece; each without its padding.
    ["=?iso-2022-jp?B?GyRCRnw=?= =?iso-2022-jp?B?S1wbKEI=?=", "日本"],
    ["=?iso-2022-jp?B?GyRCRnxLXBsoQg==?= =?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本日本"],
    ["=?utf-8?B?aGVsb?= =?utf-8?B?G8=?=", "hello"],
    ["=?utf-8?B?w6TDt?= =?utf-8?B?sOkw7?= =?utf-8?B?w=?= x", "äöäü x"],
    ["=?utf-8?B?aGk=aGk=?=", "hihi"],
    ["=?utf-8?B?aGVsbG8?= =?utf-8?B?aGVsbG8?=", "hellohello"],
    ["=?iso-2022-jp?B?GyRCRnwbKEI=?= =?iso-2022-jp?B?GyRCS1wbKEI=?=", "日本"],
    ["=?utf-7?Q?+AOQ-?=", "ä"],
    ["=?koi8-r?B?8NLJ18XU?=", "Привет"],
    ["=?unknown-8bit?Q?=C3=BC?=", "ü"],
    ["=?x?Q?=FC?=", "ü"],
    ["=?UTF-8?Q??=", ""],
    ["=?UTF-8?X?a?=", "=?UTF-8?X?a?="],
    ["=?UTF-8?Q?a", "=?UTF-8?Q?a"],
    ["=?UTF-8?Q?a b?=", "a b"],
    ["a=?UTF-8?Q?b?=c", "abc"],
    ["=? =?UTF-8?Q?a?=", "=? a"],
    ["=?UTF-8?Q?a=0D=0ABcc:_x=00?=", "a  Bcc: x "],
    ["=?UTF-8?Q?=ZZ=?=", "=ZZ="],
  ];
  for (const [given, want] of cases)
    it(`reads ${given} as ${JSON.stringify(want)}`, () => assert.equal(decodeWords(given), want));

  it("takes linear time on words that never end", () => {
    for (const unit of ["=?", "=?a?q?", "=?a?q?b", "=?a?q?b?= ", "?=", "=?utf-8?q?=", "=?a?b?c?==?"]) {
      const started = process.cpuUsage().user;
      decodeWords(unit.repeat(20_000));
      assert.ok(process.cpuUsage().user - started < 1_000_000, unit);
    }
  });

  it("answers any string with one line", () => {
    const unit = fc.oneof(
      fc.constantFrom("=?utf-8?q?", "=?utf-8?b?", "?=", "=0A", "Cg==", " "),
      fc.string({ unit: "binary", maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 30, size: "max" }), (given) => {
        const clean = given.replace(/[\r\n]/g, "");
        assert.doesNotMatch(decodeWords(clean), /[\r\n]/);
      }),
    );
  });
});

describe("published mails", { skip: missing }, () => {
  const mails = `${folder}mime-misc/`;
  const fields = ["subject", "message-id", "in-reply-to", "references"] as const;
  // Where CPython's email package sees something else, and why we stay with ours.
  const skipsBadLine =
    "CPython takes a line that is no field for the start of the body; postal-mime and we pass over it";
  const differences = new Map([
    ["flanker/mailformed-headers.eml subject", "raw octets that are not UTF-8 are Latin-1 to us, U+FFFD to CPython"],
    ["ruby-mail/plain_emails/raw_email_double_at_in_header.eml message-id", "a malformed id is kept whole"],
    ["ruby-mail/plain_emails/raw_email_incorrect_header.eml subject", skipsBadLine],
    ["ruby-mail/plain_emails/raw_email_incorrect_header.eml message-id", skipsBadLine],
    ["ruby-mail/rfc2822/example13.eml subject", skipsBadLine],
    ["ruby-mail/rfc2822/example13.eml message-id", skipsBadLine],
  ]);

  it("have the same ids and subjects as in CPython's email package, but for the reasoned differences", () => {
    const baseline = JSON.parse(readFileSync(`${mails}baseline-python-email.json`, "utf8")) as Record<
      string,
      Record<string, string | null>
    >;
    const files = Object.entries(baseline);
    assert.ok(files.length > 100);
    const found = new Set<string>();
    for (const [file, expected] of files) {
      const { headers } = splitMessage(readFileSync(mails + file));
      for (const field of fields) {
        const value = headerValues(headers, field)[0];
        if (oneLine(value && decodeWords(value)) !== oneLine(expected[field])) found.add(`${file} ${field}`);
      }
    }
    assert.deepEqual(found, new Set(differences.keys()));
  });
});

function oneLine(text: unknown): string {
  return String(text ?? "")
    .replace(/\s+/g, " ")
    .trim();
}
