// Pure: is a message encrypted for somebody as a whole? By PGP/MIME (RFC 3156 §4), armour in place of a text, or S/MIME (RFC 8551
// §3.2). What only says so, and holds something else, is not.
import { unfoldedValue } from "../mime/header-text.ts";
import type { Header } from "../mime/parse-head.ts";
import { parseParameters } from "../mime/parse-parameters.ts";

const ARMOR = "-----BEGIN PGP MESSAGE-----";
const ARMOR_END = "-----END PGP MESSAGE-----";
/** OID 1.2.840.113549.1.7.3 (enveloped) and 1.2.840.113549.1.9.16.1.23 (authenticated and enveloped), in DER. */
const ENVELOPED = ["06092a864886f70d010703", "060b2a864886f70d0109100117"].map((hex) => Buffer.from(hex, "hex"));
const LOOKED_AT = 4_096;
/** The packets that an encrypted message begins with (RFC 9580 §10.3): the key for it, or what is encrypted. */
const ENCRYPTED = new Set([1, 3, 9, 18, 20]);

export function isEncryptedMail(headers: readonly Header[], body: Buffer): boolean {
  const type = headers.find(({ name }) => name.toLowerCase() === "content-type");
  const { value, parameters } = parseParameters(type ? unfoldedValue(type.raw) : "text/plain");
  switch (value.toLowerCase()) {
    case "multipart/encrypted":
      return isPgpMime(body, parameters.get("boundary") ?? "");
    case "text/plain":
      return isArmor(body.toString("latin1"));
    case "application/pkcs7-mime":
    case "application/x-pkcs7-mime":
      return isEnveloped(body);
    default:
      return false;
  }
}

/** Exactly two parts, the second of which is armour alone. */
function isPgpMime(body: Buffer, boundary: string): boolean {
  if (boundary === "") return false;
  const parts = body.toString("latin1").split(`--${boundary}`);
  if (parts.length !== 4 || !/^--\s*$/.test(parts[3] ?? "")) return false;
  const [version = "", sealed = ""] = parts.slice(1).map(contentOf);
  return version.trim() === "Version: 1" && isArmor(sealed);
}

/** A part without its head, armour without its own. */
function contentOf(part: string): string {
  const end = /\r?\n\r?\n/.exec(part);
  return end ? part.slice(end.index + end[0].length) : "";
}

/** Armour alone, of an encrypted message: of a signed one it is called the same, and anybody reads it (RFC 9580 §6.2). */
function isArmor(given: string): boolean {
  const text = given.trim();
  if (!text.startsWith(ARMOR) || text.indexOf(ARMOR_END) !== text.length - ARMOR_END.length) return false;
  const content = contentOf(text.slice(ARMOR.length, -ARMOR_END.length));
  if (/[^A-Za-z0-9+/=\s]/.test(content)) return false;
  return ENCRYPTED.has(packetTag(Buffer.from(content.slice(0, LOOKED_AT), "base64")[0] ?? 0));
}

/** RFC 9580 §4.2. */
function packetTag(octet: number): number {
  return (octet & 0x40) === 0 ? (octet >> 2) & 0x0f : octet & 0x3f;
}

function isEnveloped(body: Buffer): boolean {
  const der = Buffer.from(body.subarray(0, LOOKED_AT).toString("latin1"), "base64");
  return [der, body].some((bytes) => ENVELOPED.some((oid) => bytes.subarray(0, 40).includes(oid)));
}
