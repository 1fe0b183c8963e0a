// Ways by which a correspondent could learn of the mailbox, or of the owner's other correspondents, through everything from
// the session to the message that leaves (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { domainToASCII } from "node:url";
import PostalMime from "postal-mime";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../../src/mail/dkim/key.ts";
import { signMessage } from "../../src/mail/dkim/sign.ts";
import { C, D, IP_D, startMaskedSimulation } from "../support/masked-simulation.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const IDN_DOMAIN = domainToASCII("bücher.example");
const IDN = `anna@${IDN_DOMAIN}`;

const { api, dns, ask, alias, reverse, simulate, activity, close } = await startMaskedSimulation({
  [IDN_DOMAIN]: { TXT: [`v=spf1 ip4:${IP_D} -all`] },
});
after(close);

test("reverse addresses in what a reply quotes are their contacts', those of other aliases the alias", async () => {
  const [a, b] = [await alias(), await alias()];
  const [r, friend, foreign] = [await reverse(a.id), await reverse(a.id, "friend@party.example"), await reverse(b.id)];
  const ics = `BEGIN:VCALENDAR\r\nATTENDEE:mailto:${friend}\r\nATTENDEE:mailto:${foreign}\r\nEND:VCALENDAR`;
  const { messages } = await simulate({
    to: r,
    head: "Content-Type: multipart/mixed; boundary=b\r\n",
    text: `--b\r\n\r\n> From: friend at party.example <${friend}>\r\n> Cc: ${foreign}\r\n--b\r\nContent-Type: text/calendar\r\n\r\n${ics}\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nCc: ${friend}\r\n\r\nask ${foreign}\r\n--b--`,
  });
  assert.deepEqual(
    messages.map(({ recipient }) => recipient),
    [C],
  );
  const text = messages[0]?.raw ?? "";
  assert.doesNotMatch(text, /r\.[a-z2-7]{26}@/);
  assert.match(text, /^> From: friend@party\.example <friend@party\.example>\r$/m);
  assert.ok(text.includes(`> Cc: ${a.full}\r\n`) && text.includes(`ask ${a.full}`));
  assert.match(text, /^ATTENDEE:mailto:friend@party\.example\r$/m);
  assert.match(text, /^Cc: friend@party\.example\r$/m);
});

test("what comes back with a reply's Message-ID is answered by that id, never by the mailbox's own", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const other = await reverse(a.id, "boss@contact.example");
  const field = (text: string, name: string) =>
    new RegExp(`^${name}: ((?:<[^>]+>\\s*)+)\r$`, "m").exec(text)?.[1]?.split(/\s+/) ?? [];
  const reply = async (to: string, own: string, head = "") =>
    (await simulate({ to, head: `Message-ID: ${own}\r\n${head}` })).messages[0]?.raw ?? "";
  const own = (n: number) => `<m${n}@annas-pc.home.example>`;
  const [outer = ""] = field(await reply(r, own(1)), "Message-ID");
  assert.match(outer, new RegExp(`@${a.full.split("@")[1]}>$`));

  // A list that hands the post on under its own address, or somebody who writes so by hand.
  const post = await simulate({ to: a.full, from: C, head: `Message-ID: ${outer}\r\n` });
  assert.deepEqual(field(post.messages[0]?.raw ?? "", "Message-ID"), [outer]);
  for (const [to, n] of [
    [r, 2],
    [other, 3],
  ] as const) {
    const answer = await reply(to, own(n), `In-Reply-To: ${outer}\r\nReferences: ${own(1)} ${outer}\r\n`);
    assert.deepEqual([field(answer, "In-Reply-To"), field(answer, "References")], [[outer], [outer]]);
    assert.doesNotMatch(answer, /annas-pc/);
  }
  const third = await reply(r, own(4), `In-Reply-To: ${own(2)}\r\nReferences: ${outer} ${own(2)}\r\n`);
  const named = field(third, "References");
  assert.deepEqual([named[0], named.length, field(third, "In-Reply-To")], [outer, 2, [named[1]]]);
  assert.doesNotMatch(third, /annas-pc/);

  const head = `In-Reply-To: ${named[1]}\r\nReferences: ${outer} ${own(2)} ${named[1]}\r\n`;
  const last = (await simulate({ to: a.full, from: C, head })).messages[0]?.raw ?? "";
  assert.deepEqual(field(last, "In-Reply-To"), [own(2)]);
  assert.deepEqual(field(last, "References"), [own(1), own(2), own(2)], "the mailbox knows its mails by its own ids");
});

test("the ids of the mailbox's own mail stand in no reply, however its program quotes them", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const [first, own, elsewhere] = ["first.1@pc.home.example", "second.2@pc.home.example", "third.3@pc.home.example"];
  await simulate({ to: r, head: `Message-ID: <${first}>\r\n` });
  const head = `Message-ID: <${own}>\r\nIn-Reply-To: <${first}>\r\nReferences: <${elsewhere}> <${first}>\r\n`;
  const html = [
    `<a href="mid:${encodeURIComponent(first)}">my mail</a>`,
    `<div id="m_-12${first}" data-id="&lt;${own}&gt;">Message-ID: &lt;${first}&gt;</div>`,
    `<a href="https://mail.example/#m?id=${encodeURIComponent(`<${elsewhere}>`)}">x</a>`,
  ].join("");
  const texts: [string, string][] = [
    ["", `> Message-ID: <${first}>\r\n> References: <${elsewhere}>\r\nmid:${first}`],
    ["Content-Type: text/html\r\n", html],
  ];
  for (const [type, text] of texts) {
    const { messages } = await simulate({ to: r, head: head + type, text });
    assert.equal(messages.length, 1, text);
    const { raw, mail } = messages[0];
    assert.doesNotMatch(`${raw}${mail.text}${mail.html}`, /pc\.home|home\.example/);
    // What it is called outside is what its reader knows it by.
    const answered = /^In-Reply-To: <(.*)>\r$/m.exec(raw)?.[1] ?? "-";
    assert.ok(`${mail.text}${decodeURIComponent(mail.html ?? "")}`.includes(answered), raw);
  }
});

test("a mail that answers several names all of them on the other side, and a reply those that its reader knows", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const answered = (text = "") => /^In-Reply-To: ((?:<[^>]+>\s*)+)\r$/m.exec(text)?.[1]?.split(/\s+/);
  for (const id of ["<q1@contact.example>", "<q2@contact.example>"]) {
    await simulate({ to: a.full, from: C, head: `Message-ID: ${id}\r\n` });
  }
  const both = "In-Reply-To: <q1@contact.example> <q2@contact.example>\r\n";
  const forward = await simulate({ to: a.full, from: C, head: both });
  assert.deepEqual(answered(forward.messages[0]?.raw), ["<q1@contact.example>", "<q2@contact.example>"]);
  const head = "In-Reply-To: <private@home.example> <q1@contact.example> <q2@contact.example>\r\n";
  const reply = await simulate({ to: r, head });
  assert.deepEqual(answered(reply.messages[0]?.raw), ["<q1@contact.example>", "<q2@contact.example>"]);
});

test("what the mailbox's programs send by themselves is dropped, whatever it is marked with", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  for (const head of [
    "Auto-Submitted: auto-replied\r\nPrecedence: bulk\r\n",
    "X-Vacation: yes\r\n",
    "X-Auto-Reply-From: a\r\n",
  ]) {
    const { said, messages } = await simulate({ to: r, head });
    assert.deepEqual(
      [said, messages.length, (await activity(a.id))[0]],
      ["250 2.0.0", 0, "auto_reply dropped auto_reply"],
      head,
    );
  }
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  dns.set("k._domainkey.home.example", "TXT", [dkimRecord(public_key, "rsa")]);
  const text = Buffer.from(
    `From: ${D}\r\nTo: ${r}\r\nSubject: I read it\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n\r\nx\r\n`,
  );
  const key = loadSigningKey(private_key_pem, { domain: "home.example", selector: "k" });
  const raw = Buffer.concat([await signMessage(text, [key], { now_s: Date.now() / 1000 }), text]);
  const { said, messages } = await simulate({ to: r, raw, envelope: "" });
  assert.deepEqual(
    [said, messages.length, (await activity(a.id))[0]],
    ["250 2.0.0", 0, "auto_reply dropped auto_reply"],
  );
});

test("a mailbox at an international domain writes from either form, and shows neither", async () => {
  const a = await alias({ forward_to: [IDN] });
  const r = await reverse(a.id);
  for (const from of [IDN, "anna@bücher.example"]) {
    const { said, messages } = await simulate({
      to: r,
      from,
      envelope: IDN,
      ip: IP_D,
      head: "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n",
      text: "-- \r\nAnna <anna@bücher.example>",
    });
    assert.deepEqual([said, messages.map(({ recipient }) => recipient)], ["250 2.0.0", [C]], from);
    assert.match(messages[0]?.raw ?? "", new RegExp(`Anna <${a.full}>`));
  }
});

test("a reply that quotes the reverse address of an alias at an international domain, in letters, is not held", async () => {
  await addVerifiedDomain(api, dns, "läden.example", { type: "both" });
  const a = await alias({ domain_id: "läden.example" });
  const [r, friend] = [await reverse(a.id), await reverse(a.id, "friend@party.example")];
  const shown = (address: string) => address.replace(/@.*/, "@läden.example");
  const { messages } = await simulate({
    to: r,
    head: `To: ${shown(r)}\r\nContent-Type: text/plain; charset=utf-8\r\n`,
    text: `On Friday ${shown(r)} wrote:\r\n> Cc: ${shown(friend).toUpperCase()}, r.${"b".repeat(26)}@läden.example\r\n> ${shown(r)}さん、r.${"b".repeat(26)}@läden.exampleさん`,
  });
  assert.match(messages[0]?.mail.text ?? "", /^> shop@contact\.exampleさん、\S+@\S+さん$/m);
  assert.match(messages[0]?.raw ?? "", /^On Friday shop@contact\.example wrote:\r\n> Cc: friend@party\.example, \S+$/m);
  assert.doesNotMatch(messages[0]?.raw ?? "", /r\.[a-z2-7]{26}@/);
});

test("a reply into the company whose server greets with its domain is not held", async () => {
  const a = await alias();
  const r = await reverse(a.id, "bob@company.example");
  const head = "Received: from pc.company.example by company.example; Fri, 20 Nov 2026 10:00:00 +0100\r\n";
  const { messages } = await simulate({ to: r, helo: "company.example", head, text: `On Friday ${r} wrote:\r\n> x` });
  assert.deepEqual(
    messages.map(({ recipient }) => recipient),
    ["bob@company.example"],
  );
  assert.match(messages[0]?.raw ?? "", /On Friday bob@company\.example wrote/);
});

test("an invitation with a crowd lets the mailbox answer nobody but reverse addresses", async () => {
  const a = await alias();
  const guests = Array.from({ length: 40 }, (_, n) => `ATTENDEE:mailto:guest${n}@x.example\r\n`).join("");
  const ics = `BEGIN:VCALENDAR\r\n${guests}ATTENDEE:mailto:${a.full}\r\nORGANIZER;SENT-BY="mailto:c@x.example":mailto:boss%40x.example\r\nEND:VCALENDAR`;
  const head = "Content-Type: text/calendar; method=REQUEST\r\n";
  const { messages } = await simulate({ to: a.full, from: C, head, text: ics });
  const forwarded = await PostalMime.parse(messages[0]?.raw ?? "");
  const text = Buffer.from(forwarded.attachments[0]?.content as ArrayBuffer)
    .toString()
    .replace(/\r\n /g, "");
  const people = [...text.matchAll(/^(\w+):mailto:(.*?)\r?$/gm)];
  assert.equal(people.length, 42);
  for (const [line, , address] of people)
    assert.match(address as string, /^r\.[a-z2-7]{26}@|^anna@home\.example$/, line);
  const organizer = people.find(([, name]) => name === "ORGANIZER")?.[2] ?? "";
  const { contacts } = (await ask("GET", `/v1/masked/aliases/${a.id}/contacts?limit=100`)).body;
  assert.equal(
    contacts.find((one: { reply_address: string }) => one.reply_address === organizer)?.email,
    "boss@x.example",
    "the organizer is among those that get an address of their own",
  );
});
