// Mail between people of one service, over real SMTP: what this service sends to an alias arrives like anybody's, also a
// reply from another alias; what really goes in circles ends.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import PostalMime from "postal-mime";
import { C, D, DOMAIN, IP_D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import type { Received } from "../support/smtp-sink.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const D2 = "berta.real@home.example";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
  s.dns.set(DOMAIN, "MX", [{ exchange: "mx.home.example", preference: 10 }]);
  // Both mailboxes are asked for their consent once, before any story.
  await s.alias({ forward_to: [D, D2] });
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

/** Hands a message that left to our own MX, as the server it left from would. */
const comesHome = ({ from, to, bytes }: Received) =>
  s.send({ from, to: to[0] as string, content: bytes.toString("latin1"), ip: "127.0.0.1" });
const authorOf = async ({ bytes }: Received) => (await PostalMime.parse(bytes)).from?.address ?? "";

test("an e-mail of this service's API arrives at an alias", async () => {
  const { domain } = await addVerifiedDomain(s.api, s.dns, "sends.example");
  const a = await s.alias();
  const e_mail = { from: `news@${domain}`, to: [a.full], subject: "hello", text_body: "hi" };
  const { status, body } = await s.api.ask("POST", "/v1/send", e_mail);
  assert.equal(status, 202, JSON.stringify(body));
  const [left] = await s.arrived(a.full);
  assert.match(left?.from ?? "", /^b\+[a-z2-7]{44}@pt-bounces\.sends\.example$/);
  assert.equal((await comesHome(left as Received)).code, 250);
  const [forward] = await s.arrived(D);
  assert.equal((await PostalMime.parse(forward?.bytes ?? "")).subject, "hello");
  assert.deepEqual((await s.activity(a.id))[0], "forward sent -");
});

test("two people with masked addresses write to each other and back", async () => {
  const a = await s.alias();
  const b = await s.alias({ forward_to: [D2] });
  const { contact } = (await s.api.ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: b.full })).body;
  const mail = (from: string, to: string) => `From: ${from}\r\nTo: ${to}\r\nSubject: between us\r\n\r\nhi\r\n`;
  await s.send({ from: D, to: contact.reply_address, content: mail(D, contact.reply_address) });
  const [there] = await s.arrived(b.full);
  assert.equal((await comesHome(there as Received)).code, 250);
  const [forward] = await s.arrived(D2);
  const r = await authorOf(forward as Received);
  const said = await s.send({ from: D2, to: r, content: mail(D2, r), ip: IP_D });
  assert.equal(said.code, 250, said.text);
  const [back] = await s.arrived(a.full);
  assert.equal(await authorOf(back as Received), b.full);
  assert.equal((await comesHome(back as Received)).code, 250);
  const [home] = await s.arrived(D);
  assert.equal(await authorOf(home as Received), contact.reply_address);
});

test("a forward that its mailbox sends back to the alias ends there, whatever the mailbox's server keeps of it", async () => {
  const a = await s.alias();
  await s.send({ from: C, to: a.full, content: `From: ${C}\r\nTo: ${a.full}\r\nSubject: round\r\n\r\nhi\r\n` });
  const [forward] = (await s.arrived(D)) as [Received];
  const text = forward.bytes.toString("latin1");
  const unmarked = text.replace(/^X-Mask-Loop: .*\r\n/m, "");
  assert.notEqual(unmarked, text);
  const others = unmarked.replace(/^From: [^\r]*(?:\r\n[ \t][^\r]*)*/m, "From: list@home.example");
  const ways: [string, string, string][] = [
    ["as it was", forward.from, text],
    ["with another envelope", "anna.real=x@home.example", text],
    ["without the mark", "anna.real=x@home.example", unmarked],
    ["without the mark and with another author", forward.from, others],
  ];
  for (const [why, from, content] of ways) {
    assert.equal((await s.send({ from, to: a.full, content, ip: IP_D })).code, 250, why);
    await s.settle();
    assert.equal((await s.activity(a.id))[0], "forward dropped loop", why);
  }
  assert.equal(s.sink.messages.length, 1, "it was forwarded once");
});

test("a mail that other services masked, return paths and reply addresses like ours included, arrives with their marks", async () => {
  const a = await s.alias();
  const elsewhere = `r.${"a".repeat(26)}@contact.example`;
  const path = `b+${"a".repeat(44)}@pt-bounces.contact.example`;
  const mark = "0123456789abcdef".repeat(2);
  const head = `From: ${elsewhere}\r\nTo: ${a.full}\r\nSubject: far\r\n`;
  const mail = (marks: number) => `${head}${`X-Mask-Loop: ${mark}\r\n`.repeat(marks)}\r\nhi\r\n`;
  assert.equal((await s.send({ from: path, to: a.full, content: mail(1) })).code, 250);
  const [forward] = await s.arrived(D);
  const marks = forward?.bytes.toString("latin1").match(/^X-Mask-Loop: [0-9a-f]{32}\r$/gm) ?? [];
  assert.equal(marks.length, 2);
  assert.equal(marks[0], `X-Mask-Loop: ${mark}\r`);
  await s.send({ from: path, to: a.full, content: mail(10) });
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "forward dropped loop", "through ten masks is a circle");
});
