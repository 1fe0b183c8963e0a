// DKIM keys: making them, their DNS record (RFC 6376 §3.6.1, RFC 8463 §4), and what is wrong with a record found in DNS.
// Does not look anything up, store or encrypt: keys and TXT records come in and go out as values.
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { parseTagList } from "../auth/tag-list.ts";
import type { DkimAlgorithm, SigningKey } from "./sign.ts";

const RSA_BITS = 2048;
const TXT_LENGTH_MAX = 4096;
// RFC 6376 §3.6.2.2 leaves several records undefined; more than this is no longer looked at.
const TXT_RECORDS_MAX = 32;

export type DkimKey = { private_key_pem: string; public_key: string };

/** Makes a key pair on the thread pool: the private key as PKCS #8 PEM, the public key as it stands in `p=`. */
export async function generateDkimKey(algorithm: DkimAlgorithm): Promise<DkimKey> {
  const privateKey = await generatePrivateKey(algorithm);
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return { private_key_pem: pem, public_key: publicKeyOf(privateKey) };
}

function generatePrivateKey(algorithm: DkimAlgorithm): Promise<KeyObject> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, _: KeyObject, privateKey: KeyObject) =>
      error ? reject(error) : resolve(privateKey);
    if (algorithm === "rsa") generateKeyPair("rsa", { modulusLength: RSA_BITS }, done);
    else generateKeyPair("ed25519", {}, done);
  });
}

/** RSA: the SubjectPublicKeyInfo, as all signers publish it; Ed25519: the 32 bytes of the key alone (RFC 8463 §4). */
function publicKeyOf(privateKey: KeyObject): string {
  const der = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  return (privateKey.asymmetricKeyType === "ed25519" ? der.subarray(-32) : der).toString("base64");
}

/** A stored private key ready for signMessage. Parse it once and keep it: this costs three times a signature. */
export function loadSigningKey(pem: string, owner: { domain: string; selector: string }): SigningKey {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType === "rsa" || key.asymmetricKeyType === "ed25519") {
    return { ...owner, algorithm: key.asymmetricKeyType, key };
  }
  throw new Error(`not a DKIM key type: ${key.asymmetricKeyType}`);
}

/** The TXT value to publish at `<selector>._domainkey.<domain>`. */
export function dkimRecord(publicKey: string, algorithm: DkimAlgorithm): string {
  return `v=DKIM1; k=${algorithm}; p=${publicKey}`;
}

/** `hint` says in plain words what to change; with a match it is a remark or null. */
export type DkimComparison = { status: "match" | "mismatch"; hint: string | null };

/**
 * Compares the TXT records found under the selector (each with its character strings joined) with the value from
 * dkimRecord. A match is a record with which receivers verify our signatures; extra tags and white space are fine.
 */
export function compareDkimRecord(foundTxt: readonly string[], expected: string): DkimComparison {
  const records = foundTxt.slice(0, TXT_RECORDS_MAX).map((text) => text.slice(0, TXT_LENGTH_MAX));
  if (records.length === 0) return mismatch("No TXT record was found under this name.");
  const wanted = parseTags(expected);
  const judged = records.map((text) => judgeRecord(text, wanted));
  const keyRecords = judged.filter((entry) => entry.is_key);
  const matching = keyRecords.find((entry) => entry.status === "match");
  if (matching && keyRecords.length === 1) return { status: "match", hint: matching.hint };
  if (matching) return mismatch(`There are ${keyRecords.length} DKIM records under this name; delete all but ours.`);
  if (records.length > 1 && isSplitOver(records, wanted)) {
    return mismatch(
      "The value is split over several TXT records; it must be one record, in quoted parts if it is long.",
    );
  }
  const first = keyRecords[0] ?? judged[0]!;
  if (keyRecords.length > 1) {
    return mismatch(`There are ${keyRecords.length} DKIM records under this name and none is ours. ${first.hint}`);
  }
  return mismatch(first.hint ?? "The record differs from the expected one.");
}

function mismatch(hint: string): DkimComparison {
  return { status: "mismatch", hint };
}

type Judged = DkimComparison & { is_key: boolean };

/** One record against the tags we want. Receivers' rules: RFC 6376 §3.6.1; `v=` first, unknown tags ignored. */
function judgeRecord(text: string, wanted: Map<string, string>): Judged {
  const garbled = garbledHint(text);
  const tags = parseTags(text);
  const isForeign = tags.has("v") ? !/^dkim/i.test(tags.get("v")!) : !tags.has("p");
  if (isForeign) return { ...mismatch(foreignHint(text)), is_key: false };
  if (garbled) return { ...mismatch(garbled), is_key: true };
  const fault = tagFault(tags) ?? keyFault(tags, wanted) ?? listFault(text);
  if (fault) return { ...mismatch(fault), is_key: true };
  const testing = (tags.get("t") ?? "").split(":").some((flag) => flag.trim() === "y");
  const hint = testing ? "The record says t=y (testing): receivers may treat our mail as unsigned; remove t=y." : null;
  return { status: "match", hint, is_key: true };
}

/** The usual accidents of DNS panels: quotes, backslashes or line breaks that became part of the value. */
function garbledHint(text: string): string | null {
  if (text.includes('"')) {
    return "The value contains quotation marks; enter it without them, or as correctly quoted parts of one record.";
  }
  if (text.includes("\\")) return "The value contains backslashes (such as \\;); enter the semicolons without them.";
  if (/[\u2018-\u201f\u00a0\u200b\ufeff]/.test(text)) {
    return "The value contains typographic quotes or invisible characters; copy it again as plain text.";
  }
  return null;
}

function foreignHint(text: string): string {
  if (/^v=spf1\b/i.test(text.trim())) return "An SPF record stands here; the DKIM record is missing.";
  if (/^v=dmarc1\b/i.test(text.trim())) return "A DMARC record stands here; the DKIM record is missing.";
  return "The TXT record found is not a DKIM record.";
}

function tagFault(tags: Map<string, string>): string | null {
  const version = tags.get("v");
  if (version !== undefined && (version !== "DKIM1" || tags.keys().next().value !== "v")) {
    return "The record must begin with v=DKIM1, exactly so.";
  }
  const hashes = tags.get("h");
  if (hashes !== undefined && !listed(hashes, "sha256")) return `The record allows only h=${hashes}; remove h=.`;
  const services = tags.get("s");
  if (services !== undefined && !listed(services, "email") && !listed(services, "*")) {
    return `The record is not for e-mail (s=${services}); remove s=.`;
  }
  return null;
}

/** Receivers take a list with a part that is no tag, or with one twice, for no record at all (RFC 6376 §3.2). */
function listFault(text: string): string | null {
  if (parseTagList(Buffer.from(text).toString("latin1"), true) !== null) return null;
  return "The record holds something that is not a tag, or a tag twice, so receivers refuse it; publish exactly the value shown.";
}

function listed(list: string, word: string): boolean {
  return list.split(":").some((entry) => entry.trim().toLowerCase() === word);
}

function keyFault(tags: Map<string, string>, wanted: Map<string, string>): string | null {
  const found = withoutSpace(tags.get("p") ?? "");
  const ours = withoutSpace(wanted.get("p") ?? "");
  if (!tags.has("p")) return "The record has no p= (the public key).";
  if (found === "") return "The key is revoked: p= is empty. Publish the value shown.";
  const type = (tags.get("k") ?? "rsa").toLowerCase();
  const ourType = wanted.get("k") ?? "rsa";
  if (type !== ourType) return `The record says k=${type}, the key is ${ourType}; publish the whole value shown.`;
  if (found === ours) return null;
  if (ours.startsWith(found)) {
    return `The key is cut off after ${found.length} of ${ours.length} characters; enter the rest as a further quoted part.`;
  }
  if (found.startsWith(ours)) return "Something follows the key in p=; publish exactly the value shown.";
  if (/[^A-Za-z0-9+/=]/.test(found)) return "p= holds characters that cannot stand in a key; copy the value again.";
  return "The record holds another key; replace it by the value shown.";
}

/** True when the records, put together in the order that begins with a tag, give the key: each part became a record. */
function isSplitOver(records: string[], wanted: Map<string, string>): boolean {
  const ours = withoutSpace(wanted.get("p") ?? "");
  const head = records.find((text) => parseTags(text).has("p"));
  if (!head) return false;
  const start = withoutSpace(parseTags(head).get("p") ?? "");
  if (start === "" || !ours.startsWith(start)) return false;
  let rest = ours.slice(start.length);
  let left = records.filter((text) => text !== head).map(withoutSpace);
  while (rest !== "") {
    const next = left.find((part) => part !== "" && rest.startsWith(part));
    if (next === undefined) return false;
    rest = rest.slice(next.length);
    left = left.filter((part) => part !== next);
  }
  return true;
}

function withoutSpace(text: string): string {
  return text.replace(/[ \t\r\n]/g, "");
}

/** A tag list (RFC 6376 §3.2). Of a tag given twice the first counts. */
function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const part of text.split(";")) {
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    const name = part.slice(0, equals).trim();
    if (!tags.has(name)) tags.set(name, part.slice(equals + 1).trim());
  }
  return tags;
}
