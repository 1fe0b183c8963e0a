// Public keys of signers (RFC 6376 §3.6, RFC 8463 §4): the records at `selector._domainkey.domain`, read and made ready.
// Keys of less than 1,024 bits (RFC 8301 §3.2) or more than 4,096 (our time) are not used.

import { createPublicKey, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { LookUps } from "./look-ups.ts";
import type { KeyType } from "./signature.ts";
import { colonList, parseTagList, type TagList, withoutFws } from "./tag-list.ts";

/** `same_domain_only`: `t=s`, the identity must be of the very domain. `testing`: `t=y`. */
export type SigningKey = { key: KeyObject; bits: number; same_domain_only: boolean; testing: boolean };

export type KeyProblem = { problem: string; result: "fail" | "permerror" | "temperror" };

const keyBitsMin = 1_024;
const keyBitsMax = 4_096;
const recordLengthMax = 4_000;
const recordsTriedMax = 4;

/**
 * The keys a signature may have been made with, or why there is none. Several records are all given (§6.1.2 lets a
 * verifier try each), at most four.
 */
export async function findKeys(
  signer: { domain: string; selector: string; key_type: KeyType },
  lookUps: LookUps,
): Promise<SigningKey[] | KeyProblem> {
  const answer = await lookUps.txt(`${signer.selector}._domainkey.${signer.domain}`);
  if (answer.kind === "failed") return { problem: `no answer for the key: ${answer.reason}`, result: "temperror" };
  if (answer.kind === "absent") return { problem: "no key", result: "permerror" };
  const read = answer.records.slice(0, recordsTriedMax).map((record) => readKeyRecord(record, signer.key_type));
  const keys = read.filter((key) => "key" in key);
  return keys.length > 0 ? keys : (read[0] as KeyProblem);
}

/** Reads one record for a type of key. */
export function readKeyRecord(text: string, wanted: KeyType): SigningKey | KeyProblem {
  if (text.length > recordLengthMax) return { problem: "the key record is too long", result: "permerror" };
  const tags = parseTagList(Buffer.from(text, "utf8").toString("latin1"), true);
  if (tags === null) return { problem: "syntax error in the key record", result: "permerror" };
  const problem = recordProblem(tags, wanted);
  if (problem !== null) return { problem, result: "permerror" };
  const key = loadKey(withoutFws(tags.get("p")!), wanted);
  if (key === null) return { problem: "p= holds no such key", result: "permerror" };
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 256;
  if (wanted === "rsa" && bits < keyBitsMin) return { problem: `the key has only ${bits} bits`, result: "fail" };
  if (bits > keyBitsMax) return { problem: `the key has ${bits} bits`, result: "fail" };
  const flags = colonList(tags.get("t") ?? "");
  return { key, bits, same_domain_only: flags.includes("s"), testing: flags.includes("y") };
}

function recordProblem(tags: TagList, wanted: KeyType): string | null {
  const version = tags.get("v");
  // §3.6.1: v= is the first tag if it is there at all.
  if (version !== undefined && (version !== "DKIM1" || tags.keys().next().value !== "v")) return "unknown key version";
  if ((tags.get("k") ?? "rsa").toLowerCase() !== wanted) return "the key is of another type";
  if (!tags.has("p")) return "the key record has no p=";
  if (tags.get("p") === "") return "the key is revoked";
  const hashes = tags.get("h");
  if (hashes !== undefined && !colonList(hashes).includes("sha256")) return "the key is not for sha256";
  const services = colonList(tags.get("s") ?? "*");
  return services.includes("*") || services.includes("email") ? null : "the key is not for e-mail";
}

// Making a key object costs more than verifying with it, and most mail comes from few signers.
const loaded = new LRUCache<string, KeyObject>({ max: 1_000 });
const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex");

function loadKey(base64: string, type: KeyType): KeyObject | null {
  const id = `${type}:${base64}`;
  const known = loaded.get(id);
  if (known) return known;
  const key = makeKey(base64, type);
  if (key === null) return null;
  loaded.set(id, key);
  return key;
}

function makeKey(base64: string, type: KeyType): KeyObject | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null;
  const bytes = Buffer.from(base64, "base64");
  if (type === "ed25519") {
    if (bytes.length !== 32) return null;
    return createPublicKey({ key: Buffer.concat([ed25519Prefix, bytes]), format: "der", type: "spki" });
  }
  const form = isBareRsaKey(bytes) ? "pkcs1" : "spki";
  try {
    const key = createPublicKey({ key: bytes, format: "der", type: form });
    return key.asymmetricKeyType === "rsa" ? key : null;
  } catch {
    // The record's owner wrote no key: that is an answer, not our failure.
    return null;
  }
}

// §3.6.1 wants a bare RSAPublicKey, everybody publishes a SubjectPublicKeyInfo: they differ in the first inner element.
function isBareRsaKey(der: Buffer): boolean {
  if (der.length < 4 || der[0] !== 0x30) return false;
  const lengthBytes = der[1]! < 0x80 ? 0 : der[1]! & 0x7f;
  return der[2 + lengthBytes] === 0x02;
}
