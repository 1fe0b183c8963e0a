// API key secrets: `svc_live_`, `svc_test_` or `svc_mask_`, 32 base62 characters, then a 6-character base62 checksum (CRC-32), so
// that secret scanners can tell a key from a look-alike without asking us. Only the SHA-256 is kept.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Random } from "../platform/random.ts";

export type Environment = "live" | "test";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SHAPE = /^svc_(live|test)_[0-9A-Za-z_-]{16,128}$/;
const MASK_SHAPE = /^svc_mask_[0-9A-Za-z]{38}$/;

/** `mask`: for the masked addresses of one mailbox, and nothing else. */
export const KEY_KINDS = ["full", "mask"] as const;

/** A new secret: of a full key by its environment, of a mask key without a word of it. */
export function newSecret(random: Pick<Random, "token">, word: Environment | "mask"): string {
  const body = `svc_${word}_${random.token(32)}`;
  return body + checksum(body);
}

/**
 * The environment a secret names, or null when it has not the form of a key. Deliberate: the checksum is not demanded
 * here; operators may bring keys of their own for the first start, and an unknown key is refused by look-up anyway.
 */
export function secretEnvironment(secret: string): Environment | null {
  return (SHAPE.exec(secret)?.[1] as Environment | undefined) ?? null;
}

/** True if the text has the form of a mask key's secret. `secretEnvironment` answers null for such a key. */
export function isMaskSecret(secret: string): boolean {
  return MASK_SHAPE.test(secret);
}

/** What is stored and looked up: SHA-256 of the whole secret. Look-up by digest leaks nothing by timing. */
export function secretDigest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = "";
  for (let place = 0; place < 6; place += 1) {
    text = ALPHABET[rest % 62] + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
