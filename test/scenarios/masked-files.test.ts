// Replies with files, over real SMTP: what would arrive without a file does not leave, and its author is told.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import PostalMime from "postal-mime";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
});
after(() => s.close());

const mail = (to: string, type: string, content: string) =>
  `From: Anna Real <${D}>\r\nTo: ${to}\r\nSubject: the file\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nsee below\r\n--b\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content, "latin1").toString("base64")}\r\n--b--\r\n`;

test("a file that cannot be cleaned turns the reply back; one that only sounds like a key arrives", async () => {
  const a = await s.alias();
  const { contact } = (await s.api.ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: C })).body;
  const to = contact.reply_address as string;
  const send = async (type: string, content: string) => {
    await s.settle();
    s.sink.messages.length = 0;
    assert.equal((await s.send({ from: D, to, content: mail(to, type, content) })).code, 250);
  };
  for (const [type, words, reason] of [
    ["message/partial; id=1; number=1; total=2", /a file or all of its content would be missing/, "lost_file"],
    ["application/octet-stream; name=smime.p7m", /encrypted with a password, not for a key/, "encrypted"],
  ] as const) {
    await send(type, "x");
    const [notice] = await s.arrived(D);
    const read = await PostalMime.parse(notice?.bytes ?? "");
    assert.match((read.text ?? "").replace(/\s+/g, " "), words);
    await s.settle();
    assert.equal((await s.activity(a.id))[0], `reply failed ${reason}`);
    assert.equal(s.sink.messages.length, 1, "nothing left for the contact");
  }
  await send('application/octet-stream; name="Slides.key"', "PK\x03\x04 slides");
  const [left] = await s.arrived(C);
  const { attachments } = await PostalMime.parse(left?.bytes ?? "");
  assert.deepEqual(
    attachments.map(({ filename }) => filename),
    ["Slides.key"],
  );
});
