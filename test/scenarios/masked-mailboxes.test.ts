// Several mailboxes behind one alias: they write to each other through it, and contacts learn of none of them
// (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { C, D, startMaskedSimulation } from "../support/masked-simulation.ts";

const D2 = "berta.real@home.example";

const { alias, reverse, simulate, activity, close } = await startMaskedSimulation();
after(close);

const fromHome = { from: D2, envelope: D2, ip: "198.51.100.8" };
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
