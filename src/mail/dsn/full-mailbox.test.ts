// Notices of a full mailbox, under any subject and in several languages, and what is none: the words of a person, and
// what a provider writes to the owner of a mailbox.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBounce } from "./dsn.ts";
import { daemon, only, plain } from "./sample-reports.fixture.ts";

const to = "To: b+token@bounces.example\n";
const postmaster = `From: postmaster@there.example\n${to}`;
const gateway = `From: Mail Gateway <no-reply@gw.us.example>\n${to}`;
const person = `From: Joe <joe@corp.example>\n${to}`;
const marked = `Auto-Submitted: auto-generated\n${person}`;
const automatic = `Auto-Submitted: auto-replied\n${person}`;
const kind = (mail: string) => parseBounce(Buffer.from(mail)).kind;

const fullTexts = [
  "The mailbox of user@there.example is full.",
  "user@there.example has exceeded the storage quota. Please try again later.",
  "The user you are trying to reach has exceeded their storage quota:\n\n  user@there.example\n",
  "552 5.2.2 <user@there.example>: mailbox full",
  "The account user@there.example is over its disk space limit.",
  "Das Postfach user@there.example ist voll.",
  "La boîte aux lettres de user@there.example est pleine.",
  "El buzón de user@there.example está lleno.",
  "收件人 user@there.example 的邮箱已满",
  "宛先のメールボックスがいっぱいです: user@there.example",
];

test("a notice of a full mailbox is a soft bounce under any subject, from a mailer or a program", () => {
  for (const head of [daemon, gateway, marked, postmaster]) {
    for (const subject of ["Mailbox full", "Quota exceeded", "Hello", "Notification", ""]) {
      for (const text of fullTexts) {
        const { email, action, class: mailClass, bounce_type, suppress } = only(plain(text, subject, head));
        const said = [email, action, mailClass, bounce_type, suppress];
        assert.deepEqual(said, ["user@there.example", "failed", "mailbox_full", "soft", false], `${subject}: ${text}`);
      }
    }
  }
  const unnamed = only(plain("The recipient's mailbox is full.", "Mailbox full"));
  assert.deepEqual([unnamed.email, unnamed.class, unnamed.suppress], [null, "mailbox_full", false]);
});

test("a notice of a full mailbox in that mailbox's own name counts when a program wrote it", () => {
  const text = "The mailbox user@there.example is full. Your message was not delivered.";
  const by = (head: string, body = text) => plain(body, "Mailbox full", `${head}From: user@there.example\n${to}`);
  for (const mark of ["auto-generated", "auto-replied"]) {
    const { email, class: mailClass, bounce_type, suppress } = only(by(`Auto-Submitted: ${mark}\n`));
    assert.deepEqual([email, mailClass, bounce_type, suppress], ["user@there.example", "mailbox_full", "soft", false]);
  }
  assert.equal(kind(by("")), "other", "a person");
  assert.equal(kind(by("Auto-Submitted: auto-replied\n", "My mailbox user@there.example is full.")), "auto_reply");
  assert.equal(kind(by("Auto-Submitted: auto-generated\n", "Your mailbox user@there.example is full.")), "other");
});

const warnings = [
  "Your mailbox is almost full. Please delete some mail.",
  "Your mailbox is full. You cannot send or receive messages. Ask helpdesk@corp.example.",
  "Dear b+token@bounces.example,\nyour mailbox b+token@bounces.example is full. Upgrade here.",
  "The mailbox b+token@bounces.example has reached 95 % of its quota.",
  "Ihr Postfach ist fast voll. Fragen an hilfe@corp.example.",
  "Votre boîte aux lettres est presque pleine.",
  "您的邮箱已满",
];

test("a person who writes of a full mailbox, and a warning to the owner of one, are no bounces", () => {
  for (const subject of ["Your mailbox is almost full", "Mailbox full", "Quota exceeded", "Hello"]) {
    for (const text of [...fullTexts, ...warnings]) assert.equal(kind(plain(text, subject, person)), "other", text);
    for (const head of [daemon, gateway, marked])
      for (const text of warnings)
        assert.equal(kind(plain(text, subject, head)), "other", `${head}${subject}: ${text}`);
  }
  const away = plain("My mailbox is full. user@there.example", "Mailbox full", automatic);
  assert.equal(kind(away), "auto_reply");
});
