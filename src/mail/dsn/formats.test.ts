// The formats of servers that do not follow RFC 3464, each by a small mail of our own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBounce } from "./dsn.ts";
import { daemon, one, only, plain, read, report, short } from "./sample-reports.fixture.ts";

const formats: [string, string, string][] = [
  [
    "Exchange Online, one HTML part marked as an automatic reply",
    "From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@there.example>\nAuto-Submitted: auto-replied\nSubject: Undeliverable: Hello\nContent-Type: text/html\n\n<p>Your message to user@there.example couldn't be delivered.</p><p>user@there.example<br>Remote Server returned '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup'</p>",
    "user@there.example failed hard invalid_recipient 5.1.10 550 suppress",
  ],
  [
    "qmail",
    plain(
      "Hi. This is the qmail-send program at mx.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n\n<user@there.example>:\n192.0.2.1 does not like recipient.\nRemote host said: 550 5.1.1 no such user\nGiving up on 192.0.2.1.\n",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "Exim",
    plain(
      "A message that you sent could not be delivered to one or more of its\nrecipients. The following address(es) failed:\n\n  user@there.example\n    SMTP error from remote mail server after RCPT TO:<user@there.example>:\n    host mx.there.example [192.0.2.1]: 550 no such user\n\n------ This is a copy of the message, including all the headers. ------\n",
    ),
    "user@there.example failed hard invalid_recipient  550 suppress",
  ],
  [
    "Exim, a member of an alias",
    plain(
      "The following address(es) failed:\n\n  dead@behind.example\n    (generated from team@there.example)\n    SMTP error from remote mail server after RCPT TO:<dead@behind.example>:\n    550 5.1.1 no such user\n",
    ),
    "dead@behind.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "Exim, a member of an alias that it does not name",
    plain(
      "The following address(es) failed:\n\n  an undisclosed address\n    (generated from team@there.example)\n    SMTP error from remote mail server after RCPT TO:<x>: 550 5.1.1 no such user\n",
      "Mail delivery failed",
      `${daemon}X-Failed-Recipients: team@there.example\n`,
    ),
    "team@there.example failed hard invalid_recipient 5.1.1 550",
  ],
  [
    "Exim, commands sent ahead, after the message",
    plain(
      "The following address(es) failed:\n\n  user@there.example\n    host mx.there.example [192.0.2.1]\n    SMTP error from remote mail server after pipelined end of data:\n    550 5.1.1 blocked for user unknown\n",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550",
  ],
  [
    "Exim, commands sent ahead, after DATA",
    plain(
      "The following address(es) failed:\n\n  user@there.example\n    SMTP error from remote mail server after pipelined sending data block: 550 5.2.1 mailbox disabled\n",
    ),
    "user@there.example failed soft content 5.2.1 550",
  ],
  [
    "Exim, commands sent ahead, at MAIL",
    plain(
      "The following address(es) failed:\n\n  user@there.example\n    SMTP error from remote mail server after pipelined MAIL FROM:<b+t@us.example>:\n    550 5.1.1 unknown\n",
    ),
    "user@there.example failed soft auth 5.1.1 550",
  ],
  [
    "IONOS, at RCPT",
    plain(
      "Unfortunately, your email could not be delivered.\n\nuser@there.example:\nSMTP error from remote server for RCPT TO command, host: mx.there.example (192.0.2.1) reason: 550 No such user here\n",
    ),
    "user@there.example failed hard invalid_recipient  550 suppress",
  ],
  [
    "IONOS, at MAIL",
    plain(
      "Unfortunately, your email could not be delivered.\n\nuser@there.example:\nSMTP error from remote server for MAIL FROM command, host: mx.there.example (192.0.2.1) reason: 550 5.1.1 no\n",
    ),
    "user@there.example failed soft auth 5.1.1 550",
  ],
  [
    "IONOS, in the greeting",
    plain(
      "Unfortunately, your email could not be delivered.\n\nuser@there.example:\nSMTP error from remote server in greeting, host: mx.there.example (192.0.2.1) reason: 550 5.1.1 no\n",
    ),
    "user@there.example failed soft connection 5.1.1 550",
  ],
  [
    "Exim, an undisclosed address",
    plain(
      "A message that you sent could not be delivered. The following address(es) failed:\n\n  an undisclosed address\n    (generated from user@there.example)\n    Unrouteable address\n",
    ),
    "user@there.example failed hard bad_domain  ",
  ],
  [
    "KDDI",
    plain(
      "Your mail sent on: Thu, 29 Apr 2010 11:04:47 +0900\n     Could not be delivered to: <user@there.example>\n     As their mailbox is full.\n",
    ),
    "user@there.example failed soft mailbox_full  ",
  ],
  [
    "Mimecast",
    report(
      "Action: failed\nStatus: 5.4.1\nDiagnostic-Code: smtp; 550 5.4.1 Recipient address rejected: Access denied.",
      "An email that you attempted to send to the following address could not be delivered:\n\n  -- user@there.example\n\nThe problem appears to be :\n  -- Recipient email address is possibly incorrect",
    ),
    "user@there.example failed hard invalid_recipient 5.4.1 550",
  ],
  [
    "Smail, T-Online",
    plain(
      "|------------------------- Failed addresses follow: ---------------------|\n <user@there.example>\n   552 5.2.2 <user@there.example> Quota exceeded (mailbox for user is full)\n\n|------------------------- Message header follows: ----------------------|\nReceived: x\n",
      "mail failed, returning to sender",
    ),
    "user@there.example failed soft mailbox_full 5.2.2 552",
  ],
  [
    "InterScan, in Japanese",
    plain(
      "送信 <<< RCPT TO:<user@there.example>\n受信 >>> 550 5.1.1 <user@there.example>... user unknown\n",
      "メール配信に失敗しました",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "MDaemon, with its session",
    plain(
      "The attached message had PERMANENT fatal delivery errors!\n\nFailed address: user@there.example\n\n--- Session Transcript ---\n Mon 2004-01-05 10:00:00: --> RCPT To:<user@there.example>\n Mon 2004-01-05 10:00:00: <-- 550 no such user\n--- End Transcript ---\n",
    ),
    "user@there.example failed hard invalid_recipient  550 suppress",
  ],
  [
    "sendmail 5",
    plain(
      "   ----- Transcript of session follows -----\nWhile talking to mx.there.example:\n>>> RCPT To:<user@there.example>\n<<< 550 User Unknown\n550 <user@there.example>... User unknown\n\n   ----- Unsent message follows -----\nFrom: x\n",
    ),
    "user@there.example failed hard invalid_recipient  550 suppress",
  ],
  [
    "sendmail 8, commands sent ahead",
    plain(
      "   ----- The following addresses had permanent fatal errors -----\n<user@there.example>\n\n   ----- Transcript of session follows -----\n>>> DATA\n<<< 550 5.1.1 <user@there.example>... User unknown\n<<< 503 5.0.0 Need RCPT (recipient)\n",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "Exchange 5.5",
    plain(
      "Your message\n\n  To:      user@there.example\n\ndid not reach the following recipient(s):\n\nc=US;a= ;p=Foo;dda:SMTP=user@there.example; on Mon, 1 Jan 2001 10:00:00 -0500\n    The recipient name is not recognized\n\tMSEXCH:IMS:Foo:BAR:SERVER 0 (000C05A6) Unknown Recipient\n",
      "Undeliverable: x",
    ),
    "user@there.example failed hard invalid_recipient  ",
  ],
  [
    "Exchange, in Spanish",
    plain(
      "Error al entregar a los siguientes destinatarios o grupos:\n\nuser@there.example<mailto:user@there.example>\nNo se encontro.\n\nuser@there.example\n#550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##\n\nEncabezados originales del mensaje:\n\nReceived: from x\n",
      "No se puede entregar: hola",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "an Exchange gateway, a warning",
    plain(
      'This is an advisory-only email.\nDelivery of email to this address "user@there.example" has been postponed due to a full mailbox.\n',
      "Warning",
    ),
    "user@there.example delayed soft mailbox_full  ",
  ],
  [
    "Domino",
    plain(
      "Your message\n\n  Subject: x\n\nwas not delivered to:\n\n  user@there.example\n\nbecause:\n\n  User A. User (user@there.example) not listed in Domino Directory\n",
      "DELIVERY FAILURE: User not listed",
    ),
    "user@there.example failed hard invalid_recipient  ",
  ],
  [
    "AOL, a screen name",
    plain(
      "Your mail to the following recipients could not be delivered because they are not accepting mail from you:\n\tscreenname\n",
      "Mail Delivery Problem",
      daemon.replace("mx.example", "AOL.com"),
    ),
    "screenname@aol.com failed soft content  ",
  ],
  [
    "a name without its domain, and X-Failed-Recipients",
    plain(
      "The following address(es) failed:\n\n  user\n    Unrouteable address\n",
      "Mail delivery failed",
      `${daemon}X-Failed-Recipients: user@there.example\n`,
    ),
    "user@there.example failed hard bad_domain  ",
  ],
  [
    "CompuServe",
    plain(
      "Your message could not be delivered for the following reason:\n\nEMDNFND\nReceiver not found: user@there.example\n",
    ),
    "user@there.example failed soft content  ",
  ],
  [
    "Naver, in Korean",
    plain(
      "메일을 전송하지 못했습니다.\n\n받는사람 : user@there.example\n발송 실패 원인 : 550 5.1.1 No such user\n",
      "메일 전송 실패 안내",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "a server in Hungary",
    plain("Az alábbi levél nem kézbesíthető:\n\nuser@there.example\n550 5.1.1 ismeretlen\n", "Kézbesíthetetlen levél"),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "OpenSMTPD, a name that is none",
    plain(
      "    An error has occurred while attempting to deliver a message for\n    the following list of recipients:\n\nuser@there.example: Invalid domain name\n\n    Below is a copy of the original message:\n",
      "Delivery status notification: error",
    ),
    "user@there.example failed hard bad_domain  ",
  ],
  [
    "Amazon SES, JSON by mail",
    plain(
      '{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bouncedRecipients":[{"status":"5.1.1","action":"failed","diagnosticCode":"smtp; 550 5.1.1 user unknown","emailAddress":"user@there.example"}]},"mail":{"headers":[]}}',
      "AWS Notification Message",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ],
  [
    "PowerMTA, with its category",
    report(one("Status: 5.2.1\nDiagnostic-Code: smtp;550 5.2.1 User Unknown\nX-PowerMTA-BounceCategory: bad-mailbox")),
    "user@there.example failed hard inactive_mailbox 5.2.1 550 suppress",
  ],
  [
    "status fields in a plain text",
    plain(
      "Your message could not be delivered.\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; user@there.example\nAction: failed\nStatus: 5.1.1\n",
    ),
    "user@there.example failed hard invalid_recipient 5.1.1  suppress",
  ],
];

test("a reporter's own word that it knows no such user is hard without a code, and suppresses nobody", () => {
  const said = (words: string) =>
    short(only(plain(`The following address(es) failed:\n\n  user@there.example\n    ${words}\n`)));
  for (const words of [
    ...['unknown local-part "user" in domain "there.example"', "unknown or illegal user: user@there.example"],
    ...[
      "LOCAL module(account user) reports: account does not exist",
      "(user not found)",
      "unknown user",
      "User unknown.",
    ],
    ...["Invalid recipient", "Reason: <user@there.example>: User unknown"],
  ]) {
    assert.equal(said(words), "user@there.example failed hard invalid_recipient  ", words);
  }
  for (const words of [
    "user unknown, try again later",
    "the sender's account does not exist",
    "unknown user or policy",
  ]) {
    assert.match(said(words), / failed soft /, words);
  }
});

const inOtherLanguages: [subject: string, text: string][] = [
  ["Unzustellbar: Hallo", "Ihre Nachricht an user@there.example konnte nicht zugestellt werden."],
  ["Unzustellbar: Hallo", "Fehler bei der Zustellung an user@there.example:"],
  ["Non remis : Salut", "Votre message à user@there.example n'a pas pu être remis."],
  ["No se puede entregar: Hola", "Su mensaje para user@there.example no se pudo entregar."],
  ["Non recapitabile: Ciao", "Il messaggio destinato a user@there.example non è stato recapitato."],
  ["Não entregue: Oi", "A sua mensagem para user@there.example não pôde ser entregue."],
  ["Недоставленное сообщение", "Ваше письмо для user@there.example не доставлено."],
  ["Nie dostarczono: Cześć", "Wiadomość do user@there.example nie została dostarczona."],
  ["Onbestelbaar: Hallo", "Uw bericht aan user@there.example kon niet worden bezorgd."],
  ["系统退信", "您的邮件被退回\n\n收件人邮件地址（user@there.example）不存在，邮件无法送达。"],
  ["Returned mail", "Your message could not be delivered:\nMessage-ID: <m@us.example>\n\nSMTP <user@there.example>"],
];

test("a report in any language names the one address in it, wherever that stands", () => {
  for (const [subject, text] of inOtherLanguages) {
    const found = short(only(plain(`${text}\n550 5.1.1 User unknown`, subject)));
    assert.equal(found, "user@there.example failed hard invalid_recipient 5.1.1 550 suppress", text);
  }
});

test("of two addresses, or of those of the reporter and of the report itself, none is taken for the recipient", () => {
  const german = (of: string) => `Ihre Nachricht konnte nicht zugestellt werden. ${of}\n550 5.1.1 User unknown`;
  const named = (of: string) => only(plain(german(of), "Unzustellbar: Hallo")).email;
  assert.equal(named("Gemeint war a@there.example oder b@there.example."), null);
  assert.equal(named("Fragen an postmaster@there.example."), null);
  assert.equal(named("Gesandt an b+token@bounces.example von MAILER-DAEMON@mx.example."), null);
  // Only the words of the subject make a report of it that names nobody: the address makes none.
  assert.equal(parseBounce(Buffer.from(plain(german("Fragen an help@there.example."), "Hallo"))).kind, "other");
  const returned = "\n--- Below this line is a copy of the message.\n\nTo: user@there.example\n";
  assert.equal(named(`Weitergeleitet an other@behind.example.\n${returned}`), "other@behind.example");
});

for (const [name, mail, want] of formats) {
  test(`the format of ${name}`, () => assert.equal(short(only(mail)), want));
}

test("several recipients in a text keep their own words", () => {
  const text =
    "I wasn't able to deliver your message to the following addresses.\n\n<a@there.example>:\n192.0.2.1 does not like recipient.\nRemote host said: 550 5.1.1 unknown\n\n<b@there.example>:\nRemote host said: 552 5.2.2 full\n";
  assert.deepEqual(read(plain(text)).recipients.map(short), [
    "a@there.example failed hard invalid_recipient 5.1.1 550 suppress",
    "b@there.example failed soft mailbox_full 5.2.2 552",
  ]);
});

test("recipients that are listed with nothing but their addresses share what is said after the last", () => {
  const text =
    "  ----- The following addresses had permanent fatal errors -----\n\n>>> a@there.example <a@there.example>\n>>> b@there.example <b@there.example>\n\n  ----- Transcript of session follows -----\n550 sorry, no mailbox here by that name (#5.1.1 - chkusr)\n";
  assert.deepEqual(read(plain(text)).recipients.map(short), [
    "a@there.example failed hard invalid_recipient 5.1.1 550 suppress",
    "b@there.example failed hard invalid_recipient 5.1.1 550 suppress",
  ]);
});

test("a plain reply of a transcript that names its address is hard, the first like the others, and each by its own words", () => {
  const types = (text: string) => read(plain(text)).recipients.map(({ bounce_type }) => bounce_type);
  const transcript = (...replies: string[]) => `   ----- Transcript of session follows -----\n${replies.join("\n")}\n`;
  const [a, b] = ["550 <a@there.example>... User unknown", "550 <b@there.example>... User unknown"];
  assert.deepEqual(types(transcript(a)), ["hard"]);
  assert.deepEqual(types(transcript(a, b)), ["hard", "hard"]);
  assert.deepEqual(types(transcript(a, "550 <b@there.example>... Access denied")), ["hard", "soft"]);
  assert.deepEqual(types(transcript("550 <b@there.example>... Access denied", a)), ["soft", "hard"]);
  const listed = "   ----- The following addresses had permanent fatal errors -----\n<a@there.example>\n\n";
  assert.deepEqual(types(listed + transcript(a)), ["hard"]);
  assert.deepEqual(types(listed + transcript("550 <a@there.example>... User", "    unknown")), ["hard"]);
});

test("what a conversation says of one recipient is not said of another, in any order", () => {
  const head = (...names: string[]) =>
    `   ----- The following addresses had permanent fatal errors -----\n${names.map((name) => `<${name}@there.example>\n`).join("")}\n   ----- Transcript of session follows -----\n`;
  const unknown = "550 5.1.1 <a@there.example>... User unknown\n";
  const full = "552 5.2.2 <b@there.example>... mailbox full\n";
  const wants = [
    "a@there.example failed hard invalid_recipient 5.1.1 550 suppress",
    "b@there.example failed soft mailbox_full 5.2.2 552",
  ];
  const commands = `>>> RCPT To:<a@there.example>\n<<< ${unknown}>>> RCPT To:<b@there.example>\n<<< ${full}`;
  for (const names of [
    ["a", "b"],
    ["b", "a"],
  ]) {
    for (const said of [unknown + full, full + unknown, commands]) {
      const subject = "Returned mail: see transcript for details";
      assert.deepEqual(
        read(plain(head(...names) + said, subject))
          .recipients.map(short)
          .sort(),
        wants,
        said,
      );
    }
  }
});

test("what follows a recipient further in is said about it and names no other", () => {
  const text =
    "The following address(es) failed:\n\n  user@there.example\n    SMTP error after MAIL FROM:<me@us.example>:\n    me@us.example is not welcome\n    other@us.example neither\n";
  assert.deepEqual(
    read(plain(text)).recipients.map(({ email }) => email),
    ["user@there.example"],
  );
});
