// Which reports a mail to a report address carries. What its parts call themselves is not believed: the first bytes tell.
// Failure reports (RFC 6591, RFC 9991) are recognised by their part and not read: they quote other people's mail.
import type { ParsedMail } from "../mime/parsed-mail.ts";
import { type Allowance, UNPACKED_BYTES_MAX } from "./unpack.ts";

/** One is the rule; a few reporters send the days they missed together. */
const REPORTS_MAX = 10;

export type ReportMail =
  | { kind: "files"; files: Buffer[]; allowance: Allowance }
  | { kind: "failure_report" }
  | { kind: "refused"; reason: string };

/**
 * The files of a mail that may be reports, packed as they came. Whoever reads them does so one after the other, with the
 * one allowance for all: what is in them is many times their size.
 */
export function findReports(mail: Pick<ParsedMail, "attachments" | "text">): ReportMail {
  if (mail.attachments.some((part) => part.content_type === "message/feedback-report"))
    return { kind: "failure_report" };
  const files = mail.attachments.map((part) => part.content).filter(mayBeReport);
  if (files.length === 0 && mail.text !== null) files.push(...[Buffer.from(mail.text)].filter(mayBeReport));
  if (files.length === 0) return { kind: "refused", reason: "the mail holds no report" };
  return { kind: "files", files: files.slice(0, REPORTS_MAX), allowance: { bytes_left: UNPACKED_BYTES_MAX } };
}

/** gzip, ZIP, XML or JSON by the first bytes. */
function mayBeReport(content: Buffer): boolean {
  if (content[0] === 0x1f && content[1] === 0x8b) return true;
  const head = content.subarray(0, 200).toString("latin1");
  return /^PK\x03\x04|^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<(?!(?:!doctype )?html)|^[\s\0]*\{/i.test(head);
}
