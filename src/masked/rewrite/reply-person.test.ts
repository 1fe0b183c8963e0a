// What tells who the owner is besides the address: answers to invitations, names, contact cards, zones of time.
import assert from "node:assert/strict";
import { test } from "node:test";
import PostalMime from "postal-mime";
import { guardCalendars } from "./calendar/calendar-parts.ts";
import { buildReply, type ReplyOrder } from "./reply.ts";
import { A, C, D, HEAD, order, R } from "./reply-order.fixture.ts";
import { createHider } from "./sent/sent-content.ts";

const FROM = HEAD.replace("From: Anna <", 'From: "Lena Quokka" <');

/** The finished reply, its texts and its files. */
async function sent(body: string, more: Partial<ReplyOrder> = {}) {
  const result = buildReply(Buffer.from(`${FROM}${body}`.replace(/\r?\n/g, "\r\n")), { ...order(), ...more });
  assert.equal(result.kind, "built", JSON.stringify(result).slice(0, 300));
  const bytes = result.kind === "built" ? result.bytes : Buffer.alloc(0);
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
  const files = mail.attachments.map(({ filename, mimeType, content }) => ({
    filename,
    mimeType,
    text: Buffer.from(content as ArrayBuffer).toString(),
  }));
  return { raw: bytes.toString(), text: mail.text ?? "", html: mail.html ?? "", files };
}

const ANSWER = [
  ...["BEGIN:VCALENDAR", "PRODID:-//Own Program 16//EN", "VERSION:2.0", "METHOD:REPLY", "X-WR-TIMEZONE:Asia/Kolkata"],
  ...["BEGIN:VTIMEZONE", "TZID:Europe/Berlin", "END:VTIMEZONE", "BEGIN:VEVENT", "UID:meeting-1@example.com"],
  ...["RECURRENCE-ID;TZID=Europe/Berlin:20261124T100000", "SEQUENCE:3", "SUMMARY:Fitting of Lena Quokka"],
  `ORGANIZER;CN=Shop:mailto:${R}`,
  `ATTENDEE;CN="Lena Quokka";SENT-BY="mailto:aide@home.real.example";PARTSTAT=DECLINED;X-A=1:mailto:${D}`,
  ...["URL:https://home.real.example/lena", "COMMENT:I am in Goa", "DESCRIPTION:Lena Quokka", "X-OWN:1"],
  ...["BEGIN:VALARM", "ACTION:EMAIL", `ATTENDEE:mailto:${D}`, "END:VALARM", "END:VEVENT", "END:VCALENDAR", ""],
].join("\n");

test("an answer to an invitation says which meeting, who and what, in UTC, and nothing else", async () => {
  const body = `--b\nContent-Type: text/plain\n\nLena Quokka has declined, she is in Goa.\n--b\nContent-Type: text/calendar; method=REPLY\n\n${ANSWER}\n--b\nContent-Type: application/ics; name=invite.ics\n\n${ANSWER}\n--b--\n`;
  const { text, files, raw } = await sent(`Content-Type: multipart/mixed; boundary=b\n\n${body}`);
  assert.equal(text.trim(), "The invitation was declined.");
  assert.equal(files.length, 1);
  assert.deepEqual(files[0]?.text.trim().split(/\r?\n/), [
    ...["BEGIN:VCALENDAR", "PRODID:-//Postern//Masked addresses//EN", "VERSION:2.0", "METHOD:REPLY", "BEGIN:VEVENT"],
    ...["UID:meeting-1@example.com", "DTSTAMP:20261118T110640Z", "RECURRENCE-ID:20261124T090000Z", "SEQUENCE:3"],
    ...[`ORGANIZER:mailto:${C}`, `ATTENDEE;PARTSTAT=DECLINED:mailto:${A}`, "END:VEVENT", "END:VCALENDAR"],
  ]);
  assert.doesNotMatch(raw, /Quokka|Goa|Kolkata|Berlin|aide|Own Program/);
});

test("the owner's name beside the address becomes the alias's, however programs write the two", async () => {
  const pairs = [
    `Lena Quokka <${D}>`,
    `"Lena Quokka" <${D}>`,
    `Quokka, Lena <${D}>`,
    `Lena\n> Quokka\n> <${D}>`,
    `Lena Quokka (${D})`,
    `Lena Quokka [mailto:${D}]`,
    `On Friday, LENA QUOKKA <${D}> wrote:`,
    `${D} (Lena Quokka)`,
  ];
  for (const pair of pairs) {
    const { text } = await sent(`Content-Type: text/plain\n\nYes.\n\n> ${pair}\n`);
    assert.doesNotMatch(text, /quokka/i, pair);
    assert.match(text, /Anna/, pair);
  }
  const html = `<p>Yes.</p><b>To:</b> Lena&nbsp;Quokka &lt;<a href="mailto:${D}">${D}</a>&gt; <a href="mailto:${D}">Lena Quokka</a>`;
  assert.doesNotMatch((await sent(`Content-Type: text/html\n\n${html}\n`)).html, /quokka/i);
  const word = `<b>Von:</b> <b>Lena</b> <span class=SpellE>Quokka</span> &lt;${D}&gt;`;
  assert.equal(
    (await sent(`Content-Type: text/html\n\n${word}\n`)).html.trim(),
    `<b>Von:</b> <b>Anna</b><span class=SpellE></span> &lt;${A}&gt;`,
  );
});

test("in running text the name stays, unless the alias's setting replaces it; what a contact may have sent is never changed", async () => {
  const body = "Content-Type: text/plain\n\nYes.\n-- \nLena Quokka\n\n> Lena Quokka, Mara Wombat\n";
  assert.match((await sent(body)).text, /-- \nLena Quokka\n/);
  const { text } = await sent(body, { own_name: "replace" });
  assert.match(text, /-- \nAnna\n/);
  assert.match(text, /> Lena Quokka, Mara Wombat/, "an answer to a guess");
  const tagged = "<p>Lena <span class=SpellE>Quokka</span></p><blockquote>Lena <i>Quokka</i></blockquote>";
  const { html } = await sent(`Content-Type: text/html\n\n${tagged}\n`, { own_name: "replace" });
  assert.equal(html.trim(), "<p>Anna<span class=SpellE></span></p><blockquote>Lena <i>Quokka</i></blockquote>");
});

test("the contact card of somebody else arrives, the author's own does not", async () => {
  const card = (name: string, email: string) => `BEGIN:VCARD\nFN:${name}\nEMAIL:${email}\nEND:VCARD\n`;
  const withCards = (cards: string) =>
    sent(
      `Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: text/vcard; name="cards.vcf"\n\n${cards}\n--b--\n`,
    );
  const [both] = (await withCards(card("Lena Quokka", D) + card("Bob", "bob@b.example"))).files;
  assert.equal(both?.filename, "cards.vcf");
  assert.match(both?.text ?? "", /^BEGIN:VCARD\s+FN:Bob\s+EMAIL:bob@b\.example\s+END:VCARD\s*$/);
  assert.deepEqual((await withCards(card("Lena Quokka", "lena@elsewhere.example"))).files, []);
  assert.deepEqual((await withCards(card("L.", D))).files, []);
});

test("the author's own contact card is known in the forms that telephones and address books write", async () => {
  const author = FROM.replace('"Lena Quokka"', "=?utf-8?Q?L=C3=A9na_Q=C3=BCokka?=");
  const qp = "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Q=C3=BCokka;L=C3=A9=\nna;;;";
  const own = [
    "N:Qüokka;Léna;;;",
    "N:Qüokka;Léna;M.;Dr.;\nTEL:+1",
    qp,
    "FN;QUOTED-PRINTABLE;CHARSET=ISO-8859-1:L=E9na Q=FCokka",
    "item1.FN:Léna Qüokka",
    "FN:Lé\n na Qüokka",
    `FN:L.\nEMAIL;ENCODING=QUOTED-PRINTABLE:${D.replace("@", "=40").replace("real", "re=\nal")}`,
  ];
  const others = ["N:Wombat;Léna;;;", "N:Qüokka;Mara;;;", qp.replace("Q=C3=BC", "Qu")];
  const cardsOf = async (lines: string) => {
    const part = `Content-Type: text/x-vcard; charset=utf-8; name=a.vcf\nContent-Transfer-Encoding: 8bit\n\nBEGIN:VCARD\nVERSION:2.1\n${lines}\nEND:VCARD\n`;
    const body = `${author}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\n${part}--b--\n`;
    const result = buildReply(Buffer.from(body.replace(/\r?\n/g, "\r\n")), order());
    return result.kind === "built" ? /a\.vcf/.test(result.bytes.toString()) : result.kind;
  };
  for (const lines of own) assert.equal(await cardsOf(lines), false, lines);
  for (const lines of others) assert.equal(await cardsOf(lines), true, lines);
});

test("a calendar keeps its name, an attached mail tells its date in UTC", async () => {
  const event = `BEGIN:VCALENDAR\nMETHOD:PUBLISH\nBEGIN:VEVENT\nUID:1@x.example\nSUMMARY:Concert with Lena Quokka\nEND:VEVENT\nEND:VCALENDAR\n`;
  const inner = "From: Bob <bob@b.example>\nDate: Fri, 20 Nov 2026 20:35:00 +0530\nSubject: x\n\nhi";
  const { files } = await sent(
    `Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: text/calendar; name="concert.ics"\n\n${event}\n--b\nContent-Type: message/rfc822\n\n${inner}\n--b--\n`,
  );
  assert.deepEqual(
    files.map(({ filename }) => filename),
    ["concert.ics", null],
  );
  assert.match(files[0]?.text ?? "", /SUMMARY:Concert with Anna/);
  assert.match(files[1]?.text ?? "", /^Date: Fri, 20 Nov 2026 15:05:00 \+0000\r?$/m);
});

test("a contact's own card or calendar comes back as it sent it, whatever name is in it", () => {
  const key = "00";
  const card = (name: string) => `BEGIN:VCARD\nVERSION:3.0\nFN:${name}\nTEL:+1\nEND:VCARD\n`;
  const crowd = Array.from({ length: 300 }, (_, at) => card(`Guest ${at}`)).join("");
  const event = (lines: string) =>
    `BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:PUBLISH\nBEGIN:VEVENT\n${lines}\nEND:VEVENT\nEND:VCALENDAR\n`;
  const shapes: ((name: string) => string)[] = [
    (name) => `text/vcard; name=a.vcf\n\n${card(name)}`,
    (name) => `application/octet-stream; name=a.vcf\n\n${card("Bob")}${card(name)}`,
    (name) => `text/x-vcard; name=a.vcf\n\n${crowd}${card(name)}`,
    (name) => `text/calendar; name=a.ics\n\n${event(`UID:1@c.example\nSUMMARY:Talk with ${name}`)}`,
    (name) => `text/calendar; name=a.ics\n\n${event(`UID:for ${D}\nDESCRIPTION:Talk with\n  ${name}`)}`,
    (name) => `application/ics; name=a.ics\n\n${event(`COMMENT:${name}`)}`,
  ];
  const replied = (parts: string, digests: string[]) => {
    const raw = `${FROM}${parts}`.replace(/\r?\n/g, "\r\n");
    const reply = buildReply(Buffer.from(raw), {
      ...order(),
      sent: { key, digests, tokens: [{ reverse: R, email: D }] },
    });
    return reply.kind === "built" ? reply.bytes.toString().replace(/=_\w+/g, "") : reply.kind;
  };
  for (const shape of shapes) {
    const [right, wrong] = ["Lena Quokka", "Mara Quokka"].map((name) => {
      const parts = `Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: ${shape(name)}--b--\n`;
      const hider = createHider([{ reverse: R, email: D }], key);
      const came = Buffer.from(`From: ${C}\nMIME-Version: 1.0\n${parts}`.replace(/\r?\n/g, "\r\n"));
      const forwarded = guardCalendars(came, { known: [], author: R, hider }).toString();
      const back = forwarded.slice(forwarded.indexOf("Content-Type: multipart"));
      const known = [...hider.digests, ...hider.linked];
      return { known: replied(back, known), unknown: replied(back, []) };
    });
    assert.ok(right && wrong);
    assert.notEqual(right.known, right.unknown, "nobody else gets it so");
    const read = (text: string) =>
      text.replace(/(?<=\r\n\r\n)[A-Za-z0-9+/=\r\n]{40,}/g, (body) => Buffer.from(body, "base64").toString());
    assert.equal(read(right.known), read(wrong.known).replaceAll("Mara", "Lena"), shape("x").slice(0, 200));
    assert.ok(read(right.known).replace(/\r\n /g, "").includes("Lena Quokka"), shape("x").slice(0, 200));
  }
});
