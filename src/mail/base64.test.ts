// What is base64 in a request, against Node's own encoder, and texts that took the process hostage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase64 } from "./base64.ts";

test("what Node encodes is decoded, with padding, without it, and with line breaks", () => {
  for (let length = 0; length < 200; length += 1) {
    const bytes = Buffer.from(Array.from({ length }, (_, at) => (at * 151 + length) % 256));
    const text = bytes.toString("base64");
    for (const given of [text, text.replace(/=+$/, ""), text.replace(/.{76}/g, "$&\r\n"), ` ${text}\n`]) {
      assert.deepEqual(decodeBase64(given), bytes, JSON.stringify(given));
    }
  }
  assert.deepEqual(decodeBase64("a G\tk =\r\n= "), Buffer.from("hi"));
});

test("what is not base64, or is cut off amid a byte, is not decoded", () => {
  for (const text of ["%", "a-_b", "aGk=aGk=", "=aGk", "a===", "aGkxa", "a", "aGk\u00a0=", "aGk\u0141", "\0"]) {
    assert.equal(decodeBase64(text), null, JSON.stringify(text));
  }
});

// A pattern that tries each way to part the blanks needs hours for these; the runner ends the file long before.
test("blanks without end before what is not base64 take no longer than other texts", () => {
  const blanks = " \r\n".repeat(1_000_000);
  for (const text of [`${blanks}!`, `aGk=${blanks}!`, `aGk=${blanks}=${blanks}!`, `${blanks}=${blanks}=${blanks}=`]) {
    assert.equal(decodeBase64(text), null);
  }
  assert.deepEqual(decodeBase64(`aG${blanks}k${blanks}=${blanks}`), Buffer.from("hi"));
});
