// What leaves through reverse addresses is as good a neighbour as other outgoing mail, and what its owner meant to send is not
// lost on the way, over real SMTP.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { C, D, IP_D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import { GTUBE, SPAMMY } from "../support/spam-texts.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

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

test("a letter that is marked as bulk mail is not lost: its author learns why it did not leave", async () => {
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

test("what looks like spam does not leave: refused in session, whatever the domain wants of its own mail", async () => {
  const own = await addVerifiedDomain(s.api, s.dns, "out.example", { type: "both" });
  await s.api.ask("PUT", "/v1/domains/out.example/spam", { enabled: false });
  for (const a of [await s.alias(), await s.alias({ domain_id: own.id })]) {
    const r = await contactOf(a.id);
    for (const text of [GTUBE, SPAMMY]) {
      const answer = await s.send({ from: D, to: r, content: letter(D, r, "", text) });
      assert.match(answer.text, /^550 5\.7\.1 the message is refused/);
    }
    assert.equal((await s.activity(a.id))[0], "reply failed spam");
  }
  assert.deepEqual(s.sink.messages, []);
});

test("a person sends no more through many aliases than the organization lets them, nor all its people together", async () => {
  const set = (body: object) => s.api.ask("PUT", "/v1/masked/settings", body);
  const before = (await s.api.ask("GET", "/v1/masked/settings")).body;
  assert.deepEqual([before.replies_person_hour, before.aliases_day, before.updated_at], [40, 2_000, null]);
  const limited = await s.api.ask("PUT", "/v1/masked/settings", { replies_hour: 2 }, { key: s.api.test_key });
  assert.deepEqual([limited.status, limited.body.code], [403, "test_key_not_allowed"]);
  await s.api.world.db.execute("delete from masked_window");
  assert.equal((await set({ replies_person_hour: 3 })).body.replies_person_hour, 3);
  const other = "ben@home.example";
  const said: string[] = [];
  const write = async (from: string) => {
    const a = await s.alias({ forward_to: [from] });
    const r = await contactOf(a.id);
    said.push((await s.send({ from, to: r, content: letter(from, r), ip: IP_D })).text.slice(0, 9));
  };
  for (let n = 0; n < 4; n += 1) await write(D);
  await write(other);
  assert.deepEqual(said.splice(0), ["250 2.0.0", "250 2.0.0", "250 2.0.0", "450 4.7.1", "250 2.0.0"]);
  await set({ replies_person_hour: 1_000, replies_hour: 5 });
  await write(other);
  await write(D);
  assert.deepEqual(said, ["250 2.0.0", "450 4.7.1"]);
  await set({ replies_hour: 1_000 });
});

test("so many aliases are made within an hour and a day; who wants more learns when", async () => {
  await s.api.world.db.execute("delete from masked_window");
  await s.api.ask("PUT", "/v1/masked/settings", { aliases_hour: 2 });
  const make = () => s.api.ask("POST", "/v1/masked/aliases", { forward_to: [D] });
  assert.deepEqual([(await make()).status, (await make()).status], [201, 201]);
  const { status, body, headers } = await make();
  assert.deepEqual([status, body.limit_type, body.limit], [429, "hourly", 2]);
  assert.ok(Number(headers["retry-after"]) <= 3_600);
  await s.api.ask("PUT", "/v1/masked/settings", { aliases_hour: 500 });
  assert.equal((await make()).status, 201);
});

test("on the free plan limits may be lowered only", async () => {
  const free = await s.api.organization("free");
  const put = (body: object) => s.api.ask("PUT", "/v1/masked/settings", body, { key: free.live_key });
  const more = await put({ replies_person_hour: 41 });
  assert.deepEqual([more.status, more.body.code, more.body.field], [403, "plan_limit_reached", "replies_person_hour"]);
  assert.equal((await put({ replies_person_hour: 5 })).status, 200);
});

test("a reply that is too large is refused in session, so that its author learns of it at once", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  const text = `${"y".repeat(76)}\r\n`.repeat(480_000);
  const answer = await s.send({ from: D, to: r, content: letter(D, r, "", text), ip: IP_D });
  assert.match(`${answer.code} ${answer.text}`, /^552 .*5\.3\.4 the message is larger than/s);
  assert.deepEqual(s.sink.messages, []);
});
