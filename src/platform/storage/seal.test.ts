import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createSeal, SealBroken, sealedHead } from "./seal.ts";

const seal = createSeal(Buffer.alloc(32, 7));
const secret = Buffer.from("whsec_0123456789abcdef");

test("what is sealed opens to the same bytes, from none to a megabyte", () => {
  for (const length of [0, 1, 15, 16, 17, 1_000_000]) {
    const plain = randomBytes(length);
    assert.deepEqual(seal.open(seal.seal(plain, "x"), "x"), plain);
  }
});

test("the same secret sealed twice differs, and neither shows it", () => {
  const [first, second] = [seal.seal(secret, "x"), seal.seal(secret, "x")];
  assert.notDeepEqual(first, second);
  assert.equal(first.indexOf(secret.subarray(0, 8)), -1);
});

test("a digest that is asked for often is the same, and another under another root", () => {
  const own = createSeal(Buffer.alloc(32, 7));
  const [first, second] = [own.hashOften("a@b.example", "x"), own.hashOften("a@b.example", "x")];
  assert.deepEqual([first, second], [own.hash("a@b.example", "x"), first]);
  assert.notDeepEqual(own.hashOften("a@b.example", "y"), first);
  own.use({ root: Buffer.alloc(32, 8), data: new Map(), sealing: 0 });
  assert.notDeepEqual(own.hashOften("a@b.example", "x"), first);
});

test("a value that is opened often is opened again under other keys, and in its context only", () => {
  const own = createSeal(Buffer.alloc(32, 7));
  const sealed = own.seal(secret, "x");
  assert.deepEqual([own.openOften(sealed, "x"), own.openOften(sealed, "x")], [secret, secret]);
  assert.throws(() => own.openOften(sealed, "y"), SealBroken);
  own.use({ root: Buffer.alloc(32, 8), data: new Map(), sealing: 0 });
  assert.throws(() => own.openOften(sealed, "x"), SealBroken);
});

test("a value does not open in another context", () => {
  const sealed = seal.seal(secret, "webhook-secret:1");
  assert.throws(() => seal.open(sealed, "webhook-secret:2"), SealBroken);
  assert.throws(() => seal.open(sealed, ""), SealBroken);
});

test("every single flipped bit is noticed", () => {
  const sealed = seal.seal(secret, "x");
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const damaged = Buffer.from(sealed);
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    assert.throws(() => seal.open(damaged, "x"), SealBroken, `bit ${bit}`);
  }
});

test("every shortened value is noticed, and so is a longer one", () => {
  const sealed = seal.seal(secret, "x");
  for (let length = 0; length < sealed.length; length += 1) {
    assert.throws(() => seal.open(sealed.subarray(0, length), "x"), SealBroken);
  }
  assert.throws(() => seal.open(Buffer.concat([sealed, Buffer.alloc(1)]), "x"), SealBroken);
});

test("another master key opens nothing, and the message tells nothing secret", () => {
  const sealed = seal.seal(secret, "x");
  assert.throws(
    () => createSeal(Buffer.alloc(32, 8)).open(sealed, "x"),
    (error: Error) => error instanceof SealBroken && /another master key/.test(error.message),
  );
});

test("a digest depends on text, context and master key, and is stable", () => {
  const digest = seal.hash("key", "api-key");
  assert.equal(digest.length, 32);
  assert.deepEqual(createSeal(Buffer.alloc(32, 7)).hash("key", "api-key"), digest);
  assert.notDeepEqual(seal.hash("kez", "api-key"), digest);
  assert.notDeepEqual(seal.hash("key", "token"), digest);
  assert.notDeepEqual(createSeal(Buffer.alloc(32, 8)).hash("key", "api-key"), digest);
});

test("thousands of contexts pass through without losing earlier values", () => {
  const sealed = seal.seal(secret, "first");
  for (let index = 0; index < 2_500; index += 1) seal.hash("x", `context ${index}`);
  assert.deepEqual(seal.open(sealed, "first"), secret);
});

test("a master key of another length is refused", () => {
  assert.throws(() => createSeal(Buffer.alloc(16)), RangeError);
});

test("with data keys new values are sealed with the newest, those from before stay readable, and digests stay", () => {
  const before = seal.seal(secret, "x");
  const root = Buffer.alloc(32, 7);
  const ring = createSeal(root);
  const [first, second] = [Buffer.alloc(32, 8), Buffer.alloc(32, 9)];
  ring.use({ root, data: new Map([[1, first]]), sealing: 1 });
  const withFirst = ring.seal(secret, "x");
  assert.deepEqual(withFirst.subarray(0, 2), sealedHead(1));
  const both = new Map([
    [1, first],
    [2, second],
  ]);
  ring.use({ root, data: both, sealing: 2 });
  for (const sealed of [before, withFirst, ring.seal(secret, "x")]) assert.deepEqual(ring.open(sealed, "x"), secret);
  assert.deepEqual(ring.hash("key", "api-key"), seal.hash("key", "api-key"));

  ring.use({ root, data: new Map([[1, second]]), sealing: 1 });
  assert.throws(() => ring.open(withFirst, "x"), /damaged/, "another key under the same number");
  assert.throws(() => seal.open(withFirst, "x"), /another master key/);
  const noNumber = Buffer.from(withFirst);
  noNumber[1] = 0;
  assert.throws(() => ring.open(noNumber, "x"), SealBroken);
  assert.throws(() => ring.use({ root, data: new Map(), sealing: 1 }), RangeError);
});
