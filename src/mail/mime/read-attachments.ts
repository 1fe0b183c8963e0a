// Attachments of a received message: safe names, types, sizes, decoded contents. What they hold is not looked at:
// message/rfc822, TNEF (winmail.dat) and archives stay as they are.
import type { Leaf } from "./choose-bodies.ts";
import { decodeTransfer } from "./decode-transfer.ts";
import { safeFilename } from "./filename.ts";
import { bareId, readableValue } from "./header-text.ts";
import type { ParsedAttachment } from "./parsed-mail.ts";

// Names for parts that have none.
const namesByType = new Map([
  ["message/rfc822", "message.eml"],
  ["message/global", "message.eml"],
  ["message/delivery-status", "delivery-status.txt"],
  ["message/disposition-notification", "disposition-notification.txt"],
  ["message/feedback-report", "feedback-report.txt"],
  ["text/rfc822-headers", "headers.txt"],
  ["text/calendar", "invite.ics"],
  ["text/vcard", "contact.vcf"],
  ["text/x-vcard", "contact.vcf"],
  ["text/plain", "attachment.txt"],
  ["text/html", "attachment.html"],
  ["application/ms-tnef", "winmail.dat"],
  ["application/pdf", "attachment.pdf"],
  ["application/zip", "attachment.zip"],
  ["application/pgp-signature", "signature.asc"],
  ["application/pgp-encrypted", "version.txt"],
  ["application/pkcs7-signature", "smime.p7s"],
  ["application/x-pkcs7-signature", "smime.p7s"],
  ["application/pkcs7-mime", "smime.p7m"],
  ["application/x-pkcs7-mime", "smime.p7m"],
  ["image/jpeg", "image.jpg"],
  ["image/png", "image.png"],
  ["image/gif", "image.gif"],
  ["image/svg+xml", "image.svg"],
  ["image/webp", "image.webp"],
]);
const contentIdCharsMax = 300;

/** Decodes the attachments; what does not decode is said in `defects`. */
export function readAttachments(leaves: Leaf[], defects: Set<string>): ParsedAttachment[] {
  return leaves.map((leaf) => {
    const { part, disposition, filename, encoding } = leaf;
    const { bytes, defect } = decodeTransfer(part.body, encoding);
    if (defect !== null) defects.add(defect);
    return {
      filename: filename === "" ? nameByType(part.type) : safeFilename(filename),
      content_type: part.type,
      size: bytes.length,
      content_id: readContentId(leaf),
      disposition,
      content: bytes,
    };
  });
}

/** A name for a file that has none. */
export function nameByType(type: string): string {
  return namesByType.get(type) ?? "attachment";
}

function readContentId({ part }: Leaf): string | null {
  const field = part.headers.find((header) => header.name.toLowerCase() === "content-id");
  const id = bareId(readableValue(field?.value ?? ""));
  return id === "" || id.length > contentIdCharsMax ? null : id;
}
