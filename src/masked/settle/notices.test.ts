import assert from "node:assert/strict";
import { test } from "node:test";
import { findLeaks } from "../rewrite/gate/leak-gate.ts";
import { tellLeaks } from "../rewrite/tell-leaks.ts";
import { placesOf } from "./notices.ts";

const OWNER = "lena@home.example";

/** The gate's own findings, as a notice lists them. */
function listed(message: string): string[] {
  const bytes = Buffer.from(message.replace(/\n/g, "\r\n"));
  const secrets = { addresses: [OWNER], names: [], allowed: "nothing" as const, given: [] };
  const leaks = findLeaks(bytes, secrets);
  return placesOf(tellLeaks({ bytes, leaks }, [{ word: OWNER, secrets }], findLeaks).leaks);
}

const file = (name: string, content: string): string =>
  `--b\nContent-Type: application/octet-stream; name="${name}"\nContent-Disposition: attachment; filename="${name}"\n\n${content}\n`;
const message = (...parts: string[]): string =>
  `Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n${parts.join("")}--b--\n`;

test("a file is named once, with every place in it", () => {
  const name = `${OWNER}.csv`;
  assert.deepEqual(listed(message(file(name, `name,mail\nlena,${OWNER}\n`))), [
    `the file "${name}" (the field Content-Type of part 1 of the message; the field Content-Disposition of part 1 of the message; part 1 of the message (application/octet-stream))`,
  ]);
});

test("two files of one name are two, and a place that was searched in several ways is one", () => {
  const places = listed(message(file("a.csv", OWNER), file("a.csv", OWNER)));
  assert.deepEqual(places, [
    'the file "a.csv" (part 1 of the message (application/octet-stream))',
    'the file "a.csv" (part 2 of the message (application/octet-stream))',
  ]);
});

test("what is in no file is listed by its place", () => {
  const text = `--b\nContent-Type: text/plain\n\n${OWNER}\n`;
  assert.deepEqual(listed(message(text, file("a.csv", OWNER))), [
    "part 1 of the message (text/plain)",
    'the file "a.csv" (part 2 of the message (application/octet-stream))',
  ]);
});

test("of a mail in a mail with many places the first three are said", () => {
  const inner = `From: ${OWNER}\nTo: ${OWNER}\nCc: ${OWNER}\nReply-To: ${OWNER}\nSubject: y\n\n${OWNER}\n`;
  const attached = `--b\nContent-Type: message/rfc822; name="old.eml"\nContent-Disposition: attachment; filename="old.eml"\n\n${inner}\n`;
  const [only, ...more] = listed(message(attached));
  assert.deepEqual(more, []);
  assert.match(only ?? "", /^the file "old\.eml" \([^;]+; [^;]+; [^;]+; and \d+ more\)$/);
});
