import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { rounds } from "../../test/support/rounds.ts";
import { fixedClock } from "../platform/clock.ts";
import { createRandom } from "../platform/random.ts";
import { newSigningSecret, signatureHeader, standardHeaders } from "./sign.ts";

const verifier = new Stripe("sk_test_x").webhooks.signature!;
const VECTORS = resolve(import.meta.dirname, "../../../shared/data/webhook-signature/vectors.json");
const NO_VECTORS = !existsSync(VECTORS) && "no ../shared/data";

type Vector = { name: string; secret: string; now: number; body_base64: string; header: string; seed_rule?: string };

function accepts(body: Buffer, header: string, secret: string, atSeconds: number): boolean {
  try {
    return verifier.verifyHeader(body, header, secret, 300, undefined, atSeconds * 1000);
  } catch {
    return false;
  }
}

test("published vectors: what the receiver must accept is what we send, and nothing else is", {
  skip: NO_VECTORS,
}, () => {
  const vectors = JSON.parse(readFileSync(VECTORS, "utf8")) as Vector[];
  const judged = vectors.filter((vector) => vector.seed_rule === "accept" || vector.seed_rule === "reject");
  assert.ok(judged.length >= 15);
  for (const { name, secret, now, body_base64, header, seed_rule } of judged) {
    const ours = signatureHeader([secret], now, Buffer.from(body_base64, "base64"));
    const fields = header.split(",");
    const isOurs = ours.split(",").every((field) => fields.includes(field));
    assert.equal(isOurs, seed_rule === "accept", name);
  }
});

test("published vectors: the header itself, with one secret and with two", { skip: NO_VECTORS }, () => {
  const vectors = JSON.parse(readFileSync(VECTORS, "utf8")) as Vector[];
  const find = (name: string) => vectors.find((vector) => vector.name === name) as Vector;
  const single = find("single v1 / ascii");
  const body = Buffer.from(single.body_base64, "base64");
  assert.equal(signatureHeader([single.secret], single.now, body), single.header);
  const rotation = find("rotation grace: two v1, verify with previous");
  assert.equal(signatureHeader([single.secret, rotation.secret], rotation.now, body), rotation.header);
});

test("Stripe's verifier accepts any body, and refuses it after any one bit is turned", () => {
  const secret = newSigningSecret(createRandom(fixedClock(Date.UTC(2026, 10, 20))));
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((json) => Buffer.from(json, "utf8")),
    fc.constantFrom("", "\u2028\u2029", "😀", "\u0000").map((text) => Buffer.from(JSON.stringify({ text }))),
  );
  fc.assert(
    fc.property(bodies, fc.nat(), (body, where) => {
      const header = signatureHeader([secret], 1_795_000_000, body);
      assert.match(header, /^t=1795000000,v1=[0-9a-f]{64}$/);
      // The verifier reads bytes as UTF-8 text; other bytes are for receivers that do not.
      if (Buffer.from(body.toString("utf8"), "utf8").equals(body)) {
        assert.equal(accepts(body, header, secret, 1_795_000_000), true);
      }
      if (body.length === 0) return;
      const turned = Buffer.from(body);
      turned[where % body.length]! ^= 1 << (where % 8);
      assert.notEqual(signatureHeader([secret], 1_795_000_000, turned), header);
      assert.equal(accepts(turned, header, secret, 1_795_000_000), false);
    }),
    { numRuns: rounds(200, 1_000) },
  );
});

test("secrets have the prefix, 261 bits, and are never the same", () => {
  const random = createRandom(fixedClock(Date.UTC(2026, 10, 20)));
  const secrets = Array.from({ length: 1_000 }, () => newSigningSecret(random));
  for (const secret of secrets) assert.match(secret, /^whsec_[0-9A-Za-z]{44}$/);
  assert.equal(new Set(secrets).size, 1_000);
});

test("a library of Standard Webhooks takes the same call with the same secret, also while a rotation's grace lasts", () => {
  const random = createRandom(fixedClock(0));
  const [secret, before, other] = [newSigningSecret(random), newSigningSecret(random), newSigningSecret(random)];
  const body = Buffer.from('{"event":"email.delivered","subject":"Grüße – “✓”"}');
  const unixSeconds = Math.floor(Date.now() / 1_000);
  const headers = standardHeaders([secret, before], { id: "0193a5c0-7b1e-7000-8000-000000000001", unixSeconds, body });
  for (const known of [secret, before]) {
    assert.deepEqual(new Webhook(known).verify(body, headers), JSON.parse(body.toString()));
  }
  assert.throws(() => new Webhook(other).verify(body, headers), /No matching signature/);
  assert.throws(() => new Webhook(secret).verify(`${body} `, headers), /No matching signature/);
});
