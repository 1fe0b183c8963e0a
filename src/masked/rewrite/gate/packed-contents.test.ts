// Files whose contents are packed: the leak gate finds an address in a document, and nothing hostile takes it far.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { makeZip } from "../../../mail/dmarc-report/zip.fixture.ts";
import { findLeaks } from "./leak-gate.ts";
import { packedContents } from "./packed-contents.ts";

const D = "anna@home.example";

/** A ZIP archive as office programs write it. */
const zip = (files: Record<string, Buffer>) =>
  makeZip(Object.entries(files).map(([name, content]) => ({ name, content })));
const xml = (text: string) => Buffer.from(`<?xml version="1.0"?><w:p><w:r>${text}</w:r></w:p>`);
const leaksOf = (file: Buffer, addresses = [D]) => {
  const mail = `Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n${file.toString("base64")}\r\n`;
  return findLeaks(Buffer.from(mail), { addresses, names: [], allowed: "nothing", given: [] }).map(
    ({ where }) => where,
  );
};

test("an address in a document, in its links, its properties or the names of its files is found", () => {
  const documents = [
    zip({ "[Content_Types].xml": xml("x"), "docProps/core.xml": xml(`<dc:creator>${D}</dc:creator>`) }),
    zip({ "word/_rels/document.xml.rels": xml(`<Relationship Target="mailto:${D.replace("@", "%40")}"/>`) }),
    zip({ "word/document.xml": xml("anna</w:t></w:r><w:r><w:t>@home.example") }),
    zip({ [`${D}.txt`]: Buffer.from("x") }),
    gzipSync(Buffer.from(`to ${D}`)),
    Buffer.concat([
      Buffer.from("%PDF-1.7\n1 0 obj\n<</Filter/FlateDecode>>\nstream\r\n"),
      deflateSync(Buffer.from(`(${D}) Tj`)),
      Buffer.from("\nendstream\n"),
    ]),
    Buffer.concat([
      Buffer.from("%PDF-1.7\n1 0 obj\n<</Filter/FlateDecode>>\nstream\r\n"),
      deflateSync(Buffer.from(`<</Author<${Buffer.from(`\ufeff${D}`, "utf16le").swap16().toString("hex")}>>>`)),
      Buffer.from("\nendstream\n"),
    ]),
  ];
  for (const [at, document] of documents.entries()) {
    assert.ok(!document.includes("anna@home.example") || at === 3, `document ${at} is packed`);
    assert.match(leaksOf(document)[0] ?? "", /application\/octet-stream\)/, `document ${at}`);
  }
  assert.deepEqual(leaksOf(zip({ "word/document.xml": xml("nobody") })), []);
});

const letter = zip({ "[Content_Types].xml": xml("x"), "docProps/core.xml": xml(`<dc:creator>${D}</dc:creator>`) });
const chunk = (type: string, content: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, Buffer.from(type), content, Buffer.alloc(4)]);
};
const png = (type: string, head: string, text: string) =>
  Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk(type, Buffer.concat([Buffer.from(head), deflateSync(Buffer.from(text))])),
    chunk("IEND", Buffer.alloc(0)),
  ]);
const gif = (...blocks: string[]) =>
  Buffer.concat([
    Buffer.from("GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff", "latin1"),
    Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x21, 0xfe]),
    ...blocks.flatMap((block) => [Buffer.from([block.length]), Buffer.from(block)]),
    Buffer.from([0, 0x3b]),
  ]);
const pdf = (...pieces: (string | Buffer)[]) =>
  Buffer.concat([Buffer.from("%PDF-1.7\n"), ...pieces.map((piece) => Buffer.from(piece as string))]);
const stream = (content: Buffer, filter = "/FlateDecode") =>
  Buffer.concat([
    Buffer.from(`4 0 obj\n<</Filter [${filter}]>>\nstream\n`),
    content,
    Buffer.from("\nendstream endobj\n"),
  ]);
const rtf = (text: string) => Buffer.from(`{\\rtf1\\ansi{\\info{\\author Anna}}\\pard ${text}\\par}`);
const hexLines = (text: string) => Buffer.from(text).toString("hex").replace(/.{72}/g, "$&\n");
/** `anna@home.example`, with the mark of its end. */
const ascii85 = '@;]sk5\\P(QAM.P=@;Tt"AH~>';

const HIDING: Record<string, Buffer> = {
  "a letter in an archive": zip({ "letter.docx": letter }),
  "a letter in an archive in an archive": zip({ "b.zip": zip({ "letter.docx": letter }) }),
  "a packed letter": gzipSync(letter),
  "a letter packed with Zstandard": zstdCompressSync(letter),
  "an archive that unpacks itself": Buffer.concat([Buffer.from("MZ a program"), letter]),
  "the last of a thousand files": zip({
    ...Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`ppt/slides/slide${n}.xml`, xml("x")])),
    "docProps/core.xml": xml(D),
  }),
  "behind a file too large to be unpacked": zip({ "a.bin": Buffer.alloc(31_000_000), "core.xml": xml(D) }),
  "a packed note of a picture": png("zTXt", "Author\0\0", D),
  "a packed international note": png("iTXt", "XML:com.adobe.xmp\0\x01\0\0\0", `<x:xmpmeta>${D}</x:xmpmeta>`),
  "a packed profile of colours": png("iCCP", "Display\0\0", D),
  "a profile in hexadecimal digits": png(
    "zTXt",
    "Raw profile type exif\0\0",
    `\nexif\n 60\n${hexLines(`Exif, by ${D}.`)}`,
  ),
  "a picture in a letter": zip({ "word/media/image1.png": png("zTXt", "Author\0\0", D) }),
  "a comment of a GIF in two blocks": gif("by anna@h", "ome.example"),
  "text set letter by letter": pdf(
    stream(deflateSync(Buffer.from(`BT ${[...D].map((char) => `(${char}) Tj 7 0 Td`).join(" ")} ET`))),
  ),
  "kerned text": pdf(stream(deflateSync(Buffer.from("BT [(an)-12(na@ho)3.5(me.exam)1(ple)]TJ ET")))),
  "a string over two lines": pdf("1 0 obj <</Author (anna@\\\nhome.example)>> endobj"),
  "hexadecimal digits with blanks": pdf(`<</Author <${hexLines(D).replace(/../g, "$& ")}>>>`),
  "the last of a thousand streams": pdf(
    ...Array.from({ length: 1_000 }, () => stream(deflateSync(Buffer.from("q Q")))),
    stream(deflateSync(Buffer.from(`<</Author (${D})>>`))),
  ),
  "a stream behind a word that begins none": pdf(
    "1 0 obj <</Title (Upstream)>> endobj\n",
    stream(deflateSync(Buffer.from(D))),
  ),
  "a stream cut short": pdf(stream(deflateSync(Buffer.from(`${D} ${"x".repeat(100)}`)).subarray(0, -6))),
  "a stream in hexadecimal digits": pdf(
    stream(Buffer.from(`${deflateSync(Buffer.from(D)).toString("hex")}>`), "/AHx /Fl"),
  ),
  "a stream in ASCII85": pdf(stream(Buffer.from(ascii85), "/ASCII85Decode")),
  "a letter attached to a PDF": pdf(stream(deflateSync(letter))),
  "a code in rich text": rtf("anna\\'40home.example"),
  "a character in rich text": rtf("anna\\u64\\'40home\\u46?example"),
  "formatted rich text": rtf("an{\\b na@}ho\\i me.\r\nexample\\i0"),
};

test("an address is found in archives within archives, in notes of pictures, in pieces of PDFs and of rich text", () => {
  for (const [what, content] of Object.entries(HIDING)) {
    assert.ok(!content.includes("anna@home.example"), what);
    assert.notDeepEqual(leaksOf(content), [], what);
    assert.deepEqual(leaksOf(content, ["hanna@home.example"]), [], `somebody else, ${what}`);
  }
});

test("somebody else's address in a PDF holds nothing", () => {
  const text = "BT (Write to) Tj (johan@home.example) Tj [(or jo)2(han@home.exam)1(ple)]TJ ET";
  assert.deepEqual(leaksOf(pdf(stream(deflateSync(Buffer.from(text))))), []);
});

test("archives that lie, are cut, or unpack without end are read in bounds", () => {
  const good = zip({ "a.xml": xml("x".repeat(1_000)), "b.xml": xml("y") });
  for (let cut = 0; cut < good.length; cut += 7) packedContents(good.subarray(0, cut));
  for (let at = 0; at < good.length; at += 1) {
    const broken = Buffer.from(good);
    broken[at] = 0xff;
    packedContents(broken);
  }
  for (const given of Object.values(HIDING).filter(({ length }) => length < 5_000)) {
    for (let cut = 0; cut < given.length; cut += 13) packedContents(given.subarray(0, cut));
    for (let at = 0; at < given.length; at += 5)
      packedContents(Buffer.from(given).fill(0xff, at, Math.min(at + 2, given.length)));
  }
  for (const piece of ["(a", "\\(", "\\", "<ab ", "(\\)", "stream\n", "1 0 obj<<>>stream\n", "{\\b ", "[("]) {
    const endless = piece.repeat(Math.ceil(300_000 / piece.length));
    for (const start of ["%PDF-1.7\n", "%PDF-1.7\n(", "{\\rtf1 "]) packedContents(Buffer.from(start + endless));
  }
  const bomb = zip(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`f${n}`, Buffer.alloc(10_000_000)])));
  const total = packedContents(bomb).reduce((sum, content) => sum + content.length, 0);
  assert.ok(total <= 31_000_000, `${total} bytes`);
  assert.equal(packedContents(gzipSync(Buffer.alloc(40_000_000))).length, 0);
  const nested = packedContents(zip(Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`${n}.zip`, bomb]))));
  assert.ok(nested.reduce((sum, content) => sum + content.length, 0) <= 31_000_000);
});
