// Two signatures of one call by one secret. X-Service-Signature: `t=<unix seconds>,v1=<hex>`, and a second `v1` while a
// rotation's grace lasts; the key is the whole `whsec_…` text as UTF-8, what is signed is `<t>.` and the exact bytes of the
// body. And the headers of Standard Webhooks (https://www.standardwebhooks.com), for whose libraries the key is what stands
// behind `whsec_`, read as base64. Not here: where secrets are kept.
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { createLru } from "../platform/fair/lru.ts";
import type { Random } from "../platform/random.ts";

/** Characters of base62: 261 bits, and whole groups of base64. */
const SECRET_LENGTH = 44;
/** Given a key's bytes, Node makes an object of them for each call, which takes 23 of 29 µs. */
const standardKeys = createLru<KeyObject>(1_000);

/** A new signing secret. */
export function newSigningSecret(random: Pick<Random, "token">): string {
  return `whsec_${random.token(SECRET_LENGTH)}`;
}

/** The header's value; `secrets` newest first, at least one. */
export function signatureHeader(secrets: readonly string[], unixSeconds: number, body: Buffer): string {
  const signatures = secrets.map((secret) => `v1=${hmac(secret, unixSeconds, body)}`);
  return [`t=${unixSeconds}`, ...signatures].join(",");
}

function hmac(secret: string, unixSeconds: number, body: Buffer): string {
  return createHmac("sha256", secret).update(`${unixSeconds}.`).update(body).digest("hex");
}

/** The three headers of Standard Webhooks; `secrets` newest first, at least one. */
export function standardHeaders(
  secrets: readonly string[],
  { id, unixSeconds, body }: { id: string; unixSeconds: number; body: Buffer },
): Record<string, string> {
  const sign = (secret: string): string =>
    `v1,${createHmac("sha256", standardKey(secret)).update(`${id}.${unixSeconds}.`).update(body).digest("base64")}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": String(unixSeconds),
    "webhook-signature": secrets.map(sign).join(" "),
  };
}

function standardKey(secret: string): KeyObject {
  const known = standardKeys.get(secret);
  if (known) return known;
  const key = createSecretKey(Buffer.from(secret.replace(/^whsec_/, ""), "base64"));
  standardKeys.set(secret, key);
  return key;
}
