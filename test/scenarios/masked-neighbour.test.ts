// What leaves through reverse addresses is as good a neighbour as other outgoing mail, and what its owner meant to send is not
// lost on the way, over real SMTP.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { C, D, IP_D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
  await s.alias();
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

async function contactOf(aliasId: string, email = C): Promise<string> {
  const { body } = await s.api.ask("POST", `/v1/masked/aliases/${aliasId}/contacts`, { email });
  return body.contact.reply_address;
}

const letter = (from: string, to: string, more = "", text = "Yes.") =>
  `From: ${from}\r\nTo: ${to}\r\nSubject: order\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n${more}\r\n${text}\r\n`;

test("mail from the owner's own tags, with marked or varied return paths, goes out and shows no tag", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  const tagged = D.replace("@", "+shop@");
  const senders = [
    [tagged, tagged],
    [D, D.replace(/^/, "prvs=1234abcdef=")],
    [D, D.replace("@", "-shop.keeper=contact.example@")],
  ] as const;
  for (const [author, from] of senders) {
    const answer = await s.send({ from, to: r, content: letter(author, r, "", `I am ${tagged}.`), ip: IP_D });
    assert.equal(answer.code, 250, `${from}: ${answer.text}`);
  }
  for (const { bytes } of await s.arrived(C, senders.length)) {
    assert.doesNotMatch(bytes.toString("latin1"), /anna|home\.example/);
  }
  const forged = await s.send({ from: "eve@home.example", to: r, content: letter(tagged, r), ip: IP_D });
  assert.match(forged.text, /^550 5\.7\.1/, "a neighbour at the same provider has no such return path");
});

test("a letter that is marked as bulk mail is not lost: its author is told why it did not leave", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  await s.send({ from: D, to: r, content: letter(D, r, "Precedence: bulk\r\n") });
  const [notice] = await s.arrived(D);
  assert.match(notice?.bytes.toString("latin1") ?? "", /marked as bulk mail/);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "reply failed bulk");
  await s.send({ from: D, to: r, content: letter(D, r, "Auto-Submitted: auto-replied\r\nPrecedence: bulk\r\n") });
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "auto_reply dropped auto_reply");
  assert.equal(s.sink.messages.length, 1, "an automatic answer makes no mail at all");
});

test("a reply to more than ten recipients is refused for good, so that its author hears of it now", async () => {
  const a = await s.alias();
  const many: string[] = [];
  for (let n = 0; n < 11; n += 1) many.push(await contactOf(a.id, `p${n}@contact.example`));
  const { text } = await s.send({ from: D, to: many, content: letter(D, many.join(", ")) });
  assert.match(text, /^550 5\.5\.3 .*at most 10 recipients/);
});
