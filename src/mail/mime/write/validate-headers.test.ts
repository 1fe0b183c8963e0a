import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../../test/support/rounds.ts";
import { headerValues, splitMessage } from "../parse-head.ts";
import { buildMessage } from "./build-message.ts";
import { customHeadersMax, validateHeaders, validateHeaderText } from "./validate-headers.ts";

describe("validateHeaders", () => {
  it("accepts ordinary headers and trims their values", () => {
    const given: [string, string][] = [
      ["X-Campaign", " spring "],
      ["In-Reply-To", "<a@example.com>"],
      ["List-Unsubscribe", "<https://example.com/u>, <mailto:u@example.com>"],
      ["X-Name", "Jürgen\t😀"],
      ["__proto__", "x"],
      ["X-Empty", ""],
    ];
    const result = validateHeaders(given);
    assert.ok(result.ok);
    assert.deepEqual(
      result.headers,
      given.map(([name, value]) => ({ name, value: value.trim() })),
    );
    assert.equal(Object.getPrototypeOf(result.headers[4]!), Object.prototype);
  });

  const names = [
    "From",
    "to",
    "CC",
    "Resent-From",
    "resent-sender",
    "Resent-Bcc",
    "X-Postern-Id",
    "X-Service-Tag",
    "Bcc",
    "Subject",
    "DATE",
    "Message-ID",
    "MIME-Version",
    "Content-Type",
    "content-x",
  ];
  names.push(
    "Content-Transfer-Encoding",
    "DKIM-Signature",
    "Return-Path",
    "Received",
    "Sender",
    "Authentication-Results",
  );
  names.push("ARC-Seal", "arc-message-signature", "ARC-", "Content-");
  for (const name of names)
    it(`refuses ${name}`, () => assert.equal(reasonFor(name, "x"), "this header cannot be set"));

  it("refuses names that are not RFC 5322 ftext", () => {
    for (const name of ["", "X A", "X:", "X-Ü", "X\r\nBcc", "X\n", "X\0", "X\x7f", " X", "X\t", "x".repeat(77)]) {
      assert.notEqual(reasonFor(name, "x"), null, JSON.stringify(name));
    }
    assert.equal(reasonFor("x".repeat(76), "x"), null);
  });

  it("refuses line breaks and controls in values, also at their ends", () => {
    for (const char of [
      "\r",
      "\n",
      "\r\n",
      "\0",
      "\x01",
      "\x0b",
      "\x1b",
      "\x7f",
      "\u0085",
      "\u2028",
      "\u2029",
      "\ud800",
    ]) {
      for (const value of [`a${char}b`, `${char}a`, `a${char}`, char])
        assert.notEqual(reasonFor("X-A", value), null, JSON.stringify(value));
    }
    assert.equal(reasonFor("X-A", "a\tb"), null);
  });

  it("refuses text beyond ASCII where a machine reads the value", () => {
    for (const name of ["References", "list-unsubscribe", "Reply-To"]) assert.notEqual(reasonFor(name, "ü"), null);
  });

  it("has limits on count, lengths and unbroken runs", () => {
    const many = (count: number): [string, string][] => Array.from({ length: count }, (_, i) => [`X-${i}`, "x"]);
    assert.ok(validateHeaders(many(customHeadersMax)).ok);
    assert.equal(validateHeaders(many(customHeadersMax + 1)).ok, false);
    assert.equal(reasonFor("X-A", "x".repeat(899)), null);
    assert.notEqual(reasonFor("X-A", "x".repeat(900)), null);
    assert.equal(reasonFor("X-A", "x ".repeat(2_048)), null);
    assert.notEqual(reasonFor("X-A", "x ".repeat(2_049)), null);
    assert.equal(reasonFor("X-A", "é".repeat(2_048)), null);
    assert.notEqual(reasonFor("X-A", "é".repeat(2_049)), null);
    const big: [string, string][] = Array.from({ length: 5 }, (_, i) => [`X-${i}`, "x ".repeat(2_000)]);
    assert.ok(validateHeaders(big.slice(0, 4)).ok);
    assert.equal(validateHeaders(big).ok, false);
  });

  it("looks for unbroken runs in what is left once blanks and a byte order mark are gone from its ends", () => {
    for (const around of ["\ufeff", "\u00a0", " "]) {
      assert.match(reasonFor("X-A", `${around}${"a".repeat(950)}`) ?? "", /cannot be folded/);
      assert.equal(reasonFor("X-A", `${around}${"a".repeat(800)}`), null);
    }
    assert.match(reasonFor("X-A", `a${" ".repeat(950)}b`) ?? "", /cannot be folded/);
    assert.equal(reasonFor("X-A", `a${" ".repeat(800)}b${" ".repeat(800)}c`), null);
  });

  it("refuses one name twice, case aside, and tells which", () => {
    const result = validateHeaders([
      ["X-A", "1"],
      ["x-a", "2"],
    ]);
    assert.deepEqual(result, { ok: false, name: "x-a", reason: "is given twice" });
  });

  it("lets through only what the builder can write and a parser reads back", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom("x".repeat(300), " ", "\r", "\n", ":", "é", "="),
        fc.string({ unit: "binary", maxLength: 1 }),
      ),
      maxLength: 12,
      size: "max",
    });
    const name = fc.oneof(fc.constantFrom("X-A", "X-Odd!#$", "References", "Bcc"), text);
    fc.assert(
      fc.property(name, text, (givenName, value) => {
        const result = validateHeaders([[givenName, value]]);
        if (!result.ok) return;
        const { headers } = splitMessage(messageWith(result.headers));
        assert.equal(headers.length, 9);
        assert.equal(headerValues(headers, givenName).length, 1);
      }),
      { numRuns: rounds(200, 2_000) },
    );
  });
});

describe("validateHeaderText", () => {
  it("refuses what would break a header line, and text over the limit in octets", () => {
    assert.deepEqual(validateHeaderText("Grüße\t😀", 20), { ok: true });
    for (const text of ["a\nb", "a\0", "\ud800", "é".repeat(11)]) assert.equal(validateHeaderText(text, 20).ok, false);
  });
});

function reasonFor(name: string, value: string): string | null {
  const result = validateHeaders([[name, value]]);
  return result.ok ? null : result.reason;
}

function messageWith(headers: { name: string; value: string }[]): Buffer {
  const box = { name: null, email: "a@example.com" };
  const ids = { message_id: "a@b", boundary_seed: "seed", date: 0, subject: "x" };
  return buildMessage({
    ...ids,
    from: box,
    to: [box],
    cc: [],
    reply_to: [],
    html: null,
    text: "x",
    attachments: [],
    headers,
  }).bytes;
}
