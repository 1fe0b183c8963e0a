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
