// Where a message begins: what stands before the first field in files, and what only looks like it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { splitMessage } from "./parse-head.ts";
import { parseMessage } from "./parse-message.ts";
import { parseStructure } from "./parse-structure.ts";

const names = (text: string) =>
  parseStructure(Buffer.from(text), { parts_max: 10, depth_max: 10 }).root.headers.map(({ name }) => name);

test("an mbox line before the head is passed over", () => {
  assert.deepEqual(names("From a@b.example Fri Nov 20 10:00:00 2026\r\nTo: c@d.example\r\n\r\n"), ["To"]);
});

test("a From field with spaces before its colon is no mbox line: the author that DMARC judges is shown", () => {
  for (const spaces of ["", " ", "  ", "\t", " \t "]) {
    const head = `From${spaces}: a@b.example\r\nTo: c@d.example\r\n\r\n`;
    assert.deepEqual(names(head), ["From", "To"]);
    assert.deepEqual(parseMessage(Buffer.from(head)).from, [{ name: null, email: "a@b.example" }]);
  }
});

test("a name with a space that is no blank behind it is no From, for none of our readers", () => {
  const head = Buffer.from("From\xa0: a@b.example\r\nFrom\x0b: a@b.example\r\n\r\n", "latin1");
  assert.deepEqual(parseMessage(head).from, []);
  assert.deepEqual(splitMessage(head).headers, []);
});

test("a mailbox that names nobody is left out of a mail's lists", () => {
  const { to } = parseMessage(Buffer.from('To: <>, "" , a@b.example\r\n\r\n'));
  assert.deepEqual(to, [{ name: null, email: "a@b.example" }]);
});

test("U+FFFD in UTF-8 is that character, and no sign of another charset", () => {
  const { subject, from } = parseMessage(
    Buffer.from("From: \ufffd <\ufffda@b.example>\r\nSubject: \u00e9\ufffd\r\n\r\n"),
  );
  assert.equal(subject, "\u00e9\ufffd");
  assert.deepEqual(from, [{ name: "\ufffd", email: "\ufffda@b.example" }]);
});
