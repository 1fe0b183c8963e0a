// What a program of the mailbox wrote, and what its owner did.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMessage } from "../mime/parse-message.ts";
import { isAutomaticReply } from "./automatic-reply.ts";

const judge = (head: string, envelope = "anna@home.example") =>
  isAutomaticReply(parseMessage(Buffer.from(`From: anna@home.example\r\n${head}\r\n\r\nx\r\n`)), envelope);

test("marks of vacation programs, bulk mail and the null reverse-path tell a program", () => {
  for (const head of [
    "Auto-Submitted: auto-replied",
    "X-Autoreply: yes",
    "X-Autorespond: x",
    "X-Autoresponder: x",
    "X-Mail-Autoreply: x",
    "X-Auto-Reply-From: anna@home.example",
    "X-Vacation: true",
    "Precedence: auto_reply",
    "X-Precedence: auto-reply",
    "Precedence: bulk",
    "Precedence: Junk",
    "In-Reply-To: <1@x>\r\nSubject: Automatic reply: your order",
    "In-Reply-To: <1@x>\r\nSubject: =?utf-8?Q?R=C3=A9ponse_automatique_:_commande?=",
  ]) {
    assert.equal(judge(head), true, head);
  }
  assert.equal(judge("Subject: hello", ""), true);
});

test("what a person writes about absences and confirmations is a person's", () => {
  for (const head of [
    "Subject: Re: order",
    "Subject: Absence next week",
    "In-Reply-To: <1@x>\r\nSubject: Re: Out of office on Friday",
    "In-Reply-To: <1@x>\r\nSubject: Please confirm your address",
    "Auto-Submitted: no",
    "Precedence: normal",
  ]) {
    assert.equal(judge(head), false, head);
  }
});
