// The files of a reply: which arrive, which are left out, which turn it back, and that those that arrive are what was sent.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import PostalMime from "postal-mime";
import { fileMark } from "./calendar/sent-objects.ts";
import { buildReply } from "./reply.ts";
import { A, D, HEAD, order } from "./reply-order.fixture.ts";
import { objectDigest } from "./sent/sent-content.ts";

const reply = (text: string) => buildReply(Buffer.from(text.replace(/\r?\n/g, "\r\n")), order());
const kindOf = (text: string) => reply(`${HEAD}${text}`).kind;

describe("a reply", () => {
  it("has the main part of a multipart/related first, and its pictures within", async () => {
    const picture = "Content-Type: image/png\nContent-ID: <p@x>\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=";
    const text = 'Content-Type: text/html\nContent-ID: <root@x>\n\n<img src="cid:p@x">';
    for (const main of ['; start="<root@x>"', "; type=text/html"]) {
      const result = reply(
        `${HEAD}Content-Type: multipart/related; boundary=b${main}\n\n--b\n${picture}\n--b\n${text}\n--b--\n`,
      );
      const raw = result.kind === "built" ? result.bytes.toString() : result.kind;
      assert.ok(raw.indexOf("text/html") < raw.indexOf("image/png"), raw);
      const { attachments } = await PostalMime.parse(raw);
      assert.deepEqual(
        attachments.map(({ filename, disposition, related }) => [filename, disposition, related]),
        [["image.png", "inline", true]],
      );
    }
    const said = picture.replace("\n\n", "\nContent-Disposition: attachment\n\n");
    const attached = reply(`${HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\n${said}\n--b--\n`);
    assert.match(
      attached.kind === "built" ? attached.bytes.toString() : "",
      /^Content-Disposition: attachment;\r\n filename=image\.png\r$/m,
    );
  });

  it("brings a contact its own file back as it sent it, whatever that holds, and no other that names the mailbox", async () => {
    const own = Buffer.from(JSON.stringify({ candidates: [D, "other@home.example"] }));
    const sent = { key: "00", digests: [objectDigest("00", fileMark(own))], tokens: [] };
    const withFile = (type: string, content: Buffer, known = sent) => {
      const file = `Content-Type: ${type}; name=a.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n${content.toString("base64")}`;
      const head = HEAD.replace(/\r?\n/g, "\r\n");
      const text = `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nsee\r\n--b\r\n${file}\r\n--b--\r\n`;
      return buildReply(Buffer.from(text), { ...order(), sent: known });
    };
    for (const type of ["application/json", "application/octet-stream", "application/xml"]) {
      const back = withFile(type, own);
      assert.equal(back.kind, "built", type);
      const { attachments } = await PostalMime.parse(back.kind === "built" ? back.bytes : "");
      assert.deepEqual(Buffer.from(attachments[0]?.content as ArrayBuffer), own);
      assert.equal(withFile(type, Buffer.concat([own, Buffer.from(" ")])).kind, "held", type);
      assert.equal(withFile(type, own, { ...sent, digests: [] }).kind, "held", type);
    }
  });

  it("keeps files that only have the name of a key, and is turned back rather than sent without a file", () => {
    const withFile = (type: string, content: Buffer | string, say = "see the file") =>
      reply(
        `${HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\n${say}\n--b\nContent-Type: ${type}\nContent-Transfer-Encoding: base64\n\n${Buffer.from(content).toString("base64")}\n--b--\n`,
      );
    const packet = (...bytes: number[]) => Buffer.from([...bytes, ...Array<number>(40).fill(7)]);
    const outcome = (...args: Parameters<typeof withFile>) => {
      const result = withFile(...args);
      if (result.kind !== "built") return result.kind === "refused" ? result.reason : result.kind;
      return /name/.test(result.bytes.toString()) ? "kept" : "dropped";
    };
    const octets = (name: string) => `application/octet-stream; name="${name}"`;
    const tnef = (level: number) =>
      Buffer.from([0x78, 0x9f, 0x3e, 0x22, 1, 0, level, 0x0f, 0x80, 6, 0, 1, 0, 0, 0, 65]);
    const wanted: [string, Buffer | string, string][] = [
      [octets("Slides.key"), "PK\x03\x04 slides", "kept"],
      [octets("server.key"), "-----BEGIN PRIVATE KEY-----\nMII=\n", "kept"],
      ['text/plain; name="notes.asc"', "= Notes\n\nan AsciiDoc file", "kept"],
      [octets("backup.gpg"), packet(0x8c, 2, 1, 1, 0xd2, 10), "kept"],
      [octets("report.pdf.gpg"), packet(0x84, 2, 1, 1, 0xd2, 10), "encrypted"],
      [octets("both.gpg"), packet(0xc3, 2, 1, 1, 0xc1, 10), "encrypted"],
      [octets("signed.pdf.gpg"), packet(0xa3, 1), "encrypted"],
      [octets("anna.gpg"), packet(0x99, 0, 10), "dropped"],
      [octets("report.pdf.sig"), packet(0x89, 0, 10), "dropped"],
      [
        octets("key.asc"),
        `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${packet(0x99, 0, 10).toString("base64")}\n-----END`,
        "dropped",
      ],
      [octets("smime.p7m"), "0\x80", "encrypted"],
      ["application/pkcs7-mime", "0\x80", "encrypted"],
      ["application/pgp-encrypted", "Version: 1\n", "dropped"],
      ["application/ms-tnef; name=winmail.dat", tnef(1), "dropped"],
      ["application/ms-tnef; name=winmail.dat", tnef(2), "lost_file"],
      ["message/partial; id=1; number=1", "x", "lost_file"],
      ["text/vcard; name=anna.vcf", "BEGIN:VCARD", "dropped"],
    ];
    for (const [type, content, kind] of wanted) assert.equal(outcome(type, content), kind, type);
    assert.equal(outcome("text/vcard; name=anna.vcf", "BEGIN:VCARD", " "), "lost_file", "there was nothing else");
    assert.equal(kindOf("Content-Type: application/octet-stream; name=smime.p7m\n\nx\n"), "refused");
    assert.equal(kindOf("Content-Type: text/plain\n\n\n"), "built", "an empty mail is nobody's loss");
  });

  it("has attached text files byte for byte, and in their charset where an address went out of them", async () => {
    const sent = async (type: string, content: Buffer) => {
      const file = `Content-Type: ${type}\nContent-Transfer-Encoding: base64\n\n${content.toString("base64")}\n`;
      const result = reply(`${HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\n${file}--b--\n`);
      assert.equal(result.kind, "built", type);
      const bytes = result.kind === "built" ? result.bytes : Buffer.alloc(0);
      const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer" });
      const charset = /^Content-Type: text\/\w[^;\r]*(; charset=[^;\r]+)?\r\nContent-Transfer-Encoding: base64/m.exec(
        bytes.toString("latin1"),
      )?.[1];
      return { content: Buffer.from(mail.attachments[0]?.content as ArrayBuffer), charset: charset?.slice(10) ?? null };
    };
    const script = Buffer.from("#!/bin/sh\necho hi\n");
    assert.deepEqual(await sent("text/x-sh; name=run.sh", script), { content: script, charset: null });
    const xml = (who: string) =>
      Buffer.from(`<?xml version="1.0" encoding="ISO-8859-1"?>\n<a>Gr\xfc\xdfe ${who}</a>\n`, "latin1");
    const latin = { content: xml("x"), charset: "iso-8859-1" };
    assert.deepEqual(await sent("text/xml; charset=iso-8859-1; name=invoice.xml", xml("x")), latin);
    assert.deepEqual(await sent("text/xml; name=invoice.xml", xml("x")), { content: xml("x"), charset: null });
    assert.deepEqual(await sent("text/xml; name=invoice.xml", xml(D)), { content: xml(A), charset: null });
    const marked = (who: string) => Buffer.from(`\ufeffname;mail\nGrüße;${who}\n`);
    const csv = "text/csv; charset=utf-8; name=a.csv";
    assert.deepEqual(await sent(csv, marked("x")), { content: marked("x"), charset: "utf-8" });
    assert.deepEqual(await sent(csv, marked(D)), { content: marked(A), charset: "utf-8" });
    const odd = await sent("text/csv; charset=utf-7; name=a.csv", Buffer.from("a+AEA-b"));
    assert.deepEqual(odd, { content: Buffer.from("a@b"), charset: "utf-8" });
    const changed = await sent("text/csv; charset=utf-7; name=a.csv", Buffer.from(`Gr+APw-n ${D}`));
    assert.deepEqual(changed, { content: Buffer.from(`Grün ${A}`), charset: "utf-8" });
    const wide = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").swap16();
    assert.deepEqual((await sent("text/csv; charset=utf-16; name=a.csv", wide(`a,${D}`))).content, wide(`a,${A}`));
  });
});
