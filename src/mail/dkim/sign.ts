// DKIM signing (RFC 6376, Ed25519 by RFC 8463): relaxed/relaxed, no l=, oversigned against added fields (§5.4.2, §8.15).
// Takes ready KeyObjects (parsing a PEM costs three times the signature) and signs on the thread pool.
// Does not read keys, choose domains or change the message: the caller puts the returned lines in front of it.
import { createHash, type KeyObject, sign } from "node:crypto";
import { hashBody } from "./body-hash.ts";
import { canonicalizeHeader, type HeaderField, splitFields, writeRelaxedHeader } from "./canonicalize.ts";

export type DkimAlgorithm = "rsa" | "ed25519";

export type SigningKey = { domain: string; selector: string; algorithm: DkimAlgorithm; key: KeyObject };

// One more than there are of each is listed, so that a field of that name added later breaks the signature.
const OVERSIGNED = [
  "From",
  "To",
  "Cc",
  "Subject",
  "Date",
  "Message-ID",
  "Reply-To",
  "MIME-Version",
  "Content-Type",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
];
// Signed where present (RFC 6376 §5.4.1); Feedback-ID because Google counts complaints by it only when it is signed, and
// where complaints go because RFC 9477 §3.1 demands it.
const SIGNED_IF_PRESENT = [
  "Sender",
  "Content-Transfer-Encoding",
  "In-Reply-To",
  "References",
  "List-Id",
  "Feedback-ID",
  "CFBL-Address",
  "CFBL-Feedback-ID",
  "Auto-Submitted",
];
// RFC 5322 §3.6 allows one of nearly all of these; a submitted message with more must not make an h= that verifiers, ours
// among them (300 names), do not read to its end.
const FIELDS_PER_NAME_MAX = 12;
const LINE_LENGTH_MAX = 78;
const TAG_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/**
 * Signs the message once for each key and returns the DKIM-Signature fields, CRLF-ended, to be put in front of it. The
 * message has CRLF line ends; it is signed as it leaves, with a last CRLF. The body is hashed once and
 * does not hold up the process, however large. `above` are fields that will stand in front of the message and are signed
 * with it. Throws on a key whose domain or selector cannot stand in a header.
 */
export async function signMessage(
  bytes: Buffer,
  keys: SigningKey[],
  { now_s, above }: { now_s: number; above?: Buffer },
): Promise<Buffer> {
  if (keys.length === 0) return Buffer.alloc(0);
  const { fields: given, body } = splitFields(bytes);
  const fields = above ? [...splitFields(above).fields, ...given] : given;
  const bodyHash = (await hashBody(body, "relaxed", [])).by_length.get(null)!;
  const { names, signed } = selectFields(fields);
  const tags = { t: Math.floor(now_s), bodyHash, names };
  return Buffer.concat(await Promise.all(keys.map((key) => signWith(key, signed, tags))));
}

type SharedTags = { t: number; bodyHash: string; names: string[] };

async function signWith(key: SigningKey, signed: Buffer, tags: SharedTags): Promise<Buffer> {
  const unsigned = signatureField(key, tags);
  const canonical = canonicalizeHeader(Buffer.from(unsigned, "latin1"), "relaxed");
  const input = Buffer.concat([signed, canonical.subarray(0, canonical.length - 2)]);
  const signature = await signBytes(key, input);
  return Buffer.from(foldOn(unsigned, signature.toString("base64")) + "\r\n", "latin1");
}

/** RFC 8463 §3: Ed25519 signs the SHA-256 of the input, RSA (PKCS #1 v1.5) hashes by itself. */
function signBytes(key: SigningKey, input: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, signature: Buffer) => (error ? reject(error) : resolve(signature));
    if (key.algorithm === "rsa") sign("sha256", input, key.key, done);
    else sign(null, createHash("sha256").update(input).digest(), key.key, done);
  });
}

/** The DKIM-Signature field up to `b=`, folded; b= stands last, so its empty form is this very text. */
function signatureField(key: SigningKey, tags: SharedTags): string {
  if (!TAG_VALUE.test(key.domain) || !TAG_VALUE.test(key.selector))
    throw new Error("DKIM domain or selector malformed");
  let field = `DKIM-Signature: v=1; a=${key.algorithm}-sha256; c=relaxed/relaxed;`;
  for (const tag of [`d=${key.domain};`, `s=${key.selector};`, `t=${tags.t};`]) field = appendWord(field, " ", tag);
  const last = tags.names.length - 1;
  tags.names.forEach((name, index) => {
    field = appendWord(field, index === 0 ? " " : "", (index === 0 ? "h=" : "") + name + (index === last ? ";" : ":"));
  });
  field = appendWord(field, " ", `bh=${tags.bodyHash};`);
  return appendWord(field, " ", "b=");
}

/** Adds a word to a folded field, on a new line when it would pass the limit. */
function appendWord(field: string, separator: string, word: string): string {
  const lineLength = field.length - (field.lastIndexOf("\n") + 1);
  const fits = lineLength + separator.length + word.length <= LINE_LENGTH_MAX;
  return field + (fits ? separator : "\r\n ") + word;
}

function foldOn(field: string, base64: string): string {
  let out = field;
  let at = 0;
  while (at < base64.length) {
    const room = LINE_LENGTH_MAX - (out.length - (out.lastIndexOf("\n") + 1));
    out += base64.slice(at, at + room);
    at += room;
    if (at < base64.length) out += "\r\n ";
  }
  return out;
}

/**
 * The names of h= in order, and the canonical bytes of their fields. Of several fields with one name the last comes first (RFC
 * 6376 §5.4.2); a name beyond the fields that exist stands for none and has no bytes.
 */
function selectFields(fields: HeaderField[]): { names: string[]; signed: Buffer } {
  const byName = Map.groupBy(fields, ({ name }) => name.toLowerCase());
  const names: string[] = [];
  const selected: Buffer[] = [];
  const take = (name: string): number => {
    const all = byName.get(name.toLowerCase()) ?? [];
    for (const { bytes } of all.slice(-FIELDS_PER_NAME_MAX).reverse()) {
      names.push(name);
      selected.push(bytes);
    }
    return all.length;
  };
  for (const name of OVERSIGNED) {
    // Beyond the limit one more in the list would mean the next field, not that there is none.
    if (take(name) <= FIELDS_PER_NAME_MAX) names.push(name);
  }
  for (const name of SIGNED_IF_PRESENT) take(name);
  const room = Buffer.allocUnsafe(selected.reduce((sum, { length }) => sum + length + 2, 0));
  return {
    names,
    signed: room.subarray(
      0,
      selected.reduce((at, field) => writeRelaxedHeader(field, room, at), 0),
    ),
  };
}
