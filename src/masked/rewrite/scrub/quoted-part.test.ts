// Where quotes begin, in what mail programs write: with `redact: quoted` the mailbox stays in the author's own words, and
// nowhere in what is quoted below them. The leak gate finds the same quotes in its own way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "../../../../test/support/processor-time.ts";
import { findLeaks, type Secrets } from "../gate/leak-gate.ts";
import { buildReply } from "../reply.ts";
import { D, HEAD, order } from "../reply-order.fixture.ts";
import { splitQuoted } from "./quoted-part.ts";

const OWN = `My address is ${D}, as ever.`;
const LINK = `<a href="mailto:${D}">${D}</a>`;

const HTML = {
  "Outlook 2010": `<p class="MsoNormal"><b><span style="font-size:10.0pt">From:</span></b><span> Anna [mailto:${D}] <br><b>Sent:</b> Monday<br></span></p><p>Hello</p>`,
  "Outlook 2003": `<div align=center><hr size=3 width="100%"></div><p class=MsoNormal><b><font size=2><span>From:</span></font></b><font> Anna [mailto:${D}]<br></font></p>`,
  "Outlook for Mac": `<span id="OLK_SRC_BODY_SECTION"><div><span>From: </span>Anna &lt;${LINK}&gt;<br></div></span>`,
  Hotmail: `<div><hr id="stopSpelling">Date: Thu, 26 Jun 2014<br>To: ${D}<br>From: shop@example.com<br>Hello</div>`,
  "Windows Mail": `<div style="border-top-width: 1px; border-top-style: solid;"><b>От:</b>&nbsp;${LINK}<br>Hello</div>`,
  "mail.ru": `Thu, 26 Jun 2014 14:00:51 +0400 от Anna &lt;${D}&gt;:<br>\n<blockquote>Hello</blockquote>`,
  Yandex: `<p>26.06.2014, 14:41, "Anna" &lt;${LINK}&gt;:</p><blockquote>Hello</blockquote>`,
  Yahoo: `<div class="ydp9b1f0a55yahoo_quoted" id="ydp9"><div>On Thursday, Anna &lt;${D}&gt; wrote:</div>Hello</div>`,
  "a phone, without a frame": `<div>On 11-Apr-2026, at 6:54 PM, Anna &lt;${D}&gt; wrote:\n</div><div>Hello</div>`,
};
const TEXT = {
  "a phone, in English": `On Tue, Jan 27, 2026 at 12:42 PM, Anna <${D}> wrote:\n\nHello`,
  "over three lines": `On Nov 30, 2026, at 12:47 PM, Anna <\n${D}>\nwrote:\n\nHello`,
  Dutch: `Op 17-feb.-2026, om 13:18 heeft Anna <${D}> het volgende geschreven:\n\nHello`,
  "Polish, over two lines": `W dniu 28 stycznia 2026 01:53 użytkownik Anna <${D}>\nnapisał:\n\nHello`,
  "without a word": `2026/4/7 Anna <${D}>\n\n> Hello`,
  "stars and blanks": `  *From:* Anna <${D}>\n  *Sent:* Wednesday\n\nHello`,
};

function reply(kind: string, body: string) {
  const mail = `${HEAD}Content-Type: text/${kind}; charset=utf-8\n\n${body}\n`;
  return Buffer.from(mail.replace(/\n/g, "\r\n"));
}

const shapes = [
  ...Object.entries(HTML).map(([name, quote]) => ({ name, kind: "html", own: `<div>${OWN}</div>`, quote })),
  ...Object.entries(TEXT).map(([name, quote]) => ({ name, kind: "plain", own: `${OWN}\n\n`, quote })),
];

for (const { name, kind, own, quote } of shapes) {
  test(`a quote of ${name} hides the mailbox, what its author wrote above keeps it`, () => {
    const built = buildReply(reply(kind, `${own}${quote}`), { ...order(), redact: "quoted" });
    assert.equal(built.kind, "built");
    const { own: said, quoted } = splitQuoted(`${own}${quote}`, kind === "html");
    assert.ok(said.includes(OWN) && !quoted.includes(OWN), said);
    const text = built.kind === "built" ? built.bytes.toString() : "";
    assert.equal(text.split(D).length - 1, 1, text);
  });

  test(`the leak gate finds the mailbox in a quote of ${name}`, () => {
    const secrets: Secrets = { addresses: [D], names: [], allowed: "own_text", given: [] };
    const found = (body: string) => findLeaks(reply(kind, body).subarray(reply(kind, body).indexOf("MIME")), secrets);
    assert.equal(found(own).length, 0);
    assert.notEqual(found(`${own}${quote}`).length, 0);
  });
}

test("a signature with an address, and lines that only begin like a head, are the author's own", () => {
  for (const text of [
    `Hi\n\n-- \nAnna\nMail: ${D}\n`,
    `From me too: ${OWN}\n`,
    `Write to me\n${D}\nsoon\n`,
    `Mail: ${D}\n\nbye\n`,
  ])
    assert.equal(splitQuoted(text, false).quoted, "", text);
  const html = `<p>Hi</p><p>From here: yes.</p><hr><p>Anna<br>Mail: ${LINK}</p>`;
  assert.equal(splitQuoted(html, true).quoted, "");
});

test("no text takes more than a moment", () => {
  for (const piece of [
    `a${"@".repeat(3)}b: `,
    `<hr>`,
    `>&nbsp;From <b>`,
    `x@y.example </a>`,
    `<div yahoo`,
    `a@b\n`,
    `:\n@`,
  ]) {
    const text = piece.repeat(Math.ceil(2_000_000 / piece.length));
    for (const isHtml of [true, false]) assert.ok(processorMs(() => splitQuoted(text, isHtml)) < 1_500, piece);
  }
});
