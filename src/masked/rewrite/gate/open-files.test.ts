// Every file of a reply is opened, or its author is informed which one was not: archives of all kinds, and PDFs whose text only a
// reader of fonts, object streams, LZW or passwords sees.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { makeZip } from "../../../mail/dmarc-report/zip.fixture.ts";
import { buildOpenedReply } from "../opened-reply.ts";
import { HEAD, order } from "../reply-order.fixture.ts";
import { openFile } from "./open-files.ts";

const D = "anna@home.example";
/** Made by other programs, each with the address (Python's zipfile, bz2 and lzma), and PDFs of each kind. */
const packed = JSON.parse(readFileSync(new URL("./packed-files.json", import.meta.url), "utf8"));
const fileOf = (name: string) => Buffer.from(packed[name], "base64");

/** The reply with this file alone: what became of it, and what is reported. */
async function sent(file: Buffer, more: { unopened_files?: "send" } = {}) {
  const head = `${HEAD}Content-Type: application/octet-stream; name="x.bin"\nContent-Transfer-Encoding: base64\n\n`;
  const bytes = Buffer.from(`${head}${file.toString("base64")}\n`.replace(/\n/g, "\r\n"));
  const reply = await buildOpenedReply(bytes, { ...order(D), ...more });
  if (reply.kind === "held") return { kind: reply.kind, reported: reply.leaks.map(({ where }) => where).join("; ") };
  return {
    kind: reply.kind,
    reported: reply.kind === "built" ? reply.unopened.map(({ where }) => where).join("; ") : reply.reason,
  };
}

test("an address that only a reader of PDFs sees is found", async () => {
  for (const name of ["pdf_to_unicode", "pdf_lzw", "pdf_empty_password", "pdf_object_stream"]) {
    const { kind, reported } = await sent(fileOf(name));
    assert.equal(kind, "held", name);
    assert.doesNotMatch(reported, /could not be looked into/, name);
  }
});

/** One member, its sizes and its place in the fields of ZIP64. */
function zip64(name: string, content: Buffer): Buffer {
  const body = deflateRawSync(content);
  const extra = Buffer.alloc(20);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(16, 2);
  extra.writeBigUInt64LE(BigInt(content.length), 4);
  extra.writeBigUInt64LE(BigInt(body.length), 12);
  const about = Buffer.alloc(26);
  about.writeUInt16LE(45, 0);
  about.writeUInt16LE(8, 4);
  about.writeUInt32LE(crc32(content), 10);
  about.writeUInt32LE(0xffffffff, 14);
  about.writeUInt32LE(0xffffffff, 18);
  about.writeUInt16LE(name.length, 22);
  about.writeUInt16LE(extra.length, 24);
  const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), about, Buffer.from(name), extra, body]);
  const central = Buffer.concat([
    Buffer.from("PK\x01\x02-\0", "latin1"),
    about,
    Buffer.alloc(14),
    Buffer.from(name),
    extra,
  ]);
  const end64 = Buffer.alloc(56);
  end64.write("PK\x06\x06", "latin1");
  end64.writeBigUInt64LE(44n, 4);
  end64.writeBigUInt64LE(1n, 24);
  end64.writeBigUInt64LE(1n, 32);
  end64.writeBigUInt64LE(BigInt(central.length), 40);
  end64.writeBigUInt64LE(BigInt(local.length), 48);
  const locator = Buffer.alloc(20);
  locator.write("PK\x06\x07", "latin1");
  locator.writeBigUInt64LE(BigInt(local.length + central.length), 8);
  locator.writeUInt32LE(1, 16);
  const end = Buffer.alloc(22, 0xff);
  end.write("PK\x05\x06\0\0\0\0", "latin1");
  end.writeUInt16LE(0, 20);
  return Buffer.concat([local, central, end64, locator, end]);
}

test("an address in an archive of ZIP64, or in one six deep, is found", async () => {
  const core = Buffer.from(`<dc:creator>${D}</dc:creator>`);
  let deep = makeZip([{ name: "core.xml", content: core }]);
  for (let depth = 0; depth < 5; depth += 1) deep = makeZip([{ name: "in.zip", content: deep }]);
  for (const file of [zip64("docProps/core.xml", core), deep]) {
    const { kind, reported } = await sent(file);
    assert.equal(kind, "held");
    assert.doesNotMatch(reported, /could not be looked into/);
  }
  const innocent = zip64("docProps/core.xml", Buffer.from("nobody"));
  assert.deepEqual(await sent(innocent), { kind: "built", reported: "" });
});

test("a file that cannot be opened is held, and the author is informed which and why; by setting it leaves", async () => {
  const locked = makeZip([{ name: "a.txt", content: Buffer.from(D) }]);
  for (const at of [6, locked.indexOf("PK\x01\x02") + 8]) locked[at] = 1;
  let deep = makeZip([{ name: "a.txt", content: Buffer.from(D) }]);
  for (let depth = 0; depth < 12; depth += 1) deep = makeZip([{ name: "in.zip", content: deep }]);
  const office = Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.from("EncryptedPackage", "utf16le")]);
  const cases: [string, Buffer, RegExp][] = [
    ["ZIP with bzip2", fileOf("zip_bzip2"), /cannot be opened here/],
    ["ZIP with LZMA", fileOf("zip_lzma"), /cannot be opened here/],
    ["bzip2", fileOf("bzip2"), /bzip2/],
    ["xz", fileOf("xz"), /xz/],
    ["LZMA", fileOf("lzma"), /LZMA/],
    ["7-Zip", Buffer.from("377abcaf271c0004000000000000", "hex"), /7-Zip/],
    ["RAR", Buffer.from("Rar!\x1a\x07\x01\x00xxxxxxxx", "latin1"), /RAR/],
    ["a ZIP under a password", locked, /under a password/],
    ["an office document under a password", office, /under a password/],
    ["a PDF under a password", fileOf("pdf_password"), /under a password/],
    ["a ZIP thirteen deep", deep, /too many archives/],
    ["a gzip file that is cut", gzipSync(Buffer.alloc(5_000, D)).subarray(0, 60), /damaged/],
    ["bzip2 in a ZIP", makeZip([{ name: "x.bz2", content: fileOf("bzip2") }]), /bzip2/],
  ];
  for (const [name, file, words] of cases) {
    const held = await sent(file);
    assert.equal(held.kind, "held", name);
    assert.match(held.reported, words, name);
    const left = await sent(file, { unopened_files: "send" });
    assert.equal(left.kind, "built", `${name}: ${left.reported}`);
    assert.match(left.reported, words, name);
  }
});

test("what is opened is bounded, and ordinary files are not held", async () => {
  const bomb = makeZip([{ name: "a.xml", content: Buffer.alloc(80_000_000) }]);
  assert.match((await openFile(bomb)).unopened.join(), /too large/);
  const pictures = makeZip([
    { name: "word/media/a.png", content: Buffer.alloc(70_000_000) },
    { name: "word/document.xml", content: Buffer.from("nobody") },
  ]);
  assert.deepEqual((await openFile(pictures)).unopened, []);
  assert.deepEqual((await openFile(Buffer.from("PK is a word, and %PDF is another"))).unopened, []);
  const jpeg = Buffer.concat([Buffer.from("ffd8ffe000104a464946", "hex"), Buffer.alloc(50_000, 0x5a)]);
  assert.deepEqual(await sent(jpeg), { kind: "built", reported: "" });
});
