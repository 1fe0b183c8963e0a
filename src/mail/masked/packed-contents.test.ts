// Files whose contents are packed: the leak gate finds an address in a document, and nothing hostile takes it far.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import { makeZip } from "../dmarc-report/zip.fixture.ts";
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

test("archives that lie, are cut, or unpack without end are read in bounds", () => {
  const good = zip({ "a.xml": xml("x".repeat(1_000)), "b.xml": xml("y") });
  for (let cut = 0; cut < good.length; cut += 7) packedContents(good.subarray(0, cut));
  for (let at = 0; at < good.length; at += 1) {
    const broken = Buffer.from(good);
    broken[at] = 0xff;
    packedContents(broken);
  }
  const bomb = zip(Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`f${n}`, Buffer.alloc(10_000_000)])));
  const total = packedContents(bomb).reduce((sum, content) => sum + content.length, 0);
  assert.ok(total <= 31_000_000, `${total} bytes`);
  assert.equal(packedContents(gzipSync(Buffer.alloc(40_000_000))).length, 0);
});
