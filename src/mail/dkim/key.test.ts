// Keys, their DNS record, and the hints for records that are wrong.
import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { test } from "node:test";
import { compareDkimRecord, dkimRecord, generateDkimKey, loadSigningKey } from "./key.ts";

const rsa = await generateDkimKey("rsa");
const other = await generateDkimKey("rsa");
const ed = await generateDkimKey("ed25519");
const expected = dkimRecord(rsa.public_key, "rsa");

test("an RSA key has 2048 bits and p= is its SubjectPublicKeyInfo", () => {
  const key = createPublicKey({ key: Buffer.from(rsa.public_key, "base64"), format: "der", type: "spki" });
  assert.equal(key.asymmetricKeyDetails?.modulusLength, 2048);
  assert.equal(createPublicKey(rsa.private_key_pem).equals(key), true);
});

test("an Ed25519 key publishes its 32 bytes alone", () => {
  const bytes = Buffer.from(ed.public_key, "base64");
  assert.equal(bytes.length, 32);
  const jwk = createPublicKey(ed.private_key_pem).export({ format: "jwk" });
  assert.equal(bytes.toString("base64url"), jwk.x);
});

test("a stored key knows its algorithm, and another kind of key is refused", async () => {
  const owner = { domain: "example.com", selector: "postern1" };
  assert.equal(loadSigningKey(rsa.private_key_pem, owner).algorithm, "rsa");
  assert.equal(loadSigningKey(ed.private_key_pem, owner).algorithm, "ed25519");
  const { generateKeyPairSync } = await import("node:crypto");
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" });
  assert.throws(() => loadSigningKey(ec.toString(), owner), /not a DKIM key type/);
});

test("the record value is what is published", () => {
  assert.equal(dkimRecord("AAAA", "ed25519"), "v=DKIM1; k=ed25519; p=AAAA");
});

const p = rsa.public_key;
const matches: [string, string][] = [
  ["the value itself", expected],
  ["no spaces and a last semicolon", `v=DKIM1;k=rsa;p=${p};`],
  ["the tags in another order, with others", `v=DKIM1; t=s; s=email; h=sha1:sha256; n=hello; p=${p}; k=rsa`],
  ["no version and no key type", `p=${p}`],
  ["white space inside the key", `v=DKIM1; k=rsa; p=${p.slice(0, 100)} \t${p.slice(100)}`],
];
for (const [what, found] of matches) {
  test(`a record matches with ${what}`, () => {
    assert.deepEqual(compareDkimRecord([found], expected), { status: "match", hint: null });
  });
}

test("an unrelated TXT record beside ours does not matter", () => {
  assert.equal(compareDkimRecord(["google-site-verification=abc", expected], expected).status, "match");
});

test("a testing flag matches with a remark", () => {
  const result = compareDkimRecord([`v=DKIM1; k=rsa; t=y:s; p=${p}`], expected);
  assert.equal(result.status, "match");
  assert.match(result.hint ?? "", /t=y/);
});

const half = 120;
const mismatches: [string, string[], RegExp][] = [
  ["nothing found", [], /No TXT record/],
  ["a revoked key", ["v=DKIM1; k=rsa; p="], /revoked/],
  ["another key", [dkimRecord(other.public_key, "rsa")], /another key/],
  ["another key type", [dkimRecord(ed.public_key, "ed25519")], /k=ed25519/],
  ["an Ed25519 key without k=", [`v=DKIM1; p=${ed.public_key}`], /another key/],
  ["a key cut off", [expected.slice(0, 255)], /cut off after \d+ of \d+/],
  ["something after the key", [`${expected}x`], /follows the key/],
  ["quotes in the value", [`"${expected.slice(0, half)}" "${expected.slice(half)}"`], /quotation marks/],
  ["escaped semicolons", [expected.replaceAll(";", "\\;")], /backslashes/],
  ["typographic quotes", [`\u201c${expected}\u201d`], /typographic|not a DKIM/],
  ["something that is no tag", [`${expected}; t=s; remember to ask Bob`], /not a tag/],
  ["a tag twice", [`${expected}; p=${p}`], /a tag twice/],
  ["two records, ours among them", [expected, dkimRecord(other.public_key, "rsa")], /2 DKIM records/],
  ["ours published twice", [expected, expected], /2 DKIM records/],
  ["two foreign records", [dkimRecord(other.public_key, "rsa"), "v=DKIM1; p="], /none is ours/],
  ["the parts as two records", [expected.slice(0, half), expected.slice(half)], /split over several/],
  ["the parts as two records, turned round", [expected.slice(half), expected.slice(0, half)], /split over several/],
  ["an SPF record", ["v=spf1 -all"], /SPF record/],
  ["a DMARC record", ["v=DMARC1; p=none"], /DMARC|not a DKIM/],
  ["some other text", ["hello"], /not a DKIM record/],
  ["a wrong version", [`v=DKIM2; k=rsa; p=${p}`], /begin with v=DKIM1/],
  ["the version not first", [`k=rsa; v=DKIM1; p=${p}`], /begin with v=DKIM1/],
  ["only SHA-1 allowed", [`v=DKIM1; h=sha1; p=${p}`], /h=sha1/],
  ["another service", [`v=DKIM1; s=tlsrpt; p=${p}`], /not for e-mail/],
  ["no key at all", ["v=DKIM1; k=rsa"], /no p=/],
  ["dots in the key", [`v=DKIM1; p=${p.slice(0, 40)}...`], /cannot stand in a key/],
];
for (const [what, found, hint] of mismatches) {
  test(`the hint for ${what} says what is wrong`, () => {
    const result = compareDkimRecord(found, expected);
    assert.equal(result.status, "mismatch");
    assert.match(result.hint ?? "", hint);
  });
}

test("an enormous answer is cut before it is read", () => {
  const records = Array.from({ length: 500 }, () => `v=DKIM1; p=${"A".repeat(60_000)}`);
  assert.equal(compareDkimRecord(records, expected).status, "mismatch");
});
