// Forged heads and tricks in HTML are signs, and ordinary mail has none that matter: neither what people, shops, lists and
// forms send, in any mixture, nor what is nearly a trick.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addUp, findSymptoms } from "./spam.ts";
import type { Suspect } from "./suspect.ts";

const RECEIVED_MS = Date.parse("2026-11-20T10:00:00Z");
const session = {
  ...{ helo: "mail.sender.example", remote_ip: "8.8.8.8", host: "mx.postern.example" },
  ...{ recipients: ["desk@in.example"], received_ms: RECEIVED_MS },
};
const fields = (...names: string[]) => names.map((name) => ({ name, value: "x" }));
const plain: Suspect = {
  headers: fields("Date", "From", "To", "Subject", "Message-ID"),
  from: [{ name: "Anna", email: "anna@sender.example" }],
  reply_to: [],
  subject: "Lunch",
  date: "2026-11-20T10:00:00Z",
  message_id: "<a@sender.example>",
  text: "See you at noon.",
  html: null,
  attachments: [],
  auth: { spf: "none", dkim: "none", dmarc: "none" },
  session,
};
const names = (more: Partial<Suspect>) => findSymptoms({ ...plain, ...more }).map(({ name }) => name);
const received = (...by: string[]) =>
  by.map((host) => ({ name: "Received", value: `from x by ${host} (Postern) id 1; date` }));
const pass = { spf: "pass", dkim: "pass", dmarc: "pass" };
const link = (href: string, shown: string) => `<p>Hello</p><a class="b" href="${href}">${shown}</a>`;

const SIGNS: [name: string, has: Partial<Suspect>, hasNot: Partial<Suspect>][] = [
  [
    "HELO_IS_US",
    { session: { ...session, helo: "MX.postern.example." } },
    { session: { ...session, helo: "mx.postern.example", remote_ip: "10.0.0.1" } },
  ],
  [
    "RECEIVED_BY_US",
    { headers: [...plain.headers, ...received("mx.postern.example", "mx.postern.example")] },
    { headers: [...plain.headers, ...received("mx.postern.example", "mx.sender.example")] },
  ],
  ["DATE_AHEAD", { date: "2026-11-23T10:00:00Z" }, { date: "2026-11-21T10:00:00Z" }],
  [
    "MESSAGE_ID_OF_RECIPIENT",
    { message_id: "<x@in.example>" },
    { message_id: "<x@in.example>", auth: { ...pass, dkim: "none", dmarc: "none" } },
  ],
  ["FIELD_TWICE", { headers: [...plain.headers, ...fields("from")] }, { headers: [...plain.headers, ...fields("cc")] }],
  ["MIXED_SCRIPTS", { subject: "Your Pаypal account" }, { subject: "SMSки и письма, ΑΒΓ, µTorrent, Ωmega" }],
  [
    "HTML_HIDDEN_TEXT",
    { html: `<div style="color:red; display: none">${"innocent words ".repeat(60)}</div><p>Buy</p>` },
    { html: `<div style="display:none">What is new this week${"&nbsp;&zwnj;".repeat(200)}</div><p>News</p>` },
  ],
  [
    "HTML_ASKS_PASSWORD",
    { html: '<form action="https://x.example"><input type="password"></form>' },
    { html: "<p>Type your password on our page.</p>" },
  ],
  [
    "HTML_PICTURE_ONLY",
    { text: null, html: '<html><body><img src="cid:1"></body></html>' },
    { text: "The plan for Monday is attached.", html: '<p>The plan for Monday is attached.</p><img src="cid:logo">' },
  ],
  [
    "LINK_SHOWS_OTHER_HOST",
    { html: link("https://evil.example.net/x", "https://www.bank.example.com/login") },
    { html: link("https://click.esp.example.net/x", "www.shop.example.com"), auth: pass },
  ],
  [
    "LINK_SHOWS_OTHER_HOST",
    { html: link("https://www.bank.example.com@evil.example.net/", "www.bank.example.com") },
    { html: link("https://pay.bank.example.com/x", "bank.example.com/login") },
  ],
  [
    "INVISIBLE_LETTERS",
    { text: "v\u200bi\u200ba\u200bg\u200bra" },
    { text: "می\u200cخواهم نمی\u200cدانم می\u200cروم" },
  ],
  ["ATTACHED_PAGE", { attachments: [{ filename: "invoice.html" }] }, { attachments: [{ filename: "invoice.pdf" }] }],
  [
    "ATTACHED_PROGRAM",
    { attachments: [{ filename: "scan.pdf.iso" }] },
    { attachments: [{ filename: "iso-9001.pdf" }] },
  ],
];

for (const [name, has, hasNot] of SIGNS) {
  test(`${name} is a sign, and what is nearly one is none`, () => {
    assert.ok(names(has).includes(name), `${names(has)}`);
    assert.ok(!names(hasNot).includes(name), `${names(hasNot)}`);
  });
}

// Ordinary mail ------------------------------------------------------------------------------------------------------------

const sentences = [
  ...["Thank you for your order 4711.", "Please find the invoice attached.", "Your parcel arrives on Tuesday."],
  ...["Shall we meet at 10:30?", "Ihre Rechnung für November liegt bei.", "Merci pour votre message, à bientôt."],
  ...["Su pedido ha sido enviado.", "Встреча переносится на понедельник.", "会议改到星期二。", "明日の会議について"],
  ...["Reset your password: https://shop.example.com/reset?t=abc", "Total: EUR 1,250.00, due in 14 days."],
  ...["The build failed, see http://10.0.0.5:8080/job/7", "Unsubscribe: https://list.example.org/u/1"],
  ...["Save 20% on winter jackets this weekend.", "Your verification code is 118 224."],
];
const preview = `<div style="display:none;font-size:1px">Only this week${"&#8199;&zwnj;".repeat(80)}</div>`;
const shells = [
  (words: string) => `<p>${words}</p>`,
  (words: string) => `${preview}<table><tr><td style="color:#ffffff;background:#003366">${words}</td></tr></table>`,
  (words: string) => `<p>${words}</p><a href="https://t.esp.example.net/c/1">www.sender.example</a>`,
  (words: string) => `<p>${words}</p><img src="cid:logo" alt=""><img src="https://o.esp.example.net/1.gif" width=1>`,
];
const sender = fc.constantFrom(
  { name: "Anna Müller", email: "anna@sender.example" },
  { name: "Shop (via Platform)", email: "no-reply@platform.example" },
  { name: null, email: "root@build.sender.example" },
  { name: "Пётр Иванов", email: "petr@gmail.com" },
  { name: "anna@sender.example", email: "anna@sender.example" },
);
const ordinary: fc.Arbitrary<Suspect> = fc.record({
  headers: fc.constantFrom(plain.headers, [...plain.headers, ...received("mx.postern.example", "mx.sender.example")]),
  from: sender.map((one) => [one]),
  reply_to: fc.constantFrom([], [{ email: "help@platform.example" }], [{ email: "visitor@gmail.com" }]),
  subject: fc.constantFrom(...sentences, "Re: AW: FYI", "PO 4711", "[list] patch v2 5/7", "Встреча в Zoom"),
  date: fc.integer({ min: -40 * 24, max: 26 }).map((hours) => new Date(RECEIVED_MS + hours * 3_600_000).toISOString()),
  message_id: fc.constantFrom("<1@sender.example>", "<form.1@in.example>"),
  text: fc.array(fc.constantFrom(...sentences), { minLength: 1, maxLength: 8 }).map((all) => all.join("\n")),
  html: fc.option(
    fc.tuple(fc.constantFrom(...shells), fc.constantFrom(...sentences)).map(([shell, words]) => shell(words)),
  ),
  attachments: fc.subarray([{ filename: "invoice.pdf" }, { filename: "photo.jpg" }, { filename: "report.html" }]),
  auth: fc.constantFrom(
    ...[pass, { spf: "none", dkim: "none", dmarc: "none" }, { spf: "pass", dkim: "none", dmarc: "none" }],
    ...[{ spf: "softfail", dkim: "pass", dmarc: "pass" }, null],
  ),
  session: fc.constantFrom(session, null),
});

test("no mixture of what ordinary mail has reaches the threshold at which mail is marked", () => {
  const worst = { score: 0, says: "" };
  fc.assert(
    fc.property(ordinary, (mail) => {
      const symptoms = findSymptoms(mail);
      const score = addUp(symptoms);
      if (score > worst.score) Object.assign(worst, { score, says: symptoms.map(({ name }) => name).join() });
      assert.ok(score < 5, `${score}: ${symptoms.map(({ name }) => name)}`);
    }),
    { numRuns: 3_000 },
  );
});
