// What the owner of a mailbox is informed about a reply, in our own words. Of one that did not reach its contact it is a delivery
// status notification (RFC 3464 in a multipart/report, RFC 6522), of one that left a plain mail. It comes from nobody (null
// reverse-path) and says that a machine wrote it (RFC 3834), so that nothing answers it. Of the reply its Message-ID is
// repeated and the names of files that matter.
import { encodeText } from "../../mail/mime/write/encode-body.ts";
import { mailboxHeader, rawHeader, textHeader } from "../../mail/mime/write/encode-header.ts";
import { idsField } from "./header-fields.ts";

export type Notice = {
  from: { name: string | null; email: string };
  to: string;
  date_ms: number;
  /** Without angle brackets. */
  message_id: string;
  /** The Message-ID of the reply, with angle brackets. */
  about_id: string | null;
  subject: string;
  paragraphs: readonly string[];
  /** Why a reply did not reach its contact; null for one that left. */
  failure: Failure | null;
};

type Failure = {
  boundary: string;
  reporting_mta: string;
  /** The reverse address that the reply was sent to. */
  final_recipient: string;
  /** RFC 3463. */
  status: string;
};

/** The finished message. */
export function buildNotice(notice: Notice): Buffer {
  const { about_id, failure } = notice;
  const text = textPart(`${notice.paragraphs.join("\n\n")}\n`);
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
      failure === null ? text : report(text, failure),
    ].join(""),
  );
}

function textPart(text: string): string {
  const { encoding, body } = encodeText(text);
  return `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body.toString("latin1")}\r\n`;
}

function report(text: string, { boundary, reporting_mta, final_recipient, status }: Failure): string {
  return [
    `Content-Type: multipart/report; report-type=delivery-status;\r\n boundary="${boundary}"\r\n\r\n`,
    `--${boundary}\r\n${text}`,
    `--${boundary}\r\nContent-Type: message/delivery-status\r\n\r\n`,
    `Reporting-MTA: dns; ${reporting_mta}\r\n\r\n`,
    `Final-Recipient: rfc822; ${final_recipient}\r\nAction: failed\r\nStatus: ${status}\r\n\r\n`,
    `--${boundary}--\r\n`,
  ].join("");
}
