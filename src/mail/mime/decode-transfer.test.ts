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

it("knows an encoding by its first word, however it is written", () => {
  for (const name of ["base64; charset=utf-8", "base64 encoding", "Base-64", '"base64"', "base64,", " ;base64"]) {
    assert.deepEqual(
      decodeTransfer(Buffer.from("aGVsbG8="), name),
      { bytes: Buffer.from("hello"), defect: null },
      name,
    );
  }
  for (const name of [
    "quoted - printable",
    "quoted printable",
    "quoted/printable",
    "Quoted-Printable;",
    "quotedprintable x",
  ]) {
    assert.equal(decodeTransfer(Buffer.from("=41"), name).bytes.toString(), "A", name);
  }
  for (const name of ["7bit;", "8-bit", "binary charset=x"]) {
    assert.deepEqual(decodeTransfer(Buffer.from("=41"), name), { bytes: Buffer.from("=41"), defect: null }, name);
  }
});

const base64 = (body: string) => {
  const { bytes, defect } = decodeTransfer(Buffer.from(body), "base64");
  return [bytes.toString(), defect];
};

it("ends base64 where what follows padding or an empty line is none, such as the footer of a list", () => {
  const footer = "\r\n-- \r\nlist mailing list\r\nlist@lists.example\r\n";
  assert.deepEqual(base64(`w6Q=${footer}`), ["ä", "bad_base64"]);
  assert.deepEqual(base64(`YWJj\r\n${footer}`), ["abc", "bad_base64"]);
  assert.deepEqual(base64(`YWJj\n\nlist mailing list\n`), ["abc", "bad_base64"]);
  // It goes on where it does go on, and nothing is lost at empty lines, in the middle of a line or before the first.
  assert.deepEqual(base64("YQ==\r\n\r\nYg==\r\n"), ["ab", null]);
  assert.deepEqual(base64("YQ==Yg== = \r\n=\r\nYw=="), ["abc", null]);
  assert.deepEqual(base64("\r\n\r\nYW\r\n\r\nJj\r\n\r\n"), ["abc", null]);
  assert.deepEqual(base64("YW*Jj\r\nZGVm"), ["abcdef", "bad_base64"]);
  for (const hostile of ["=\n", "\n\n", "a=", "= ", "aa\n\n", "a a\n\n"]) {
    assert.ok(processorMs(() => base64(`YWJj${hostile.repeat(500_000)}`)) < 1_000, JSON.stringify(hostile));
  }
});

it("takes a word behind the last line of base64 for no text, and lines of odd lengths for the file that they are", () => {
  const text = "It is the text of a mail, of fifty-seven octets a line and\nsome more.";
  const lines = (
    Buffer.from(`${text}!!`.slice(0, 69))
      .toString("base64")
      .match(/.{1,76}/g) ?? []
  ).join("\r\n");
  for (const word of ["unsubscribe", "footer.", "sent from here", "_____"]) {
    const { bytes, defect } = decodeTransfer(Buffer.from(`${lines}\r\n${word}\r\n`), "base64");
    assert.equal(bytes.toString(), `${text}!!`.slice(0, 69), word);
    assert.equal(defect, "bad_base64", word);
  }
  const odd = "SGVsbG8gdGhlc\r\nmUsIG9\r\nsZCBmcmllbmQh\r\n";
  assert.equal(decodeTransfer(Buffer.from(odd), "base64").bytes.toString(), "Hello there, old friend!");
});

it("reads uuencoded lines whose last blanks, which stand for zeros, were cut off on the way", () => {
  const undone = (body: string) => decodeTransfer(Buffer.from(body), "x-uuencode").bytes;
  const lines = ["begin 644 x", "#00  ", "&:&D     ", "*                ", "#0V%T", "`", "end", ""];
  const bytes = Buffer.from(`A\0\0hi\0\0\0\0${"\0".repeat(10)}Cat`);
  for (const end of ["\n", "\r\n"]) {
    assert.deepEqual(undone(lines.join(end)), bytes);
    assert.deepEqual(undone(lines.map((line) => line.trimEnd()).join(end)), bytes);
  }
  // Nothing comes out longer than it came in: blanks that nobody cut off could fill the memory.
  assert.equal(undone("_\r\n".repeat(100_000)).length, 300_000);
});
