import assert from "node:assert/strict";
import { it } from "node:test";
import { reasonOf } from "./mime-reasons.ts";

const about = { defects: ["no_empty_line", "unknown_charset"], bytes: Buffer.from(""), other: undefined };
const found = { field: "subject", want: "Hello", got: "Hell" };

it("a defect of the mail explains what was read otherwise, never what was lost of its head", () => {
  assert.match(reasonOf([found], about) ?? "", /RFC 5322/);
  assert.equal(reasonOf([{ ...found, got: "" }], about), null);
  assert.equal(reasonOf([{ ...found, got: "null" }], { ...about, other: { is_python: true, defects: 1 } }), null);
});

it("every difference needs a reason, and none is none", () => {
  assert.equal(reasonOf([found, { field: "date", want: "true", got: "false" }], { ...about, defects: [] }), null);
  assert.equal(reasonOf([], about), null);
});

it("an attached message explains a text that is not shown only where the mail holds one", () => {
  const text = { field: "has text", want: "true", got: "false" };
  const bytes = Buffer.from("Content-Type: message/rfc822\r\n\r\n");
  assert.match(reasonOf([text], { ...about, defects: [], bytes }) ?? "", /attached message/);
  assert.equal(reasonOf([text], { ...about, defects: [] }), null);
});
