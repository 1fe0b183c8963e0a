// Bounce mails of every kind, read into recipients and what happened to them: RFC 3464 and RFC 6533 first, then the
// formats of servers that do not follow them. Bytes in, values out: no clock, no network, nothing stored. It does not
// say to which of our recipients a bounce belongs (bounce-token.ts does) and is not to be believed without that. Complaints are
// read by mail/arf.

import { complaintFormat } from "../arf/formats.ts";
import { decodeWords, headerValues } from "../mime/parse-head.ts";
import { addressIn } from "./address-text.ts";
import { partText } from "./body-text.ts";
import { isToOwner, saysMailboxFull } from "./full-mailbox.ts";
import { autoReplyReason, isFromMachine, isFromMailer, ownSubject, reportKind, subjectKind } from "./not-a-bounce.ts";
import { firstHeader, isStatusType, type MailParts, splitParts } from "./parts.ts";
import { findRecipients, ownAddresses, type Report, readReport } from "./recipients.ts";
import { readReturnedMessage } from "./returned-message.ts";
import { readSesNotification, type SesNotification } from "./ses-notification.ts";
import { fieldValue, readFieldGroups } from "./status-fields.ts";
import type { BounceReport, BounceResult, Finding, NoBounce } from "./types.ts";
import { judge } from "./verdict.ts";
import { wrappedMails } from "./wrapped-mail.ts";

/**
 * Reads a mail that came to a return path. A bounce has one entry for each recipient it names; when it names none and
 * is plainly a bounce, one entry with `email` null. Everything else is named: auto_reply, receipt, complaint, other. Never throws;
 * linear in the first 4 MiB of the mail.
 */
export function parseBounce(bytes: Buffer): BounceResult {
  return parseMail(splitParts(bytes), 0);
}

function parseMail(mail: MailParts, depth: number): BounceResult {
  const complaint = complaintFormat(mail);
  if (complaint !== null) return { kind: "complaint", reason: complaint };
  const report = readReport(mail);
  const notification = readSesNotification(report.texts[0] ?? "");
  if (notification !== null) return fromNotification(notification, report);
  const subject = decodeWords(firstHeader(mail.headers, "subject"));
  if (reportKind(mail) === "receipt") return readReceipt(mail, report, subject);
  const isCertain = isCertainlyReport(mail, report, subject) && !isOwnersWarning(mail, report, subject);
  const isOneEnough = isCertain || isFullMailbox(mail, report);
  const author = fullMailboxOfAuthor(mail, report, subject);
  const findings = author === null ? findRecipients(mail, report, isOneEnough) : [ofAuthor(author, report)];
  const none = whyNoBounce(mail, report, findings, subject);
  const wrapped = depth < wrappedDepthMax && !namesInFields(mail, report) ? readWrapped(mail, depth) : null;
  if (wrapped !== null && (none !== null || isAboutSame(mail, findings, wrapped))) return wrapped;
  return none ?? bounce(mail, report, findings, subject);
}

function bounce(mail: MailParts, report: Report, findings: readonly Finding[], subject: string): BounceReport {
  const said = subjectKind(subject, isFromMailer(mail.headers));
  const action = report.action ?? (said?.kind === "delayed" ? "delayed" : null);
  const named = findings.length > 0 ? findings : [report.status?.findings[0] ?? nobody];
  const text = named.length === 1 ? report.report : report.opening;
  const context = { report: text, subject: ownSubject(subject), action, refused: report.refused };
  const recipients = named.map((finding) => judge(withoutOthers(finding, named), context));
  const texts = [report.report, report.returned, ...report.statusTexts];
  const ids = ["in-reply-to", "references"].flatMap((name) => headerValues(mail.headers, name));
  return {
    kind: "bounce",
    recipients,
    original: readReturnedMessage(mail.parts, report.returned, texts, ids),
    reporting_mta: report.status?.reporting_mta ?? null,
    arrival_date: report.status?.arrival_date ?? null,
  };
}

// Behind the last recipient of a list stands what was said of each: a line that names another, and what follows it, is
// about that one, until a line names this one again.
function withoutOthers(finding: Finding, all: readonly Finding[]): Finding {
  const own = finding.email?.toLowerCase() ?? null;
  const others = all.flatMap(({ email }) =>
    email === null || email.toLowerCase() === own ? [] : [email.toLowerCase()],
  );
  // What names none of them, or the last one only, is said of all that are listed.
  if (own === null || others.length === 0 || !finding.text.toLowerCase().includes(own)) return finding;
  let isOwn = true;
  const lines = finding.text.split("\n").filter((line) => {
    const said = line.toLowerCase();
    if (said.includes(own)) isOwn = true;
    else if (others.some((other) => said.includes(other))) isOwn = false;
    return isOwn;
  });
  return { ...finding, text: lines.join("\n") };
}

// A mail is a bounce when a status part says so, or when a mail system sent it (by its sender or a field) or both its
// subject and its text are those of a report, and it names a recipient. What a person's mailbox answers by itself is
// none, whatever subject it quotes ("Your parcel could not be delivered").
function whyNoBounce(mail: MailParts, report: Report, findings: readonly Finding[], subject: string): NoBounce | null {
  if (reportKind(mail) === "delivery-status" && saysSomething(report, findings)) return null;
  const { isMarked, isFromSystem, said, isBounceSubject } = announced(mail, subject);
  const automatic = autoReplyReason(mail.headers, said);
  if (fullMailboxOfAuthor(mail, report, subject) !== null) return null;
  const isFull = isFullMailbox(mail, report) && namesAnother(mail, findings);
  // Exim, Exchange and Google mark their reports as automatic replies too.
  const isReport =
    isFromSystem && (isFull || isBounceSubject || (said?.kind !== "auto_reply" && report.intro !== null));
  if (automatic !== null && !isReport) return { kind: "auto_reply", reason: automatic };
  if (said?.kind === "receipt") return { kind: "receipt", reason: `subject-${said.id}` };
  if (!isFromSystem && said?.kind === "other") return { kind: "other", reason: `subject-${said.id}` };
  if (isFull) return null;
  if (isOwnersWarning(mail, report, subject) && !namesAnother(mail, findings))
    return { kind: "other", reason: "own-mailbox" };
  if (!isFromSystem && !(isBounceSubject && report.intro !== null))
    return { kind: "other", reason: "not-from-a-mailer" };
  if (report.intro === null && !isBounceSubject && !isMarked) return { kind: "other", reason: "no-report-text" };
  // Whose copy came back is recognised by the return path; that it came back must then be beyond doubt.
  const isCertain = isCertainlyReport(mail, report, subject);
  return findings.length === 0 && !isCertain ? { kind: "other", reason: "no-recipient" } : null;
}

// Under any subject; a person who writes of a full mailbox is not believed.
function isFullMailbox(mail: MailParts, report: Report): boolean {
  return isFromMachine(mail.headers) && saysMailboxFull(report.report);
}

// Some servers write such a notice in the name of the mailbox that is full. A program must have written it, it must name
// that mailbox, and an automatic answer must say besides that mail came back: else it is a word of the owner's.
function fullMailboxOfAuthor(mail: MailParts, report: Report, subject: string): string | null {
  const author = addressIn(decodeWords(firstHeader(mail.headers, "from")))?.toLowerCase() ?? null;
  if (author === null || !report.report.toLowerCase().includes(author) || !saysMailboxFull(report.report)) return null;
  const { said, isBounceSubject } = announced(mail, subject);
  if (autoReplyReason(mail.headers, said) === null) return isFromMachine(mail.headers) ? author : null;
  return isBounceSubject || (report.intro !== null && report.intro !== "mailbox") ? author : null;
}

function ofAuthor(email: string, { report }: Report): Finding {
  return { ...nobody, email, isExpanded: false, text: report.slice(0, 2_000) };
}

// "Your mailbox is almost full": no mail came back, unless another's address is named as a recipient.
function isOwnersWarning(mail: MailParts, report: Report, subject: string): boolean {
  const { said } = announced(mail, subject);
  return (report.intro === "mailbox" || said?.id === "full-mailbox") && isToOwner(report.report);
}

function namesAnother(mail: MailParts, findings: readonly Finding[]): boolean {
  const own = ownAddresses(mail);
  return findings.some(({ email }) => email !== null && !own.has(email.toLowerCase()));
}

function isCertainlyReport(mail: MailParts, report: Report, subject: string): boolean {
  const { isFromSystem, isBounceSubject } = announced(mail, subject);
  return isFromSystem && isBounceSubject && report.intro !== null;
}

function announced(mail: MailParts, subject: string) {
  const isMarked = headerValues(mail.headers, "x-failed-recipients").length > 0;
  const isFromSystem = isFromMailer(mail.headers) || isMarked;
  const said = subjectKind(subject, isFromSystem);
  return { isMarked, isFromSystem, said, isBounceSubject: said?.kind === "bounce" || said?.kind === "delayed" };
}

// Whom a text that names nobody is about is a guess, so it never suppresses: as if others stood behind the address.
const nobody: Finding = {
  ...{ email: null, original: null, action: null, status: null, diagnostic: "" },
  ...{ isAboutAddress: false, isExpanded: true, text: "" },
};

function saysSomething(report: Report, findings: readonly Finding[]): boolean {
  const fields = report.status?.findings.some(({ action, status }) => action !== null || status !== null) ?? false;
  return findings.length > 0 || fields;
}

// RFC 8098, and RFC 5429 §2.1: Sieve's `reject` answers with a receipt "deleted" whose text says why. Such a refusal is
// the recipient's own rule: it ends the delivery and never suppresses.
function readReceipt(mail: MailParts, report: Report, subject: string): BounceResult {
  const part = mail.parts.find(({ type }) => /^message\/(?:global-)?disposition-notification$/.test(type));
  const fields = part === undefined ? new Map() : (readFieldGroups(partText(part))[0] ?? new Map());
  const disposition = fieldValue(fields, "disposition").toLowerCase();
  const isRejection =
    /;\s*(?:deleted|denied|failed)/.test(disposition) && subjectKind(subject, false)?.kind === "bounce";
  const findings = isRejection && report.intro !== null ? findRecipients(mail, report, false) : [];
  if (findings.length === 0)
    return { kind: "receipt", reason: disposition.slice(0, 100) || "disposition-notification" };
  const result = bounce(mail, report, findings, subject);
  return { ...result, recipients: result.recipients.map((recipient) => ({ ...recipient, suppress: false })) };
}

function fromNotification(notification: SesNotification, report: Report): BounceResult {
  if (notification.kind === "complaint") return { kind: "complaint", reason: "ses-notification" };
  const context = { report: "", subject: "", action: null, refused: [] };
  const head = notification.headers.map(({ name, value }) => `${name}: ${value}`).join("\n");
  return {
    kind: "bounce",
    recipients: notification.findings.map((finding) => judge(finding, context)),
    original: readReturnedMessage([], head, [report.report], []),
    reporting_mta: notification.reporting_mta,
    arrival_date: notification.arrival_date,
  };
}

// A notice about a notice about a report.
const wrappedDepthMax = 2;

// Some relays send a whole bounce as the attachment of a notice of their own (never believed from a person).
function readWrapped(mail: MailParts, depth: number): BounceReport | null {
  if (!isFromMachine(mail.headers)) return null;
  for (const bytes of wrappedMails(mail)) {
    const result = parseMail(splitParts(bytes), depth + 1);
    if (result.kind === "bounce") return result;
  }
  return null;
}

function namesInFields(mail: MailParts, report: Report): boolean {
  const isNamed = report.status?.findings.some(({ email }) => email !== null) ?? false;
  return isNamed && mail.parts.some(({ type }) => isStatusType(type));
}

// The notice names nobody whom the report in it does not name; then the report knows more.
function isAboutSame(mail: MailParts, findings: readonly Finding[], { recipients }: BounceReport): boolean {
  const known = ownAddresses(mail);
  for (const { email } of recipients) known.add(email?.toLowerCase() ?? "");
  return findings.every(({ email }) => email === null || known.has(email.toLowerCase()));
}
