import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { fixedClock } from "../platform/clock.ts";
import { createRandom } from "../platform/random.ts";
import { newSecret, secretDigest, secretEnvironment } from "./keys.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** As a secret scanner tells our keys from look-alikes: the last six characters are the CRC-32 of the others in base62. */
function isOwnSecret(secret: string): boolean {
  const number = [...secret.slice(-6)].reduce((value, character) => value * 62 + BASE62.indexOf(character), 0);
  return /^svc_(live|test)_[0-9A-Za-z]{38}$/.test(secret) && number === crc32(secret.slice(0, -6));
}

const random = createRandom(fixedClock(Date.UTC(2026, 10, 20)));

test("a secret names its environment, has 32 characters and a checksum that one changed character breaks", () => {
  for (const environment of ["live", "test"] as const) {
    const secret = newSecret(random, environment);
    assert.match(secret, new RegExp(`^svc_${environment}_[0-9A-Za-z]{38}$`));
    assert.equal(secretEnvironment(secret), environment);
    assert.equal(isOwnSecret(secret), true);
    for (let at = 9; at < secret.length; at += 1) {
      const changed = secret.slice(0, at) + (secret[at] === "a" ? "b" : "a") + secret.slice(at + 1);
      assert.equal(isOwnSecret(changed), false, `character ${at}`);
    }
  }
});

test("what has not the form of a key names no environment", () => {
  for (const text of [
    "",
    "svc_live_",
    "svc_live_short",
    "svc_prod_0123456789abcdef",
    "x".repeat(47),
    "svc_live_ü123456789012345",
  ]) {
    assert.equal(secretEnvironment(text), null, text);
  }
});

test("a digest tells secrets apart and does not hold them", () => {
  const secret = newSecret(random, "live");
  assert.equal(secretDigest(secret).length, 32);
  const other = secret.slice(0, -1) + (secret.endsWith("x") ? "y" : "x");
  assert.notDeepEqual(secretDigest(secret), secretDigest(other));
});
