// Did a program of the mailbox write this, and not its owner (RFC 3834)? A vacation notice that went out through an alias
// would tell a contact what only friends should know, and could be answered by another one. Pure. What its owner only had
// sent by a program goes on: answers to invitations, and what a desk sends for its people (`auto-generated`).
import { anyOf } from "../../mail/any-of.ts";
import { automaticMark } from "../../mail/automatic-marks.ts";
import { subjectKind } from "../../mail/dsn/not-a-bounce.ts";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";

type Answer = Pick<ParsedMail, "headers" | "subject" | "in_reply_to" | "attachments">;
type First = (name: string) => string;

/** Words that programs put before the subject they answer, and nobody before a subject of their own. */
const ANSWERS = new RegExp(
  `^(?:${anyOf([
    /auto(?:matic)?[- ]?(?:reply|response)/,
    /automatische antwort|automatisch antwoord|autosvar/,
    /r[ée]ponse automatique|respuesta autom[áa]tica|risposta automatica|resposta autom[áa]tica/,
    /автоматический ответ|автоответ|automatyczna odpowied[źz]|odpowied[źz] automatyczna/,
    /自動(?:応答|返信)|自动(?:回复|答复)|自動回覆|자동 ?(?:회신|응답)/,
  ])})\\s*[:：]`,
  "iu",
);
/** RFC 5546 §1.4: what somebody who was invited sends. */
const CALENDAR_ANSWER = /^METHOD\s*:\s*(?:REPLY|COUNTER)\s*$/im;
const CALENDAR_OCTETS_MAX = 65_536;

/** `bulk`: nothing but a mark of mail in bulk, as old vacation programs set it and desks do for their own letters. */
export type Automatic = "answer" | "bulk" | null;

/** What a program of the mailbox wrote; null for its owner's mail. */
export function automaticKind(mail: Answer, envelopeFrom: string): Automatic {
  const first: First = (name) => mail.headers.find((header) => header.name.toLowerCase() === name)?.value ?? "";
  // RFC 5321 §4.5.5: the null reverse-path is for notifications.
  if (envelopeFrom.trim() === "") return "answer";
  if (answersInvitation(mail)) return null;
  if (isMarked(first) || saysSo(mail, first)) return "answer";
  return /^\s*(?:bulk|junk)\b/i.test(first("precedence")) ? "bulk" : null;
}

function isMarked(first: First): boolean {
  if (automaticMark(first) !== null) return true;
  // RFC 3834 §5: auto-generated is no response to another mail; every other word but `no` is, or may be.
  if (!/^\s*(?:(?:no|auto-generated)\b|$)/i.test(first("auto-submitted"))) return true;
  return /^\s*multipart\/report\b/i.test(first("content-type"));
}

/** By the subject of an answer, where it does not say `Re:`. People write about vacations, too: that takes a mark besides. */
function saysSo({ subject, in_reply_to }: Answer, first: First): boolean {
  const said = subject?.trim() ?? "";
  if (in_reply_to === null || /^re:/i.test(said)) return false;
  if (ANSWERS.test(said)) return true;
  const isByProgram = /^\s*auto-generated\b/i.test(first("auto-submitted")) || first("x-auto-response-suppress") !== "";
  return isByProgram && subjectKind(said, false)?.id === "auto";
}

function answersInvitation({ attachments }: Answer): boolean {
  return attachments.some(
    ({ content_type, content }) =>
      content_type === "text/calendar" && CALENDAR_ANSWER.test(content.toString("latin1", 0, CALENDAR_OCTETS_MAX)),
  );
}
