// Fields in other charsets and forms than they may be in: who is shown is who is judged, and texts are readable.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findAuthor } from "../auth/author.ts";
import { parseMessage } from "./parse-message.ts";

const read = (from: string, charset: string) => {
  const mail = `From: ${from}\r\nContent-Type: text/plain; charset=${charset}\r\n\r\n`;
  return parseMessage(Buffer.from(mail, "latin1")).from;
};

const inUtf7 = (text: string) => `+${Buffer.from(text, "utf16le").swap16().toString("base64").replaceAll("=", "")}-`;

test("a charset in which quotes and brackets are letters does not show an author that DMARC has not judged", () => {
  const hidden: [charset: string, from: string][] = [
    ["shift_jis", '"\x95\\" <boss@bank.example> "x" <a@evil.example>'],
    ["gbk", '"\x81\\" <boss@bank.example> "x" <a@evil.example>'],
    ["big5", '"\xa4\\" <boss@bank.example> "x" <a@evil.example>'],
    ["iso-2022-jp", '\xe9 \x1b$B"!\x1b(B <boss@bank.example> \x1b$B"!\x1b(B <a@evil.example>'],
    ["hz-gb-2312", '\xe9 ~{"!~} <boss@bank.example> ~{"!~} <a@evil.example>'],
    ["utf-7", `\xe9 ${inUtf7("<boss@bank.example>")} <a@evil.example>`],
    ["utf-16le", "\xe9 <a@evil.example>"],
  ];
  for (const [charset, from] of hidden) {
    const shown = read(from, charset).map(({ email }) => email);
    assert.deepEqual(shown, ["a@evil.example"], charset);
    assert.equal(findAuthor([Buffer.from(`From: ${from}`, "latin1")]).domain, "evil.example", charset);
  }
});

test("nor does the field itself in the list of fields: its ASCII stays as it was sent", () => {
  const shown = (name: string, value: string, charset: string) =>
    parseMessage(Buffer.from(`${name}: ${value}\r\nContent-Type: text/plain; charset=${charset}\r\n\r\n`, "latin1"))
      .headers[0]?.value;
  for (const name of ["From", "reply-to", "Resent-Sender"]) {
    const spelled = `\xe9 ${inUtf7("<boss@bank.example>")} <a@evil.example>`;
    assert.equal(shown(name, spelled, "utf-7"), spelled, name);
    assert.match(
      shown(name, '"\x95\\" <boss@bank.example> "x" <a@evil.example>', "shift_jis") ?? "",
      /^"\ufffd\\" <boss@/,
    );
  }
  assert.equal(shown("From", '\x1b$B"!\x1b(B <a@b.example>', "us-ascii"), '$B"! (B <a@b.example>');
  assert.equal(shown("From", "\xc4\xe3 <a@b.example>", "gbk"), "你 <a@b.example>");
  assert.equal(shown("Subject", "\x93\xfa\x96\x7b", "shift_jis"), "日本");
});

test("names in the charset of the body are read, beside encoded words and within them", () => {
  const cases: [charset: string, from: string, name: string][] = [
    ["shift_jis", "\x93\xfa\x96\x7b <a@b.example>", "日本"],
    ["koi8-r", '"\xf0\xd2\xc9" <a@b.example>', "При"],
    ["iso-8859-1", "J\xf6rg =?utf-8?q?M=C3=BC?= \xdfa <a@b.example>", "Jörg Mü ßa"],
    ["iso-8859-1", "=?iso-8859-1?Q?J\xf6rg?= <a@b.example>", "Jörg"],
    ["", "J\xf6rg\xa0M\x80 <a@b.example>", "Jörg M€"],
  ];
  for (const [charset, from, name] of cases) {
    assert.deepEqual(read(from, charset), [{ name, email: "a@b.example" }], charset);
  }
  assert.deepEqual(read("J\xf6rg <j\xf6rg@b.example>, \x85 c@d.example", ""), [
    { name: "Jörg", email: "jörg@b.example" },
    { name: "…", email: "c@d.example" },
  ]);
});

test("JIS as it is is read in texts, never in addresses", () => {
  const mail = parseMessage(
    Buffer.from(
      'Subject: \x1b$BF|K\\\x1b(B!\r\nTo: \x1b$B"!\x1b(B <a@b.example> \x1b$B"!\x1b(B <c@d.example>\r\n\r\nx',
    ),
  );
  assert.equal(mail.subject, "日本!");
  assert.deepEqual(
    mail.to.map(({ email }) => email),
    ["c@d.example"],
  );
});

test("takes a mail's own id as it is written, with one bracket, without any and without an @", () => {
  const read = (id: string) => {
    const mail = parseMessage(Buffer.from(`Message-ID: ${id}\r\nIn-Reply-To: ${id}\r\n\r\nx`));
    return [mail.message_id, mail.in_reply_to];
  };
  for (const id of ["<a@b>", "a@b>", "<a@b", "a@b", "<a@b>.", "(c) a@b (d)"]) {
    assert.deepEqual(read(id), ["<a@b>", "<a@b>"], id);
  }
  assert.deepEqual(read("N77056c0a550"), ["<N77056c0a550>", null]);
  assert.deepEqual(read("N77056c0a550 (c)"), ["<N77056c0a550>", null]);
  for (const id of ["your message of Monday", "<>", "", "=?utf-8?Q?a_b?=", "x".repeat(997)]) {
    assert.deepEqual(read(id), [null, null], id);
  }
});

test("fields that were not encoded are in the charset of the text, also of one within a multipart", () => {
  const iconv = (hex: string) => Buffer.from(hex, "hex").toString("latin1");
  const sent: [charset: string, word: string, shown: string][] = [
    ["gb2312", iconv("b1a8b8e6"), "报告"],
    ["shift_jis", iconv("835c8376"), "ソプ"],
    ["koi8-r", iconv("efd4deb3d4"), "ОтчЁт"],
    ["utf-8", "\xe9t\xe9", "été"],
    ["utf-16", "\xe9t\xe9", "été"],
  ];
  for (const [charset, word, shown] of sent) {
    const mail = parseMessage(
      Buffer.from(
        `Subject: ${word}\r\nFrom: ${word} <a@b.example>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n` +
          `Content-Type: text/plain; charset=${charset}\r\n\r\n--b\r\n` +
          `Content-Type: application/pdf; name="${word}.pdf"\r\n\r\n--b\r\n` +
          `Content-Type: application/zip\r\nContent-Disposition: attachment; filename="${word}.zip"\r\n\r\n--b--\r\n`,
        "latin1",
      ),
    );
    const names = mail.attachments.map(({ filename }) => filename);
    assert.deepEqual(names, [`${shown}.pdf`, `${shown}.zip`], charset);
    assert.deepEqual([mail.subject, mail.from[0]?.name], [shown, shown], charset);
  }
});
