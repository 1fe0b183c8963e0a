// Two signatures of one call by one secret. X-Service-Signature: `t=<unix seconds>,v1=<hex>`, and a second `v1` while a
// rotation's grace lasts; the key is the whole `whsec_…` text as UTF-8, what is signed is `<t>.` and the exact bytes of the
// body. And the headers of Standard Webhooks (https://www.standardwebhooks.com), for whose libraries the key is what stands
// behind `whsec_`, read as base64. Not here: where secrets are kept.
import { createHmac } from "node:crypto";
import type { Random } from "../platform/random.ts";

/** Characters of base62: 261 bits, and whole groups of base64. */
const SECRET_LENGTH = 44;

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
  const sign = (secret: string): string => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${unixSeconds}.`).update(body).digest("base64")}`;
  };
  return {
    "webhook-id": id,
    "webhook-timestamp": String(unixSeconds),
    "webhook-signature": secrets.map(sign).join(" "),
  };
}
