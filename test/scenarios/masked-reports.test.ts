// What the owner of an alias learns of mail that passed, over real SMTP: what was changed in a reply, and that a contact wrote
// the real address. The contact gets none of it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import PostalMime from "postal-mime";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import type { Received } from "../support/smtp-sink.ts";

let s: MaskedStage;
let mails = 0;
before(async () => {
  s = await startMaskedStage();
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

const read = async (received: Received | undefined) => {
  const mail = await PostalMime.parse(received?.bytes ?? "");
  return { ...mail, words: (mail.text ?? "").replace(/\s+/g, " ") };
};
const reply = (to: string, text: string) =>
  `From: Anna Real <${D}>\r\nMessage-ID: <${++mails}@mail.example>\r\nTo: ${to}\r\nSubject: Re: order\r\n\r\n${text}\r\n`;

test("what was hidden in a reply is reported to its author alone, as the alias wants it", async () => {
  const a = await s.alias();
  const { contact } = (await s.api.ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: C })).body;
  const send = async (text: string, report?: string) => {
    if (report) await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { reply_report: report });
    await s.settle();
    s.sink.messages.length = 0;
    assert.equal(
      (await s.send({ from: D, to: contact.reply_address, content: reply(contact.reply_address, text) })).code,
      250,
    );
    await s.arrived(C);
    await s.settle();
    return s.sink.messages.filter(({ to }) => to[0] !== C);
  };
  assert.deepEqual(await send("Yes, tomorrow."), []);
  const [reported, ...more] = await send(`Write to ${D}, please.`);
  assert.deepEqual([more.length, reported?.to, reported?.from], [0, [D], ""]);
  const mail = await read(reported);
  assert.equal(mail.subject, "Your reply was sent, with something hidden in it");
  assert.equal(mail.inReplyTo, `<${mails}@mail.example>`);
  assert.match(mail.words, /- your address, once in the text \(the message\): the masked address stands there/);
  assert.deepEqual(await send(`Write to ${D}, please.`, "never"), []);
  const always = await send("Yes, tomorrow.", "always");
  assert.match((await read(always[0])).words, /was sent\. Nothing in it had to be changed/);
});

test("a contact that writes the real address, or a list of them, is reported to the owner once a month", async () => {
  const a = await s.alias();
  const from = (text: string, author = C) =>
    s.send({
      from: author,
      to: a.full,
      content: `From: Shop <${author}>\r\nMessage-ID: <${++mails}@contact.example>\r\nTo: ${a.full}\r\nSubject: hello\r\n\r\n${text}\r\n`,
    });
  const arrivedOf = async (text: string, author?: string) => {
    await s.settle();
    s.sink.messages.length = 0;
    assert.equal((await from(text, author)).code, 250);
    await s.arrived(D);
    await s.settle();
    return s.sink.messages;
  };
  const forward = (all: readonly Received[]) => all.find(({ from: path }) => path !== "");
  const warning = (all: readonly Received[]) => all.find(({ from: path }) => path === "");
  const plain = await arrivedOf("Are you there?");
  assert.equal(plain.length, 1, "an ordinary mail warns of nothing");
  const guessed = await arrivedOf(`Are you ${D}?`);
  assert.deepEqual(
    guessed.map(({ to }) => to),
    [[D], [D]],
  );
  const reported = await read(warning(guessed));
  assert.equal(reported.subject, "A mail to your alias holds your real address");
  assert.match(reported.words, /A mail from Shop \(shop\.keeper at contact\.example\) to \S+ holds a real address/);
  assert.ok(!(warning(guessed)?.bytes.toString() ?? D).includes(`Are you`), "nothing of the mail itself");
  assert.ok(!(forward(guessed)?.bytes.toString() ?? "").includes("real address"), "nothing that an answer would quote");
  assert.equal((await arrivedOf(`Or is it ${D}?`)).length, 1, "once a month");
  await s.api.world.db.execute("update masked_contact set warned_at = now() - interval '31 days'");
  assert.equal((await arrivedOf(`Is it ${D}?`)).length, 2);
  // The author is one of them.
  const list = Array.from({ length: 60 }, (_, n) => `guess${n}@mail.example`).join(" ");
  const listed = await read(warning(await arrivedOf(list, "other@contact.example")));
  assert.match(listed.words, /holds 61 different addresses\./);
  const both = await read(warning(await arrivedOf(`${list} ${D}`, "third@contact.example")));
  assert.match(both.words, /holds a real address that \S+ forwards to, in a list of 62 addresses/);
});
