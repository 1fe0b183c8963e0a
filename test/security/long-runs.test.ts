// Somebody else writes these texts: a run of equal signs is read once, not once from each of its signs. 100,000 of them took
// 5 s of processor time and more so; each bound is far from what is used now.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressIn } from "../../src/mail/dsn/address-text.ts";
import { encryptMail } from "../../src/mail/pgp/encrypt-mail.ts";
import { buildReply } from "../../src/masked/rewrite/reply.ts";
import { D, order } from "../../src/masked/rewrite/reply-order.fixture.ts";
import { cutArmor, cutHtmlArmor } from "../../src/masked/rewrite/scrub/armor.ts";
import { unwrapLinks } from "../../src/masked/rewrite/scrub/rewritten-links.ts";
import { detectSeparator } from "../../src/suppressions/import/csv.ts";
import { processorMs, startProcessorTime } from "../support/processor-time.ts";

const MANY = 100_000;
const MS_MAX = 1_500;

test("blanks in HTML with a rewritten link", () => {
  const blanks = `<p>safelinks</p>${"\n".repeat(MANY)}<b>`;
  assert.ok(processorMs(() => assert.equal(unwrapLinks(blanks, true), blanks)) < MS_MAX);
});

test("links of signs that end a sentence", () => {
  const links = `safelinks ${`https://a.example/${".".repeat(19_900)}x `.repeat(50)}`;
  assert.ok(processorMs(() => assert.equal(unwrapLinks(links, false), links)) < MS_MAX);
  const avanan = `https://url.avanan.click/v2/${"_".repeat(19_900)} `.repeat(50);
  assert.ok(processorMs(() => assert.equal(unwrapLinks(avanan, false), avanan)) < MS_MAX);
});

test("an address with blanks or dots behind it", () => {
  assert.ok(processorMs(() => assert.equal(addressIn(`a${" ".repeat(MANY)}x`), null)) < MS_MAX);
  const dots = `a@b.example${".".repeat(MANY)}x y`;
  assert.ok(processorMs(() => assert.equal(addressIn(dots), "a@b.example")) < MS_MAX);
});

test("a table of tabs", () => {
  const tabs = "\t".repeat(MANY);
  assert.ok(processorMs(() => assert.deepEqual(detectSeparator(tabs), { separator: ",", skip: 0 })) < MS_MAX);
  assert.deepEqual(detectSeparator("\r\n \r\n\ta\tb\r\nc,d,e,f"), { separator: "\t", skip: 0 });
});

test("blanks in the HTML of a reply", () => {
  const mail = `From: ${D}\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n<p>${"\n".repeat(MANY)}cite</p>`;
  const build = () => assert.equal(buildReply(Buffer.from(mail), order()).kind, "built");
  assert.ok(processorMs(build) < MS_MAX);
});

test("beginnings of armor", () => {
  for (const sign of [" ", "-", "A", "-----BEGIN PGP ", "BEGIN PGP A"]) {
    const run = `-----BEGIN PGP ${sign.repeat(MANY)}`;
    assert.ok(processorMs(() => cutArmor(run)) < MS_MAX, sign);
    assert.ok(processorMs(() => cutHtmlArmor(run)) < MS_MAX, sign);
  }
});

test("quotes that nothing ends in the type of a mail to encrypt", async () => {
  for (const run of ['"\\', ';hp="', ";hp="]) {
    const type = `text/plain; a="x${run.repeat(MANY)}`;
    const mail = Buffer.from(`Subject: x\r\nContent-Type: ${type}\r\n\r\nx\r\n`);
    const usedMs = startProcessorTime();
    await encryptMail(mail, { key: "no key", hide_subject: false, now_ms: 0 });
    assert.ok(usedMs() < MS_MAX, run);
  }
});
