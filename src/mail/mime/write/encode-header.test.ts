import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../../test/support/rounds.ts";
import { decodeWords, splitMessage } from "../parse-head.ts";
import { encodeWords, mailboxHeader, rawHeader, textHeader } from "./encode-header.ts";

const words = fc.constantFrom("a", "b", " ", " ", "=?", "?=", "_", "=", '"', "(", "é", "日", "😀", "x".repeat(30));
const anyText = fc.string({
  unit: fc.oneof(words, fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 })),
  maxLength: 200,
  size: "max",
});
const plainText = fc.string({
  unit: fc.constantFrom("a", "b", " ", " ", "\t", "(", ",", "x".repeat(30)),
  maxLength: 300,
  size: "max",
});

describe("textHeader", () => {
  it("keeps short ASCII readable", () => {
    assert.equal(textHeader("Subject", "Hello, (world) <3"), "Subject: Hello, (world) <3\r\n");
    assert.equal(textHeader("Subject", ""), "Subject: \r\n");
  });

  it("folds long ASCII at its spaces", () => {
    const line = textHeader("Subject", "word ".repeat(40).trim());
    assert.match(line, /^Subject: (?:word ?)+\r\n(?: (?:word ?)+\r\n)+$/);
  });

  it("takes Q or B, whichever is shorter", () => {
    assert.equal(
      textHeader("Subject", "Liebe Grüße aus Bonn"),
      "Subject: =?UTF-8?Q?Liebe_Gr=C3=BC=C3=9Fe_aus_Bonn?=\r\n",
    );
    assert.equal(textHeader("Subject", "日本語"), "Subject: =?UTF-8?B?5pel5pys6Kqe?=\r\n");
  });

  it("encodes what a reader would take for an encoded word", () => {
    assert.doesNotMatch(textHeader("Subject", "=?UTF-8?Q?x?="), /UTF-8\?Q\?x\?=/);
  });

  it("keeps lines within 76, folds on no empty line, and is decoded to the same text", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, plainText), (given) => {
        const text = given.replace(/\p{Cc}/gu, "");
        const line = textHeader("Subject", text);
        for (const part of line.slice(0, -2).split("\r\n")) assert.ok(part.length <= 76 && part.trim() !== "", part);
        const { headers } = splitMessage(Buffer.from(`${line}\r\n`));
        assert.equal(headers.length, 1);
        assert.equal(decodeWords(headers[0]!.value), text);
      }),
      { numRuns: rounds(200, 2_000) },
    );
  });

  it("throws on CR, LF and NUL and names the field only", () => {
    for (const text of ["a\rb", "a\nb", "a\0b", "\r\n"]) {
      assert.throws(() => textHeader("Subject", text), { message: "Subject holds CR, LF or NUL" });
      assert.throws(() => rawHeader("X-A", text), { message: "X-A holds CR, LF or NUL" });
    }
  });
});

describe("encodeWords", () => {
  it("makes words of at most 75 characters that are valid UTF-8 each", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 76 }), (text, column) => {
        for (const word of encodeWords(text, column)
          .split("\r\n ")
          .filter((found) => found !== "")) {
          assert.match(word, /^=\?UTF-8\?[QB]\?[\x21-\x7e]*\?=$/);
          assert.ok(word.length <= 75);
          assert.ok(!decodeWords(word).includes("\ufffd") || text.includes("\ufffd"), word);
        }
      }),
    );
  });
});

describe("rawHeader", () => {
  it("keeps every character of ASCII values and folds only at their spaces", () => {
    fc.assert(
      fc.property(plainText, (given) => {
        const value = given.trim();
        const line = rawHeader("X-A", value);
        for (const part of line.slice(0, -2).split("\r\n")) assert.ok(part.trim() !== "", JSON.stringify(line));
        assert.equal(line.slice(0, -2).replaceAll("\r\n", ""), value === "" ? "X-A:" : `X-A: ${value}`);
      }),
    );
  });

  it("folds a list of message ids between them", () => {
    const ids = Array.from({ length: 30 }, (_, i) => `<${i}.${"a".repeat(20)}@example.com>`);
    const lines = rawHeader("References", ids.join(" ")).trimEnd().split("\r\n");
    assert.ok(lines.length > 5);
    for (const line of lines) assert.ok(line.length <= 76);
  });

  it("takes linear time on a long value without spaces", () => {
    assert.equal(rawHeader("X-A", "x".repeat(1_000_000)).length, 1_000_007);
    assert.ok(rawHeader("X-A", "x ".repeat(500_000).trim()).length > 1_000_000);
  });
});

describe("mailboxHeader", () => {
  it("writes atoms bare, other ASCII in quotes, the rest in encoded words", () => {
    const boxes = [
      { name: null, email: "a@example.com" },
      { name: "Jane Doe", email: "b@example.com" },
      { name: 'Doe, "JD" Jane \\', email: "c@example.com" },
      { name: "José", email: "d@example.com" },
    ];
    const line = mailboxHeader("To", boxes);
    assert.equal(
      line.replaceAll("\r\n ", " "),
      'To: a@example.com, Jane Doe <b@example.com>, "Doe, \\"JD\\" Jane \\\\" <c@example.com>, =?UTF-8?B?Sm9zw6k=?= <d@example.com>\r\n',
    );
  });

  it("puts a quoted local part into angle brackets", () => {
    assert.equal(mailboxHeader("To", [{ name: null, email: '"a b"@example.com' }]), 'To: <"a b"@example.com>\r\n');
  });

  it("starts no line with the field's name alone and keeps lines within 76 but for long addresses", () => {
    const name = fc.option(fc.string({ unit: fc.oneof(words), maxLength: 90, size: "max" }));
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 6 }), (names) => {
        const line = mailboxHeader(
          "Reply-To",
          names.map((given, i) => ({ name: given, email: `user${i}@example.com` })),
        );
        for (const part of line.slice(0, -2).split("\r\n")) assert.ok(part.length <= 78 && part.trim() !== "", line);
        assert.match(line, /^Reply-To: \S/);
      }),
    );
  });
});
