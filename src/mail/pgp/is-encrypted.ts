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

/** A part without its head. */
function contentOf(part: string): string {
  const end = /\r?\n\r?\n/.exec(part);
  return end ? part.slice(end.index + end[0].length) : "";
}

function isArmor(given: string): boolean {
  const text = given.trim();
  return text.startsWith(ARMOR) && text.indexOf(ARMOR_END) === text.length - ARMOR_END.length;
}

function isEnveloped(body: Buffer): boolean {
  const der = Buffer.from(body.subarray(0, LOOKED_AT).toString("latin1"), "base64");
  return [der, body].some((bytes) => ENVELOPED.some((oid) => bytes.subarray(0, 40).includes(oid)));
}
