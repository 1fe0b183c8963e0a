// What the owner of a mailbox is told about a reply that did not reach its contact: a delivery status notification
// (RFC 3464 in a multipart/report, RFC 6522) in our own words. It comes from nobody (null reverse-path) and says that a
// machine wrote it (RFC 3834), so that nothing answers it. Nothing of the reply but its Message-ID is repeated.
import { encodeText } from "../../mail/mime/write/encode-body.ts";
import { mailboxHeader, rawHeader, textHeader } from "../../mail/mime/write/encode-header.ts";
import { idsField } from "./header-fields.ts";

export type Notice = {
  from: { name: string | null; email: string };
  to: string;
  date_ms: number;
  /** Without angle brackets. */
  message_id: string;
  /** Of the reply, with angle brackets. */
  about_id: string | null;
  subject: string;
  paragraphs: readonly string[];
  boundary: string;
  reporting_mta: string;
  /** The reverse address that the reply was sent to. */
  final_recipient: string;
  /** RFC 3463. */
  status: string;
};

/** The finished message. */
export function buildNotice(notice: Notice): Buffer {
  const { boundary, about_id } = notice;
  const text = encodeText(`${notice.paragraphs.join("\n\n")}\n`);
  const ids = about_id === null ? [] : [about_id];
  return Buffer.from(
    [
      mailboxHeader("From", [notice.from]),
      mailboxHeader("To", [{ name: null, email: notice.to }]),
      textHeader("Subject", notice.subject),
      rawHeader("Date", new Date(notice.date_ms).toUTCString().replace("GMT", "+0000")),
      `Message-ID: <${notice.message_id}>\r\n`,
      idsField("In-Reply-To", ids),
      idsField("References", ids),
      "Auto-Submitted: auto-replied\r\n",
      "MIME-Version: 1.0\r\n",
      `Content-Type: multipart/report; report-type=delivery-status;\r\n boundary="${boundary}"\r\n\r\n`,
      `--${boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n`,
      `Content-Transfer-Encoding: ${text.encoding}\r\n\r\n${text.body.toString("latin1")}\r\n`,
      `--${boundary}\r\nContent-Type: message/delivery-status\r\n\r\n`,
      `Reporting-MTA: dns; ${notice.reporting_mta}\r\n\r\n`,
      `Final-Recipient: rfc822; ${notice.final_recipient}\r\nAction: failed\r\nStatus: ${notice.status}\r\n\r\n`,
      `--${boundary}--\r\n`,
    ].join(""),
  );
}
