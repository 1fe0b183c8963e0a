// Replies with files, over real SMTP: what would arrive without a file does not leave, and its author is informed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import PostalMime from "postal-mime";
import { makeZip } from "../../src/mail/dmarc-report/zip.fixture.ts";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
});
after(() => s.close());

let mails = 0;
const mail = (to: string, type: string, content: string) =>
  `From: Anna Real <${D}>\r\nMessage-ID: <${++mails}@mail.example>\r\nTo: ${to}\r\nSubject: the file\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nsee below\r\n--b\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content, "latin1").toString("base64")}\r\n--b--\r\n`;

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
    ["application/octet-stream; name=smime.p7m", /into a file under a password/, "encrypted"],
  ] as const) {
    await send(type, "x");
    const [notice] = await s.arrived(D);
    const read = await PostalMime.parse(notice?.bytes ?? "");
    assert.match((read.text ?? "").replace(/\s+/g, " "), words);
    await s.settle();
    assert.equal((await s.activity(a.id))[0], `reply failed ${reason}`);
    assert.equal(s.sink.messages.length, 1, "nothing left for the contact");
  }
  const locked = "7z\xbc\xaf\x27\x1c\0\x04 locked";
  await send('application/x-7z-compressed; name="locked.7z"', locked);
  const [held] = await s.arrived(D);
  assert.match(
    (held?.bytes ?? "").toString().replace(/\s+/g, " "),
    /locked\.7z.*could not be looked into: it is a 7-Zip archive/,
  );
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "reply held leak");
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { unopened_files: "send" });
  await send('application/x-7z-compressed; name="locked.7z"', locked);
  await s.arrived(C);
  const [reported] = await s.arrived(D);
  const report = await PostalMime.parse(reported?.bytes ?? "");
  assert.equal(report.subject, "Your reply was sent with files that nobody looked into");
  assert.match(
    (report.text ?? "").replace(/\s+/g, " "),
    /was sent, with .*- the file "locked\.7z" \(part 2 of the message .*: it is a 7-Zip archive\).*unopened_files/,
  );
  assert.equal(report.inReplyTo, `<${mails}@mail.example>`);
  assert.equal(reported?.from, "", "a machine's mail has no return path");
  await s.settle();
  assert.equal(s.sink.messages.length, 2, "the reply and what its author is informed");
  const { activity } = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}/activity`)).body;
  assert.equal(activity[0].outcome, "sent");
  assert.match(activity[0].detail, /^left without being looked into: .*7-Zip/);
  assert.doesNotMatch(activity[0].detail, /locked/, "names of files are the owner's own words");
  const slides = makeZip([{ name: "index.apxl", content: Buffer.from("slides") }]).toString("latin1");
  await send('application/octet-stream; name="Slides.key"', slides);
  const [left] = await s.arrived(C);
  const { attachments } = await PostalMime.parse(left?.bytes ?? "");
  assert.deepEqual(
    attachments.map(({ filename }) => filename),
    ["Slides.key"],
  );
  await s.settle();
  assert.equal(s.sink.messages.length, 1, "nobody is informed of a file that was looked into");
});
