// Canonicalization against the DomainKeys-era corpus (mailgun/flanker) and the examples of RFC 6376 §3.4.5.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { type Canonicalization, canonicalizeHeader, canonicalSlices, splitFields } from "./canonicalize.ts";

const CORPUS = join(import.meta.dirname, "../../../../shared/data/dkim-canonicalization");
const corpusMissing = existsSync(CORPUS) ? false : "shared/data/dkim-canonicalization is not here";

function crlf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
}

function canonicalizeBody(body: Buffer, mode: Canonicalization): Buffer {
  return Buffer.concat(Array.from(canonicalSlices(body, mode), (slice) => Buffer.from(slice)));
}

function canonicalizeMessage(bytes: Buffer, mode: Canonicalization): Buffer {
  const { fields, body } = splitFields(bytes);
  const header = fields.map((field) => canonicalizeHeader(field.bytes, mode));
  return Buffer.concat([...header, Buffer.from("\r\n"), canonicalizeBody(body, mode)]);
}

test("the whole corpus canonicalizes byte for byte", { skip: corpusMissing }, () => {
  const cases = readdirSync(CORPUS).filter((name) => name.startsWith("email."));
  assert.ok(cases.length > 0);
  for (const name of cases) {
    const number = name.slice("email.".length);
    const email = crlf(readFileSync(join(CORPUS, name)));
    for (const mode of ["simple", "relaxed"] as const) {
      // Of blanks behind the last line end the corpus keeps one, as dkimpy does; SMTP ends every message with CRLF, and so
      // they end a line.
      const endsInBlanks = mode === "relaxed" && /[ \t]$/.test(email.toString("latin1"));
      const expected = endsInBlanks
        ? canonicalizeMessage(Buffer.concat([email, Buffer.from("\r\n")]), mode)
        : crlf(readFileSync(join(CORPUS, `${mode}.expected.${number}`)));
      assert.equal(canonicalizeMessage(email, mode).toString("latin1"), expected.toString("latin1"), `${name} ${mode}`);
    }
  }
});

test("the example of RFC 6376 section 3.4.5 comes out as printed there", () => {
  const message = Buffer.from("A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n");
  const relaxed = canonicalizeMessage(message, "relaxed").toString();
  assert.equal(relaxed, "a:X\r\nb:Y Z\r\n\r\n C\r\nD E\r\n");
  const simple = canonicalizeMessage(message, "simple").toString();
  assert.equal(simple, "A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n");
});

const headerCases: [string, string, string][] = [
  ["an empty value", "X:\r\n", "x:\r\n"],
  ["a value of white space only", "X: \t \r\n", "x:\r\n"],
  ["a field without its CRLF", "X: a", "x:a\r\n"],
  ["a value folded right after the colon", "X:\r\n a\r\n", "x:a\r\n"],
  ["a continuation line of white space only", "X: a\r\n \t\r\n b\r\n", "x:a b\r\n"],
  ["white space before the colon", "X \t: a\r\n", "x:a\r\n"],
  ["colons inside the value", "X: a:b : c\r\n", "x:a:b : c\r\n"],
  ["upper case in the value", "SUBJECT: AbC\r\n", "subject:AbC\r\n"],
  ["bytes above 127, kept as they are", "X: \xe9\xc3 \xa9\r\n", "x:\xe9\xc3 \xa9\r\n"],
  ["a field without a colon", "nonsense here\r\n", "nonsense here\r\n"],
];

for (const [what, field, relaxed] of headerCases) {
  test(`relaxed header canonicalization of ${what}`, () => {
    const out = canonicalizeHeader(Buffer.from(field, "latin1"), "relaxed");
    assert.equal(out.toString("latin1"), relaxed);
  });
}

test("simple header canonicalization changes nothing but a missing CRLF", () => {
  for (const [, field] of headerCases) {
    const out = canonicalizeHeader(Buffer.from(field, "latin1"), "simple").toString("latin1");
    assert.equal(out, field.endsWith("\r\n") ? field : `${field}\r\n`);
  }
});

const bodyCases: [string, string, string, string][] = [
  ["empty", "", "", "\r\n"],
  ["one CRLF", "\r\n", "", "\r\n"],
  ["only empty lines", "\r\n\r\n\r\n", "", "\r\n"],
  ["only white space lines", " \r\n\t\r\n", "", " \r\n\t\r\n"],
  ["no last CRLF", "a", "a\r\n", "a\r\n"],
  ["blanks at the end and no last CRLF", "a \t", "a\r\n", "a \t\r\n"],
  ["a last line of blanks and no last CRLF", "a\r\n ", "a\r\n", "a\r\n \r\n"],
  ["trailing blank lines", "a\r\n\r\n\r\n", "a\r\n", "a\r\n"],
  ["leading blank lines", "\r\n\r\na\r\n", "\r\n\r\na\r\n", "\r\n\r\na\r\n"],
  ["a bare CR and a bare LF", "a\rb\nc \r\n", "a\rb\nc\r\n", "a\rb\nc \r\n"],
  ["a CR before the CRLF", "a\r\r\n", "a\r\r\n", "a\r\r\n"],
];

for (const [what, body, relaxed, simple] of bodyCases) {
  test(`body canonicalization of ${what}`, () => {
    assert.equal(canonicalizeBody(Buffer.from(body), "relaxed").toString(), relaxed);
    assert.equal(canonicalizeBody(Buffer.from(body), "simple").toString(), simple);
  });
}

test("canonicalizing twice changes nothing more, and relaxed equals the definition by regular expressions", () => {
  const piece = fc.constantFrom("a", "B", ".", " ", "\t", "  ", "\r\n", "\r\n\r\n", "\u00e9", "\r", "\n", "x:y");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const body = Buffer.from(`${pieces.join("")}\r\n`);
      const once = canonicalizeBody(body, "relaxed");
      assert.deepEqual(canonicalizeBody(once, "relaxed"), once);
      const text = body.toString("latin1");
      const defined = text
        .replace(/[ \t]+\r\n/g, "\r\n")
        .replace(/[ \t]+/g, " ")
        .replace(/(\r\n)+$/, "\r\n");
      assert.equal(once.toString("latin1"), defined === "\r\n" ? "" : defined);
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("the name of a field ends at blanks before its colon, and at nothing else that looks like them", () => {
  const names = (text: string) => splitFields(Buffer.from(text, "latin1")).fields.map(({ name }) => name);
  assert.deepEqual(names("From \t: a\r\nFrom\r\n : b\r\n\r\n"), ["From", "From"]);
  assert.deepEqual(names("From\xa0: a\r\nFrom\x0b: b\r\n\x0cFrom: c\r\n\r\n"), ["From\xa0", "From\x0b", "\x0cFrom"]);
});
