// Secrets we need back (webhook secrets, DKIM keys) are sealed with AES-256-GCM under a data key of the key ring; secrets we
// only compare (API keys, tokens) are kept as keyed digests under its root. Not here: the key ring itself (key-ring.ts).
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
import { createLru } from "../fair/lru.ts";

/** What is sealed and digested with. `sealing`: the number of the data key for new values; 0 is the root. */
export type SealKeys = { root: Buffer; data: ReadonlyMap<number, Buffer>; sealing: number };

export type Seal = {
  /** Encrypts; `context` says what and whose it is (`webhook-secret:<id>`) and must be the same to open it. */
  seal(plain: Buffer, context: string): Buffer;
  /** Decrypts; throws SealBroken when the bytes, the context or the keys are not the ones sealed with. */
  open(sealed: Buffer, context: string): Buffer;
  /** The same for short values that are opened again and again: the last of them are remembered. Not to be written into. */
  openOften(sealed: Buffer, context: string): Buffer;
  /** HMAC-SHA256 under a key of its own for each context: 32 bytes, comparable, not reversible. */
  hash(text: string, context: string): Buffer;
  /** The same for what is asked again and again and is no secret by itself (addresses, ids): the last of them are remembered. */
  hashOften(text: string, context: string): Buffer;
  /** Sets the keys that are used from now on. */
  use(keys: SealKeys): void;
};

/** What was sealed cannot be opened. The message names the likely cause and never holds any of the secret. */
export class SealBroken extends Error {
  override name = "SealBroken";
}

/**
 * Layout: version (1), key id (1), nonce (12), tag (16), ciphertext. Version 1 is sealed with the root, and the id tells one
 * root from others; version 2 is sealed with the data key of that number.
 */
const WITH_ROOT = 1;
const WITH_DATA_KEY = 2;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 2 + NONCE_BYTES + TAG_BYTES;
/** Derived keys are remembered for the contexts in use; a context for each record simply passes through. */
const KEYS_MAX = 1_000;
/** A mail to an alias asks for the same ten digests at each step, and for half of them with each mail: of a few thousand aliases. */
const REMEMBERED_MAX = 10_000;
const OFTEN_BYTES_MAX = 1_000;

/** What a value that is sealed now with the data key of this number begins with. */
export function sealedHead(dataKey: number): Buffer {
  return Buffer.from([WITH_DATA_KEY, dataKey]);
}

/** Seals with one key (32 bytes) alone until other keys are to be used. Each purpose has a key derived with HKDF-SHA256 (RFC 5869). */
export function createSeal(root: Buffer): Seal {
  let keys: SealKeys = { root: checked(root), data: new Map(), sealing: 0 };
  let derive = deriver(keys);
  const [digests, opened] = [createLru<Buffer>(REMEMBERED_MAX), createLru<Buffer>(REMEMBERED_MAX)];
  const hash = (text: string, context: string): Buffer =>
    createHmac("sha256", derive(0, "hash", context))
      .update(text, "utf8")
      .digest();
  const rootId = (): number => createHash("sha256").update("postern key id").update(keys.root).digest()[0]!;
  const open = (sealed: Buffer, context: string): Buffer => {
    if (sealed.length < HEAD_BYTES) throw new SealBroken("the sealed value is too short to be one");
    const [version, id] = sealed as unknown as [number, number];
    if (version !== WITH_ROOT && version !== WITH_DATA_KEY)
      throw new SealBroken(`the sealed value has version ${version}, known are ${WITH_ROOT} and ${WITH_DATA_KEY}`);
    const number = version === WITH_ROOT ? 0 : id;
    if (number === 0 ? version !== WITH_ROOT || id !== rootId() : !keys.data.has(number))
      throw new SealBroken("the value was sealed under another master key");
    return openBytes(sealed, context, derive(number, "seal", context));
  };
  return {
    seal(plain, context) {
      const { sealing } = keys;
      const head = sealing === 0 ? Buffer.from([WITH_ROOT, rootId()]) : sealedHead(sealing);
      return sealBytes(plain, context, head, derive(sealing, "seal", context));
    },
    openOften(sealed, context) {
      if (sealed.length > OFTEN_BYTES_MAX) return open(sealed, context);
      const name = `${context}\n${sealed.toString("latin1")}`;
      const known = opened.get(name);
      if (known) return known;
      const plain = open(sealed, context);
      opened.set(name, plain);
      return plain;
    },
    open,
    hash,
    hashOften(text, context) {
      const name = `${context}\n${text}`;
      const known = digests.get(name);
      if (known) return known;
      const digest = hash(text, context);
      digests.set(name, digest);
      return digest;
    },
    use(given) {
      for (const key of [given.root, ...given.data.values()]) checked(key);
      if (given.sealing !== 0 && !given.data.has(given.sealing)) throw new RangeError("values are sealed with no key");
      keys = given;
      derive = deriver(keys);
      for (const remembered of [digests, opened]) remembered.clear();
    },
  };
}

function checked(key: Buffer): Buffer {
  if (key.length !== 32) throw new RangeError("the master key must have 32 bytes");
  return key;
}

/** As KeyObjects: given a key's bytes, Node makes an object of them for each call, which takes 11 of 14 µs. */
function deriver({ root, data }: SealKeys): (number: number, purpose: "seal" | "hash", context: string) => KeyObject {
  const derived = new Map<string, KeyObject>();
  return (number, purpose, context) => {
    const label = `postern ${purpose} v1:${context}`;
    const name = `${number} ${label}`;
    const known = derived.get(name);
    if (known) return known;
    // HKDF's info is limited to 1,024 bytes by Node: a digest of the label is as distinct and always short.
    const info = createHash("sha256").update(label).digest();
    const from = number === 0 ? root : data.get(number)!;
    const key = createSecretKey(Buffer.from(hkdfSync("sha256", from, Buffer.alloc(0), info, 32)));
    if (derived.size >= KEYS_MAX) derived.clear();
    derived.set(name, key);
    return key;
  };
}

function sealBytes(plain: Buffer, context: string, head: Buffer, key: KeyObject): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated(head, context));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([head, nonce, cipher.getAuthTag(), body]);
}

function openBytes(sealed: Buffer, context: string, key: KeyObject): Buffer {
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
