// Which senders a customer's list names, and what names none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSenders, readSender } from "./senders.ts";

test("entries are kept in one form", () => {
  const cases: [string, string][] = [
    ["Anna@Partner.Example", "anna@partner.example"],
    [" partner.example ", "partner.example"],
    ["@partner.example", "partner.example"],
    ["Bücher.example", "xn--bcher-kva.example"],
    ["a@Bücher.example", "a@xn--bcher-kva.example"],
    ["*@News.example", "*@news.example"],
    ["*.news.example", "*.news.example"],
    ["bounce-?@*", "bounce-?@*"],
  ];
  for (const [given, entry] of cases)
    assert.deepEqual(readSender(given), { ok: true, entry, is_glob: /[*?]/.test(entry) });
});

test("what names no sender is reported so", () => {
  const cases: [string, RegExp][] = [
    ["", /must be an address/],
    ["a b", /must be an address/],
    ["a@", /is not an address: the part after @ is not a domain name/],
    ["a b@c.example", /is not an address: the part before @ holds a character or dot that needs quotes/],
    ["@", /must be an address/],
    ["*", /every sender/],
    ["*@*", /every sender/],
    ["re:.*a", /ASCII/],
    ["*.bücher.example", /ASCII/],
    [`${"a".repeat(321)}@b.example`, /at most 320/],
    [`${"a*".repeat(150)}`, /at most 256/],
  ];
  for (const [given, problem] of cases) {
    const read = readSender(given);
    assert.match(read.ok ? "" : read.problem, problem, given);
  }
});

test("the address weighs more than its domain, and that more than a pattern", () => {
  const rank = compileSenders(["anna@partner.example", "partner.example", "*.shop.example", "news-*@lists.example"]);
  const cases: [string, number][] = [
    ["Anna@PARTNER.example", 3],
    ["bob@partner.example", 2],
    ["bob@partner.example.", 2],
    ["a@sub.partner.example", 0],
    ["a@eu.shop.example", 1],
    ["a@shop.example", 0],
    ["news-7@lists.example", 1],
    ["new-7@lists.example", 0],
    ["partner.example", 2],
    ["", 0],
  ];
  for (const [email, expected] of cases) assert.equal(rank(email), expected, email);
  assert.equal(compileSenders(["xn--bcher-kva.example"])("a@Bücher.example"), 2);
});
