// Complaints of feedback loops: RFC 5965 (abuse reports), RFC 6591 (authentication failures), RFC 9477 (CFBL), and what
// Microsoft, SpamCop, Amazon SES and senders of X-ARF send instead. Bytes in, values out. It verifies nothing: a report counts only when
// our own token in the returned head is genuine, and only for our own mail.

import ipaddr from "ipaddr.js";
import { addressIn } from "../dsn/address-text.ts";
import { partText } from "../dsn/body-text.ts";
import { hostName } from "../dsn/delivery-status.ts";
import { firstHeader, type MailParts, splitParts } from "../dsn/parts.ts";
import { readReturnedMessage } from "../dsn/returned-message.ts";
import { readSesNotification } from "../dsn/ses-notification.ts";
import { type FieldGroup, fieldValue, readFieldGroups, storable } from "../dsn/status-fields.ts";
import type { OriginalMessage } from "../dsn/types.ts";
import { type ComplaintFormat, complaintFormat } from "./formats.ts";
import type { ComplaintMeaning, ComplaintReport } from "./types.ts";
import { readXarf } from "./xarf.ts";

export const complaintRecipientsMax = 200;
export const reportedMax = 100;
const incidentsMax = 1_000_000;

/** Reads a complaint; null when the mail is none. Never throws; linear in the first 4 MiB of the mail. */
export function parseComplaint(bytes: Buffer): ComplaintReport | null {
  const mail = splitParts(bytes);
  const format = complaintFormat(mail);
  if (format === null) return null;
  const texts = mail.parts.filter((part) => /^text\/(?:plain|html|x-preamble)$/.test(part.type)).map(partText);
  if (format === "ses-notification") return fromNotification(texts);
  if (format === "x-arf") return fromXarf(mail, texts);
  const fields = feedbackFields(mail, texts);
  const returned = format === "spamcop" ? offendingMessage(texts) : "";
  const original = readReturnedMessage(mail.parts, returned, texts, []);
  const report = fromFields(fields, original, format);
  if (format === "apple-unsubscribe") return withUnsubscriber(report, mail);
  if (format === "jmrp") return withJmrp(report, mail);
  return format === "spamcop" ? withSpamCop(report, mail) : withText(report, texts);
}

// The fields stand in their own part; a few writers put them into the text.
function feedbackFields(mail: MailParts, texts: readonly string[]): FieldGroup {
  const part = mail.parts.find(({ type }) => type === "message/feedback-report");
  const source = part === undefined ? texts.map(fieldLines).join("\n") : partText(part);
  const merged: FieldGroup = new Map();
  for (const group of readFieldGroups(source)) {
    for (const [name, values] of group) merged.set(name, [...(merged.get(name) ?? []), ...values]);
  }
  return merged;
}

function fieldLines(text: string): string {
  const start = /^(?:feedback-type|user-agent|version)[ \t]*:/im.exec(text);
  return start === null ? "" : text.slice(start.index);
}

function fromFields(fields: FieldGroup, original: OriginalMessage, format: ComplaintFormat): ComplaintReport {
  const feedbackType = typeOf(fields);
  const rcptTo = addresses(fields, "original-rcpt-to");
  const removal = addresses(fields, "removal-recipient");
  return {
    kind: "complaint",
    format,
    meaning: meaningOf(feedbackType),
    feedback_type: feedbackType,
    user_agent: fieldValue(fields, "user-agent") || null,
    version: fieldValue(fields, "version") || null,
    source_ip: validIp(fieldValue(fields, "source-ip")),
    arrival_date: fieldValue(fields, "arrival-date", "received-date") || null,
    original_mail_from: addressIn(fieldValue(fields, "original-mail-from")),
    original_rcpt_to: rcptTo,
    recipients: [rcptTo, removal, recipientsOfOriginal(original)].find((found) => found.length > 0) ?? [],
    reported_domains: listOf(fields, "reported-domain"),
    reported_uris: listOf(fields, "reported-uri"),
    incidents: incidentsOf(fieldValue(fields, "incidents")),
    authentication_results: listOf(fields, "authentication-results"),
    auth_failure: fieldValue(fields, "auth-failure").toLowerCase() || null,
    delivery_result: fieldValue(fields, "delivery-result").toLowerCase() || null,
    dkim_domain: fieldValue(fields, "dkim-domain") || null,
    reporting_mta: hostName(fieldValue(fields, "reporting-mta")),
    original_envelope_id: fieldValue(fields, "original-envelope-id") || null,
    cfbl_feedback_id: originalHeader(original, "cfbl-feedback-id"),
    original,
  };
}

// RFC 6591 §3.1, RFC 7489 §7.3.1: only reports of authentication failures have these two fields.
function typeOf(fields: FieldGroup): string {
  const [type] = fieldValue(fields, "feedback-type")
    .replace(/^"(.*)"$/, "$1")
    .toLowerCase()
    .split(/[\s;]/);
  const isFailure = fieldValue(fields, "auth-failure", "identity-alignment") !== "";
  return (type || (isFailure ? "auth-failure" : "abuse")).slice(0, 50).toWellFormed();
}

// Unregistered types count as "other" (RFC 5965 §3.1).
function meaningOf(feedbackType: string): ComplaintMeaning {
  if (feedbackType === "not-spam") return "not_spam";
  if (feedbackType.startsWith("opt-out")) return "unsubscribe";
  return feedbackType === "auth-failure" || feedbackType === "dmarc" ? "auth_failure" : "complaint";
}

function addresses(fields: FieldGroup, name: string): string[] {
  const found = (fields.get(name) ?? []).slice(0, complaintRecipientsMax).map(addressIn);
  return [...new Set(found.filter((email) => email !== null))];
}

function listOf(fields: FieldGroup, name: string): string[] {
  return (fields.get(name) ?? []).filter((value) => value !== "").slice(0, reportedMax);
}

/** A valid IP address at the start of a value (`192.0.2.1 (mail.example.com)`, `[192.0.2.1]`, `IPv6:2001:db8::1`), else null. */
function validIp(value: string): string | null {
  const text = /^\[?(?:IPv6:)?([0-9A-Fa-f.:]{2,45})/.exec(value.trim())?.[1] ?? "";
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text) ? text : null;
}

function incidentsOf(value: string): number {
  const count = /^\d{1,9}/.exec(value)?.[0];
  return count === undefined ? 1 : Math.min(incidentsMax, Math.max(1, Number(count)));
}

function originalHeader(original: OriginalMessage, name: string): string | null {
  return original.headers.find((header) => header.name.toLowerCase() === name)?.value || null;
}

// Fields that name one mailbox come before To, which may name many.
const recipientFields = [
  "x-hmxmroriginalrecipient",
  "delivered-to",
  "x-original-to",
  "x-apparently-to",
  "x-rcpt-to",
  "to",
];

function recipientsOfOriginal(original: OriginalMessage): string[] {
  for (const name of recipientFields) {
    const value = originalHeader(original, name) ?? "";
    const found = value
      .split(",")
      .slice(0, complaintRecipientsMax)
      .map(addressIn)
      .filter((email) => email !== null);
    if (found.length > 0) return [...new Set(found)];
  }
  return [];
}

// AOL writes the Message-ID into its sentence and nowhere else.
function withText(report: ComplaintReport, texts: readonly string[]): ComplaintReport {
  const said = texts.join(" ").slice(0, 8_000).replace(/\s+/g, " ");
  const id = /message-id of <?([^\s<>]{3,300})>? received/i.exec(said)?.[1] ?? null;
  return { ...report, original: { ...report.original, message_id: report.original.message_id ?? id } };
}

// The mail is the reader's own, and says nothing but that.
function withUnsubscriber(report: ComplaintReport, mail: MailParts): ComplaintReport {
  const reader = addressIn(firstHeader(mail.headers, "from"));
  return {
    ...report,
    meaning: "unsubscribe",
    feedback_type: "opt-out",
    user_agent: "Apple Mail",
    arrival_date: storable(firstHeader(mail.headers, "date")) || null,
    recipients: reader === null ? [] : [reader],
  };
}

function withJmrp(report: ComplaintReport, mail: MailParts): ComplaintReport {
  const subject = firstHeader(mail.headers, "subject");
  const reported = originalHeader(report.original, "from") ?? "";
  return {
    ...report,
    user_agent: report.user_agent ?? "Microsoft Junk Mail Reporting Program",
    source_ip: validIp(/from \[?([0-9A-Fa-f.:]{2,45})/i.exec(subject)?.[1] ?? ""),
    arrival_date: storable(firstHeader(mail.headers, "date")) || null,
    original_mail_from: addressIn(originalHeader(report.original, "return-path") ?? reported),
  };
}

function withSpamCop(report: ComplaintReport, mail: MailParts): ComplaintReport {
  const subject = firstHeader(mail.headers, "subject");
  const ip = validIp(/spamcop \(([0-9A-Fa-f.:]{2,45})\)/i.exec(subject)?.[1] ?? "");
  return { ...report, user_agent: "SpamCop", source_ip: report.source_ip ?? ip };
}

function fromXarf(mail: MailParts, texts: readonly string[]): ComplaintReport | null {
  const xarf = readXarf(mail);
  if (xarf === null) return null;
  const report = fromFields(new Map(), readReturnedMessage(mail.parts, xarf.sample, texts, []), "x-arf");
  const named = xarf.rcpt_to === null ? null : addressIn(xarf.rcpt_to);
  const rcptTo = named === null ? [] : [named];
  return {
    ...report,
    user_agent: xarf.user_agent === null ? null : storable(xarf.user_agent),
    source_ip: validIp(xarf.source_ip),
    arrival_date: xarf.date === null ? null : storable(xarf.date),
    original_mail_from: xarf.mail_from === null ? null : addressIn(xarf.mail_from),
    original_rcpt_to: rcptTo,
    recipients: rcptTo.length > 0 ? rcptTo : report.recipients,
  };
}

function offendingMessage(texts: readonly string[]): string {
  const text = texts.join("\n");
  const start = /^\[ ?offending message ?\]\s*$/im.exec(text);
  return start === null ? "" : text.slice(start.index + start[0].length);
}

function fromNotification(texts: readonly string[]): ComplaintReport | null {
  const notification = texts.map(readSesNotification).find((found) => found !== null);
  if (notification === undefined) return null;
  const head = notification.headers.map(({ name, value }) => `${name}: ${value.replace(/[\r\n]+/g, " ")}`).join("\n");
  const report = fromFields(new Map(), readReturnedMessage([], head, [], []), "ses-notification");
  const feedbackType = notification.feedback_type?.toLowerCase() ?? "abuse";
  const recipients = notification.findings.map(({ email }) => email).filter((email) => email !== null);
  return {
    ...report,
    meaning: meaningOf(feedbackType),
    feedback_type: feedbackType,
    user_agent: notification.user_agent,
    arrival_date: notification.arrival_date,
    original_mail_from: notification.mail_from === null ? null : addressIn(notification.mail_from),
    original_rcpt_to: recipients,
    recipients,
  };
}
