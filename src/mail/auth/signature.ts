// The fields that sign a message: DKIM-Signature (RFC 6376 §3.5) and ARC-Message-Signature (RFC 8617 §4.1.2), read
// strictly into one shape. Only rsa-sha256 and ed25519-sha256 (RFC 8301, RFC 8463). Verifies nothing.
import { domainToASCII } from "node:url";
import type { Canonicalization } from "../dkim/canonicalize.ts";
import { colonList, parseTagList, type TagList, trimFws, withoutFws } from "./tag-list.ts";

export type KeyType = "rsa" | "ed25519";

export type Signature = {
  key_type: KeyType;
  domain: string;
  selector: string;
  /** The agent or user (`i=`), `@domain` when absent. */
  identity: string;
  header_mode: Canonicalization;
  body_mode: Canonicalization;
  /** Lower-case names, in order, repeats included. */
  signed_names: string[];
  body_hash: string;
  value: Buffer;
  /** `l=`: so many bytes of the canonical body are signed; null is all. */
  body_length: number | null;
  signed_at_s: number | null;
  expires_at_s: number | null;
  /** The field without its last CRLF. */
  field: Buffer;
};

/** `tags` are what could be read, for the report on a signature that cannot be used. */
export type SignatureDefect = { defect: string; result: "permerror" | "fail"; tags: TagList };

/** Names in `h=` beyond this are an attack on our time: real signatures list less than a hundred. */
export const signedNamesMax = 300;

const domainName = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const selectorName =
  /^(?=.{1,190}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
const fieldName = /^[\x21-\x39\x3c-\x7e]+$/;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const timeTag = /^\d{1,12}$/;

/** Reads a DKIM-Signature field. */
export function parseDkimSignature(field: Buffer): Signature | SignatureDefect {
  const tags = parseTagList(fieldText(field));
  if (tags === null) return defect("syntax error", new Map());
  if (!tags.has("v")) return defect("v= is missing", tags);
  if (tags.get("v") !== "1") return defect("unknown version", tags);
  const query = tags.get("q");
  if (query !== undefined && !colonList(query).includes("dns/txt")) return defect("unknown query method", tags);
  const signature = readSignature(field, tags);
  if ("defect" in signature) return signature;
  const identity = readIdentity(tags.get("i"), signature.domain);
  return identity === null ? defect("i= is not below d=", tags) : { ...signature, identity };
}

/** Reads the tags that both kinds of signature have; `i=` and `v=`, which differ, are the caller's. */
export function readSignature(field: Buffer, tags: TagList): Signature | SignatureDefect {
  const missing = ["a", "b", "bh", "d", "h", "s"].find((name) => (tags.get(name) ?? "") === "");
  if (missing) return defect(`${missing}= is missing`, tags);
  const keyType = readAlgorithm(tags.get("a")!);
  if (keyType === null) return defect("unknown algorithm", tags);
  if (keyType === "sha1") return defect("rsa-sha1 is not accepted", tags, "fail");
  const names = readNames(tags);
  if (names === null) return defect("d= or s= is not a domain name", tags);
  const modes = readModes(tags.get("c"));
  if (modes === null) return defect("unknown canonicalization", tags);
  const signedNames = colonList(tags.get("h")!);
  if (signedNames.length > signedNamesMax) return defect("h= is too long", tags);
  if (!signedNames.every((name) => fieldName.test(name))) return defect("syntax error in h=", tags);
  // §6.1.1
  if (!signedNames.includes("from")) return defect("From is not signed", tags);
  const bodyHash = withoutFws(tags.get("bh")!);
  const value = withoutFws(tags.get("b")!);
  if (!base64.test(bodyHash) || !base64.test(value)) return defect("bh= or b= is not base64", tags);
  const numbers = readNumbers(tags);
  if (numbers === null) return defect("syntax error in l=, t= or x=", tags);
  return {
    ...names,
    ...modes,
    ...numbers,
    key_type: keyType,
    identity: `@${names.domain}`,
    signed_names: signedNames,
    body_hash: bodyHash,
    value: Buffer.from(value, "base64"),
    field,
  };
}

function defect(text: string, tags: TagList, result: "permerror" | "fail" = "permerror"): SignatureDefect {
  return { defect: text, result, tags };
}

/** What stands behind the colon of a field, one character for each byte. */
export function fieldText(field: Buffer): string {
  return field.toString("latin1", field.indexOf(0x3a) + 1);
}

/** `rsa`, `ed25519`, null for what we do not know; `sha1` where only the hash is at fault (RFC 8301 §3.1). */
export function readAlgorithm(text: string): KeyType | "sha1" | null {
  switch (text.toLowerCase()) {
    case "rsa-sha256":
      return "rsa";
    case "ed25519-sha256":
      return "ed25519";
    case "rsa-sha1":
      return "sha1";
    default:
      return null;
  }
}

/** `d=` and `s=` as the DNS has them; null when they are no names. */
export function readNames(tags: TagList): { domain: string; selector: string } | null {
  const domain = asciiName(tags.get("d") ?? "");
  const selector = asciiName(tags.get("s") ?? "");
  return domainName.test(domain) && selectorName.test(selector) ? { domain, selector } : null;
}

// RFC 8616 §5: A-labels, though U-labels may be met.
function asciiName(text: string): string {
  if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase();
  const unicode = Buffer.from(text, "latin1").toString("utf8");
  return /^[\p{L}\p{M}\p{N}._-]+$/u.test(unicode) ? domainToASCII(unicode) : "";
}

// Absent is simple/simple; one word is for the header, and the body is then simple.
function readModes(text = "simple/simple"): Pick<Signature, "header_mode" | "body_mode"> | null {
  const [header, body = "simple", ...more] = text.toLowerCase().split("/");
  if (!isMode(header!) || !isMode(body) || more.length > 0) return null;
  return { header_mode: header, body_mode: body };
}

function isMode(text: string): text is Canonicalization {
  return text === "simple" || text === "relaxed";
}

type Numbers = Pick<Signature, "body_length" | "signed_at_s" | "expires_at_s">;

function readNumbers(tags: TagList): Numbers | null {
  const length = tags.get("l");
  const signed = tags.get("t");
  const expires = tags.get("x");
  if (
    (length !== undefined && !/^\d{1,76}$/.test(length)) ||
    [signed, expires].some((t) => t !== undefined && !timeTag.test(t))
  ) {
    return null;
  }
  const number = (text: string | undefined) => (text === undefined ? null : Number(text));
  return { body_length: number(length), signed_at_s: number(signed), expires_at_s: number(expires) };
}

// §3.5: the same domain as d= or one below it. §2.11: written in DKIM's quoted-printable.
function readIdentity(text: string | undefined, domain: string): string | null {
  if (text === undefined) return `@${domain}`;
  const octets = withoutFws(text).replace(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const decoded = trimFws(Buffer.from(octets, "latin1").toString("utf8"));
  const at = decoded.lastIndexOf("@");
  const below = asciiName(Buffer.from(decoded.slice(at + 1), "utf8").toString("latin1"));
  if (at === -1 || (below !== domain && !below.endsWith(`.${domain}`))) return null;
  return decoded.slice(0, at + 1) + below;
}
