// Verifies one signature over a message: body hash, key, header fields (RFC 6376 §6.1). Used for DKIM and for the message
// signatures of ARC. Does not read the tags (signature.ts) and does not choose between signatures (dkim.ts).

import { createHash, type KeyObject, verify } from "node:crypto";
import { domainOf } from "../address.ts";
import { type BodyHashes, hashBody } from "../dkim/body-hash.ts";
import { type Canonicalization, canonicalizeHeader, type HeaderField } from "../dkim/canonicalize.ts";
import type { LookUps } from "./look-ups.ts";
import type { KeyType, Signature } from "./signature.ts";
import { findKeys } from "./signing-key.ts";
import { withoutSignature } from "./tag-list.ts";

export type SignedMessage = { fields: HeaderField[]; body: Buffer };

/** `partial`: the body goes on behind what `l=` covers. `testing`: the signer's key says `t=y`. */
export type SignatureOutcome = {
  result: "pass" | "fail" | "permerror" | "temperror";
  reason: string;
  partial: boolean;
  testing: boolean;
};

export type BodyHashesByMode = Map<Canonicalization, BodyHashes>;

/** Hashes the body in every way that the signatures need. */
export async function hashBodyFor(body: Buffer, signatures: Signature[]): Promise<BodyHashesByMode> {
  const hashes: BodyHashesByMode = new Map();
  for (const mode of ["simple", "relaxed"] as const) {
    const lengths = signatures.filter((one) => one.body_mode === mode).map((one) => one.body_length);
    if (lengths.length > 0) hashes.set(mode, await hashBody(body, mode, lengths));
  }
  return hashes;
}

export type Verification = { message: SignedMessage; body_hashes: BodyHashesByMode; look_ups: LookUps; now_s: number };

/** Verifies a signature. `body_hashes` must come from `hashBodyFor` with this signature among the given ones. */
export async function verifySignature(signature: Signature, given: Verification): Promise<SignatureOutcome> {
  const body = given.body_hashes.get(signature.body_mode)!;
  const partial = signature.body_length !== null && signature.body_length < body.length;
  const outcome = (result: SignatureOutcome["result"], reason: string, testing = false) => ({
    ...{ result, reason, partial, testing },
  });
  // What needs no DNS first: most broken signatures are broken by a changed body.
  const timeProblem = outOfTime(signature, given.now_s);
  if (timeProblem !== null) return outcome("fail", timeProblem);
  const hash = body.by_length.get(signature.body_length);
  if (hash === undefined) return outcome("fail", "l= is longer than the body");
  if (hash !== signature.body_hash) return outcome("fail", "body hash did not verify");
  const keys = await findKeys(signature, given.look_ups);
  if ("problem" in keys) return outcome(keys.result, keys.problem);
  const input = signedBytes(signature, given.message.fields);
  const key = keys.find((one) => isSignedBy(one.key, signature, input));
  if (!key) return outcome("fail", "signature did not verify");
  if (key.same_domain_only && domainOf(signature.identity) !== signature.domain) {
    return outcome("permerror", "the key is for its very domain only", key.testing);
  }
  return outcome("pass", partial ? "l= leaves part of the body unsigned" : "", key.testing);
}

function outOfTime({ signed_at_s, expires_at_s }: Signature, nowS: number): string | null {
  if (expires_at_s === null) return null;
  if (signed_at_s !== null && expires_at_s < signed_at_s) return "x= is before t=";
  return expires_at_s < nowS ? "the signature has expired" : null;
}

// §5.4.2: of several fields with one name the last comes first; §3.7: then the signature's own, without its value.
function signedBytes(signature: Signature, fields: HeaderField[]): Buffer {
  const byName = new Map<string, HeaderField[]>(signature.signed_names.map((name) => [name, []]));
  for (const field of fields) {
    // §5.4: where h= names signatures it means those that were there before, and more of them than there are is "none added".
    if (!isOwnField(field, signature)) byName.get(field.name.toLowerCase())?.push(field);
  }
  const parts: Buffer[] = [];
  for (const name of signature.signed_names) {
    const field = byName.get(name)!.pop();
    if (field) parts.push(canonicalizeHeader(field.bytes, signature.header_mode));
  }
  const own = canonicalizeHeader(withoutSignature(signature.field), signature.header_mode);
  return Buffer.concat([...parts, own.subarray(0, own.length - 2)]);
}

/** True for the field that the signature was read from: both are slices of the message's bytes. */
function isOwnField({ bytes }: HeaderField, { field }: Signature): boolean {
  return bytes.buffer === field.buffer && bytes.byteOffset === field.byteOffset;
}

function isSignedBy(key: KeyObject, signature: Pick<Signature, "key_type" | "value">, input: Buffer): boolean {
  return isSigned(key, signature.key_type, { input, value: signature.value });
}

/** RSA hashes by itself, Ed25519 signs the SHA-256 of the input (RFC 8463 §3). */
export function isSigned(key: KeyObject, type: KeyType, signed: { input: Buffer; value: Buffer }): boolean {
  if (type === "rsa") return verify("sha256", signed.input, key, signed.value);
  return verify(null, createHash("sha256").update(signed.input).digest(), key, signed.value);
}
