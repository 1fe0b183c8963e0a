// Header fields of forwards and replies: what stands in one of the mail that came, and fields that both rewrite.
import { isUtf8 } from "node:buffer";
import { charsetOfText } from "../../mail/mime/choose-bodies.ts";
import { readableValue, unfoldedValue } from "../../mail/mime/header-text.ts";
import { splitMessage } from "../../mail/mime/parse-head.ts";
import { defaultParseLimits } from "../../mail/mime/parse-message.ts";
import { parseStructure } from "../../mail/mime/parse-structure.ts";

/**
 * Reads the first field of a name (in lower case) as text of one line; "" when there is none. What was sent as it is stands
 * in the charset of the text, as in parse-message.ts.
 */
export function fieldReader(bytes: Buffer): (name: string) => string {
  const { headers } = splitMessage(bytes);
  const isEncoded = headers.every(({ raw }) => isUtf8(raw));
  const charset = isEncoded ? "" : charsetOfText(parseStructure(bytes, defaultParseLimits).root);
  return (name) => {
    const field = headers.find((header) => header.name.toLowerCase() === name);
    return field ? readableValue(unfoldedValue(field.raw, charset)) : "";
  };
}

/** A field of message ids; "" when there are none. */
export function idsField(name: string, ids: readonly string[]): string {
  const safe = ids.filter(isMessageId);
  return safe.length === 0 ? "" : `${name}: ${safe.join("\r\n ")}\r\n`;
}

/** True if a header field may hold it as a message id (RFC 5322 §3.6.4, with its angle brackets). */
export function isMessageId(id: string): boolean {
  return /^<[\x21-\x3b\x3d\x3f-\x7e]{1,900}>$/.test(id);
}

/** One line that a header field may hold. */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .toWellFormed()
    .trim();
}
