import assert from "node:assert/strict";
import { it } from "node:test";
import { reasonOf } from "./mime-reasons.ts";

const about = { defects: ["no_empty_line", "unknown_charset"], bytes: Buffer.from(""), other: undefined };
const found = { field: "text", want: "Hello", got: "Hell" };

it("a defect of the mail explains what was read otherwise, never what was lost of its head", () => {
  assert.match(reasonOf([found], about) ?? "", /RFC 5322/);
  const brokenHead = { ...about, defects: ["no_empty_line"] };
  assert.equal(reasonOf([{ field: "from", want: "a@b.example", got: "c@d.example" }], brokenHead), null);
  const lost = { field: "subject", want: "Hello", got: "" };
  assert.equal(reasonOf([lost], about), null);
  assert.equal(reasonOf([{ ...lost, got: "null" }], { ...about, other: { is_python: true, defects: 1 } }), null);
});

it("every difference needs a reason, and none is none", () => {
  assert.equal(reasonOf([found, { field: "date", want: "true", got: "false" }], { ...about, defects: [] }), null);
  assert.equal(reasonOf([], about), null);
});

it("an attachment that lost its CR is explained, and one that was cut off is not", () => {
  const plain = { defects: [], bytes: Buffer.from(""), other: undefined };
  const content = (want: string, got: string) => reasonOf([{ field: "attachment 0 content", want, got }], plain);
  assert.match(content("610a620a", "610d0a620d0a") ?? "", /drops CR/);
  assert.equal(content("610a620a", "610d0a62"), null);
});

it("an attached message explains a text that is not shown only where the mail holds one", () => {
  const text = { field: "has text", want: "true", got: "false" };
  const bytes = Buffer.from("Content-Type: message/rfc822\r\n\r\n");
  assert.match(reasonOf([text], { ...about, defects: [], bytes }) ?? "", /attached message/);
  assert.equal(reasonOf([text], { ...about, defects: [] }), null);
});
