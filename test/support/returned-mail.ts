// What comes back because of mail that left, written as mail servers and mailbox providers write it: for stories and
// corpora. Plain texts with CRLF; nothing of the product reads or builds them.

export type Copy = { from: string; to: string; return_path: string; bytes: Buffer };

const crlf = (text: string): string => text.replace(/\r?\n/g, "\r\n");

function headOf(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  return text.slice(0, text.indexOf("\r\n\r\n") + 2);
}

/** A delivery status notification in the very form of Postfix's bounce daemon. */
export function postfixBounce(
  copy: Copy,
  given: { status: string; reply: string; action?: "failed" | "delayed"; about?: string },
): string {
  const { status, reply, action = "failed", about = copy.to } = given;
  const boundary = "4F2D1A2B3C.1700000000/mx.there.example";
  const text =
    action === "failed"
      ? "I'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients. It's attached below."
      : "Your message could not be delivered for more than 4 hour(s).\nIt will be retried until it is 5 day(s) old.";
  const subject = action === "failed" ? "Undelivered Mail Returned to Sender" : "Delayed Mail (still being retried)";
  return crlf(`Received: by mx.there.example (Postfix) id 4F2D1A2B3C; Fri, 20 Nov 2026 12:00:00 +0000 (UTC)
Date: Fri, 20 Nov 2026 12:00:00 +0000 (UTC)
From: MAILER-DAEMON@mx.there.example (Mail Delivery System)
Subject: ${subject}
To: ${copy.return_path}
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="${boundary}"
Message-Id: <20261120120000.4F2D1A2B3C@mx.there.example>

This is a MIME-encapsulated message.

--${boundary}
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.there.example.

${text}

For further assistance, please send mail to postmaster.

                   The mail system

<${about}>: host backend.there.example[192.0.2.9] said: ${reply}
    (in reply to RCPT TO command)

--${boundary}
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.there.example
X-Postfix-Queue-ID: 4F2D1A2B3C
X-Postfix-Sender: rfc822; ${copy.return_path}
Arrival-Date: Fri, 20 Nov 2026 11:59:59 +0000 (UTC)

Final-Recipient: rfc822; ${about}
Original-Recipient: rfc822;${about}
Action: ${action}
Status: ${status}
Remote-MTA: dns; backend.there.example
Diagnostic-Code: smtp; ${reply}

--${boundary}
Content-Description: Undelivered Message Headers
Content-Type: text/rfc822-headers

Return-Path: <${copy.return_path}>
${headOf(copy.bytes).replace(/\r\n/g, "\n")}
--${boundary}--
`);
}

/** A complaint as a feedback loop sends it (RFC 5965); `keep` is what the provider leaves of the message's head. */
export function feedbackReport(
  copy: Copy,
  given: { type?: string; keep?: (head: string) => string; return_path?: string | null; rcpt_to?: string | null } = {},
): string {
  const { type = "abuse", keep = (head) => head, return_path = copy.return_path, rcpt_to = "redacted" } = given;
  const mailFrom = return_path === null ? "" : `Original-Mail-From: <${return_path}>\n`;
  const rcptTo = rcpt_to === null ? "" : `Original-Rcpt-To: <${rcpt_to}>\n`;
  return crlf(`From: <feedback@provider.example>
Date: Fri, 20 Nov 2026 14:00:00 +0000
Subject: FW: complaint
To: <feedback@postern.test>
Message-ID: <fbl-1@provider.example>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report;
     boundary="part1_13d.2e68ed54_boundary"

--part1_13d.2e68ed54_boundary
Content-Type: text/plain; charset="US-ASCII"
Content-Transfer-Encoding: 7bit

This is an email abuse report for an email message received from IP 192.0.2.55.

--part1_13d.2e68ed54_boundary
Content-Type: message/feedback-report

Feedback-Type: ${type}
User-Agent: SomeGenerator/1.0
Version: 1
${mailFrom}${rcptTo}Arrival-Date: Fri, 20 Nov 2026 14:00:00 +0200
Source-IP: 192.0.2.55
Reported-Domain: sender.example

--part1_13d.2e68ed54_boundary
Content-Type: message/rfc822
Content-Disposition: inline

${keep(headOf(copy.bytes)).replace(/\r\n/g, "\n")}
Hello
--part1_13d.2e68ed54_boundary--
`);
}

/** A field of a message's head, unfolded; "" when there is none. */
export function fieldOf(bytes: Buffer, name: string): string {
  const head = headOf(bytes).replace(/\r\n[ \t]+/g, " ");
  return new RegExp(`^${name}:[ \\t]*(.*)$`, "im").exec(head)?.[1]?.trim() ?? "";
}
