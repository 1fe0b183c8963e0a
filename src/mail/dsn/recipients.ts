// Who a report is about: the status fields first, then the header that Exim and Gmail write, the readable text, quoted
// conversations and at last the returned message. One finding for each recipient. What it means is verdict.ts.

import { headerValues } from "../mime/parse-head.ts";
import { addressIn, addressSource, cleanAddress } from "./address-text.ts";
import { partText } from "./body-text.ts";
import { type DeliveryStatus, findStatusFields, readDeliveryStatus } from "./delivery-status.ts";
import { isStatusType, type MailParts, type Part } from "./parts.ts";
import { type Mention, type ReportText, readReportText } from "./report-text.ts";
import { isReturnedMessage } from "./returned-message.ts";
import type { Finding } from "./types.ts";

export const recipientsMax = 500;
const reportTextsMax = 6;
const headerCharsMax = 32 * 1_024;

/** The readable side of a report and its status fields (null without any). */
export type Report = ReportText & { texts: string[]; statusTexts: string[]; status: DeliveryStatus | null };

/** Reads the texts and the status fields of a mail. */
export function readReport(mail: MailParts): Report {
  const texts = readableTexts(mail.parts);
  const text = readReportText(texts.join("\n\n"), ownAddresses(mail));
  const statusTexts = mail.parts.filter((part) => isStatusType(part.type)).map(partText);
  const status = statusTexts.length > 0 ? joinStatus(statusTexts.map(readDeliveryStatus)) : null;
  const isNamed = status?.findings.some((finding) => finding.email !== null) ?? false;
  return { ...text, texts, statusTexts, status: isNamed ? status : (fieldsElsewhere(mail, text.report) ?? status) };
}

// In the text, or in a file: gateways give a type that they do not know another name.
function fieldsElsewhere(mail: MailParts, text: string): DeliveryStatus | null {
  const files = mail.parts.filter(({ type }) => type === "application/octet-stream").slice(0, reportTextsMax);
  return firstFound([text, ...files.map(partText)], findStatusFields);
}

function firstFound<T>(texts: readonly string[], find: (text: string) => T | null): T | null {
  for (const text of texts) {
    const found = find(text);
    if (found !== null) return found;
  }
  return null;
}

// The texts before the returned message; HTML and the preamble only where there is no other.
function readableTexts(parts: readonly Part[]): string[] {
  const returnedAt = parts.findIndex((part) => isReturnedMessage(part.type));
  const before = returnedAt === -1 ? parts : parts.slice(0, returnedAt);
  for (const type of ["text/plain", "text/html", "text/x-preamble", ""]) {
    const chosen = before.filter((part) => (type === "" ? isAnyText(part.type) : part.type === type));
    const texts = chosen.slice(0, reportTextsMax).map(partText);
    if (texts.some((text) => /\p{L}{3}/u.test(text))) return texts;
  }
  return [];
}

function isAnyText(type: string): boolean {
  return /^(?:text|message)\//.test(type) && !isStatusType(type);
}

function joinStatus(all: readonly DeliveryStatus[]): DeliveryStatus {
  return {
    reporting_mta: all.map((status) => status.reporting_mta).find((name) => name !== null) ?? null,
    arrival_date: all.map((status) => status.arrival_date).find((date) => date !== null) ?? null,
    findings: all.flatMap((status) => status.findings).slice(0, recipientsMax),
  };
}

const anyAddress = new RegExp(addressSource, "giu");

/** To whom the report was sent and by whom, lower-case: such an address in its text is hardly a recipient that failed. */
export function ownAddresses(mail: MailParts): Set<string> {
  const own = new Set<string>();
  for (const name of ["to", "delivered-to", "x-original-to", "from", "sender", "return-path", "reply-to", "cc"]) {
    for (const value of headerValues(mail.headers, name)) {
      for (const [found] of value.slice(0, headerCharsMax).matchAll(anyAddress)) own.add(found.toLowerCase());
    }
  }
  return own;
}

/**
 * The recipients that a report names, in its order; empty when it names none. `isCertain`: its sender, its subject and its
 * text all say that it is a report; then one address in it, wherever it stands, is enough.
 */
export function findRecipients(mail: MailParts, report: Report, isCertain: boolean): Finding[] {
  const fields = report.status?.findings ?? [];
  const named = fields.filter((finding) => finding.email !== null);
  const aliases = expandedAddresses(report.report);
  if (named.length > 0) {
    const found = named.map((finding) => withText(finding, named.length, report.mentions));
    return mergeFindings(found.map((finding) => withExpansion(finding, aliases)));
  }
  const mentions = firstNotEmpty([
    () => failedRecipients(mail, report.mentions),
    () => report.mentions,
    () => report.refused.flatMap(({ addresses, reply }) => addresses.map((email) => ({ email, text: reply }))),
    () => (report.intro === null ? [] : bareNames(mail, report)),
    () => (isCertain ? onlyAddress(mail, report) : []),
    () => (report.intro === null ? [] : returnedRecipient(mail, report)),
  ]);
  const only = fields.length === 1 ? fields[0]! : null;
  const found = mentions.slice(0, recipientsMax).map((mention) => fromMention(mention, only));
  return mergeFindings(found.map((finding) => withExpansion(finding, aliases)));
}

function firstNotEmpty(sources: readonly (() => Mention[])[]): Mention[] {
  for (const source of sources) {
    const found = source();
    if (found.length > 0) return found;
  }
  return [];
}

function withText(finding: Finding, count: number, mentions: readonly Mention[]): Finding {
  const emails = [finding.email, finding.original].map((email) => email?.toLowerCase());
  const own = mentions.find(({ email }) => emails.includes(email.toLowerCase()));
  const said = own ?? (count === 1 && mentions.length === 1 ? mentions[0] : undefined);
  return { ...finding, text: said?.text ?? "" };
}

function fromMention({ email, text }: Mention, fields: Finding | null): Finding {
  const none = { original: null, action: null, status: null, diagnostic: "", isAboutAddress: false, isExpanded: false };
  const finding = { ...none, ...fields, email, text };
  return { ...finding, original: finding.original ?? expandedFrom(text) };
}

const expansion = `\\((?:expanded|ultimately generated|generated)\\s{1,20}from:?\\s{0,20}<?(${addressSource})`;
const firstExpansion = new RegExp(expansion, "iu");
const anyExpansion = new RegExp(expansion, "giu");

// sendmail, Postfix and Exim name the address that led to this one.
function expandedFrom(text: string): string | null {
  const found = firstExpansion.exec(text)?.[1];
  return found === undefined ? null : cleanAddress(found);
}

function expandedAddresses(text: string): Set<string> {
  return new Set([...text.matchAll(anyExpansion)].map(([, found]) => (cleanAddress(found!) ?? "").toLowerCase()));
}

// Exim may hide whom an address stands for: "an undisclosed address (generated from user@example.com)".
function withExpansion(finding: Finding, aliases: ReadonlySet<string>): Finding {
  const isAlias = finding.email !== null && aliases.has(finding.email.toLowerCase());
  return isAlias ? { ...finding, isExpanded: true } : finding;
}

// The same address twice in one report is one recipient; the failure counts, not the warning before it.
function mergeFindings(findings: readonly Finding[]): Finding[] {
  const merged = new Map<string, Finding>();
  for (const finding of findings) {
    const key = finding.email?.toLowerCase() ?? "";
    const before = merged.get(key);
    if (before === undefined || (before.action !== "failed" && finding.action === "failed")) merged.set(key, finding);
  }
  return [...merged.values()];
}

// X-Failed-Recipients: Exim and Gmail, sometimes folded, sometimes several times.
function failedRecipients(mail: MailParts, mentions: readonly Mention[]): Mention[] {
  const value = headerValues(mail.headers, "x-failed-recipients").join(",").slice(0, headerCharsMax);
  const emails = value
    .split(",")
    .map(addressIn)
    .filter((email) => email !== null);
  return emails.map((email) => {
    const own = mentions.find((mention) => mention.email.toLowerCase() === email.toLowerCase());
    return { email, text: own?.text ?? (emails.length === 1 ? mentions.map(({ text }) => text).join("\n\n") : "") };
  });
}

// AOL lists screen names without a domain: a line with nothing but a name, in a report from that domain.
function bareNames(mail: MailParts, report: Report): Mention[] {
  const domain = /@([^\s<>@]{1,255})/.exec(headerValues(mail.headers, "from")[0] ?? "")?.[1];
  if (domain === undefined) return [];
  const lines = report.report.split("\n");
  const names = lines.map((line) => /^\s{1,20}([A-Za-z0-9][A-Za-z0-9._+-]{1,63})\s*$/.exec(line)?.[1]);
  const emails = names.filter((name) => name !== undefined).map((name) => cleanAddress(`${name}@${domain}`));
  const email = emails.length === 1 ? emails[0] : null;
  return email ? [{ email: email.toLowerCase(), text: report.report.slice(0, 2_000) }] : [];
}

// "Ihre Nachricht an user@example.com konnte …": no sentence that we know, but nobody else is named. It comes before the returned
// message: where that went to another address, somebody forwards.
function onlyAddress(mail: MailParts, report: Report): Mention[] {
  const own = ownAddresses(mail);
  const text = report.report.replace(/\bmessage-id\b[ \t]*[:=]?[ \t]*<[^<>\n]{1,300}>/gi, "");
  const found = new Map<string, string>();
  for (const [address] of text.matchAll(anyAddress)) {
    const email = cleanAddress(address);
    const isForeign = email !== null && !own.has(email.toLowerCase()) && !/^(?:postmaster|abuse)@/i.test(email);
    if (isForeign) found.set(email.toLowerCase(), email);
  }
  return found.size === 1 ? [...found.values()].map((email) => ({ email, text: report.report.slice(0, 2_000) })) : [];
}

// The last resort: the one address that the returned message was sent to, as far as the report quotes it.
function returnedRecipient(mail: MailParts, report: Report): Mention[] {
  const returned = mail.parts.find((part) => isReturnedMessage(part.type));
  const heads = [report.returned, returned === undefined ? "" : partText(returned), report.report];
  for (const head of heads) {
    const to = /^\s{0,8}(?:x-envelope-to|to)\s?:([^\n]{1,1000}(?:\n[ \t][^\n]{1,1000}){0,5})/im.exec(head)?.[1] ?? "";
    const found = [...to.matchAll(anyAddress)]
      .map(([address]) => cleanAddress(address))
      .filter((email) => email !== null);
    if (new Set(found).size === 1) return [{ email: found[0]!, text: report.report.slice(0, 2_000) }];
  }
  return [];
}
