// Which format of complaint a mail is in: RFC 5965, Microsoft's Junk Mail Reporting Program, SpamCop, an SES
// notification, X-ARF, what Apple Mail sends for "Unsubscribe". Only recognizes; arf.ts reads. dsn.ts asks too, so that no complaint is taken for a bounce.

import { partText } from "../dsn/body-text.ts";
import { firstHeader, isStatusType, type MailParts } from "../dsn/parts.ts";
import { readSesNotification } from "../dsn/ses-notification.ts";
import { readXarf } from "./xarf.ts";

export type ComplaintFormat =
  | "feedback-report"
  | "jmrp"
  | "spamcop"
  | "ses-notification"
  | "apple-unsubscribe"
  | "x-arf";

/** The format of a complaint, null when the mail is none. */
export function complaintFormat(mail: MailParts): ComplaintFormat | null {
  const announced = mail.type === "multipart/report" ? (mail.parameters.get("report-type") ?? "").toLowerCase() : "";
  const hasFields = mail.parts.some((part) => part.type === "message/feedback-report");
  if (hasFields || announced === "feedback-report") return "feedback-report";
  // A bounce may quote any subject, and returns a message too.
  const hasStatus = mail.parts.some(({ type }) => isStatusType(type));
  if (hasStatus || announced === "delivery-status") return null;
  if (isJmrp(mail)) return "jmrp";
  if (/^\s*true\b/i.test(firstHeader(mail.headers, "x-apple-unsubscribe"))) return "apple-unsubscribe";
  const from = firstHeader(mail.headers, "from");
  if (/@(?:reports|bounces|devnull)\.spamcop\.net\b/i.test(from)) return "spamcop";
  const text = mail.parts.find((part) => part.type === "text/plain");
  const notification = text === undefined ? null : readSesNotification(partText(text));
  if (notification?.kind === "complaint") return "ses-notification";
  return readXarf(mail) === null ? null : "x-arf";
}

// Outlook.com and Hotmail send the message alone, with the recipient in a field of its own.
function isJmrp(mail: MailParts): boolean {
  const subject = firstHeader(mail.headers, "subject");
  const isFromMicrosoft = /\bstaff@(?:hotmail|outlook|live|msn)\.com\b/i.test(firstHeader(mail.headers, "from"));
  const isNamed =
    /^\s*complaint about message from \[?(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}:[0-9a-f:.]{2,41})/i.test(subject) ||
    isFromMicrosoft;
  return isNamed && mail.parts.some((part) => part.type === "message/rfc822");
}
