// Where an enhanced status code counts, and where three numbers are a version, a date or a name.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { classifyReply, type ReplyStage } from "../smtp/classify.ts";
import { parseReply } from "../smtp/reply.ts";
import { findCodes } from "./reply-codes.ts";
import { one, plain, read, report, short } from "./sample-reports.fixture.ts";

const places: [string, string, string | null][] = [
  ["behind a reply code", "host mx.example said: 550 5.1.1 no such user", "5.1.1"],
  ["behind a reply code with a hyphen", "550-5.1.1 no such user", "5.1.1"],
  ["behind a reply code, on the next line", "host mx.example said: 550\n    5.1.1 no such user", "5.1.1"],
  ["in parentheses with #", "Sorry, no mailbox here by that name. (#5.1.1)", "5.1.1"],
  ["behind a host in angle brackets", "<mx.there.example #5.1.1>", "5.1.1"],
  ["the same with a reply behind it", "<mx.there.example #5.5.0 smtp;550 no>", "5.5.0"],
  ["in a field", "Status: 5.1.1 (bad mailbox)", "5.1.1"],
  ["in a diagnostic field", "Diagnostic-Code: smtp; 5.1.1 no such user", "5.1.1"],
  ["behind the word for it", "see DSN code 5.1.10 in the documentation", "5.1.10"],
  ["at the beginning", "5.1.1 no such user", "5.1.1"],
  ["on its line before an address", "host: mx.example\n5.1.1 <user@there.example>... User unknown", "5.1.1"],
  ["a version", "rejected by MailGuard 5.1.1", null],
  ["a version behind a reply code of another class", "554 2.0.1 MailGuard", null],
  ["a name behind a reply code", "554 5.1.1.example.com refuses", null],
  ["a subject", "550 refused\nSubject: error code 5.1.1 explained\n  550 5.1.1 and others", null],
  ["a subject in quotation marks", 'Your message "550 5.1.1 explained" was refused', null],
  ["a date", "at 5.1.20 the queue was full", null],
  ["a number of an issue", "see issue #5.1.1", null],
];

for (const [name, text, status] of places) {
  test(`an enhanced code: ${name}`, () => assert.equal(findCodes(text).status, status));
}

test("a text that is no reply has no enhanced code at its beginning", () => {
  assert.equal(findCodes("5.1.1 is the version of this gateway", false).status, null);
});

// {v} stands where three numbers may stand without being a code.
const shapes: [string, string][] = [
  [
    "a report by the standard, without codes",
    report(
      one("Status: 5.0.0\nDiagnostic-Code: X-MailGuard {v}; refused by policy\nRemote-MTA: dns; mx-{v}.there.example"),
      'This is MailGuard {v} at mx-{v}.us.example.\n\nYour message "Version {v} is out" of {v} could not be delivered.\n\nSubject: {v} is out\n  {v} and more\n',
      "Subject: Version {v} is out\nMessage-ID: <m.{v}@us.example>\nX-Mailer: Post {v}\n",
    ),
  ],
  [
    "a report by the standard, a bare 550",
    report(
      one("Status: 5.0.0\nDiagnostic-Code: smtp; 550 MailGuard {v} refuses mail titled 'Version {v} is out'"),
      "I'm sorry to have to inform you that your message could not\nbe delivered.\n\n<user@there.example>: host mx-{v}.there.example[192.0.2.1] said: 550 MailGuard {v} refuses mail (in reply to end of DATA command)\n",
    ),
  ],
  ["a full mailbox", report(one("Status: 5.2.2\nDiagnostic-Code: smtp; 552 5.2.2 Mailbox full (MailGuard {v}, {v})"))],
  [
    "a warning",
    report(one("Status: 4.4.1\nDiagnostic-Code: smtp; connect to mx-{v}.there.example").replace("failed", "delayed")),
  ],
  [
    "qmail",
    plain(
      "Hi. This is the qmail-send {v} program at mx-{v}.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n\n<user@there.example>:\nConnected to 192.0.2.1 (MailGuard {v}) but my name was rejected.\nRemote host said: 554 MailGuard {v} refuses\n\n--- Below this line is a copy of the message.\n\nSubject: {v} is out\n",
    ),
  ],
  [
    "Exim, with a banner",
    plain(
      "A message that you sent could not be delivered to one or more of its\nrecipients. The following address(es) failed:\n\n  user@there.example\n    SMTP error from remote mail server after RCPT TO:<user@there.example>:\n    host mx-{v}.there.example [192.0.2.1]: 550 refused by MailGuard {v}\n\n------ This is a copy of the message, including all the headers. ------\n\nSubject: Version {v} is out\n",
    ),
  ],
  [
    "sendmail, with its conversation",
    plain(
      "The original message was received at {v}\nfrom app-{v}.us.example\n\n   ----- The following addresses had permanent fatal errors -----\n<user@there.example>\n\n   ----- Transcript of session follows -----\n... while talking to mx-{v}.there.example.:\n<<< 220 mx-{v}.there.example ESMTP MailGuard {v}; {v}\n>>> RCPT To:<user@there.example>\n<<< 550 MailGuard {v}: not today\n550 <user@there.example>... MailGuard {v}: not today\n",
      "Returned mail: see transcript for details",
    ),
  ],
  [
    "Exchange, in HTML",
    "From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@there.example>\nSubject: Undeliverable: Version {v} is out\nContent-Type: text/html\n\n<p>Your message to user@there.example couldn't be delivered.</p><p>Your message 'Version {v} is out' was refused by MailGuard {v}.</p><p>user@there.example<br>Remote Server mx-{v}.there.example returned '554 refused by MailGuard {v}'</p>",
  ],
  [
    "words alone",
    plain(
      "{v} MailGuard on mx-{v}.there.example, {v}\n\nYour message could not be delivered to:\n\n  user@there.example\n  MailGuard {v} says no; the subject was: {v} is out\n",
      "Undelivered Mail: {v} is out",
    ),
  ],
];

const outcome = (mail: string) => read(mail).recipients.map(short);
const version = fc
  .tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 99 }), fc.integer({ min: 0, max: 999 }))
  .map((numbers) => numbers.join("."));
const addressCodes = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.2.2", "5.7.1", "4.2.2", "2.0.1"];

for (const [name, shape] of shapes) {
  test(`any three numbers in subjects, banners, host names, versions and dates change nothing: ${name}`, () => {
    const expected = outcome(shape.replaceAll("{v}", "seven"));
    const holds = (numbers: string) => assert.deepEqual(outcome(shape.replaceAll("{v}", numbers)), expected, numbers);
    addressCodes.forEach(holds);
    fc.assert(fc.property(version, holds), { numRuns: 200 });
  });
}

test("any three numbers in a live reply's banner, host name or subject change nothing", () => {
  const replies = [
    "550 mx-{v}.there.example refuses",
    "550 refused by MailGuard {v}",
    "554-mx.there.example ESMTP MailGuard {v}\r\n554 goes on {v}",
    '550 5.7.1 your message "Version {v} is out" was refused',
    "550 {v}.there.example says no",
    "421 MailGuard {v} (build {v}) is busy",
  ];
  const judge = (text: string, stage: ReplyStage) => {
    const reply = parseReply(text)!;
    return { ...classifyReply({ ...reply, stage }), enhanced: reply.enhanced };
  };
  for (const text of replies) {
    for (const stage of ["banner", "rcpt", "final"] as const) {
      const expected = judge(text.replaceAll("{v}", "seven"), stage);
      const holds = (numbers: string) =>
        assert.deepEqual(judge(text.replaceAll("{v}", numbers), stage), expected, text);
      addressCodes.forEach(holds);
      fc.assert(fc.property(version, holds), { numRuns: 100 });
    }
  }
});

test("an enhanced code of success behind a refusing reply code is a version", () => {
  assert.deepEqual(parseReply("554 2.0.1 MailGuard refuses"), {
    code: 554,
    enhanced: null,
    text: "2.0.1 MailGuard refuses",
  });
  assert.equal(parseReply("550 4.2.2 mailbox full")?.enhanced, "4.2.2");
});
