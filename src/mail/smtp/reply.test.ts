// Replies: codes, text made safe, limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { parseReply, type RawReply, REPLY_TEXT_LENGTH_MAX, ReplyReader } from "./reply.ts";

const cases: [string, string, number, string | null, string][] = [
  ["a plain reply", "250 ok", 250, null, "ok"],
  ["a code alone", "550", 550, null, ""],
  ["an enhanced code", "550 5.1.1 no such user", 550, "5.1.1", "no such user"],
  ["an enhanced code with a colon", "550 5.1.1: no", 550, "5.1.1", "no"],
  ["an enhanced code and nothing else", "550 5.1.1", 550, "5.1.1", ""],
  ["several lines", "550-5.1.1 no such\r\n550-5.1.1 user\r\n550 5.1.1 here", 550, "5.1.1", "no such user here"],
  ["the code of the last line", "250-first\r\n550 last", 550, null, "first last"],
  ["a code with #", "550 #5.1.0 Address rejected.", 550, "5.1.0", "Address rejected."],
  ["qmail's place for the code", "553 sorry (#5.7.1)", 553, "5.7.1", "sorry (#5.7.1)"],
  [
    "chkuser's",
    "511 sorry, no mailbox here (#5.1.1 - chkuser)",
    511,
    "5.1.1",
    "sorry, no mailbox here (#5.1.1 - chkuser)",
  ],
  ["an address that is no code", "550 5.1.1.2 is not welcome", 550, null, "5.1.1.2 is not welcome"],
  ["three digits of detail", "451 4.7.650 slow", 451, "4.7.650", "slow"],
  ["a folded quotation", "550 5.1.1 User\n   unknown", 550, "5.1.1", "User unknown"],
  ["what follows the reply", "250 ok\r\n354 go", 250, null, "ok"],
  ["UTF-8", "550 Benutzer unbekannt: gr\u00fc\u00df", 550, null, "Benutzer unbekannt: gr\u00fc\u00df"],
  ["a terminal sequence", "550 \x1b[31mred\x07", 550, null, "\\x1b[31mred\\x07"],
  ["a carriage return inside", "550 a\rb", 550, null, "a\\x0db"],
  ["NUL", "550 a\0b", 550, null, "a\\x00b"],
  ["a tab", "550 a\tb", 550, null, "a b"],
  ["text that turns round", "550 a\u202eb\ufeffc\u2028d", 550, null, "a\\u202eb\\ufeffc\\u2028d"],
];
for (const [what, raw, code, enhanced, text] of cases) {
  test(`parseReply reads ${what}`, () => assert.deepEqual(parseReply(raw), { code, enhanced, text }));
}

test("what is no reply gives null", () => {
  for (const raw of ["", "hello", "HTTP/1.1 400", "99 no", "2500 no", "250hello", "650 no", "\r\n"]) {
    assert.equal(parseReply(raw), null, JSON.stringify(raw));
  }
});

test("bytes that are not UTF-8 are read as Latin-1", () => {
  assert.equal(parseReply(Buffer.from("550 Empf\xe4nger unbekannt", "latin1"))?.text, "Empf\u00e4nger unbekannt");
});

test("the text is cut at 1,000 characters, also when escaping made it longer, and never inside a character", () => {
  for (const long of ["a".repeat(5000), "\x01".repeat(900), "\u{1f600}".repeat(900), `a${"\u{1f600}".repeat(900)}`]) {
    const text = parseReply(`550 ${long}`)?.text ?? "";
    assert.ok(text.length <= REPLY_TEXT_LENGTH_MAX, String(text.length));
    assert.ok(text.endsWith("\u2026"));
    assert.ok(text.isWellFormed());
  }
  assert.equal(parseReply(`550 ${"a".repeat(1000)}`)?.text.length, 1000);
});

test("any bytes give null or a safe reply", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const reply = parseReply(Buffer.concat([Buffer.from("550 "), Buffer.from(bytes)]));
      assert.ok(reply);
      assert.ok(reply.text.isWellFormed() && !/[\x00-\x1f\x7f-\x9f]/.test(reply.text));
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("the reader gives the same replies however the bytes are cut", () => {
  const bytes = Buffer.from("220-a\r\n220 b\r\n\r\n250-x\n250-y\n250 z\r\n354\r\n");
  const want = [
    { code: 220, lines: ["220-a", "220 b"] },
    { code: 250, lines: ["250-x", "250-y", "250 z"] },
    { code: 354, lines: ["354"] },
  ];
  for (let size = 1; size <= bytes.length; size++) {
    const replies: RawReply[] = [];
    const reader = new ReplyReader((reply) => replies.push(reply));
    for (let at = 0; at < bytes.length; at += size) assert.equal(reader.push(bytes.subarray(at, at + size)), null);
    assert.deepEqual(replies, want);
    assert.equal(reader.isPartial, false);
  }
});

const limits: [string, string, RegExp | null][] = [
  ["a line of 2,048 bytes", `220 ${"a".repeat(2042)}\r\n`, null],
  ["a line of 2,049 bytes", `220 ${"a".repeat(2043)}\r\n`, /longer than 2048/],
  ["2,049 bytes without an end", "a".repeat(2049), /longer than 2048/],
  ["100 lines", `${"220-a\r\n".repeat(99)}220 a\r\n`, null],
  ["101 lines", `${"220-a\r\n".repeat(100)}220 a\r\n`, /more than 100 lines/],
  ["64 KiB", `${`220-${"a".repeat(2042)}\r\n`.repeat(31)}220 ${"a".repeat(2042)}\r\n`, null],
  [
    "a line more than 64 KiB",
    `220-\r\n${`220-${"a".repeat(2042)}\r\n`.repeat(31)}220 ${"a".repeat(2042)}\r\n`,
    /larger than/,
  ],
  ["empty lines without end", "\r\n".repeat(40_000), /larger than/],
  ["no code", "hello\r\n", /not an SMTP reply/],
];
for (const [what, input, defect] of limits) {
  test(`the reader ${defect ? "refuses" : "takes"} ${what}`, () => {
    const reader = new ReplyReader(() => {});
    const result = reader.push(Buffer.from(input));
    if (defect) assert.match(result ?? "", defect);
    else assert.equal(result, null);
  });
}
