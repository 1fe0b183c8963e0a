import assert from "node:assert/strict";
import { it } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { decodeBody, partText } from "./body-text.ts";
import { splitParts } from "./parts.ts";

const body = (text: string) => decodeBody({ body: Buffer.from(text), encoding: "quoted-printable" }).toString();

it("takes blanks off the ends of quoted-printable lines, but not those that were encoded, in linear time", () => {
  assert.equal(body("a  \nb=20\nc=20 \t\nd =\ne= \t\nf \t"), "a\nb \nc \nd ef");
  assert.ok(processorMs(() => body(`${" ".repeat(250_000)}x`)) < 1_000);
});

it("reads a report whose fields have comments, and knows no encoding of bytes for a charset", () => {
  const read = (charset: string) => {
    const head = `Content-Type: text/plain; charset=${charset} (so)\nContent-Transfer-Encoding: base64 (it is)\n\n`;
    return splitParts(Buffer.from(`${head}${Buffer.from("grüße").toString("base64")}\n`)).parts.map(partText);
  };
  assert.deepEqual(read("utf-8"), ["grüße"]);
  assert.deepEqual(read("hex"), [Buffer.from("grüße").toString("latin1")]);
});
