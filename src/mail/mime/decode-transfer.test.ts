import assert from "node:assert/strict";
import { it } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { decodeTransfer } from "./decode-transfer.ts";

const decoded = (body: string) => decodeTransfer(Buffer.from(body), "quoted-printable").bytes.toString();

it("takes blanks off the ends of quoted-printable lines, but not those that were encoded (RFC 2045 §6.7 (3))", () => {
  assert.equal(decoded("a  \r\nb\t \nc \t"), "a\r\nb\nc");
  assert.equal(decoded("a=20\r\nb =20\r\nc=09 \r\nd=20=20"), "a \r\nb  \r\nc\t\r\nd  ");
  assert.equal(decoded("  \r\n \t\r\n x y"), "\r\n\r\n x y");
  assert.equal(decoded("one  =\r\ntwo = \t\r\nthree"), "one  two three");
  assert.equal(decoded("a \rb"), "a \rb");
});

it("does so in linear time", () => {
  assert.ok(processorMs(() => decoded(" ".repeat(2_000_000))) < 1_000);
  assert.ok(processorMs(() => decoded(`${" ".repeat(200)}x`.repeat(10_000))) < 1_000);
});
