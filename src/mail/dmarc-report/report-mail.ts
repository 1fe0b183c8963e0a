// Which reports a mail to a report address carries. What its parts call themselves is not believed: the first bytes tell.
// Failure reports (RFC 6591, RFC 9991) are recognised by their part and not read: they quote other people's mail.
import type { ParsedMail } from "../mime/parsed-mail.ts";
import { type ReadReport, readReport } from "./read-report.ts";

/** One is the rule; a few reporters send the days they missed together. */
const REPORTS_MAX = 10;

export type ReportMail =
  | { kind: "reports"; reports: Exclude<ReadReport, { kind: "refused" }>[] }
  | { kind: "failure_report" }
  | { kind: "refused"; reason: string };

/** Reads the reports of a mail; `refused` says why there is none that can be read. */
export async function readReportMail(mail: Pick<ParsedMail, "attachments" | "text">): Promise<ReportMail> {
  if (mail.attachments.some((part) => part.content_type === "message/feedback-report"))
    return { kind: "failure_report" };
  const files = mail.attachments.map((part) => part.content).filter(mayBeReport);
  if (files.length === 0 && mail.text !== null) files.push(...[Buffer.from(mail.text)].filter(mayBeReport));
  const reports: Exclude<ReadReport, { kind: "refused" }>[] = [];
  let reason = "the mail holds no report";
  for (const file of files.slice(0, REPORTS_MAX)) {
    const read = await readReport(file);
    if (read.kind === "refused") reason = read.reason;
    else reports.push(read);
  }
  return reports.length > 0 ? { kind: "reports", reports } : { kind: "refused", reason };
}

/** gzip, ZIP, XML or JSON by the first bytes. */
function mayBeReport(content: Buffer): boolean {
  if (content[0] === 0x1f && content[1] === 0x8b) return true;
  const head = content.subarray(0, 200).toString("latin1");
  return /^PK\x03\x04|^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<(?!(?:!doctype )?html)|^[\s\0]*\{/i.test(head);
}
