// Pure: a person's OpenPGP public key, as they paste it: can mail be encrypted for it now?
import type { Key, Subkey } from "openpgp";

/** Keys with photos and hundreds of signatures are longer; exported minimally they are not. */
export const ARMORED_KEY_MAX = 64 * 1024;

const BEGIN = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const SEVERAL = "holds more than one key: give one";

/** `armored`: written again, one key; `expires_at`: when nothing can be encrypted for it any more. */
export type PublicKey = { armored: string; fingerprint: string; expires_at: Date | null };

/** Reads it; `problem` continues a sentence about the field. */
export async function readPublicKey(
  given: string,
  nowMs: number,
): Promise<{ ok: true; key: PublicKey } | { ok: false; problem: string }> {
  const refuse = (problem: string) => ({ ok: false as const, problem });
  if (given.length > ARMORED_KEY_MAX) {
    return refuse(`is longer than ${ARMORED_KEY_MAX} characters: export the key without photos and others' signatures`);
  }
  if (given.includes("BEGIN PGP PRIVATE KEY BLOCK"))
    return refuse("is a private key: give the public one, and keep that");
  const begins = given.split(BEGIN).length - 1;
  if (begins === 0) return refuse("is not an armoured OpenPGP public key");
  // OpenPGP.js reads the first block and leaves the rest: of an old key and a new one it would be the old one.
  if (begins > 1) return refuse(SEVERAL);
  const { readKeys } = await import("openpgp");
  const keys = await readKeys({ armoredKeys: given.slice(given.indexOf(BEGIN)) }).catch(() => null);
  if (keys === null) return refuse("is not an armoured OpenPGP public key that can be read");
  const [key] = keys;
  if (!key || keys.length > 1) return refuse(SEVERAL);
  if (key.isPrivate()) return refuse("is a private key: give the public one, and keep that");
  const now = new Date(nowMs);
  const why = await whyUnusable(key, now);
  if (why !== null) return refuse(why);
  const encrypting = await key.getEncryptionKey(undefined, now).catch(() => null);
  if (encrypting === null) return refuse("cannot encrypt: it has no key for that, or one that is too weak or expired");
  const ends = [await key.getExpirationTime(), await lastEnd(encrypting, key)];
  const known = ends.filter((end) => end instanceof Date).map((end) => end.getTime());
  const expires_at = known.length === 0 ? null : new Date(Math.min(...known));
  return { ok: true, key: { armored: key.armor(), fingerprint: key.getFingerprint().toUpperCase(), expires_at } };
}

async function whyUnusable(key: Key, now: Date): Promise<string | null> {
  try {
    await key.verifyPrimaryKey(now);
    return null;
  } catch {
    if (await key.isRevoked(undefined, undefined, now).catch(() => false)) return "is revoked";
    const end = await key.getExpirationTime().catch(() => null);
    return end instanceof Date && end <= now
      ? "is expired"
      : "cannot be used: it is too weak, made in the future, or its own signature does not hold";
  }
}

/** When the last of the keys that can encrypt ends: another one takes over from the one that does now. */
async function lastEnd(encrypting: Key | Subkey, key: Key): Promise<Date | null> {
  let one: Key | Subkey | null = encrypting;
  let last: Date | null = null;
  while (one !== null && one !== key) {
    const end: unknown = await one.getExpirationTime();
    if (!(end instanceof Date)) return null;
    last = end;
    one = await key.getEncryptionKey(undefined, end).catch(() => null);
  }
  return one === key ? null : last;
}
