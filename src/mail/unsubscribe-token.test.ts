import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Leave, makeUnsubscribeToken, readUnsubscribeToken } from "./unsubscribe-token.ts";

const mac = (text: string) => createHmac("sha256", "k").update(text).digest();
const otherMac = (text: string) => createHmac("sha256", "other").update(text).digest();
const leave: Leave = {
  org_id: "0193aabb-ccdd-7eef-8123-456789abcdef",
  message_id: "0193aabb-ccdd-7eef-8123-456789abcde0",
  domain_id: "0193aabb-ccdd-7eef-8123-456789abcde1",
  email: "anna@recipient.example",
  list: "news",
};

describe("an unsubscribe token", () => {
  it("says who leaves what", () => {
    assert.deepEqual(readUnsubscribeToken(makeUnsubscribeToken(leave, mac), mac), leave);
    const whole = { ...leave, list: null, email: "ünï@recipient.example" };
    assert.deepEqual(readUnsubscribeToken(makeUnsubscribeToken(whole, mac), mac), whole);
    assert.equal(makeUnsubscribeToken(leave, mac), makeUnsubscribeToken({ ...leave }, mac));
  });

  it("reads back any address and list", () => {
    const text = (max: number) => fc.string({ unit: "grapheme", minLength: 1, maxLength: max });
    fc.assert(
      fc.property(text(60), text(60), (email, list) => {
        fc.pre(Buffer.byteLength(email) <= 254);
        const given = { ...leave, email, list };
        assert.deepEqual(readUnsubscribeToken(makeUnsubscribeToken(given, mac), mac), given);
      }),
    );
  });

  it("fits into one header line and one path segment at its longest", () => {
    const longest = makeUnsubscribeToken({ ...leave, email: "ü".repeat(127), list: "日".repeat(64) }, mac);
    assert.match(longest, /^[A-Za-z0-9_-]+$/);
    assert.ok(longest.length <= 700, `${longest.length}`);
    assert.throws(() => makeUnsubscribeToken({ ...leave, email: "x".repeat(255) }, mac), RangeError);
  });

  it("is nothing when a single bit differs, or under another key", () => {
    const token = makeUnsubscribeToken(leave, mac);
    assert.equal(readUnsubscribeToken(token, otherMac), null);
    const bytes = Buffer.from(token, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      assert.equal(readUnsubscribeToken(changed.toString("base64url"), mac), null);
    }
  });

  it("is nothing in any other form", () => {
    const token = makeUnsubscribeToken(leave, mac);
    for (const text of [
      "",
      "x",
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      "A".repeat(200),
      `${token}/..`,
      "A".repeat(2_000),
    ]) {
      assert.equal(readUnsubscribeToken(text, mac), null);
    }
    fc.assert(fc.property(fc.base64String(), (text) => assert.equal(readUnsubscribeToken(text, mac), null)));
  });
});
