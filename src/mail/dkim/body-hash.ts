// SHA-256 of canonical message bodies (RFC 6376 §3.7), for all signatures of a message in one pass for each mode, also
// for those that cover only the first bytes (l=). Slice by slice, so that a large body does not hold up the process.
import { createHash, type Hash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Canonicalization, canonicalSlices } from "./canonicalize.ts";

/** Base64 hashes by length (null: the whole body), and how long the whole canonical body is. */
export type BodyHashes = { length: number; by_length: Map<number | null, string> };

/** Hashes a body in one mode; a length beyond the body's gives no hash (RFC 6376 §3.5 l=). */
export async function hashBody(body: Buffer, mode: Canonicalization, lengths: (number | null)[]): Promise<BodyHashes> {
  const wanted = [...new Set(lengths)].filter((length) => length !== null).sort((a, b) => a - b);
  const found: BodyHashes = { length: 0, by_length: new Map() };
  const hash = createHash("sha256");
  let first = true;
  for (const slice of canonicalSlices(body, mode)) {
    if (!first) await nextTurn();
    first = false;
    takeUpTo(found, hash, { wanted, slice });
    hash.update(slice);
    found.length += slice.length;
  }
  while (wanted[0] === found.length) found.by_length.set(wanted.shift()!, hash.copy().digest("base64"));
  found.by_length.set(null, hash.digest("base64"));
  return found;
}

// The hashes that end within this slice.
function takeUpTo(found: BodyHashes, hash: Hash, step: { wanted: number[]; slice: Buffer }): void {
  while (step.wanted.length > 0 && step.wanted[0]! < found.length + step.slice.length) {
    const length = step.wanted.shift()!;
    const part = hash.copy().update(step.slice.subarray(0, length - found.length));
    found.by_length.set(length, part.digest("base64"));
  }
}
