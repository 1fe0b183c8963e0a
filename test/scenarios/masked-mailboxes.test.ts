// Several mailboxes behind one alias: they write to each other through it, and contacts learn of none of them
// (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { C, D, startMaskedSimulation } from "../support/masked-simulation.ts";

const D2 = "berta.real@home.example";

const { alias, reverse, simulate, activity, close } = await startMaskedSimulation();
after(close);

const fromHome = { from: D2, envelope: D2, ip: "198.51.100.8" };
/** With a subject of its own. */
const titled = (subject: string, head: string, text: string, from = D) => ({
  from,
  raw: Buffer.from(`From: ${from}\r\nSubject: ${subject}\r\n${head}\r\n${text}\r\n`),
});
const field = (raw: string, name: string) =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)\\r$`, "m").exec(raw)?.[1]?.replace(/\r\n[ \t]/g, " ");

test("a reply that quotes another mailbox of the alias shows it neither as an address nor in words", async () => {
  const a = await alias({ forward_to: [D, D2], display_name: "Anna" });
  const r = await reverse(a.id);
  const asked = await simulate({ to: a.full, ...fromHome, text: "what do we say?" });
  const shown = field(asked.messages[0]?.raw ?? "", "From") ?? "";
  const [, rD2 = ""] = /^"?berta\.real at home\.example"? <(.*)>$/.exec(shown) ?? [];
  assert.match(rD2, /^r\./, shown);
  const html = "Content-Type: text/html\r\n";
  const named = "Berta (berta.real at home.example)";
  const cases: [string, string][] = [
    ["", `On Monday, ${named} <${rD2}> wrote:\r\n> what?`],
    ["", `On Monday, berta.real at home.example <${rD2}> wrote:\r\n> what?`],
    ["", `> From: Berta (berta.real at\r\n> home.example)\r\n> what?`],
    ["", "> Cc: anna at home.example"],
    [html, `<p>see</p><blockquote>From: ${named} &lt;${rD2}&gt;</blockquote>`],
    [html, `<div><b>From:</b> ${named}<br><b>To:</b> x</div>`],
    [html, `<b>From:</b> Berta (berta.real at <a href="#">home.example</a>)<br>`],
  ];
  for (const [head, text] of cases) {
    const { messages } = await simulate({ to: r, head, text });
    assert.deepEqual([messages.length, (await activity(a.id))[0]], [1, "reply sent -"], text);
    assert.doesNotMatch(messages[0]?.raw ?? "", /real at|anna at|home\.example\)/, text);
  }
});

test("an answer to all that names the alias's other mailbox, or the author's tag, leaves without it", async () => {
  const a = await alias({ forward_to: [D, D2] });
  const r = await reverse(a.id);
  for (const other of [D2, "berta.real+shop@home.example", D]) {
    const { messages } = await simulate({ to: r, head: `To: ${r}\r\nCc: "Berta Real" <${other}>\r\n` });
    assert.deepEqual(
      messages.map(({ recipient }) => recipient),
      [C],
    );
    assert.doesNotMatch(messages[0]?.raw ?? "", /berta|^Cc:|home\.example/im, other);
  }
});

test("two aliases of one mailbox never stand in each other's mail", async () => {
  const [a, b] = [await alias({ display_name: "Anna" }), await alias()];
  const [local = ""] = b.full.split("@");
  const r = await reverse(a.id, "other@contact.example");
  const b64 = "MIME-Version: 1.0\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n";
  const quoted = `An: ${b.full}\r\n\r\n> ${b.full.toUpperCase()}\r\n> ${local} at ${b.domain}`;
  const cases: [string, string][] = [
    ["Content-Type: text/plain\r\n", `Von: Shop\r\n${quoted}`],
    [
      "Content-Type: text/html\r\n",
      `<b>An:</b> ${local.slice(0, 4)}<wbr>${local.slice(4)}&#64;${b.domain}<br>` +
        `<a href="mailto:${local}%40${b.domain}">x</a> ${a.full}`,
    ],
    [b64, Buffer.from(quoted).toString("base64")],
  ];
  for (const [head, text] of cases) {
    const reply = await simulate({ to: r, ...titled(`for ${b.full}`, `To: ${r}\r\n${head}`, text) });
    assert.equal(reply.messages.length, 1);
    const { raw, mail } = reply.messages[0];
    assert.ok(!`${raw}${mail.subject}${mail.text}${mail.html}`.toLowerCase().includes(local), raw);
    assert.ok(`${mail.text ?? ""}${mail.html ?? ""}`.includes(a.full), raw);
  }
  // The owner's answer to all names it: it has the mail by itself.
  const copy = await simulate({ to: r, head: `To: ${r}\r\nCc: ${b.full}\r\n` });
  assert.deepEqual([copy.messages.length, copy.messages[0]?.raw.includes(local)], [1, false]);
  // Somebody else's alias is nobody's secret.
  const foreign = await alias({ forward_to: ["other@home.example"] });
  const reply = await simulate({ to: r, text: `write to ${foreign.full}` });
  assert.match(reply.messages[0]?.raw ?? "", new RegExp(foreign.full));
});

test("another alias of the mailbox is hidden whatever is glued before it, and in links that track", async () => {
  const [a, b] = [await alias(), await alias({ format: "words" })];
  const r = await reverse(a.id);
  const link = `https://t.example/${Buffer.from(`u=7&e=${b.full}&x`).toString("base64url")}/open`;
  for (const written of [`to${b.full}`, `see:ToTo${b.full.toUpperCase()}`, `x1${b.full.replace("@", "+tag@")}`, link]) {
    const { messages } = await simulate({ to: r, text: `one ${written}\r\n\r\n> two ${written}` });
    const sent: string = messages[0]?.mail.text ?? "";
    assert.equal(messages.length, 1, written);
    const left = written === link ? link : b.address;
    assert.ok(sent.includes("two") && !sent.toLowerCase().includes(left), sent);
  }
  // Letters before a stranger's alias are nobody's secret, and no other alias is taken for a piece of a longer one.
  const foreign = await alias({ forward_to: ["other@home.example"] });
  const reply = await simulate({ to: r, text: `write to${foreign.full} or ${b.address.slice(4)}@${b.domain}` });
  assert.ok(reply.messages[0]?.mail.text.includes(`to${foreign.full} or ${b.address.slice(4)}@`));
});

test("who named both aliases of a mailbox gets both back, and nobody else learns of them", async () => {
  const [a, b] = [await alias({ display_name: "Anna" }), await alias()];
  const text = `to ${a.full} and ${b.full}\r\n${b.full.replace("@", " (at) ")} ${b.full.toUpperCase()}`;
  const head = `To: ${a.full}\r\nCc: ${b.full}\r\n`;
  const { messages, reports } = await simulate({ to: a.full, ...titled(`of ${b.full}`, head, text, C) });
  const [forward] = messages;
  // It is no mailbox: nothing to warn of.
  assert.deepEqual(reports, []);
  assert.ok(!forward.raw.includes(b.address), forward.raw);
  const tokens = forward.mail.text.replaceAll(a.full, "").match(/r\.[a-z2-7]{26}(?:\+[a-z2-7]+)?@/g) ?? [];
  assert.equal(tokens.length, 3, forward.mail.text);
  const r = forward.mail.from.address;
  const [cc] = forward.mail.cc;
  const body = forward.mail.text.trimEnd().replace(/^|(?<=\n)/g, "> ");
  const subject = `Re: ${forward.mail.subject}`;
  const answer = await simulate({ to: r, ...titled(subject, `To: ${r}\r\nCc: ${cc.address}\r\n`, body) });
  assert.equal(field(answer.messages[0]?.raw ?? "", "Cc"), b.full);
  assert.equal(field(answer.messages[0]?.raw ?? "", "Subject"), `Re: of ${b.full}`);
  assert.equal(answer.messages[0]?.mail.text.trimEnd(), text.replaceAll("\r\n", "\n").replace(/^/gm, "> "));
  // The same quote to somebody who named only one.
  const other = await reverse(a.id, "other@contact.example");
  for (const spelled of [body, `${body}\r\n${tokens[0]}${a.domain}`]) {
    const leaving = await simulate({ to: other, ...titled(subject, `To: ${other}\r\n`, spelled) });
    const raw: string = leaving.messages[0]?.raw ?? "";
    assert.ok(raw !== "" && !raw.toLowerCase().includes(b.address) && !/r\.[a-z2-7]{26}/.test(raw), raw);
  }
  // A Cc to it is not mentioned either.
  const both = await simulate({ to: other, head: `To: ${other}\r\nCc: ${cc.address}\r\n` });
  assert.ok(!both.messages[0]?.raw.includes(b.address), both.messages[0]?.raw);
});

test("of two lists of guesses, the one with the owner's other alias comes back no other than the one without", async () => {
  const [a, b] = [await alias(), await alias()];
  const back = async (guess: string) => {
    const list = (at: string) =>
      [`x1${guess}`, `to${guess}`, guess, guess.toUpperCase()].map((one) => one.replace("@", at)).join(" ");
    const code = Buffer.from(`e=${guess}&`).toString("base64url");
    const track = `<img src="https://t.example/${code}/x.gif"><a href="https://t.example/${code}">x</a>`;
    const text = `${track}<p>${list("@")}</p><p title="${guess}">${list("&#64;")}</p><i hidden>${list("<b></b>@")}</i>`;
    const html = "MIME-Version: 1.0\r\nContent-Type: text/html\r\n";
    const { messages } = await simulate({ from: C, to: a.full, head: html, text });
    const { html: quoted, from } = messages[0].mail;
    const answer = await simulate({ to: from.address, head: html, text: `<p>${b.full}</p><blockquote>${quoted}` });
    assert.equal(answer.messages.length, 1);
    assert.ok(answer.messages[0].mail.html.startsWith(`<p>${a.full}</p>`));
    return answer.messages[0].mail.html
      .replaceAll(code, "…")
      .replaceAll(guess.split("@")[0], "…")
      .replaceAll(guess.split("@")[0]?.toUpperCase(), "…");
  };
  assert.equal(await back(b.full), await back(`${"z".repeat(b.address.length)}@${b.domain}`));
});

test("the words for a mailbox that is a contact, too, are undone, whatever the owner may show", async () => {
  const a = await alias({ redact: "off" });
  const r = await reverse(a.id);
  const mine = await reverse(a.id, D);
  const { messages } = await simulate({
    to: r,
    text: `On Monday, Anna (anna at home.example) <${mine}> wrote:\r\n> x`,
  });
  assert.match(messages[0]?.raw ?? "", new RegExp(`^On Monday, Anna <${a.full}> wrote:\r$`, "m"));
});

test("a Message-ID of another mailbox of the alias is known to the mailboxes alone", async () => {
  const a = await alias({ forward_to: [D, D2] });
  const r = await reverse(a.id);
  for (const id of ["<berta.real-4711@laptop.home.example>", `<${D2}>`]) {
    const head = `Message-ID: ${id}\r\nReferences: <private@laptop.home.example>\r\n`;
    const asked = (await simulate({ to: a.full, ...fromHome, head })).messages[0]?.raw ?? "";
    assert.equal(field(asked, "Message-ID"), id);
    const answering = `In-Reply-To: ${id}\r\nReferences: <private@laptop.home.example> ${id}\r\n`;
    const reply = (await simulate({ to: r, head: answering })).messages[0]?.raw ?? "";
    assert.match(reply, /^Subject: order\r$/m);
    assert.doesNotMatch(reply, /laptop|berta/);
    // Among themselves the thread holds, also when it comes back.
    const rD2 = /<(r\..*)>/.exec(field(asked, "From") ?? "")?.[1] ?? "";
    const own = "Message-ID: <anna-1@pc.home.example>\r\n";
    const answer = (await simulate({ to: rD2, head: `${own}${answering}` })).messages[0]?.raw ?? "";
    assert.deepEqual([field(answer, "In-Reply-To"), field(answer, "References")], [id, id]);
    const outer = field(answer, "Message-ID") ?? "";
    assert.doesNotMatch(outer, /anna|pc/);
    const back = await simulate({ to: a.full, ...fromHome, head: `In-Reply-To: ${outer}\r\n` });
    assert.equal(field(back.messages[0]?.raw ?? "", "In-Reply-To"), "<anna-1@pc.home.example>");
  }
});

test("a mail of the owner to the alias's mailboxes and, hidden, to a contact is known to that by our own id", async () => {
  const a = await alias({ forward_to: [D, D2] });
  const r = await reverse(a.id);
  const own = "<anna-2@pc.home.example>";
  const one = { head: `To: ${a.full}\r\nMessage-ID: ${own}\r\n` };
  await simulate({ to: a.full, ...one });
  const copy = (await simulate({ to: r, ...one })).messages[0]?.raw ?? "";
  const next = (await simulate({ to: r, head: `References: ${own}\r\n` })).messages[0]?.raw ?? "";
  assert.equal(field(next, "References"), field(copy, "Message-ID"));
  assert.doesNotMatch(next, /pc\.home/);
});

test("an answer to all that names another mailbox of the alias shows it the others as reverse addresses", async () => {
  const a = await alias({ forward_to: [D, D2], display_name: "Anna" });
  const [r, boss, rD2] = [await reverse(a.id), await reverse(a.id, "boss@contact.example"), await reverse(a.id, D2)];
  const ics = `BEGIN:VCALENDAR\r\nATTENDEE:mailto:${r}\r\nATTENDEE:mailto:${boss}\r\nEND:VCALENDAR`;
  const text = `--b\r\n\r\n> Shop (shop at contact.example) <${r}> and ${boss}\r\n--b\r\nContent-Type: text/calendar\r\n\r\n${ics}\r\n--b--`;
  const to = `To: "Shop (shop at contact.example)" <${r}>, "Berta (berta.real at home.example)" <${rD2}>\r\n`;
  const { messages } = await simulate({
    to: [r, rD2],
    head: `${to}MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n`,
    text,
  });
  const rawFor = (email: string) => messages.find(({ recipient }) => recipient === email)?.raw ?? "";
  assert.equal(field(rawFor(C), "To"), `Shop <${C}>`);
  assert.match(rawFor(C), /boss@contact\.example/);
  assert.doesNotMatch(rawFor(C), /r\.[a-z2-7]{26}@|berta/);

  const copy = rawFor(D2);
  assert.equal(field(copy, "From"), `Anna <${a.full}>`);
  assert.equal(field(copy, "To"), `"Shop (shop at contact.example)" <${r}>, Berta <${D2}>`);
  assert.ok(copy.includes(`> Shop <${r}> and ${boss}\r\n`), copy);
  assert.ok(copy.includes(`ATTENDEE:mailto:${r}\r\nATTENDEE:mailto:${boss}\r\n`), copy);
  assert.doesNotMatch(copy, /@contact\.example|anna@/);

  // Both its answers go through the alias.
  const all = await simulate({ ...fromHome, to: r, head: `To: ${a.full}, ${r}\r\n`, text: `> Shop <${r}>` });
  assert.equal(field(all.messages[0]?.raw ?? "", "From"), `Anna <${a.full}>`);
  assert.match(all.messages[0]?.raw ?? "", /^> Shop <shop@contact\.example>\r$/m);
  const back = await simulate({ ...fromHome, to: a.full });
  assert.deepEqual(
    back.messages.map(({ recipient }) => recipient),
    [D],
  );
});
