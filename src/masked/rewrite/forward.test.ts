// What a real mailbox gets of a mail to its alias: fields by allow-list, reverse addresses, the body as it came.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import iconv from "iconv-lite";
import PostalMime from "postal-mime";
import { parseMessage } from "../../mail/mime/parse-message.ts";
import { buildForward, type ForwardParts, mailtoToLeave } from "./forward.ts";
import { createHider } from "./sent/sent-content.ts";

const R = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
const A = "k3x@mask.example";
const D = "anna@real.example";

const PARTS: ForwardParts = {
  from: { name: "Shop (shop at example.com)", email: R },
  to: [{ name: null, email: A }],
  cc: [],
  reply_to: [],
  in_reply_to: ["<d1@real.example>"],
  references: ["<d0@real.example>", "<d1@real.example>"],
  message_id: "c1@example.com",
  received_ms: Date.UTC(2026, 10, 20, 11, 0, 7),
  authentication: null,
  loop_mark: "mark",
  unsubscribe_page: null,
  hider: null,
  calendar: [
    { from: "shop@example.com", to: R },
    { from: A, to: D },
  ],
};
const forward = (text: string, parts: Partial<ForwardParts> = {}) =>
  buildForward(Buffer.from(text.replace(/\r?\n/g, "\r\n")), { ...PARTS, ...parts }).toString();
const TOKEN = `r.${"c".repeat(26)}@mask.example`;
const fieldNames = (text: string) => text.slice(0, text.indexOf("\r\n\r\n")).match(/^[A-Za-z-]+(?=:)/gm);

describe("a forward", () => {
  it("writes no blanks before a colon, which may be read only", () => {
    const text = forward("From: a@b.example\nContent-Type\t: text/plain;\n charset=utf-8\n\nhi\n");
    assert.match(text, /^Content-Type: text\/plain;\r\n charset=utf-8\r$/m);
    assert.doesNotMatch(text.slice(0, text.indexOf("\r\n\r\n")), /^[A-Za-z-]+[ \t]+:/m);
  });

  it("has no line over 998 octets (RFC 5322 §2.1.1), and reads as it did", () => {
    const long = "word ".repeat(1_200);
    const part = (type: string, body: string) => `--b\nContent-Type: ${type}\n\n${body}\n`;
    const name = "n".repeat(2_000);
    const mixed = `Content-Type: multipart/mixed; boundary=b\n\n${part("text/plain; charset=utf-8", long)}${part("text/html; charset=utf-8", `<p>${long}ü</p>`)}${part("application/json; name=a.json", `{"a":"${long}"}`)}--b--\n`;
    for (const given of [
      `Subject: x\n\n${long}\n`,
      `Subject: x\nContent-Type: text/plain; charset=utf-8; name="${name}"\n\nhi\n`,
      `Subject: x\n${mixed}`,
    ]) {
      const sent = forward(given);
      const longest = Math.max(...sent.split("\r\n").map((line) => Buffer.byteLength(line)));
      assert.ok(longest <= 998, `${longest} octets`);
      const [before, after] = [given.replace(/\n/g, "\r\n"), sent].map((one) => parseMessage(Buffer.from(one)));
      assert.equal(after?.text?.trimEnd(), before?.text?.trimEnd());
      assert.equal(after?.html?.trimEnd(), before?.html?.trimEnd());
      const files = (mail: typeof before) =>
        mail?.attachments.map(({ filename, content }) => [filename, content.toString()]);
      assert.deepEqual(files(after), files(before));
    }
    const signed = `Subject: x\nContent-Type: multipart/signed; boundary=b; protocol="application/pgp-signature"\n\n${part("text/plain", long)}${part("application/pgp-signature", "x")}--b--\n`;
    assert.ok(forward(signed).includes(long), "a signature is over the bytes");
  });

  it("has a subject that was sent without encoding, in the charset of the text", () => {
    const given = (subject: string, type: string) =>
      Buffer.from(`Subject: ${subject}\r\nContent-Type: ${type}\r\n\r\nhi\r\n`, "latin1");
    for (const [subject, type] of [
      ["\xf0\xd2\xc9\xd7\xc5\xd4", "text/plain; charset=koi8-r"],
      [
        "\xcf\xf0\xe8\xe2\xe5\xf2",
        "multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=windows-1251",
      ],
    ] as const) {
      assert.equal(parseMessage(buildForward(given(subject, type), PARTS)).subject, "Привет", type);
    }
  });

  it("has the text of a mail whose header does not end, as everybody else reads it", () => {
    for (const [given, text] of [
      ["hello\nthere\n", "hello\nthere\n"],
      ["From: a@b.example\nhello\nthere\n", "hello\nthere\n"],
      ["From: a@b.example\nhello\n\nthere\n", "hello\n\nthere\n"],
      ["From: a@b.example\nno field\nSubject: x\n\nhello\n", "hello\n"],
      ["From a@b.example Mon Jun  1 10:00:00 2026\nSubject: x\n\nhello\n", "hello\n"],
      ["From: a@b.example\nSubject: x\n", ""],
    ] as const) {
      const sent = forward(given).replaceAll("\r\n", "\n");
      assert.equal(sent.slice(sent.indexOf("\n\n") + 2), text, given);
      assert.equal(parseMessage(Buffer.from(given)).text, text, given);
    }
  });

  it("has the fields of the allow-list and no other", () => {
    const text = forward(`Return-Path: <shop@example.com>
Received: from a by b
DKIM-Signature: v=1
ARC-Seal: i=1
Authentication-Results: mx.example; dkim=pass
From: Shop <shop@example.com>
To: ${A}
Sender: other@example.com
Resent-From: x@example.com
Disposition-Notification-To: shop@example.com
Return-Receipt-To: shop@example.com
Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=
Date: Fri, 20 Nov 2026 12:00:00 +0100
Message-ID: <c1@example.com>
Auto-Submitted: auto-generated
Precedence: bulk
List-Id: <list.example.com>
X-Secret: 1
MIME-Version: 1.0
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

body
`);
    assert.deepEqual(fieldNames(text), [
      "From",
      "To",
      "Subject",
      "Date",
      "Message-ID",
      "In-Reply-To",
      "References",
      "Auto-Submitted",
      "Precedence",
      "List-Id",
      "X-Mask-Loop",
      "MIME-Version",
      "Content-Type",
    ]);
    assert.match(text, /^From: "Shop \(shop at example\.com\)"\s+<r\.a{26}@mask\.example>\r$/m);
    assert.match(text, /^Message-ID: <c1@example\.com>\r$/m);
    assert.ok(text.endsWith("\r\n\r\nbody\r\n"));
  });

  it("leaves https unsubscribe links, and leads mailto through our page", () => {
    const head = `From: a@b.example\nList-Unsubscribe: <mailto:u@example.com?subject=x>, <https://example.com/u>\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\n\nx`;
    const unsubscribe_page = "https://api.postern.test/masked/unsubscribe/t";
    const kept = forward(head, { unsubscribe_page });
    assert.match(kept, /^List-Unsubscribe: <https:\/\/example\.com\/u>\r\nList-Unsubscribe-Post: /m);
    assert.ok(!kept.includes(unsubscribe_page));
    const mail = forward(head.replace(", <https://example.com/u>", ""), { unsubscribe_page });
    assert.ok(mail.includes("List-Unsubscribe: <https://api.postern.test/masked/unsubscribe/t>\r\n"));
    assert.match(mail, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
    assert.ok(!/mailto/.test(mail));
    assert.equal(mailtoToLeave("<mailto:u@example.com?subject=x>, <x:y>"), "mailto:u@example.com?subject=x");
  });

  it("keeps a date that can be read as it stands, and is from when the mail came without one", () => {
    const date = (field: string) => /^Date: (.*)\r$/m.exec(forward(`From: a@b.example\n${field}\n\nx`))?.[1];
    assert.equal(date("Date: Fri, 20 Nov 2026 12:00 +0100 (CET)"), "Fri, 20 Nov 2026 12:00 +0100 (CET)");
    for (const field of ["Subject: x", "Date: ", "Date: vendredi", "Date: Fri, 20 Nov 2026 12:00:00 +0100 (été)"]) {
      assert.equal(date(field), "Fri, 20 Nov 2026 11:00:07 +0000", field);
    }
  });

  it("has tokens in texts that stay otherwise as they came: their type, charset, marks and line ends", async () => {
    const hider = createHider([{ reverse: TOKEN, email: D }], "00");
    const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");
    const files: [type: string, write: (text: string) => Buffer][] = [
      ["text/csv; name=a.csv", (text) => Buffer.from(`a,${text}\nb`)],
      ["text/csv; name=a.csv", (text) => Buffer.from(`\ufeffGrüße,${text}\r\n`)],
      ["text/plain; charset=iso-8859-1; name=a.txt", (text) => Buffer.from(`Gr\xfc\xdfe ${text}`, "latin1")],
      ["text/x-log; charset=us-ascii; name=a.log", (text) => Buffer.from(`at ${text}\r`)],
      ["text/plain; charset=utf-16; name=a.txt", utf16],
      ["text/plain; charset=utf-16; name=a.txt", (text) => utf16(text).swap16()],
      ["text/plain; charset=utf-16le; name=a.txt", (text) => Buffer.from(text, "utf16le")],
      ["text/plain; charset=big5; name=a.txt", (text) => iconv.encode(`您好 ${text}`, "big5")],
      ["text/plain; charset=GB2312", (text) => iconv.encode(`你好 ${text}`, "gb18030")],
      ["text/html", (text) => Buffer.from(`<p>${text}</p>\n`)],
    ];
    for (const [type, write] of files) {
      const given = `Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: ${type}\nContent-Transfer-Encoding: base64\n\n`;
      const sent = forward(`From: a@b.example\n${given}${write(D).toString("base64")}\n--b--\n`, { hider });
      const [, head = "", body = ""] = /--b\r\n([\s\S]*?)\r\n\r\n([\s\S]*?)\r\n--b--/.exec(sent) ?? [];
      assert.deepEqual(head.split("\r\n").sort(), [`Content-Transfer-Encoding: base64`, `Content-Type: ${type}`], type);
      assert.deepEqual(Buffer.from(body, "base64"), write(TOKEN), type);
    }
  });

  it("reads as it came where a part that holds a token has no fields, or none of a text", async () => {
    const hider = createHider([{ reverse: TOKEN, email: D }], "00");
    const hidden = (text: string) => text.replaceAll(D, TOKEN);
    const alternative = (head: string) =>
      `Content-Type: multipart/alternative; boundary=q\n\n--q\n${head}\nto ${D}\n--q\nContent-Type: text/html\n\n<p>to ${D}</p>\n--q--\n`;
    for (const head of ["", "\n", "X-Part: 1\n\n", "Content-Language: de\n\n"]) {
      for (const [before, after] of [
        ["", ""],
        [
          "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\nContent-Type: message/rfc822\n\nTo: x@y.example\n",
          "--b--\n",
        ],
      ]) {
        const given = `From: a@b.example\n${before}${alternative(head)}${after}`;
        const mail = await PostalMime.parse(forward(given, { hider }));
        const wanted = await PostalMime.parse(hidden(given.replaceAll("\n", "\r\n")));
        const [read, meant] = [mail, wanted].map(({ text, html }) =>
          [text, html].map((one) => one?.replace(/\s+/g, " ").trim()).join(),
        );
        assert.equal(read, meant, given);
        assert.equal(read?.split(TOKEN).length, 3, given);
      }
    }
    // Attached mail with the mailbox in its first field and in a text that has no field of its own.
    const attached = `From: ${D}\nTo: x@y.example\nSubject: s\n\nHello ${D}\n`;
    const sent = forward(`From: a@b.example\nContent-Type: message/rfc822\n\n${attached}`, { hider });
    const inner = parseMessage(Buffer.from(sent.slice(sent.indexOf("\r\n\r\n") + 4)));
    assert.deepEqual([inner.text?.trim(), inner.subject, sent.match(/^From:/gm)?.length], [`Hello ${TOKEN}`, "s", 2]);
    assert.doesNotMatch(sent, new RegExp(D));
  });

  it("shows invitations as if they were for the mailbox, in every encoding", async () => {
    const ics = `BEGIN:VCALENDAR\r\nORGANIZER;CN=Shop:mailto:shop@example.com\r\nATTENDEE;RSVP=TRUE:mailto:${A}\r\nSUMMARY:Tea ü with ${A}\r\nEND:VCALENDAR\r\n`;
    const encoded = {
      "8bit": ics,
      base64: Buffer.from(ics).toString("base64"),
      "quoted-printable": ics.replace(/=/g, "=3D").replace("ü", "=C3=BC"),
    };
    for (const [encoding, body] of Object.entries(encoded)) {
      const text = forward(
        `From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhi\n--b\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\nContent-Transfer-Encoding: ${encoding}\n\n${body}\n--b--\n`,
      );
      const mail = await PostalMime.parse(text);
      const content = mail.attachments[0]?.content as ArrayBuffer;
      const calendar = Buffer.from(content).toString().replace(/\r\n /g, "");
      assert.match(calendar, new RegExp(`^ORGANIZER;CN=Shop:mailto:${R}\r?$`, "m"), encoding);
      assert.match(calendar, /^ATTENDEE;RSVP=TRUE:mailto:anna@real\.example\r?$/m, encoding);
      assert.match(calendar, /^SUMMARY:Tea ü with k3x@mask\.example\r?$/m, encoding);
      assert.match(mail.text ?? "", /^hi/);
    }
  });
});

const FOLDER = "../shared/data/masked-forwarding/fx-private-relay";

describe("mails that Firefox Relay is tested with", {
  skip: !existsSync(FOLDER) && "the shared cases are not here",
}, () => {
  for (const path of globSync(`${FOLDER}/*_incoming.email`)) {
    it(`${path.slice(FOLDER.length + 1)}: subject, bodies and images arrive; From is ours; MIME-Version stands once`, async () => {
      const given = readFileSync(path);
      const text = buildForward(given, PARTS);
      const [before, after] = await Promise.all([PostalMime.parse(given), PostalMime.parse(text)]);
      assert.equal(after.subject ?? "", before.subject ?? "");
      assert.equal(after.text, before.text);
      assert.equal(after.html, before.html);
      assert.deepEqual(
        after.attachments.map(({ contentId, mimeType }) => [contentId, mimeType]),
        before.attachments.map(({ contentId, mimeType }) => [contentId, mimeType]),
      );
      assert.equal(after.from?.address, R);
      assert.equal(text.toString().match(/^mime-version:/gim)?.length, 1);
    });
  }
});
