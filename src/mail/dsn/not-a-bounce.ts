// Mails to a return path that are no bounces: read receipts (RFC 8098), vacation and other automatic replies
// (RFC 3834), challenge-response, complaints (RFC 5965). Knows senders, subjects and marks; does not read texts.

import { anyOf } from "../any-of.ts";
import { automaticMark } from "../automatic-marks.ts";
import type { Header } from "../mime/parse-head.ts";
import { decodeWords } from "../mime/parse-head.ts";
import { firstHeader, isStatusType, type MailParts } from "./parts.ts";
import subjectTable from "./subjects.json" with { type: "json" };

export type SubjectKind = "bounce" | "delayed" | "auto_reply" | "receipt" | "other";

export type SubjectSays = { kind: SubjectKind; id: string } | null;

type SubjectEntry = {
  id: string;
  kind: string;
  match: string;
  is_prefix?: boolean;
  persons_only?: boolean;
  mailers_only?: boolean;
};

const subjects = (subjectTable as SubjectEntry[]).map((entry) => ({
  kind: entry.kind as SubjectKind,
  id: entry.id,
  isPrefix: entry.is_prefix ?? false,
  isPersonsOnly: entry.persons_only ?? false,
  isMailersOnly: entry.mailers_only ?? false,
  regexp: new RegExp(anyOf(entry.match), "iu"),
}));
const prefixes = subjects.filter(({ isPrefix }) => isPrefix);

/** What the subject of a mail says about it; null when it says nothing. `isMailer`: a mail system sent it. */
export function subjectKind(subject: string, isMailer: boolean): SubjectSays {
  const text = oneLine(subject);
  // Behind "Undeliverable: " stands the subject of the mail that comes back: its words are ours, not the reporter's.
  const prefix = prefixes.find(({ regexp }) => regexp.test(text));
  if (prefix !== undefined) return prefix;
  const known = subjects.filter(({ isPersonsOnly, isMailersOnly }) => !(isMailer ? isPersonsOnly : isMailersOnly));
  const automatic = known.find(({ kind, regexp }) => kind === "auto_reply" && regexp.test(text));
  return automatic ?? known.find(({ regexp }) => regexp.test(text)) ?? null;
}

/** The reporter's own words of a subject: without the subject of the returned mail that it quotes. */
export function ownSubject(subject: string): string {
  const text = oneLine(subject);
  return prefixes.map(({ regexp }) => regexp.exec(text)?.[0]).find((prefix) => prefix !== undefined) ?? subject;
}

function oneLine(subject: string): string {
  return subject.replace(/\s+/g, " ").trim().slice(0, 500);
}

const systems = [
  /mailer[-_. ]?daemon/,
  /post[-_ ]?master/,
  /mail (?:delivery|administrator|deliver|router)/,
  /delivery (?:sub)?system/,
  /mail\.delivery/,
  /system administrator/,
  /smtp[_ -]?(?:mail|gateway|server)/,
  /mail[_ -]?service/,
  /virus[_ -]?(?:wall|scan)/,
  /antivirus/,
  /interscan/,
  /mdaemon/,
  /ndr administrator/,
  /no-?reply@sns\.amazonaws/,
  /mailadmin/,
  /mail-?daemon/,
  /microsoftexchange[0-9a-f]{16,32}@/,
];
const mailers = new RegExp(anyOf([...systems, /(?<!\p{L})(?:double-?)?bounces?(?!\p{L})/u]), "iu");
// Mailing lists pass on what people write with `Sender: users-bounces@lists.example`.
const senders = new RegExp(anyOf(systems), "iu");

/**
 * Whether the mail comes from a mail system and not from a person, by its sender. An empty return path says nothing:
 * vacation programs send with it too (RFC 3834 §3.3).
 */
export function isFromMailer(headers: readonly Header[]): boolean {
  const from = decodeWords(firstHeader(headers, "from")).trim();
  return from === "" || from === "<>" || mailers.test(from) || senders.test(firstHeader(headers, "sender"));
}

const machines =
  /^(?:no-?reply|do-?not-?reply|quota|e?-?mail-?(?:gate|gateway|gw|filter|relay|server|system|security|quota)|gateway|relay|mta|smtp|system|root|notif(?:y|ications?)|alerts?)(?:[+._-][^@]*)?@/i;

/**
 * Whether no person wrote the mail: a mail system, a program that says so (RFC 3834 §5), or an address that only
 * programs have. Weaker than `isFromMailer`: believed only with a proof beside it.
 */
export function isFromMachine(headers: readonly Header[]): boolean {
  const address = /<([^<>]*)>[^<>]*$/.exec(firstHeader(headers, "from"))?.[1] ?? firstHeader(headers, "from");
  const isMarked = /^\s*auto-generated/i.test(firstHeader(headers, "auto-submitted"));
  return isFromMailer(headers) || isMarked || machines.test(address.trim());
}

/** Why a mail is an automatic reply of a person's mailbox, by its header fields and subject; null when it is none. */
export function autoReplyReason(headers: readonly Header[], said: SubjectSays): string | null {
  const mark = automaticMark((name) => firstHeader(headers, name));
  if (mark !== null) return mark;
  if (/^\s*auto-(?:replied|notified)/i.test(firstHeader(headers, "auto-submitted"))) return "auto-submitted";
  return said?.kind === "auto_reply" ? `subject-${said.id}` : null;
}

/** The kind of report that the parts of a mail announce. */
export function reportKind(mail: MailParts): "complaint" | "receipt" | "delivery-status" | null {
  const types = new Set(mail.parts.map((part) => part.type));
  const announced = mail.type === "multipart/report" ? (mail.parameters.get("report-type") ?? "").toLowerCase() : "";
  if (types.has("message/feedback-report") || announced === "feedback-report") return "complaint";
  const hasStatus = mail.parts.some(({ type }) => isStatusType(type));
  if (hasStatus || announced === "delivery-status") return "delivery-status";
  const isReceipt =
    types.has("message/disposition-notification") || types.has("message/global-disposition-notification");
  return isReceipt || announced === "disposition-notification" ? "receipt" : null;
}
