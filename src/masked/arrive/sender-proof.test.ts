// Every way to forge a sender, and the few that are no forgery.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mayReply, type Proof, verdictsOf } from "./sender-proof.ts";

const D = "anna@real.example";
const proof = (spf: boolean, dkim: boolean, dmarc: string, spfResult = spf ? "pass" : "fail"): Proof => ({
  spf: { result: spfResult, from_aligned: spf },
  dkim: { result: dkim ? "pass" : "none", from_aligned: dkim },
  dmarc: { result: dmarc },
});
const decide = (from: (string | null)[], envelope_from: string, given: Proof) =>
  mayReply({ from, envelope_from, destinations: [D, "bob@real.example"] }, given).kind;

test("an aligned signature, or SPF of the very address, proves the sender", () => {
  assert.equal(decide([D], D, proof(false, true, "pass")), "allowed");
  assert.equal(decide([D.toUpperCase()], "bounce@list.example", proof(false, true, "none")), "allowed");
  assert.equal(decide([D], D, proof(true, false, "pass")), "allowed");
  assert.equal(decide([D], D, proof(true, false, "none")), "allowed");
});

test("the owner's own tags, and return paths that name the mailbox behind a mark or before a recipient, prove it", () => {
  const bySpf = proof(true, false, "pass");
  for (const envelope of [
    "anna+shop@real.example",
    "prvs=1234abcdef=anna@real.example",
    "prvs=anna/1234abcdef@real.example",
    "btv1==7890abcd==anna@real.example",
    "msprvs1=19123abcde=anna@real.example",
    "anna+shop=contact.example@real.example",
    "anna-shop=contact.example@real.example",
    "prvs=1234abcdef=anna+shop@real.example",
  ]) {
    assert.equal(decide([D], envelope, bySpf), "allowed", envelope);
  }
  assert.equal(decide(["anna+orders@real.example"], "anna@real.example", bySpf), "allowed");
  assert.equal(decide(["anna+orders@real.example"], "x@y.example", proof(false, true, "pass")), "allowed");
  for (const envelope of [
    "eve+anna@real.example",
    "prvs=1234abcdef=eve@real.example",
    "prvs=eve/1234abcdef@real.example",
    "anna/1234abcdef@real.example",
    "annabel-shop=contact.example@real.example",
    "anna-bell@real.example",
    "anna-shop=contact.example@evil.example",
    "bounces-anna=real.example@real.example",
    "+anna@real.example",
  ]) {
    assert.equal(decide([D], envelope, bySpf), "refused", envelope);
  }
  assert.equal(decide(["eve+anna@real.example"], "eve+anna@real.example", bySpf), "refused");
});

test("forged senders are refused", () => {
  const cases: [why: string, from: (string | null)[], envelope: string, given: Proof][] = [
    ["envelope only", ["eve@evil.example"], D, proof(false, false, "fail")],
    ["From only", [D], "eve@evil.example", proof(false, false, "fail")],
    ["another domain's signature", [D], "eve@evil.example", proof(false, false, "none")],
    ["SPF of a provider that others share", [D], "eve@real.example", proof(true, false, "pass")],
    ["the same without DMARC", [D], "eve@real.example", proof(true, false, "none")],
    ["a failed p=none", [D], D, proof(false, false, "fail")],
    ["a pass without alignment", [D], D, proof(false, false, "pass")],
    ["two authors", [D, "eve@evil.example"], D, proof(true, true, "pass")],
    ["no author", [], D, proof(true, true, "pass")],
    ["an author who cannot be read", [null], D, proof(true, true, "pass")],
    ["somebody else, well proven", ["eve@evil.example"], "eve@evil.example", proof(true, true, "pass")],
    ["the null sender", [D], "", proof(true, false, "pass")],
  ];
  for (const [why, from, envelope, given] of cases) assert.equal(decide(from, envelope, given), "refused", why);
});

test("an international mailbox may be written either way, in From and in the envelope", () => {
  const ascii = "anna@xn--bcher-kva.example";
  for (const from of [ascii, "anna@bücher.example", "anna@BÜCHER.example"]) {
    for (const envelope_from of [ascii, "anna@bücher.example"]) {
      const author = { from: [from], envelope_from, destinations: [ascii] };
      assert.deepEqual(mayReply(author, proof(true, false, "none")), { kind: "allowed", email: ascii });
    }
  }
});

test("silence of DNS is no proof and no refusal", () => {
  assert.equal(decide([D], D, proof(false, false, "temperror")), "unknown");
  assert.equal(decide([D], D, proof(false, false, "none", "temperror")), "unknown");
});

test("the reason holds no address", () => {
  const refused = mayReply(
    { from: ["eve@evil.example"], envelope_from: D, destinations: [D] },
    proof(true, true, "pass"),
  );
  assert.ok(refused.kind === "refused" && !refused.reason.includes("@"));
});

test("a forged mailbox of the owner is answered like anybody's forged address, whatever DNS says", () => {
  const proofs = [false, true].flatMap((spf) =>
    ["pass", "fail", "none", "temperror"].flatMap((dmarc) =>
      [spf ? "pass" : "fail", "temperror", "none"].map((result) => proof(spf, false, dmarc, result)),
    ),
  );
  for (const given of proofs) {
    const answer = (from: string) =>
      mayReply({ from: [from], envelope_from: "eve@real.example", destinations: [D] }, given);
    assert.deepEqual(answer(D), answer("nobody@real.example"));
  }
});

test("the activity tells a mail without a signature from one whose signature fails", () => {
  const shown = (result: string, from_aligned = false) =>
    verdictsOf({ ...proof(true, false, "none"), dkim: { result, from_aligned } }).dkim;
  assert.deepEqual(
    [shown("none"), shown("fail"), shown("temperror"), shown("pass"), shown("pass", true)],
    ["none", "fail", "temperror", "fail", "pass"],
  );
});
