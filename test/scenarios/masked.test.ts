// Mail through a masked address and back, as the pipeline of receiving takes it: forward, reply, forward of the answer;
// forged senders, loops, blocks, floods. Nothing leaves: the messages that would have left are looked at.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import PostalMime from "postal-mime";
import {
  C,
  D,
  DOMAIN,
  IP_C,
  IP_D,
  isReport,
  type SimulatedMail,
  startMaskedSimulation,
} from "../support/masked-simulation.ts";

const { api, ask, alias, reverse, simulate, activity, close } = await startMaskedSimulation({
  "strict.example": { TXT: ["v=spf1 -all"] },
  "_dmarc.strict.example": { TXT: ["v=DMARC1; p=reject"] },
  "lax.example": { TXT: ["v=spf1 -all"] },
  "_dmarc.lax.example": { TXT: ["v=DMARC1; p=none"] },
});
after(close);

/** What SMTP said to the recipient of a mail, from C unless it says otherwise. */
const send = async (mail: SimulatedMail) => (await simulate({ from: C, ...mail })).body.results[0];
/** The messages that would have left to an address, the newest last. */
const left = async (email: string) => {
  const rows = await api.world.db.query<{ mime: Buffer; status: string; id: string }>(
    `select b.mime, m.status, m.id from recipient r join message m on m.id = r.message_id
       join message_body b on b.id = m.id where r.email = $1 order by m.id`,
    [email],
  );
  const read = await Promise.all(rows.map(async (row) => ({ ...row, mail: await PostalMime.parse(row.mime) })));
  return read.filter((one) => !isReport(one));
};

test("the story C → A → D → R → C → A → D keeps threads on both sides and shows D to nobody", async () => {
  const a = await alias({ display_name: "Anna" });
  const first = await send({ to: a.full, from: C, head: "Message-ID: <c1@contact.example>\r\n" });
  assert.equal(first.accepted, true);
  const [forward] = await left(D);
  assert.ok(forward);
  assert.equal(forward.status, "simulated");
  const r = forward.mail.from?.address ?? "";
  assert.match(r, new RegExp(`^r\\.[a-z2-7]{26}@${DOMAIN}$`));
  assert.equal(forward.mail.from?.name, "shop at contact.example");
  assert.deepEqual(
    forward.mail.to?.map(({ address }) => address),
    [a.full],
  );
  assert.equal(forward.mail.messageId, "<c1@contact.example>");
  assert.ok(!forward.mime.includes(D), "the forward itself does not name the mailbox");

  const reply = await send({
    from: D,
    to: r,
    head: `Cc: ${a.full}\r\nMessage-ID: <d1@laptop.home.example>\r\nIn-Reply-To: <c1@contact.example>\r\nReferences: <private@home.example> <c1@contact.example>\r\nX-Originating-IP: 192.0.2.1\r\nDate: Fri, 20 Nov 2026 12:00:00 +0100\r\n`,
    text: `Yes.\r\nOn Friday ${r} wrote:\r\n> To: ${D}`,
  });
  assert.equal(reply.accepted, true, JSON.stringify(reply));
  const [answer] = await left(C);
  assert.ok(answer);
  assert.equal(answer.mail.from?.address, a.full);
  assert.equal(answer.mail.from?.name, "Anna");
  assert.deepEqual(
    answer.mail.to?.map(({ address }) => address),
    [C],
  );
  assert.equal(answer.mail.inReplyTo, "<c1@contact.example>");
  assert.equal(answer.mail.references, "<c1@contact.example>");
  assert.match(answer.mail.text ?? "", new RegExp(`> To: ${a.full}`));
  assert.doesNotMatch(answer.mime.toString("latin1"), /home\.example|\+0100|r\.[a-z2-7]{26}|192\.0\.2\.1|198\.51/);

  const outer = answer.mail.messageId as string;
  await send({
    to: a.full,
    head: `Message-ID: <c2@contact.example>\r\nIn-Reply-To: ${outer}\r\nReferences: <c1@contact.example> ${outer}\r\n`,
  });
  const second = (await left(D))[1];
  assert.equal(second?.mail.inReplyTo, "<d1@laptop.home.example>");
  assert.equal(second?.mail.references, "<c1@contact.example> <d1@laptop.home.example>");
  assert.equal(second?.mail.from?.address, r);

  const { body } = await ask("GET", `/v1/masked/aliases/${a.id}`);
  const { emails_received, emails_forwarded, emails_replied, emails_blocked } = body.alias;
  assert.deepEqual([emails_received, emails_forwarded, emails_replied, emails_blocked], [2, 2, 1, 0]);
  assert.deepEqual(await activity(a.id), ["forward sent -", "reply sent -", "forward sent -", "config sent created"]);
});

test("forged senders are refused in session, and the owner sees it", async () => {
  const a = await alias({ forward_to: [D, "bob@lax.example"] });
  const r = await reverse(a.id);
  const before = (await left(C)).length;
  const cases: [why: string, sent: Omit<SimulatedMail, "to">][] = [
    ["envelope only", { from: "eve@contact.example", envelope: D, ip: IP_C }],
    ["From only", { from: D, envelope: "eve@contact.example", ip: IP_C }],
    ["both, from elsewhere", { from: D, envelope: D, ip: IP_C }],
    ["a neighbour at the provider", { from: D, envelope: "eve@home.example", ip: IP_D }],
    ["p=none failed", { from: "bob@lax.example", ip: IP_C }],
    [
      "believed results of others",
      {
        from: D,
        envelope: "",
        ip: IP_C,
        head: "Authentication-Results: mx.postern.test; dkim=pass header.d=home.example\r\n",
      },
    ],
  ];
  for (const [why, sent] of cases) {
    const { smtp_code, enhanced_code } = await send({ to: r, ...sent });
    assert.equal(`${smtp_code} ${enhanced_code}`, "550 5.7.1", why);
  }
  assert.equal((await left(C)).length, before);
  const entries = await activity(a.id);
  assert.equal(entries.filter((entry) => entry === "reply failed unauthorised_sender").length, cases.length);
});

test("a reply that names strangers, answers by itself, or hides the address in a file does not leave", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const before = (await left(C)).length;
  await send({ from: D, to: r, head: "Cc: third@party.example\r\n" });
  await send({ from: D, to: r, head: "Auto-Submitted: auto-replied\r\n" });
  const file = `Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n`;
  await send({ from: D, to: r, head: file, text: Buffer.from(`\x00${D}`).toString("base64") });
  assert.equal((await left(C)).length, before);
  const [held, auto, foreign] = await activity(a.id);
  assert.equal(held, "reply held leak");
  const entries = (await ask("GET", `/v1/masked/aliases/${a.id}/activity`)).body.activity;
  assert.match(entries[0].detail, /application\/octet-stream/);
  assert.equal(entries[1].detail, null);
  assert.equal(auto, "auto_reply dropped auto_reply");
  assert.equal(foreign, "reply failed foreign_recipient");
});

test("blocked contacts, disabled aliases, own mail, loops and refused authors are not forwarded", async () => {
  const a = await alias();
  const { contact } = (await ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: C })).body;
  await ask("PATCH", `/v1/masked/aliases/${a.id}/contacts/${contact.id}`, { blocked: true });
  const before = (await left(D)).length;
  assert.equal((await send({ to: a.full })).accepted, true);
  await send({ to: a.full, from: D });
  await send({ to: a.full, from: contact.reply_address });
  const policy = await send({ to: a.full, from: "eve@strict.example" });
  assert.equal(`${policy.smtp_code} ${policy.enhanced_code}`, "550 5.7.1");
  await ask("PUT", `/v1/masked/aliases/${a.id}`, { active: false });
  assert.equal((await send({ to: a.full })).accepted, true);
  await ask("PUT", `/v1/masked/aliases/${a.id}`, { on_disabled: "reject" });
  assert.equal((await send({ to: a.full })).enhanced_code, "5.1.1");
  assert.equal((await send({ to: `nobody@${DOMAIN}` })).enhanced_code, "5.1.1");
  assert.equal((await left(D)).length, before);
  const entries = await activity(a.id);
  for (const wanted of [
    "block dropped contact_blocked",
    "block failed own_destination",
    "forward dropped loop",
    "block dropped alias_disabled",
  ]) {
    assert.ok(entries.includes(wanted), `${wanted} in ${entries.join("; ")}`);
  }
});

test("a flood is limited with 450", async () => {
  const a = await alias();
  const codes = new Set<number>();
  // 30 in each minute of the clock: more than 60 are too many for one of two.
  for (let n = 0; n < 65 && !codes.has(450); n += 1) codes.add((await send({ to: a.full })).smtp_code);
  assert.ok(codes.has(250) && codes.has(450), [...codes].join(" "));
});

test("a mailbox that a mail names beside its alias has a reverse address like everybody, and stays named to who named it", async () => {
  const second = "bob@home.example";
  const a = await alias({ forward_to: [D, second] });
  const ics = `BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nORGANIZER:mailto:${C}\r\nATTENDEE:mailto:${second}\r\nATTENDEE:mailto:${a.full}\r\nEND:VCALENDAR`;
  const { messages: forwards } = await simulate({
    from: C,
    to: a.full,
    head: `To: ${a.full}, Anna <${D}>, friend@party.example\r\nCc: anna+shop@home.example, ${second}\r\nReply-To: ${D}\r\nContent-Type: text/calendar\r\n`,
    text: ics,
  });
  assert.deepEqual(forwards.map(({ recipient }) => recipient).sort(), [D, second]);
  const own = await reverse(a.id, D);
  for (const { mail, recipient, raw } of forwards) {
    assert.deepEqual([mail.to?.length, mail.to?.[0]?.address, mail.cc?.length], [3, a.full, 2]);
    assert.deepEqual([mail.to?.[1], mail.replyTo?.[0]?.address], [{ name: "Anna", address: own }, own]);
    const calendar = Buffer.from(mail.attachments[0].content).toString();
    assert.match(calendar, new RegExp(`^ATTENDEE:mailto:${await reverse(a.id, second)}\r?$`, "m"));
    assert.match(calendar, new RegExp(`^ATTENDEE:mailto:${recipient}\r?$`, "m"));
    assert.ok(!raw.split("\r\n\r\n")[0]?.includes(D), "a client would quote it");
  }
  const [shop, friend] = [forwards[0].mail.from.address, forwards[0].mail.to[2].address];
  const text = `On Friday ${own} wrote:\r\n> hi\r\nyours, ${D}, anna at home.example`;
  const { messages } = await simulate({
    to: [shop, friend, own],
    head: `To: ${shop}, ${own}\r\nCc: ${friend}\r\n`,
    text,
  });
  assert.deepEqual(
    messages.map(({ recipient, mail }) => [recipient, [...mail.to, ...mail.cc].map(({ address }) => address)]),
    [
      [C, [C, D, "friend@party.example"]],
      ["friend@party.example", [C, D, "friend@party.example"]],
      [D, [shop, D, friend]],
    ],
  );
  for (const { mail } of messages.slice(0, 2)) {
    assert.equal(mail.text.trimEnd(), `On Friday ${D} wrote:\n> hi\nyours, ${a.full}, ${a.full}`);
  }
  // Whoever did not name it does not get to see it.
  const other = await reverse(a.id, "other@party.example");
  const [reported] = (await simulate({ to: other, head: `To: ${other}, ${own}\r\n`, text })).messages;
  assert.ok(reported && !reported.raw.includes(D), reported?.raw);
});

test("who writes to the own alias learns that nothing comes of it, and the other mailboxes get the mail", async () => {
  const [alone, shared] = [await alias(), await alias({ forward_to: [D, "bob@home.example"] })];
  const own = await simulate({ to: alone.full });
  assert.deepEqual([own.said, own.messages.length], ["550 5.4.6", 0]);
  const guessed = await simulate({ to: alone.full, envelope: C, ip: IP_C });
  assert.deepEqual([guessed.said, guessed.messages.length], ["250 2.0.0", 1], "a forged author is anybody");
  const r = await reverse(alone.id);
  const answer = await simulate({ to: alone.full, head: `To: ${r}\r\nCc: ${alone.full}\r\n` });
  assert.deepEqual([answer.said, answer.messages.length], ["250 2.0.0", 0], "an answer to all names the alias, too");
  assert.deepEqual((await activity(alone.id)).slice(0, 3), [
    "forward dropped own_destination",
    "forward sent -",
    "block failed own_destination",
  ]);

  const { messages } = await simulate({ to: shared.full });
  assert.deepEqual(
    messages.map(({ recipient }) => recipient),
    ["bob@home.example"],
  );
  const back = messages[0].mail.from.address;
  const { messages: answers } = await simulate({ from: "bob@home.example", ip: IP_D, to: back });
  assert.deepEqual(
    answers.map(({ recipient, from }) => [recipient, from]),
    [[D, shared.full]],
  );
});

test("a reverse address with a tag is the same one, in To as in the session", async () => {
  const a = await alias();
  const tagged = (await reverse(a.id)).replace("@", "+x@");
  const { messages } = await simulate({ to: tagged, head: `To: ${tagged}, ${a.full.replace("@", "+news@")}\r\n` });
  assert.deepEqual(
    messages.map(({ recipient, mail }) => [recipient, mail.to?.length]),
    [[C, 1]],
  );
});
