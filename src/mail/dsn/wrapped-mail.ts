// Whole mails inside a mail: gateways pass the report of another server on with a notice of their own, as an attachment
// of any type or as text. Only finds where such a mail may begin; whether it is a report the reader of reports says.

import { splitMessage } from "../mime/parse-head.ts";
import { decodeBody } from "./body-text.ts";
import type { MailParts, Part } from "./parts.ts";
import { isReturnedMessage } from "./returned-message.ts";

const mailsMax = 3;
const fieldsMin = 3;

/** The mails inside this one, at most 3. Never one that we sent: our own field tells it. */
export function wrappedMails(mail: MailParts): Buffer[] {
  const found = mail.parts.flatMap(mailIn).slice(0, mailsMax);
  return found.filter((bytes) => !fieldNames(bytes).has("x-postern-id"));
}

function mailIn(part: Part): Buffer[] {
  if (isReturnedMessage(part.type)) return [decodeBody(part)];
  if (!/^(?:text\/plain|application\/)/.test(part.type)) return [];
  const bytes = decodeBody(part);
  const start = startOfMail(bytes);
  return start === null ? [] : [bytes.subarray(start)];
}

// From, and two more of the fields that every report has, behind an empty line.
function startOfMail(bytes: Buffer): number | null {
  const text = bytes.toString("latin1", 0, 16_384);
  const heads = text.matchAll(
    /(?:^|\n[ \t]*\n)(?=(?:return-path|received|from|date|to|subject|mime-version)[ \t]*:)/gi,
  );
  for (const match of [...heads].slice(0, mailsMax)) {
    const start = match.index + match[0].length;
    const names = fieldNames(bytes.subarray(start));
    const count = ["from", "to", "subject", "date", "mime-version", "received"].filter((name) =>
      names.has(name),
    ).length;
    if (names.has("from") && count >= fieldsMin) return start;
  }
  return null;
}

function fieldNames(bytes: Buffer): Set<string> {
  return new Set(splitMessage(bytes).headers.map(({ name }) => name.toLowerCase()));
}
