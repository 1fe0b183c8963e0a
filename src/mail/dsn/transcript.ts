// SMTP conversations that reports quote: which command was refused, with what reply, for which recipients. sendmail
// (`>>>` `<<<`), InterScan (`Sent <<<` `Received >>>`), MDaemon (`-->` `<--`), Postfix to its postmaster (`In:`
// `Out:`), hMailServer. Reads the text of a report only; a command that is named in words is left to stages.json.

import type { ReplyStage } from "../smtp/classify.ts";
import { addressSource, cleanAddress } from "./address-text.ts";

/**
 * A refused command. `addresses`: that of the refused RCPT, or those accepted before another command was refused.
 * `isPipelined`: sendmail quotes the last command it sent ahead, and the reply was to one before it (RFC 2920).
 */
export type Refused = { stage: ReplyStage; addresses: string[]; reply: string; isPipelined: boolean };

const refusedMax = 200;
const acceptedMax = 200;

// A date and a word for who speaks may stand before the mark; InterScan's word is in the language of its owner.
const marker =
  /^(?:\s*(?:mon|tue|wed|thu|fri|sat|sun)\b)?[\s\d:.,[\]|()/-]{0,40}(?:[\p{L} ]{0,30}[ :]{0,3}(?:>>>|<<<|-->|<--|->|<-)|(?:in|out|hmailserver sent|remote server replied|client|server|c|s):)\s{0,8}/iu;
const command = /^(rcpt|mail|data|ehlo|helo|lhlo|starttls|auth|bdat|quit|rset)\b(.*)$/i;
const rcptAddress = new RegExp(`to\\s*:\\s*<?(${addressSource})`, "iu");
const stages = new Map<string, ReplyStage>([
  ["rcpt", "rcpt"],
  ["mail", "mail"],
  ["data", "final"],
  ["bdat", "final"],
  ["starttls", "starttls"],
  ["auth", "auth"],
]);

type Session = { stage: ReplyStage; address: string | null; accepted: string[]; refused: Refused[] };

/** The commands of a quoted conversation that were answered 4xx or 5xx, in order; at most 200. */
export function readTranscript(lines: readonly string[]): Refused[] {
  const session: Session = { stage: "banner", address: null, accepted: [], refused: [] };
  for (const [at, line] of lines.entries()) {
    const start = marker.exec(line)?.[0];
    if (start === undefined || session.refused.length >= refusedMax) continue;
    const said = line.slice(start.length).trim();
    // Postfix wraps long commands: RCPT on one line, its address on the next.
    const whole = /^(?:rcpt|mail)\s*$/i.test(said) ? `${said} ${(lines[at + 1] ?? "").trim()}` : said;
    const spoken = command.exec(whole);
    if (spoken !== null) hearCommand(session, spoken[1]!.toLowerCase(), spoken[2]!);
    else if (/^[2-5]\d\d(?:[ -]|$)/.test(said)) hearReply(session, said);
  }
  return session.refused;
}

function hearCommand(session: Session, verb: string, rest: string): void {
  session.stage = stages.get(verb) ?? "ehlo";
  const found = verb === "rcpt" ? rcptAddress.exec(rest)?.[1] : undefined;
  session.address = found === undefined ? null : cleanAddress(found);
  if (verb === "mail") session.accepted = [];
}

function hearReply(session: Session, reply: string): void {
  const { stage, address, refused } = session;
  if (/^[23]/.test(reply)) {
    if (address !== null && session.accepted.length < acceptedMax) session.accepted.push(address);
    session.address = null;
    return;
  }
  // Without a recipient there is nothing to send: what was refused before was RCPT, whatever command is quoted.
  if (/^5(?:03|54)\b.{0,40}(?:rcpt|recipient)/i.test(reply)) {
    for (const before of refused) before.isPipelined ||= before.stage === "final";
    if (stage === "final" && refused.length > 0) return;
  }
  const addresses = stage === "rcpt" ? (address === null ? [] : [address]) : session.accepted;
  const last = refused.at(-1);
  const isContinued = last?.stage === stage && last.addresses[0] === addresses[0] && /^[45]\d\d-/.test(last.reply);
  if (isContinued) last.reply = `${last.reply} ${reply}`.slice(0, 1_000);
  else refused.push({ stage, addresses: [...addresses], reply: reply.slice(0, 1_000), isPipelined: false });
}
