// Pure: a finished message as PGP/MIME (RFC 3156 §4), its header protected within (RFC 9788; the parameter that programs knew
// before it besides). Not here: signatures, and who the key belongs to.
import { createHash } from "node:crypto";
import type { Key } from "openpgp";
import { type Header, splitMessage } from "../mime/parse-head.ts";
import { isEncryptedMail } from "./is-encrypted.ts";

/** `key`: armoured; `hide_subject`: the subject stands within alone. */
export type Encrypting = { key: string; hide_subject: boolean; now_ms: number };

const HIDDEN_SUBJECT = "Subject: ...\r\n";
/** Fields that Postern adds for servers: they stay outside the encrypted part. */
const OUTER_ONLY = /^(?:mime-version|authentication-results|x-mask-loop)$/i;
const CONTENT = /^content-/i;
const PROTECTED = 'protected-headers="v1"; hp="cipher"';

/**
 * The message encrypted for the key; as it is where it is encrypted already; null where the key cannot be used by now. Its From,
 * Reply-To and ids stay outside, so that answers find their way.
 */
export async function encryptMail(bytes: Buffer, { key, hide_subject, now_ms }: Encrypting): Promise<Buffer | null> {
  const { headers, text_offset } = splitMessage(bytes);
  const body = bytes.subarray(text_offset);
  if (isEncryptedMail(headers, body)) return bytes;
  const shown = headers.filter(({ name }) => !CONTENT.test(name));
  const outer = shown.map((header) => (hide_subject && isSubject(header) ? HIDDEN_SUBJECT : textOf(header)));
  const copied = shown.filter(({ name }) => !OUTER_ONLY.test(name));
  const inner = [
    ...copied.map(textOf),
    // RFC 9788 §2.2: what stood outside, so that a program tells what was confidential.
    ...copied.map((header) => `HP-Outer: ${hide_subject && isSubject(header) ? HIDDEN_SUBJECT : textOf(header)}`),
    ...contentFields(headers),
  ].join("");
  const payload = Buffer.concat([Buffer.from(`${inner}\r\n`, "latin1"), body]);
  const armored = await encrypt(payload, key, new Date(now_ms));
  if (armored === null) return null;
  const boundary = `=_${createHash("sha256").update(armored).digest("hex").slice(0, 32)}`;
  const head = `${outer.join("")}Content-Type: multipart/encrypted; protocol="application/pgp-encrypted";\r\n boundary="${boundary}"\r\n`;
  return Buffer.from(`${head}\r\n${partsOf(armored, boundary)}`, "latin1");
}

function isSubject({ name }: Header): boolean {
  return name.toLowerCase() === "subject";
}

function textOf({ raw }: Header): string {
  return `${raw.toString("latin1").trimEnd()}\r\n`;
}

/** A mark; its quoted value may be open to the end of the field. */
const MARK = /;\s*(?:hp|protected-headers)(?:\*\d*)?\*?\s*=\s*(?:"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?!")[^;\s]*)/gi;
/** The same, or a quoted text with the quote that ends it: a name or a boundary may hold anything. */
const MARK_OR_QUOTED = new RegExp(`"(?:[^"\\\\]|\\\\[\\s\\S])*("?)|${MARK.source}`, "gi");

/** The payload's own, marked as one with a protected header. A contact's mark of that kind goes. */
function contentFields(headers: readonly Header[]): string[] {
  const own = headers.filter(({ name }) => CONTENT.test(name));
  const type = own.find(({ name }) => name.toLowerCase() === "content-type");
  const given = type ? textOf(type).trimEnd() : "Content-Type: text/plain; charset=us-ascii";
  const bare = withoutMarks(given).replace(/(?<![;\s])[;\s]+$/, "");
  return [...own.filter((header) => header !== type).map(textOf), `${bare};\r\n ${PROTECTED}\r\n`];
}

/** Quoted texts are passed over whole, where a quote ends them. */
function withoutMarks(field: string): string {
  return field.replace(MARK_OR_QUOTED, (found, end: string | undefined) => {
    if (found.startsWith(";")) return "";
    return end === "" ? found.replace(MARK, "") : found;
  });
}

async function encrypt(payload: Buffer, armoredKey: string, date: Date): Promise<string | null> {
  const openpgp = await import("openpgp");
  const key: Key | null = await openpgp.readKey({ armoredKey }).catch(() => null);
  // Looked at first, so that any other failure surfaces.
  if (key === null || !(await key.getEncryptionKey(undefined, date).catch(() => null))) return null;
  const message = await openpgp.createMessage({ binary: payload, date });
  return openpgp.encrypt({ message, encryptionKeys: key, date, format: "armored" });
}

function partsOf(armored: string, boundary: string): string {
  return [
    "This is an encrypted message (RFC 3156).",
    `--${boundary}`,
    "Content-Type: application/pgp-encrypted",
    "Content-Description: PGP/MIME version identification",
    "",
    "Version: 1",
    "",
    `--${boundary}`,
    'Content-Type: application/octet-stream; name="encrypted.asc"',
    "Content-Description: OpenPGP encrypted message",
    'Content-Disposition: inline; filename="encrypted.asc"',
    "",
    armored.trimEnd().replace(/\r?\n/g, "\r\n"),
    "",
    `--${boundary}--`,
    "",
  ].join("\r\n");
}
