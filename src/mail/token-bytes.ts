// What signed tokens are made of: ids as bytes, and keyed hashes that strangers hand back. Not here: what a token holds.
import { timingSafeEqual } from "node:crypto";

/**
 * True if these are the same bytes. Takes as long wherever they differ, so that time shows no more than their length.
 */
export function isSame(expected: Uint8Array, given: Uint8Array): boolean {
  return expected.length === given.length && timingSafeEqual(expected, given);
}

/** The text of a UUID, of its 32 hexadecimal digits. */
export function uuidText(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The 16 bytes of a UUID. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll("-", ""), "hex");
}
