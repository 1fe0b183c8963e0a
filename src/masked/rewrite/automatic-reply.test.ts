// What a program of the mailbox wrote, and what its owner did.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMessage } from "../../mail/mime/parse-message.ts";
import { automaticKind } from "./automatic-reply.ts";

const judge = (head: string, envelope = "anna@home.example", text = "x") =>
  automaticKind(parseMessage(Buffer.from(`From: anna@home.example\r\n${head}\r\n\r\n${text}\r\n`)), envelope);

test("marks of vacation programs and the null reverse-path tell a program", () => {
  for (const head of [
    "Auto-Submitted: auto-replied",
    "Auto-Submitted: auto-notified; owner-token=1",
    "Content-Type: multipart/report; report-type=disposition-notification; boundary=b",
    "X-Autoreply: yes",
    "X-Autorespond: x",
    "X-Autoresponder: x",
    "X-Mail-Autoreply: x",
    "X-Auto-Reply-From: anna@home.example",
    "X-Vacation: true",
    "Precedence: auto_reply",
    "X-Precedence: auto-reply",
    "In-Reply-To: <1@x>\r\nSubject: Automatic reply: your order",
    "In-Reply-To: <1@x>\r\nSubject: =?utf-8?Q?R=C3=A9ponse_automatique_:_commande?=",
    "In-Reply-To: <1@x>\r\nSubject: Abwesend bis Montag\r\nAuto-Submitted: auto-generated",
    "In-Reply-To: <1@x>\r\nSubject: Out of office\r\nX-Auto-Response-Suppress: All",
  ]) {
    assert.equal(judge(head), "answer", head);
  }
  assert.equal(judge("Subject: hello", ""), "answer");
});

test("a mark of bulk mail alone does not tell an answer: its author hears that it was not sent", () => {
  assert.equal(judge("Precedence: bulk"), "bulk");
  assert.equal(judge("In-Reply-To: <1@x>\r\nSubject: Re: order\r\nPrecedence: Junk"), "bulk");
  assert.equal(judge("Precedence: bulk\r\nAuto-Submitted: auto-replied"), "answer");
  assert.equal(judge("Precedence: bulk", ""), "answer");
});

test("what a person writes about absences and confirmations is a person's", () => {
  for (const head of [
    "Subject: Re: order",
    "Subject: Absence next week",
    "In-Reply-To: <1@x>\r\nSubject: Re: Out of office on Friday",
    "In-Reply-To: <1@x>\r\nSubject: Absence on Friday",
    "In-Reply-To: <1@x>\r\nSubject: Auto insurance",
    "In-Reply-To: <1@x>\r\nSubject: Automatic reply is not what I need",
    "In-Reply-To: <1@x>\r\nSubject: Please confirm your address",
    "In-Reply-To: <1@x>\r\nSubject: Your ticket 17\r\nAuto-Submitted: auto-generated",
    "Auto-Submitted: no",
    "Precedence: normal",
  ]) {
    assert.equal(judge(head), null, head);
  }
});

test("an answer to an invitation is its owner's, whatever program sends it; a mail that only comes with a calendar is not", () => {
  const head = (mark: string) => `Subject: Accepted: tea\r\n${mark}\r\nContent-Type: text/calendar; charset=utf-8`;
  const calendar = (method: string) => `BEGIN:VCALENDAR\r\nMETHOD:${method}\r\nEND:VCALENDAR`;
  const from = "anna@home.example";
  for (const mark of ["Auto-Submitted: auto-generated", "Auto-Submitted: auto-replied", "X-Autoreply: yes"]) {
    assert.equal(judge(head(mark), from, calendar("REPLY")), null, mark);
  }
  assert.equal(judge(head("X-Autoreply: yes"), from, calendar("PUBLISH")), "answer");
  assert.equal(judge(head("X-Autoreply: yes"), "", calendar("REPLY")), "answer");
});
