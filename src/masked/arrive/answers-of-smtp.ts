// What is answered in session to mail for masked addresses that is not taken.
import { NO_SUCH_MAILBOX } from "../../mail/smtp-server/reply.ts";

export type Refused = { kind: "refuse"; code: number; enhanced: string; text: string };

export const refuse = (code: number, enhanced: string, text: string): Refused => ({
  kind: "refuse",
  code,
  enhanced,
  text,
});

export const UNKNOWN: Refused = { kind: "refuse", ...NO_SUCH_MAILBOX };
export const UNCONFIRMED = refuse(
  450,
  "4.2.1",
  "the owner of this address has not confirmed its mailbox yet; try later",
);
export const UNREACHABLE = refuse(450, "4.2.1", "the mailbox behind this address cannot be reached; try later");
export const LATER = refuse(450, "4.7.1", "too much mail for this address; try later");
export const OWN_MAIL = refuse(
  550,
  "5.4.6",
  "you write from the mailbox that this address forwards to: nothing would be forwarded",
);
export const POLICY = refuse(550, "5.7.1", "the author's domain asks to refuse this (DMARC)");
