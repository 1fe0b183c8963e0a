import assert from "node:assert/strict";
import { it } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { decodeText } from "./decode-charset.ts";

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
