// Mail to the owner of an alias about a reply of theirs that did not reach its contact (refused, held, or bounced). In our
// words: a server's answer to us may say more than the owner's mailbox provider should keep.

import type { RawMessage } from "../../sending/types.ts";
import { REPLY_RECIPIENTS_MAX } from "../arrive/arrival.ts";
import { addressOf } from "../arrive/correspondents.ts";
import * as carry from "../carry/carry.ts";
import { buildNotice, type Notice } from "../rewrite/notice.ts";
import { byFile, type ReportedLeak } from "../rewrite/tell-leaks.ts";
import type { AliasRow, Environment } from "../types.ts";

/** The pages that send the reply as it is, and that change what replies may show; null where there is none. */
export type Links = { send: string | null; setting: string | null };

/** Why a reply was not sent. `words` are shown as they are. */
export type Refusal =
  | { kind: "leak"; leaks: readonly ReportedLeak[]; words: readonly string[]; links: Links }
  | {
      kind:
        | "foreign_recipient"
        | "too_many_recipients"
        | "encrypted"
        | "too_complex"
        | "lost_file"
        | "unreadable"
        | "unproven"
        | "bulk"
        | "spam"
        | "reply_disabled"
        | "unknown_contact";
    }
  | { kind: "bounced"; contact: string; code: string | null; reason: string; link: string | null };

export type NoticeOrder = {
  to: string;
  environment: Environment;
  /** The Message-ID of the reply as its author knows it, with angle brackets. */
  about_id: string | null;
  reverse_address: string;
  refusal: Refusal;
};

/** The notice, ready for the queue. */
export async function makeNotice(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  order: NoticeOrder,
): Promise<RawMessage> {
  return toOwner(world, ports, alias, {
    ...order,
    subject: "Your reply was not delivered",
    paragraphs: explain(addressOf(alias), order.refusal),
    failure: {
      boundary: `=_${world.random.token(24)}`,
      reporting_mta: world.config.mx_host,
      final_recipient: order.reverse_address,
      status: statusOf(order.refusal),
    },
  });
}

export type Mail = Pick<NoticeOrder, "to" | "environment" | "about_id"> &
  Pick<Notice, "subject" | "paragraphs" | "failure">;

/** A mail to a mailbox of the alias, ready for the queue. */
export async function toOwner(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: carry.Sender,
  { to, environment, about_id, subject, paragraphs, failure }: Mail,
): Promise<RawMessage> {
  const id = world.random.uuid();
  const email = `no-reply@${alias.domain}`;
  const message_id = `${id}@${alias.domain}`;
  const date_ms = world.clock.now();
  const from = { name: "Masked addresses", email };
  const mime = buildNotice({ from, to, date_ms, message_id, about_id, subject, paragraphs, failure });
  const outgoing = { id, message_id, from: email, recipient: to, mime };
  const raw = await carry.toRaw(world, ports, { alias, environment }, outgoing);
  return { ...raw, envelope_from: "" };
}

/** One on each line, as far as there is room. */
export function listOf(places: readonly string[], max: number, what: string): string {
  const more = places.length > max ? [`- and ${places.length - max} more ${what}`] : [];
  return [...places.slice(0, max).map((place) => `- ${place}`), ...more].join("\n");
}

function explain(own: string, refusal: Refusal): string[] {
  switch (refusal.kind) {
    case "leak":
      return explainLeak(own, refusal);
    case "foreign_recipient":
      return [
        `Your reply from ${own} was not sent, because To or Cc names an address that is neither the alias nor a reply address of it. Sending it would show your correspondents to each other, and you to them.`,
        "Careful: your own mail server may have sent that person a copy already, from your real address. To include somebody, add a contact to the alias first and use its reply address.",
      ];
    case "too_many_recipients":
      return [`Your reply from ${own} was not sent: a reply may have at most ${REPLY_RECIPIENTS_MAX} recipients.`];
    case "encrypted":
      return [
        `Your reply from ${own} was not sent, because it is encrypted: nobody can see whether it shows your real address, and its keys name you.`,
        "Send it unencrypted, or put what is confidential into a file under a password, which leaves where the setting unopened_files of the alias says send.",
      ];
    case "lost_file":
      return [
        `Your reply from ${own} was not sent, because it holds something that names its author and had to be left out, so that a file or all of its content would be missing: a contact card, a key or a signature alone, a pass, files in a package of Outlook (winmail.dat), a part of a message.`,
        "Nobody has received it. Say it in the text or send it as a file of another kind, and in Outlook write in HTML or plain text.",
      ];
    case "too_complex":
      return [
        `Your reply from ${own} was not sent, because it is too large, or has too many parts within parts, to be looked through.`,
      ];
    case "unreadable":
      return [`Your reply from ${own} was not sent, because the message could not be read.`];
    case "unproven":
      return [
        `Your reply from ${own} was not sent, because for hours nobody could tell whether it came from you: the DNS of your mail domain did not answer.`,
        "Send it again.",
      ];
    case "bulk":
      return [
        `Your mail from ${own} was not sent, because it is marked as bulk mail (Precedence: bulk or junk), as automatic answers are: those never leave through an alias.`,
        "If you wrote it yourself, send it again without that field.",
      ];
    case "spam":
      return [
        `Your reply from ${own} was not sent, because it looks like spam: sending it would harm everybody's mail here.`,
      ];
    case "reply_disabled":
      return [`Your reply from ${own} was not sent, because replies are switched off for this alias.`];
    case "unknown_contact":
      return [`Your reply from ${own} was not sent, because the contact was removed from the alias.`];
    case "bounced":
      return [
        `Your reply from ${own} to ${refusal.contact} could not be delivered: ${refusal.reason}.`,
        ...(refusal.code === null ? [] : [`The code of the last answer was ${refusal.code}.`]),
        ...(refusal.link === null ? [] : [againBy(refusal.link)]),
      ];
  }
}

/** What can be done about mail that is kept (held/failed.ts). */
export function againBy(link: string): string {
  return `It is kept for seven days. Until then you can download it, or have it sent again, once:\n${link}`;
}

const LEAKS_SHOWN_MAX = 5;
const IN_A_FILE_SHOWN_MAX = 3;

function explainLeak(own: string, { leaks, words, links }: Extract<Refusal, { kind: "leak" }>): string[] {
  const what =
    words.length > 0
      ? `this would have been shown: ${words.join(", ")}`
      : "it would have shown your real address, a reply address or the name of your mail server";
  return [
    `Your reply from ${own} was not sent, because ${what}. It was found in:`,
    listOf(placesOf(leaks), LEAKS_SHOWN_MAX, "places"),
    "Nobody has received it. Take it out of there (a signature, an attached file or its properties) and send the reply again.",
    ...(links.send === null ? [] : [`Or send this one as it is, once and within 24 hours:\n${links.send}`]),
    ...(links.setting === null
      ? []
      : [`Or change what replies from this address may show, within 24 hours:\n${links.setting}`]),
  ];
}

/** Where they are, as their author knows it: each file once, whether the leaks are in its name or in it. */
export function placesOf(leaks: readonly ReportedLeak[]): string[] {
  return byFile(leaks).map(({ file, where }) =>
    file === null ? (where[0] ?? "") : `the file "${file}" (${some(where)})`,
  );
}

function some(places: readonly string[]): string {
  const more = places.length - IN_A_FILE_SHOWN_MAX;
  return [...places.slice(0, IN_A_FILE_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** What the activity says of it: without names of files, which are the owner's own words. */
export function detailOf({ leaks, words }: Extract<Refusal, { kind: "leak" }>): string {
  const where = leaks[0]?.where ?? "the message";
  return words.length > 0 ? `${where}: ${words.join(", ")}` : where;
}

function statusOf(refusal: Refusal): string {
  switch (refusal.kind) {
    case "bounced":
      return /^5\.\d{1,3}\.\d{1,3}$/.test(refusal.code ?? "") ? (refusal.code as string) : "5.0.0";
    case "unreadable":
    case "too_complex":
    case "lost_file":
      return "5.6.0";
    case "unproven":
      return "4.4.3";
    case "too_many_recipients":
      return "5.5.3";
    case "unknown_contact":
      return "5.1.1";
    default:
      return "5.7.1";
  }
}
