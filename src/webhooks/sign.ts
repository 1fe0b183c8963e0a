// X-Service-Signature: `t=<unix seconds>,v1=<hex>`, and a second `v1` while a rotation's grace lasts. The key is the whole
// `whsec_…` text as UTF-8, what is signed is `<t>.` and the exact bytes of the body. Not here: where secrets are kept.
import { createHmac } from "node:crypto";
import type { Random } from "../platform/random.ts";

/** 43 characters of base62: 256 bits. */
const SECRET_LENGTH = 43;

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
