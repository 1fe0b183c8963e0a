// Somebody else writes these texts: a run of a million equal signs is read once, not once from each of its signs (16,000 took
// 0.14 s so, and sixteen times as many take 256 times as long). None of the limits is near what a slow machine takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressIn } from "../../src/mail/dsn/address-text.ts";
import { buildReply } from "../../src/masked/rewrite/reply.ts";
import { D, order } from "../../src/masked/rewrite/reply-order.fixture.ts";
import { unwrapLinks } from "../../src/masked/rewrite/scrub/rewritten-links.ts";
import { detectSeparator } from "../../src/suppressions/import/csv.ts";

const MANY = 1_000_000;
const LIMIT = { timeout: 30_000 };

test("blanks in HTML with a rewritten link", LIMIT, () => {
  const blanks = `<p>safelinks</p>${"\n".repeat(MANY)}<b>`;
  assert.equal(unwrapLinks(blanks, true), blanks);
});

test("links of signs that end a sentence", LIMIT, () => {
  const links = `safelinks ${`https://a.example/${".".repeat(19_900)}x `.repeat(500)}`;
  assert.equal(unwrapLinks(links, false), links);
  const avanan = `https://url.avanan.click/v2/${"_".repeat(19_900)} `.repeat(500);
  assert.equal(unwrapLinks(avanan, false), avanan);
});

test("an address with blanks or dots behind it", LIMIT, () => {
  assert.equal(addressIn(`a${" ".repeat(MANY)}x`), null);
  assert.equal(addressIn(`a@b.example${".".repeat(MANY)}x y`), "a@b.example");
});

test("a table of tabs", LIMIT, () => {
  assert.deepEqual(detectSeparator("\t".repeat(MANY)), { separator: ",", skip: 0 });
  assert.deepEqual(detectSeparator(`\r\n \r\n\ta\tb\r\nc,d,e,f`), { separator: "\t", skip: 0 });
});

test("blanks in the HTML of a reply", LIMIT, () => {
  const mail = `From: ${D}\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n<p>${"\n".repeat(MANY)}cite</p>`;
  assert.equal(buildReply(Buffer.from(mail), order()).kind, "built");
});
