import assert from "node:assert/strict";
import { it } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { decodePlainText, decodeText } from "./decode-charset.ts";
import { parseMessage } from "./parse-message.ts";

it("reads UTF-7 under all of its names by itself, in linear time", () => {
  const hostile = Buffer.from("+".repeat(400_000));
  for (const label of ["utf-7", "UTF7", "utf_7", "unicode-1-1-utf-7", "csUnicode11UTF7", '"utf-7"']) {
    assert.deepEqual(decodeText(Buffer.from("Hi Mom +Jjo-!"), label), { text: "Hi Mom ☺!", defect: null }, label);
    assert.ok(processorMs(() => decodeText(hostile, label)) < 1_000, label);
  }
});

it("knows encodings of bytes by no spelling of their names: the text stays as it is", () => {
  const bytes = Buffer.from("hello, wörld");
  for (const label of [
    "hex",
    "HEX",
    "base64",
    "base-64",
    "b.a.s.e.6.4",
    "base64:1999",
    "utf-7-imap",
    "utf7imap",
    "u.t.f.7",
  ]) {
    assert.deepEqual(decodeText(bytes, label), { text: "hello, wörld", defect: "unknown_charset" }, label);
  }
});

it("reads a label that has more in it than a charset", () => {
  assert.equal(decodeText(Buffer.from([0xb1]), "iso-8859-2; format=flowed").text, "ą");
  assert.equal(decodeText(Buffer.from([0xb1]), "iso-8859-2,us-ascii").text, "ą");
  assert.equal(decodeText(Buffer.from("\x1b$BF|K\\\x1b(B"), "_iso-2022-jp$ESC").text, "日本");
  assert.equal(decodeText(Buffer.from("\ufeffé", "utf16le"), "unicode").text, "é");
});

it("knows the labels of WHATWG and of old programs, and what those who write them mean", () => {
  const shown: [labels: string, octets: number[], text: string][] = [
    ["iso-8859-1 iso_8859-1:1987 iso-ir-100 csISOLatin1 cp819 IBM819 8859_1", [0x93, 0xe9, 0x94], "“é”"],
    ["iso-8859-9 ISO_8859-9:1989 latin5 l5 iso-ir-148 csisolatin5", [0x80, 0xfe], "€ş"],
    ["tis-620 tis620 iso-8859-11 iso8859-11 windows-874 dos-874", [0x85, 0xa1, 0xa0], "…ก\u00a0"],
    ["iso-8859-7 greek sun_eu_greek iso_8859-7:1987 8859-7", [0xe1], "α"],
    ["iso-8859-8 iso-8859-8-i csISO88598I csISO88598E logical visual", [0xe0], "א"],
    ["iso-8859-6 csiso88596e csiso88596i arabic", [0xc7], "ا"],
    ["iso-8859-15 csisolatin9 8859-15", [0xa4], "€"],
    ["windows-1251 windows-cp1251 cp-1251 x-cp1251", [0xcf], "П"],
    ["macintosh mac x-mac-roman csMacintosh", [0x8a, 0xdb], "ä€"],
    ["x-mac-cyrillic x-mac-ukrainian", [0x80, 0xff], "А€"],
    ["x-mac-ce", [0x8d], "ć"],
    ["x-mac-turkish", [0xdb], "ğ"],
    ["euc-jp cseucpkdfmtjapanese", [0xa4, 0xa2], "あ"],
    ["gb2312 gb_2312 csgb2312 csiso58gb231280 iso-ir-58", [0x81, 0x40], "丂"],
  ];
  for (const [labels, octets, text] of shown)
    for (const label of labels.split(" "))
      assert.deepEqual(decodeText(Buffer.from(octets), label), { text, defect: null }, label);
});

it("reads UTF-8 that is no text of the charset that it names", () => {
  for (const label of ["iso-2022-jp", "euc-jp", "euc-kr", "big5"])
    assert.deepEqual(
      decodeText(Buffer.from("naïve – ő"), label),
      { text: "naïve – ő", defect: "undecodable_text" },
      label,
    );
});

it("knows UTF-16 by its mark where the label does not say so", () => {
  const text = Buffer.from("\ufeffgrüße", "utf16le");
  for (const label of ["", "us-ascii", "utf-8", "no-such-charset"]) {
    assert.equal(decodeText(text, label).text, "grüße", label);
    assert.equal(decodeText(Buffer.from(text).swap16(), label).text, "grüße", label);
  }
});

it("knows JIS by its escapes in plain text, and only there", () => {
  const jis = Buffer.from("a \x1b$BF|K\\\x1b(B b");
  for (const label of ["", "us-ascii", "7bit", "utf-8"])
    assert.equal(decodePlainText(jis, label).text, "a 日本 b", label);
  assert.equal(decodeText(jis, "").text, jis.toString());
  assert.equal(decodePlainText(jis, "iso-8859-1").text, jis.toString());
  const mixed = Buffer.concat([jis, Buffer.from("é")]);
  assert.equal(decodePlainText(mixed, "").text, mixed.toString());
  assert.equal(decodePlainText(Buffer.from("\x1b[31m$B red"), "").text, "\x1b[31m$B red");
});

it("takes the charset of HTML from its head when the field says none that fits", () => {
  const bytes = (label: string, meta: string, text: Buffer) =>
    Buffer.concat([Buffer.from(`Content-Type: text/html${label}\r\n\r\n<meta charset=${meta}>`), text]);
  const read = (label: string, meta: string, text: Buffer) =>
    parseMessage(bytes(label, meta, text)).html?.replace(/<.*>/, "");
  const text = Buffer.from([0xcf, 0xf0]);
  assert.equal(read("; charset=us-ascii", "windows-1251", text), "Пр");
  assert.equal(read("; charset=iso-8859-1", "windows-1251", text), "Ïð");
  assert.equal(read("; charset=us-ascii", "windows-1251", Buffer.from("é")), "é");
  // Outlook writes `unicode`; what can be read as `<meta` is not in UTF-16.
  for (const meta of ["unicode", "utf-16"]) assert.equal(read("", meta, Buffer.from("é")), "é", meta);
});

it("reads fields that were not encoded in the charset that only the HTML names", () => {
  const read = (label: string, encoding: string, html: string) => {
    const head = `Subject: \xcf\xf0\r\nFrom: \xcf\xf0 <a@b.example>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`;
    const text = `--b\r\nContent-Type: text/html${label}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${html}\r\n`;
    const file = `--b\r\nContent-Type: image/png; name="\xcf\xf0.png"\r\n\r\nx\r\n--b--\r\n`;
    const { subject, from, attachments } = parseMessage(Buffer.from(head + text + file, "latin1"));
    return [subject, from[0]?.name, attachments[0]?.filename];
  };
  const meta = "<html><head><meta charset=windows-1251></head>";
  const [right, guessed] = [
    ["Пр", "Пр", "Пр.png"],
    ["Ïð", "Ïð", "Ïð.png"],
  ];
  assert.deepEqual(read("", "8bit", meta), right);
  assert.deepEqual(read("; charset=us-ascii", "base64", Buffer.from(meta).toString("base64")), right);
  // What the part says of itself comes first.
  assert.deepEqual(read("; charset=iso-8859-1", "8bit", meta), guessed);
  assert.deepEqual(read("", "8bit", "<html>"), guessed);
});
