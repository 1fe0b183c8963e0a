// Reports for tests: a multipart/report, a plain text, and short forms of what was read of them.
import assert from "node:assert/strict";
import { parseBounce } from "./dsn.ts";
import type { BounceRecipient, BounceReport } from "./types.ts";

export const daemon = "From: Mail Delivery System <MAILER-DAEMON@mx.example>\nTo: b+token@bounces.example\n";

/** A multipart/report with the given fields of its recipients. */
export function report(
  fields: string,
  text = "Your message could not be delivered.",
  returned = "Message-ID: <m@us.example>\n",
) {
  return `${daemon}Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

${text}

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example
Arrival-Date: Thu, 1 Jan 2026 10:00:00 +0000

${fields}
--b
Content-Type: text/rfc822-headers

${returned}
--b--
`;
}

/** A report that knows no MIME. */
export function plain(text: string, subject = "failure notice", head = daemon) {
  return `${head}Subject: ${subject}\n\n${text}\n`;
}

/** What is read of a mail that must be a bounce. */
export function read(mail: string | Buffer): BounceReport {
  const result = parseBounce(Buffer.from(mail));
  assert.equal(result.kind, "bounce", JSON.stringify(result));
  return result as BounceReport;
}

/** Its one recipient. */
export function only(mail: string): BounceRecipient {
  const { recipients } = read(mail);
  assert.equal(recipients.length, 1, JSON.stringify(recipients));
  return recipients[0]!;
}

/** A recipient on one line: address, action, type, class, status, code, and whether it is suppressed. */
export function short(one: BounceRecipient): string {
  const words = [one.email, one.action, one.bounce_type, one.class, one.status, one.smtp_code];
  return [...words, ...(one.suppress ? ["suppress"] : [])].join(" ");
}

/** The fields of one failed recipient. */
export const one = (rest: string) => `Final-Recipient: rfc822; user@there.example\nAction: failed\n${rest}\n`;
