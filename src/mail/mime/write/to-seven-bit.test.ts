// 8-bit mail for servers that take none: what arrives says what was written.
import assert from "node:assert/strict";
import { isAscii } from "node:buffer";
import { test } from "node:test";
import PostalMime from "postal-mime";
import { toSevenBit } from "./to-seven-bit.ts";

const crlf = (text: string, encoding: BufferEncoding = "utf8") => Buffer.from(text.replace(/\n/g, "\r\n"), encoding);
const head = "From: a@sender.example\nSubject: hello\nMIME-Version: 1.0\n";
const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => ![0, 10, 13].includes(byte)));

const mails: Record<string, Buffer> = {
  "a text": crlf(
    `${head}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nGrüße\n\n.\nFrom = here \n`,
  ),
  "a text in its own charset": crlf(`${head}Content-Type: text/html; charset=iso-8859-1\n\n<p>Grüße</p>\n`, "latin1"),
  "a text without a word about it": crlf(`${head}\nGrüße\n`),
  "quoted-printable that is none": crlf(
    `${head}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nGrü=C3=9Fe\n`,
  ),
  "parts of a part": crlf(
    `${head}Content-Type: multipart/mixed; boundary=m\nContent-Transfer-Encoding: 8bit\n\n--m\nContent-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain; charset=utf-8\n\nGrüße\n--a\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: 8BIT\n\n<p>Grüße</p>\n--a--\n--m\nContent-Type: application/octet-stream; name=a.bin\nContent-Transfer-Encoding: base64\n\nAAEC\n--m--\n`,
  ),
  "an attached mail": crlf(
    `${head}Content-Type: multipart/mixed; boundary=m\n\n--m\n\nsee\n--m\nContent-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\n\nSubject: inner\nContent-Type: text/plain; charset=utf-8\n\nGrüße\n--m--\n`,
  ),
  "a file": Buffer.concat([
    crlf(
      `${head}Content-Type: multipart/mixed; boundary=m\n\n--m\n\nsee\n--m\nContent-Type: image/png; name=a.png\n\n`,
    ),
    all,
    crlf("\n--m--\n"),
  ]),
};

for (const [what, mail] of Object.entries(mails)) {
  test(`${what} says the same in 7 bits`, async () => {
    const converted = toSevenBit(mail);
    assert.ok(isAscii(converted) && !isAscii(mail));
    const longest = Math.max(
      ...converted
        .toString()
        .split("\r\n")
        .map(({ length }) => length),
    );
    assert.ok(longest <= 200, `${longest} characters in a line`);
    const [before, after] = await Promise.all([read(mail), read(converted)]);
    assert.deepEqual(after, before);
    assert.equal(converted.toString().match(/content-transfer-encoding: ?8bit/gi), null);
    assert.equal(toSevenBit(converted), converted);
  });
}

async function read(mail: Buffer) {
  const { text, html, subject, attachments } = await PostalMime.parse(mail, { attachmentEncoding: "arraybuffer" });
  const files = attachments.map(({ content, mimeType, filename }) => [
    mimeType,
    filename,
    // postal-mime counts the line end before a boundary to what stands there as it is.
    Buffer.from(content as ArrayBuffer)
      .toString("hex")
      .replace(/0a$/, ""),
  ]);
  return { text, html, subject, files };
}
