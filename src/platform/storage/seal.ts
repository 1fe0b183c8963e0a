// Secrets we need back (webhook secrets, DKIM keys) are sealed with AES-256-GCM under the master key; secrets we only
// compare (API keys, tokens) are kept as keyed digests. Not here: where the master key comes from (config.ts).
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";

export type Seal = {
  /** Encrypts; `context` says what and whose it is (`webhook-secret:<id>`) and must be the same to open it. */
  seal(plain: Buffer, context: string): Buffer;
  /** Decrypts; throws SealBroken when the bytes, the context or the master key are not the ones sealed with. */
  open(sealed: Buffer, context: string): Buffer;
  /** HMAC-SHA256 under a key of its own for each context: 32 bytes, comparable, not reversible. */
  hash(text: string, context: string): Buffer;
};

/** What was sealed cannot be opened. The message names the likely cause and never holds any of the secret. */
export class SealBroken extends Error {
  override name = "SealBroken";
}

/** Layout: version (1), key id (1), nonce (12), tag (16), ciphertext. */
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 2 + NONCE_BYTES + TAG_BYTES;
/** Derived keys are remembered for the contexts in use; a context for each record simply passes through. */
const KEYS_MAX = 1_000;

/** Seals under `masterKey` (32 bytes). Keys for each purpose are derived with HKDF-SHA256 (RFC 5869), never the master key itself. */
export function createSeal(masterKey: Buffer): Seal {
  if (masterKey.length !== 32) throw new RangeError("the master key must have 32 bytes");
  const keyId = createHash("sha256").update("postern key id").update(masterKey).digest()[0]!;
  const derive = keyring(masterKey);
  return {
    seal: (plain, context) => sealBytes(plain, context, keyId, derive("seal", context)),
    open: (sealed, context) => openBytes(sealed, context, keyId, derive("seal", context)),
    hash: (text, context) => createHmac("sha256", derive("hash", context)).update(text, "utf8").digest(),
  };
}

/** As KeyObjects: given a key's bytes, Node makes an object of them for each call, which takes 11 of 14 µs. */
function keyring(masterKey: Buffer): (purpose: "seal" | "hash", context: string) => KeyObject {
  const keys = new Map<string, KeyObject>();
  return (purpose, context) => {
    const label = `postern ${purpose} v1:${context}`;
    const known = keys.get(label);
    if (known) return known;
    // HKDF's info is limited to 1,024 bytes by Node: a digest of the label is as distinct and always short.
    const info = createHash("sha256").update(label).digest();
    const key = createSecretKey(Buffer.from(hkdfSync("sha256", masterKey, Buffer.alloc(0), info, 32)));
    if (keys.size >= KEYS_MAX) keys.clear();
    keys.set(label, key);
    return key;
  };
}

function sealBytes(plain: Buffer, context: string, keyId: number, key: KeyObject): Buffer {
  const head = Buffer.from([VERSION, keyId]);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated(head, context));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([head, nonce, cipher.getAuthTag(), body]);
}

function openBytes(sealed: Buffer, context: string, keyId: number, key: KeyObject): Buffer {
  if (sealed.length < HEAD_BYTES) throw new SealBroken("the sealed value is too short to be one");
  if (sealed[0] !== VERSION) throw new SealBroken(`the sealed value has version ${sealed[0]}, known is ${VERSION}`);
  if (sealed[1] !== keyId) throw new SealBroken("the value was sealed under another master key");
  const nonce = sealed.subarray(2, 2 + NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated(sealed.subarray(0, 2), context));
  decipher.setAuthTag(sealed.subarray(2 + NONCE_BYTES, HEAD_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
  } catch (cause) {
    throw new SealBroken("the sealed value is damaged or belongs to something else", { cause });
  }
}

function associated(head: Buffer, context: string): Buffer {
  return Buffer.concat([head, Buffer.from(context, "utf8")]);
}
