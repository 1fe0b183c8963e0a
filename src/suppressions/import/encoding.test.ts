import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openText } from "./encoding.ts";

const TEXT = "email,note\njos\u00e9@example.com,\u20ac \ud83d\ude00\n".repeat(4);

function decode(bytes: Buffer, pieceLength = bytes.length + 1): string {
  const source = openText(bytes);
  let text = "";
  for (let at = 0; at < bytes.length; at += pieceLength) text += source.text(bytes.subarray(at, at + pieceLength));
  return source.field(text + source.end());
}
const bigEndian = (text: string) => Buffer.from(text, "utf16le").swap16();

describe("the encoding of a file", () => {
  for (const [name, bytes] of [
    ["UTF-8", Buffer.from(TEXT)],
    ["UTF-8 with BOM", Buffer.from(`\ufeff${TEXT}`)],
    ["UTF-16LE with BOM", Buffer.from(`\ufeff${TEXT}`, "utf16le")],
    ["UTF-16LE without BOM", Buffer.from(TEXT, "utf16le")],
    ["UTF-16BE with BOM", bigEndian(`\ufeff${TEXT}`)],
    ["UTF-16BE without BOM", bigEndian(TEXT)],
  ] as const) {
    it(`${name} is recognized, and no character breaks at the edge of a piece`, () => {
      for (const piece of [3, 7, 64]) assert.equal(decode(bytes, piece), TEXT);
    });
  }

  it("is windows-1252 where a field is not UTF-8, field by field", () => {
    const source = openText(Buffer.from("x"));
    assert.equal(source.field(source.text(Buffer.from("jos\u00e9", "latin1"))), "jos\u00e9");
    assert.equal(source.field(source.text(Buffer.from([0x80]))), "\u20ac");
    assert.equal(source.field(source.text(Buffer.from("jos\u00e9"))), "jos\u00e9");
    assert.equal(source.field(source.text(Buffer.from([0xc0, 0xaf]))), "\u00c0\u00af");
  });

  it("is not UTF-16 because of a stray NUL, or in a file of a few bytes", () => {
    assert.equal(openText(Buffer.from("a@b.example,\0\nc@d.example")).encoding, "utf-8");
    assert.equal(openText(Buffer.from("a\0b")).encoding, "utf-8");
    assert.equal(openText(Buffer.alloc(0)).encoding, "utf-8");
    assert.equal(openText(Buffer.alloc(64)).encoding, "utf-8");
  });
});
