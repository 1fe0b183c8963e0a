// Did a program of the mailbox write this, and not its owner (RFC 3834)? A vacation notice that went out through an alias
// would tell a contact what only friends should know, and could be answered by another one. Pure.
import { automaticMark } from "../automatic-marks.ts";
import { subjectKind } from "../dsn/not-a-bounce.ts";
import type { ParsedMail } from "../mime/parsed-mail.ts";

type Answer = Pick<ParsedMail, "headers" | "subject" | "in_reply_to" | "auto_submitted">;

/**
 * True for an answer that a program wrote, and for what was sent in bulk. Its subject counts only where the mail answers
 * another without saying `Re:`: people write about vacations, too.
 */
export function isAutomaticReply(mail: Answer, envelopeFrom: string): boolean {
  // RFC 5321 §4.5.5: the null reverse-path is for notifications.
  if (mail.auto_submitted || envelopeFrom.trim() === "") return true;
  const first = (name: string) => mail.headers.find((header) => header.name.toLowerCase() === name)?.value;
  if (automaticMark(first) !== null || /^\s*(?:bulk|junk)\b/i.test(first("precedence") ?? "")) return true;
  const subject = mail.subject ?? "";
  return mail.in_reply_to !== null && !/^\s*re:/i.test(subject) && subjectKind(subject)?.id === "auto";
}
