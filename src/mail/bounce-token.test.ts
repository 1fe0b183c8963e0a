import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { makeToken, readToken } from "./bounce-token.ts";

const mac = (text: string): Buffer => createHmac("sha256", "key").update(text).digest();
const ID = "019a7f3e-52aa-7c11-8d2e-0123456789ab";

test("a token names the message and the recipient it was made for, in any case", () => {
  const uuid = fc.uuid();
  fc.assert(
    fc.property(uuid, fc.integer({ min: 0, max: 255 }), (id, position) => {
      const token = makeToken(id, position, mac);
      assert.match(token, /^[a-z2-7]{44}$/);
      assert.deepEqual(readToken(token, mac), { message_id: id, position });
      assert.deepEqual(readToken(token.toUpperCase(), mac), { message_id: id, position });
    }),
  );
});

test("a token with any character changed is refused", () => {
  const token = makeToken(ID, 3, mac);
  for (let at = 0; at < token.length - 1; at += 1) {
    const other = token[at] === "a" ? "b" : "a";
    assert.equal(readToken(token.slice(0, at) + other + token.slice(at + 1), mac), null, `at ${at}`);
  }
});

test("a token made with another key, or no token at all, is refused", () => {
  const other = (text: string): Buffer => createHmac("sha256", "other").update(text).digest();
  assert.equal(readToken(makeToken(ID, 0, other), mac), null);
  for (const text of ["", "a", "0".repeat(44), "a".repeat(43), "a".repeat(45), "é".repeat(44)]) {
    assert.equal(readToken(text, mac), null);
  }
});
