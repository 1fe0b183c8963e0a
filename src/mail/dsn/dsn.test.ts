// The reader of bounces by small mails of our own: the standard, what is no bounce, and the limits. Odd formats are in
// formats.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBounce } from "./dsn.ts";
import { daemon, one, only, plain, read, report, short } from "./sample-reports.fixture.ts";

function kind(mail: string): string {
  const result = parseBounce(Buffer.from(mail));
  return result.kind === "bounce" ? `bounce of ${result.recipients.map(short)}` : result.kind;
}

test("a report is read whole: recipient, codes, reporter, date, and the returned message", () => {
  const { recipients, ...rest } = read(
    report(
      "Original-Recipient: rfc822;User@There.example\n" +
        one("Status: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 no such user"),
      "<user@there.example>: host mx.there.example said: 550 5.1.1 no such user (in reply to RCPT TO command)",
      "Message-ID: <m@us.example>\nSubject: a\n folded subject\nX-Postern-Id: abcdef\n",
    ),
  );
  assert.deepEqual(recipients, [
    {
      email: "user@there.example",
      original: "User@There.example",
      action: "failed",
      status: "5.1.1",
      smtp_code: "550",
      diagnostic: "550 5.1.1 no such user",
      bounce_type: "hard",
      class: "invalid_recipient",
      suppress: true,
      permanent: true,
    },
  ]);
  assert.deepEqual(rest, {
    kind: "bounce",
    original: {
      message_id: "m@us.example",
      headers: [
        { name: "Message-ID", value: "<m@us.example>" },
        { name: "Subject", value: "a folded subject" },
        { name: "X-Postern-Id", value: "abcdef" },
      ],
      x_postern_id: "abcdef",
    },
    reporting_mta: "mx.example",
    arrival_date: "Thu, 1 Jan 2026 10:00:00 +0000",
  });
});

test("several recipients give one entry each, with their own codes", () => {
  const { recipients } = read(
    report(
      one("Status: 5.1.1") +
        "\nFinal-Recipient: rfc822; b@there.example\nAction: delayed\nStatus: 4.4.1\n" +
        "\nFinal-Recipient: rfc822; c@there.example\nAction: failed\nStatus: 5.2.2\nDiagnostic-Code: smtp; 552 5.2.2 full\n" +
        "\nFinal-Recipient: rfc822; d@there.example\nAction: relayed\nStatus: 2.0.0\n",
    ),
  );
  assert.deepEqual(recipients.map(short), [
    "user@there.example failed hard invalid_recipient 5.1.1  suppress",
    "b@there.example delayed soft connection 4.4.1 ",
    "c@there.example failed soft mailbox_full 5.2.2 552",
    "d@there.example relayed   2.0.0 ",
  ]);
});

// Status | Diagnostic-Code | words in the text | type, suppress
const weighed = `
5.1.1  | smtp; 550 5.1.1 unknown user                          |                          | hard suppress
5.1.2  | smtp; 550 5.1.2 no such domain                        |                          | hard suppress
5.1.10 | smtp; 556 5.1.10 null MX                              |                          | hard suppress
5.1.3  |                                                       |                          | hard suppress
5.2.1  | smtp; 550 5.2.1 mailbox disabled                      | in reply to RCPT TO      | hard suppress
5.2.1  | smtp; 550 5.2.1 mailbox disabled                      |                          | hard suppress
5.2.1  |                                                       |                          | hard suppress
5.2.1  | smtp; 550 5.2.1 mailbox disabled                      | in reply to end of DATA  | soft
5.2.1  | smtp; 550 5.2.1 is receiving mail at a rate that prevents |                      | soft
5.2.1  | smtp; 450 4.2.1 mailbox disabled                      |                          | soft
4.2.1  | smtp; 450 4.2.1 mailbox disabled                      |                          | soft
5.0.0  | smtp; 550 no such user here                           | in reply to RCPT TO      | hard suppress
5.0.0  | smtp; 550 no such user here                           | in reply to end of DATA  | soft
5.0.0  | smtp; 550 no such user here                           |                          | hard
5.0.0  | smtp; 550 5.0.0 no such user here                     | in reply to RCPT TO      | hard
5.0.0  | smtp; 554 no such user here                           | in reply to RCPT TO      | hard
5.0.0  | smtp; 550 go                                          | in reply to RCPT TO      | hard
5.0.0  | smtp; 550 Access denied                               | in reply to RCPT TO      | soft
5.0.0  | smtp; 550 User unknown, try again later               | in reply to RCPT TO      | soft
       | smtp; 550 no such user here                           | in reply to RCPT TO      | hard suppress
       | smtp; 550 no such user here                           | in reply to end of DATA  | soft
       | smtp; 550 no such user here                           |                          | hard
5.1.1  | smtp; 550 5.1.1 unknown user                          | in reply to end of DATA  | hard
5.1.1  | smtp; 450 4.1.1 unknown user                          | in reply to RCPT TO      | soft
4.1.1  | smtp; 450 4.1.1 unknown user                          |                          | soft
5.4.4  | X-Postfix; Host or domain name not found              |                          | hard
5.4.4  | X-Postfix; Host not found, try again                  |                          | soft
5.3.0  | smtp; 553 5.3.0 system error                          | in reply to RCPT TO      | soft
5.4.1  | smtp; 550 5.4.1 no answer                             |                          | soft
5.7.1  | smtp; 550 5.7.1 message blocked as spam               | in reply to RCPT TO      | soft
5.7.1  | smtp; 554 5.7.1 blocked using zen.spamhaus.org        | in reply to RCPT TO      | soft
5.1.1  | smtp; 550 5.7.26 unauthenticated mail                 | in reply to RCPT TO      | soft
5.2.2  | smtp; 552 5.2.2 mailbox full                          | in reply to RCPT TO      | soft
5.1.1  | smtp; 552 5.1.1 sorry, mailbox is over quota          | in reply to RCPT TO      | soft
5.1.7  | smtp; 550 5.1.7 invalid sender                        | in reply to RCPT TO      | soft
5.1.1  | x-unix; 67                                            | procmail: No such user   | soft
4.4.7  | smtp; 421 4.4.2 timeout                               |                          | soft
5.1.1  | SMTP; 550 Access denied                               | in reply to RCPT TO      | soft
5.1.1  | SMTP; 550 Access denied                               |                          | soft
5.1.1  | SMTP; 550 Denied by policy                            |                          | soft
5.1.1  | SMTP; 550 Rejected                                    |                          | soft
5.1.1  | SMTP; 550 go                                          |                          | hard
5.1.1  | SMTP; 550 mailbox unavailable                         |                          | hard
5.1.1  | SMTP; 550 Your IP address is unknown                  |                          | soft
5.1.1  | SMTP; 550 User unknown, try again later               |                          | soft
5.1.1  | SMTP; 550 User unknown                                |                          | hard suppress
5.1.1  | SMTP; 550 User unknown                                | in reply to end of DATA  | soft
5.1.3  | SMTP; 553 http://www.spamhaus.org/query/bl?ip=192.0.2.1 |                        | soft
5.1.6  | SMTP; 551 not our customer                            |                          | hard suppress
5.7.1  | smtp; 550 5.7.1 domain x.example does not accept mail from external senders |    | soft
5.7.1  | smtp; 550 5.7.1 domain x.example does not accept mail |                          | soft
       | smtp; 550 domain x.example does not accept mail from you | in reply to RCPT TO   | soft
       | smtp; 550 Your domain has no MX record                | in reply to RCPT TO      | soft
5.1.2  | smtp; 556 domain x.example does not accept mail       |                          | hard
5.7.27 | SMTP; 550 Host does not accept mail                   |                          | hard
5.0.0  | X-Notes; user@there.example not unique. Several matches found in Domino Directory. |  | soft
5.0.0  | X-Notes; User (user@there.example) not listed in Domino Directory | | hard
5.0.0  | X-Notes; User (user@there.example) non répertorié dans l'annuaire Domino | | hard
5.0.0  | X-Notes; User (user@there.example) no se encuentra en el Directorio de Domino | | hard
5.0.0  | X-Notes; Benutzer (user@there.example) nicht im Domino-Verzeichnis aufgeführt | | hard
5.0.0  | X-Notes; ユーザー (user@there.example) は Domino ディレクトリには見つかりません。 | | hard
5.0.0  | X-Notes; Domino Directory could not be opened        |                          | soft
5.0.0  | X-Postfix; [there.example]: Name or service not known |                         | hard
5.0.0  | X-Postfix; there.example: Temporary failure in name resolution |                | soft
4.4.1  | SMTP; 554 delivery error: dd This account has been disabled or discontinued [#102] | in reply to end of DATA | hard
       | smtp; 550 5.1.1 unknown user                          | after initial connection | soft
`;

test("the class decides hard or soft, and only a code about the address or an answer to RCPT suppresses", () => {
  for (const line of weighed.trim().split("\n")) {
    const [status, diagnostic, words, want] = line.split("|").map((cell) => cell.trim());
    const fields = (status ? `Status: ${status}\n` : "") + (diagnostic ? `Diagnostic-Code: ${diagnostic}\n` : "");
    const found = only(report(one(fields), `<user@there.example>: failed (${words})`));
    assert.equal(`${found.bounce_type}${found.suppress ? " suppress" : ""}`, want, line);
    assert.equal(found.permanent, true, line);
  }
});

// sendmail writes a code, and "User unknown" below its transcript, for any bare 550.
const bySendmail = (reply: string) =>
  report(
    one(`Status: 5.1.1\nDiagnostic-Code: SMTP; ${reply}`),
    `   ----- The following addresses had permanent fatal errors -----\n<user@there.example>\n    (reason: ${reply})\n\n   ----- Transcript of session follows -----\n... while talking to mx.there.example.:\n>>> RCPT To:<user@there.example>\n<<< ${reply}\n550 5.1.1 <user@there.example>... User unknown\n`,
  );

test("a code that sendmail made of a bare reply is no proof: the words of the reply are", () => {
  const wants = {
    "550 Access denied": "soft content",
    "550 Denied by policy": "soft content",
    "550 go": "hard invalid_recipient",
    "550 No such user here": "hard invalid_recipient suppress",
    "550 5.1.1 go": "hard invalid_recipient suppress",
  };
  for (const [reply, want] of Object.entries(wants)) {
    const { bounce_type, class: mailClass, suppress, status } = only(bySendmail(reply));
    assert.equal(`${bounce_type} ${mailClass}${suppress ? " suppress" : ""}`, want, reply);
    assert.equal(status, "5.1.1");
  }
});

test("an address that stands for another one, or for a program, is not suppressed with it", () => {
  const actual = (value: string) => only(report(one(`Status: 5.1.1\nX-Actual-Recipient: ${value}`))).suppress;
  assert.equal(actual("rfc822; user@there.example"), true);
  assert.equal(actual("RFC822; User@mx1.there.example"), true);
  assert.equal(actual("rfc822; dead@there.example"), false);
  assert.equal(actual("rfc822; user@elsewhere.example"), false);
  assert.equal(actual("X-Unix; |/home/user/bin/filter"), false);
  const local =
    "Original-Recipient: rfc822; team@there.example\nAction: failed\nStatus: 5.1.1\nFinal-Recipient: rfc822; ";
  assert.equal(only(report(`${local}dead@localhost`)).suppress, false);
  assert.equal(only(report(`${local}team@localhost`)).suppress, true);
});

test("a warning is never hard and never suppresses, whatever code it carries", () => {
  const fields =
    "Final-Recipient: rfc822; user@there.example\nAction: delayed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 x";
  const found = only(report(fields));
  assert.deepEqual(
    [found.action, found.bounce_type, found.suppress, found.permanent],
    ["delayed", "soft", false, false],
  );
  const text =
    "THIS IS A WARNING MESSAGE ONLY.\n\nDelivery to the following recipient has been delayed:\n\n     user@there.example\n";
  assert.equal(only(plain(text)).action, "delayed");
  assert.equal(
    only(plain("Your message to user@there.example could not be delivered.", "Delayed mail")).action,
    "delayed",
  );
});

test("status fields are read with what writers get wrong", () => {
  const folded = only(
    report(one("Status: 5.1.1 (bad mailbox)\nDiagnostic-Code: smtp; 550-5.1.1 first\n 550 5.1.1 second")),
  );
  assert.equal(folded.diagnostic, "550-5.1.1 first 550 5.1.1 second");
  const unfolded = only(report(one("Diagnostic-Code: smtp; 550 5.1.1 first\nsecond line without space")));
  assert.equal(unfolded.diagnostic, "550 5.1.1 first second line without space");
  const torn = only(report("Final-Recipient: rfc822; user@there.example\n\nAction: failed\nStatus: 5.1.1"));
  assert.equal(short(torn), "user@there.example failed hard invalid_recipient 5.1.1  suppress");
  const joined = read(report(one("Status: 5.1.1") + "Final-Recipient: rfc822; b@there.example\nAction: failed"));
  assert.deepEqual(
    joined.recipients.map(({ email }) => email),
    ["user@there.example", "b@there.example"],
  );
  const comment = only(report("Final-Recipient: <user@there.example>\nAction: failure (bad address)\nStatus: 5.1.1"));
  assert.equal(comment.action, "failed");
  assert.equal(
    only(report("Original-Recipient: rfc822; user@there.example\nAction: failed")).email,
    "user@there.example",
  );
  assert.equal(
    only(report(one("Status: 553 too large").replace("user@", "@relay.example:user@"))).email,
    "user@there.example",
  );
  const local = report(
    "Final-Recipient: rfc822; @mx.example:user@box\nOriginal-Recipient: rfc822;user@there.example\nAction: failed",
  );
  assert.equal(only(local).email, "user@there.example");
});

test("the status part is known by the other names that writers and gateways give it", () => {
  const mail = report(one("Status: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 no such user"));
  for (const type of ["message/xdelivery-status", "text/delivery-status", "application/octet-stream"]) {
    const found = short(only(mail.replace("message/delivery-status", type)));
    assert.equal(found, "user@there.example failed hard invalid_recipient 5.1.1 550 suppress", type);
  }
});

test("internationalized addresses are read in all three forms (RFC 6533)", () => {
  for (const address of [
    "utf-8; usér@thére.example",
    "utf-8; us\\x{E9}r@thére.example",
    "UTF-8;us\\x{e9}r@thére.example",
  ]) {
    const mail = report(`Final-Recipient: ${address}\nAction: failed\nStatus: 5.1.1`);
    assert.equal(
      only(mail.replace("message/delivery-status", "message/global-delivery-status")).email,
      "usér@thére.example",
    );
  }
});

test("a recipient without an address is kept as one entry; whom it suppresses the return path tells", () => {
  const found = only(report("Final-Recipient: unknown; somebody\nAction: failed\nStatus: 5.1.1"));
  assert.deepEqual([found.email, found.bounce_type, found.suppress], [null, "hard", true]);
});

test("a mailer's report whose text names nobody is one entry that never suppresses; other mail of a mailer is none", () => {
  const text = "Your message could not be delivered: 550 5.1.1 no such user.";
  assert.equal(short(only(plain(text))), " failed hard invalid_recipient 5.1.1 550");
  assert.equal(short(only(plain("Your message has not yet been delivered.", "Delayed mail"))), " delayed soft busy  ");
  assert.equal(kind(plain("Your post waits for the moderator.", "Your message to List awaits approval")), "other");
  assert.equal(kind(plain(text, "Undelivered mail", "From: User <user@there.example>\n")), "other");
});

test("a code of success in the report of a failure is another command's", () => {
  const failed = (status: string, diagnostic: string) =>
    short(only(report(one(`Status: ${status}\nDiagnostic-Code: smtp; ${diagnostic}`))));
  assert.equal(failed("5.1.1", "250 2.0.0 OK"), "user@there.example failed hard invalid_recipient 5.1.1  suppress");
  assert.equal(failed("2.0.0", "250 OK"), "user@there.example failed soft content  ");
  assert.equal(
    failed("2.0.0", "550 5.1.1 no such user"),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  );
});

test("our token is found in the returned head, in a returned message in base64, and behind a banner", () => {
  const head = read(report(one("Status: 5.1.1"), undefined, "Received: x\nx-postern-id: tok1\n"));
  assert.equal(head.original.x_postern_id, "tok1");
  const message = Buffer.from("Received: x\r\nX-Postern-Id: tok2\r\nMessage-ID: <m@x>\r\n\r\nbody").toString("base64");
  const encoded = report(one("Status: 5.1.1"), undefined, message).replace(
    "text/rfc822-headers",
    "message/rfc822\nContent-Transfer-Encoding: base64",
  );
  assert.deepEqual([read(encoded).original.x_postern_id, read(encoded).original.message_id], ["tok2", "m@x"]);
  const banner =
    "<user@there.example>:\nno mailbox\n\n--- Below this line is a copy of the message.\n\nMessage-ID: <m3@x>\nX-Postern-Id: tok3\n";
  const text = read(plain(`I wasn't able to deliver your message to the following addresses.\n\n${banner}`));
  assert.deepEqual([text.original.x_postern_id, text.original.message_id], ["tok3", "m3@x"]);
  assert.equal(read(report(one("Status: 5.1.1"))).original.x_postern_id, null);
});

test("without a returned message the Message-ID is that of In-Reply-To", () => {
  const mail = plain(
    "Unknown user: user@there.example",
    "Undeliverable Mail",
    `${daemon}In-Reply-To: <m@us.example>\n`,
  );
  assert.equal(read(mail).original.message_id, "m@us.example");
});

const person = "From: Joe <joe@corp.example>\nTo: b+token@bounces.example\n";
const automatic = `${person}Auto-Submitted: auto-replied\nX-Autoreply: yes\n`;
const unknown = "Your message to joe@corp.example could not be delivered:\n550 5.1.1 user unknown\n";

// What it is | mail
const others: [string, string][] = [
  [
    "auto_reply",
    plain("I am away. Urgent: boss@corp.example", "Automatic reply: Hello", `${person}Auto-Submitted: auto-replied\n`),
  ],
  ["auto_reply", plain(unknown, "Out of Office: Hello", `Return-Path: <>\n${person}`)],
  ["auto_reply", plain(unknown, "Hello", `${person}X-Autoreply: yes\n`)],
  ["auto_reply", plain(unknown, "Hello", `${person}Precedence: auto_reply\n`)],
  ["auto_reply", plain("Please click here.", "Please confirm your message to joe@corp.example", person)],
  ["auto_reply", plain("Back soon.\njoe@corp.example", "Re: Your parcel could not be delivered", automatic)],
  ["auto_reply", plain("Back soon.\njoe@corp.example", "Your parcel could not be delivered", automatic)],
  ["auto_reply", plain(unknown, "Your parcel could not be delivered", automatic)],
  ["auto_reply", plain("Back soon.\njoe@corp.example", "Re: Your flight is delayed", automatic)],
  ["auto_reply", plain(unknown, "Your parcel could not be delivered", automatic.replace("Joe ", "Joe Bouncer "))],
  ["other", plain("Thank you.\njoe@corp.example", "Re: Your parcel could not be delivered", person)],
  ["other", plain("Thank you.\njoe@corp.example", "Your parcel could not be delivered", person)],
  ["other", plain("Thank you.\njoe@corp.example", "AW: Your flight is delayed", person)],
  ["other", plain(`> ${unknown}`, "Re: Your parcel could not be delivered", person)],
  ["other", plain(unknown, "Re: Hello", person)],
  ["other", plain(unknown, "Re: Undeliverable: Hello", person)],
  ["other", plain(unknown, "Fwd: Delivery Status Notification (Failure)", person)],
  ["other", plain("Thank you for your mail.", "Ticket #1", person)],
  [
    "other",
    plain(
      "On Friday, user@there.example wrote:\n\n> what if the disk quota of the mailbox is exceeded?\n\nOver quota.",
      "[users] Re: Disk quotas",
      `${person}Sender: users-bounces@lists.example\nPrecedence: list\n`,
    ),
  ],
  ["other", plain(`See below.\n\n${report(one("Status: 5.1.1"))}`, "What is this?", person)],
  ["other", plain("", "", "")],
  ["receipt", plain("Your message was read.", "Read: Hello", person)],
];

test("people, vacations, tickets, challenges and answers to bounces are no bounces", () => {
  for (const [want, mail] of others) assert.equal(kind(mail), want, mail);
});

test("a mailer's own words count, not a subject of the sender that it quotes behind them", () => {
  const text =
    "Your message did not reach some or all of the intended recipients.\n\nuser@there.example\n   550 No such user\n";
  const subjects = {
    "Undeliverable: Please confirm your email address": "failed",
    "Undeliverable: Your flight is delayed": "failed",
    "Undeliverable: Out of office": "failed",
    "Undeliverable: Read: Hello": "failed",
    "Unzustellbar: Delivery delayed": "failed",
    "No se puede entregar: confirm your address": "failed",
    "配信不能: Your message is delayed": "failed",
    "Mail delivery failed: Please confirm your address": "failed",
    "Delivery failure: Your flight is delayed": "failed",
    "Delayed: Undeliverable": "delayed",
    "Delivery delayed: Your parcel could not be delivered": "delayed",
    "Delivery Notification: Delivery has been delayed": "delayed",
    "Warning: message delayed 2 days": "delayed",
  };
  for (const [subject, want] of Object.entries(subjects)) {
    assert.equal(only(plain(text, subject, daemon)).action, want, subject);
  }
  assert.equal(
    only(plain("user@there.example could not be reached.", "Undeliverable: Domain not found", daemon)).bounce_type,
    "soft",
  );
});

function receipt(disposition: string, subject: string): string {
  return `${person}Subject: ${subject}\nContent-Type: multipart/report; report-type=disposition-notification; boundary=b\n\n--b\n\nYour message to <joe@corp.example> was automatically rejected:\n550 5.1.1 User unknown\n--b\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; joe@corp.example\nDisposition: ${disposition}\n--b--\n`;
}

test("a read receipt is a receipt; one that refuses (RFC 5429) ends the delivery but never suppresses", () => {
  assert.equal(kind(receipt("manual-action/MDN-sent-manually; displayed", "Automatically rejected mail")), "receipt");
  assert.equal(kind(receipt("automatic-action/MDN-sent-automatically; deleted", "Re: Hello")), "receipt");
  const refused = only(receipt("automatic-action/MDN-sent-automatically; deleted", "Automatically rejected mail"));
  assert.deepEqual([refused.email, refused.action, refused.suppress], ["joe@corp.example", "failed", false]);
});

test("a complaint is named as one", () => {
  const mail = `${daemon}Subject: x\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n--b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\n--b--\n`;
  assert.equal(kind(mail), "complaint");
});

const attach = (head: string, type: string, body: string, text = "See below.") =>
  `${head}Subject: notice\nContent-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: text/plain\n\n${text}\n--o\nContent-Type: ${type}\n\n${body}\n--o--\n`;

test("a bounce that a relay wraps in a notice of its own is read; one that a person forwards is not", () => {
  const wrapped = (head: string) => attach(head, "message/rfc822", report(one("Status: 5.1.1")));
  assert.equal(only(wrapped(daemon)).email, "user@there.example");
  assert.equal(kind(wrapped(person)), "other");
});

const gateway = "From: Mail Gateway <no-reply@gw.us.example>\nTo: b+token@bounces.example\n";
const marked = `Auto-Submitted: auto-generated\n${person}`;
const failed = "Your message could not be delivered. The report of the other server is below.";

test("a report in a gateway's notice is read with its codes, in any type of part, as text, and two notices deep", () => {
  const inner = report(one("Status: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 no such user"));
  const want = read(inner);
  const base64 = `message/rfc822\nContent-Transfer-Encoding: base64`;
  for (const head of [daemon, gateway, marked]) {
    for (const text of ["See below.", failed, `${failed}\n\n  user@there.example\n`]) {
      const notices = {
        attached: attach(head, "message/rfc822", inner, text),
        encoded: attach(head, base64, Buffer.from(inner).toString("base64"), text),
        file: attach(head, "application/octet-stream; name=report.eml", inner, text),
        "text part": attach(head, "text/plain", inner, text),
        quoted: plain(`${text}\n\n${inner}`, "notice", head),
        twice: attach(head, "message/rfc822", attach(head, "message/rfc822", inner, text), text),
        report: attach(head, "message/rfc822", inner, text).replace("mixed", "report; report-type=delivery-status"),
      };
      for (const [name, mail] of Object.entries(notices)) assert.deepEqual(read(mail), want, `${head}${text} ${name}`);
    }
  }
});

test("a mail that looks like a report and that we sent, or that a report on another recipient returns, is none", () => {
  const ours = report(one("Status: 5.1.1"), undefined, "Message-ID: <m@us.example>\n");
  const returned = attach(daemon, "message/rfc822", ours, `${failed}\n\n<other@there.example>: 552 5.2.2 full`);
  assert.equal(short(only(returned)), "other@there.example failed soft mailbox_full 5.2.2 552");
  assert.equal(kind(attach(daemon, "message/rfc822", `X-Postern-Id: t\n${ours}`)), "other");
  assert.equal(kind(attach(`Auto-Submitted: auto-replied\n${person}`, "message/rfc822", ours)), "auto_reply");
});

test("limits: 500 recipients, 60 parts, 8 levels, 4 MiB, 200 returned fields; the rest is passed over", () => {
  const many = Array.from({ length: 700 }, (_, at) => one("Status: 5.1.1").replace("user@", `user${at}@`)).join("\n");
  assert.equal(read(report(many)).recipients.length, 500);
  const parts = "--b\nContent-Type: text/plain\n\nx\n".repeat(10_000);
  assert.equal(
    kind(`${daemon}Subject: failure notice\nContent-Type: multipart/mixed; boundary=b\n\n${parts}--b--\n`),
    "other",
  );
  const deep = Array.from(
    { length: 5_000 },
    (_, at) => `--b${at}\nContent-Type: multipart/mixed; boundary=b${at + 1}\n\n`,
  ).join("");
  assert.equal(kind(`${daemon}Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n${deep}`), "other");
  const large = `${report(one("Status: 5.1.1")).replace("\n--b--\n", "")}\n${"x".repeat(6 * 1_024 * 1_024)}`;
  assert.equal(only(large).email, "user@there.example");
  const fields = Array.from({ length: 900 }, (_, at) => `X-${at}: y`).join("\n");
  assert.equal(read(report(one("Status: 5.1.1"), undefined, fields)).original.headers.length, 200);
  const long = only(report(one(`Diagnostic-Code: smtp; 550 5.1.1 ${"long ".repeat(2_000)}`)));
  assert.ok(long.diagnostic.length <= 1_000, String(long.diagnostic.length));
});

test("a report whose boundary lines are lost or broken is read part by part, and what it returns is none of its parts", () => {
  const returned = "Message-ID: <m@us.example>\nContent-Type: multipart/mixed; boundary=c\n";
  const fields = one("Status: 5.2.2\nDiagnostic-Code: smtp; 552 5.2.2 mailbox full");
  const whole = report(fields, "<user@there.example>: 552 5.2.2 mailbox full", returned);
  const want = read(whole);
  const marks = { lost: null, empty: "", quoted: "> --b", indented: " --b", bare: "b", one: "-b", escaped: "- --b" };
  for (const [name, mark] of Object.entries(marks)) {
    const broken = mark === null ? whole.replace(/^--b(--)?\n/gm, "") : whole.replace(/^--b(--)?$/gm, mark);
    assert.deepEqual(read(broken), want, name);
  }
  const bare = whole.replace(/^--b(--)?\n/gm, "").replace(/^Content-Type: (?:text|message).*\n/gm, "");
  assert.equal(short(only(bare)), "user@there.example failed soft mailbox_full 5.2.2 552");
  const other =
    "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822; other@there.example\nAction: failed\n";
  const quoting = report(fields, undefined, `${returned}\n${other}`).replace("text/rfc822-headers", "message/rfc822");
  const { recipients } = read(quoting.replace(/^--b(--)?\n/gm, ""));
  assert.deepEqual(recipients.map(short), ["user@there.example failed soft mailbox_full 5.2.2 552"]);
});

test("a cyclic, empty or broken multipart is read as far as it goes", () => {
  for (const body of [
    "",
    "--b",
    "--b\n",
    "--b--\n",
    "--b\n--b\n--b--",
    "--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx",
  ]) {
    assert.equal(kind(`${daemon}Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n${body}`), "other", body);
  }
  const badlyFolded = report(one("Status: 5.1.1")).replace('; boundary="b"', ';\nboundary="b"');
  assert.equal(only(badlyFolded).email, "user@there.example");
  const misnamed = report(one("Status: 5.1.1"))
    .replace('boundary="b"', 'boundary="other"')
    .replace(/^--b/gm, "--bound/ary");
  assert.equal(only(misnamed).email, "user@there.example");
});
