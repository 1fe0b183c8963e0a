// Mail to the owner of an alias about what passed: what was changed in a reply that left and which of its files nobody looked
// into, and that a contact wrote a mailbox of theirs. It is mail of its own, because what stands in a forward comes back to the
// contact in the quote of the answer.

import type { RawMessage } from "../../sending/types.ts";
import { addressOf } from "../arrive/correspondents.ts";
import type * as carry from "../carry/carry.ts";
import { type Change, isHiding } from "../rewrite/changes.ts";
import type { ReportedLeak } from "../rewrite/tell-leaks.ts";
import type { AliasRow, Environment } from "../types.ts";
import { againBy, listOf, type Mail, placesOf, toOwner } from "./notices.ts";

const FILES_SHOWN_MAX = 20;
const CHANGES_SHOWN_MAX = 30;

type SentOrder = Pick<Mail, "to" | "environment" | "about_id"> & {
  unopened: readonly ReportedLeak[];
  changes: readonly Change[];
};

/** Tells the author of a reply that left what was changed in it, as the alias wants it; null where there is nothing to tell. */
export async function tellSent(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { unopened, changes, ...mail }: SentOrder,
): Promise<RawMessage | null> {
  const hidden = changes.filter(isHiding);
  const isTold = alias.reply_report === "always" || (alias.reply_report === "hidden" && hidden.length > 0);
  if (!isTold && unopened.length === 0) return null;
  const own = addressOf(alias);
  const paragraphs = [
    ...(unopened.length === 0 ? [] : explainUnopened(own, unopened)),
    ...(isTold ? explainChanges(alias, alias.reply_report === "always" ? changes.filter(isTelling) : hidden) : []),
  ];
  const subject =
    unopened.length > 0
      ? "Your reply was sent with files that nobody looked into"
      : hidden.length > 0
        ? "Your reply was sent, with something hidden in it"
        : "Your reply was sent";
  return toOwner(world, ports, alias, { ...mail, subject, paragraphs, failure: null });
}

function explainUnopened(own: string, unopened: readonly ReportedLeak[]): string[] {
  return [
    `Your reply from ${own} was sent, with something in it that nobody could look into:`,
    listOf(placesOf(unopened), FILES_SHOWN_MAX, "files"),
    "If your real address or your name stands in there, its reader sees it. It was sent because the setting unopened_files of the alias says send; with hold, such a reply waits for your word.",
  ];
}

function explainChanges(alias: AliasRow, changes: readonly Change[]): string[] {
  const why = `The setting reply_report of the alias says ${alias.reply_report}; with never, nobody is informed of changes.`;
  const own = addressOf(alias);
  if (changes.length === 0) return [`Your reply from ${own} was sent. Nothing in it had to be changed.`, why];
  return [
    `Your reply from ${own} was sent. This was changed in it:`,
    listOf(changes.map(wordsOf), CHANGES_SHOWN_MAX, "changes"),
    why,
  ];
}

/** The fields of the head are the same in every mail of a program. */
function isTelling({ kind, place }: Change): boolean {
  return kind !== "left_out" || place !== "header";
}

const PLACES: Record<Change["place"], string> = {
  header: "the subject or the head",
  text: "the text",
  file: "a file",
  file_name: "the name of a file",
  part: "a part",
};

function wordsOf({ where, place, kind, detail, count }: Change): string {
  const times = count === 1 ? "once" : `${count} times`;
  const at = `in ${PLACES[place]} (${where})`;
  switch (kind) {
    case "address":
      return `your address, ${times} ${at}: the masked address stands there`;
    case "name":
      return `your name, ${times} ${at}: the name of the alias stands there`;
    case "reply_address":
      return `a reply address or what it is shown with, ${times} ${at}: the correspondent's own address stands there`;
    case "link":
      return `links that your mail server had rewritten ${at}: they are as they were`;
    case "left_out":
      return `left out, because it says who wrote the mail: ${detail} (${where})`;
    case "written_anew":
      return `rewritten from its few fields: ${detail} (${where})`;
  }
}

// --- what contacts write -------------------------------------------------------------------------------------------------

type Kept = { to: string; environment: Environment; about_id: null; shown: string; link: string };

/**
 * Tells a mailbox of the alias that a mail waits in quarantine. `shown`: whom it says it is from, not as an address; `link`
 * lets it through.
 */
export async function tellQuarantined(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { shown, link, ...mail }: Kept,
): Promise<RawMessage> {
  const paragraphs = [
    `A mail to ${addressOf(alias)} says that it is from ${shown}, and that is not proven: the domain asks that such mail is not delivered like other mail (DMARC). It was not forwarded.`,
    "It is kept in the list of received mail, with the status quarantined. There it can be looked at, released or deleted. Nobody else was informed.",
    `If you know that it is genuine, this link forwards it, once and within 24 hours:\n${link}`,
    "The setting forged_mail says whether such mail is kept (quarantine) or forwarded with a warning (warn). There are at most five such notices a day for each alias.",
  ];
  const subject = "A mail to your alias was not forwarded: its sender is not proven";
  return toOwner(world, ports, alias, { ...mail, subject, paragraphs, failure: null });
}

/** `link`: lets the mail through once there is a key that works; null where the other mailboxes of the alias got it. */
type Unsealed = Omit<Kept, "link"> & { link: string | null };

/** Tells a mailbox that mail was not forwarded to it, because nothing can be encrypted for its key. */
export async function tellKeyUnusable(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { shown, link, ...mail }: Unsealed,
): Promise<RawMessage> {
  const paragraphs = [
    `A mail from ${shown} to ${addressOf(alias)} was not forwarded to this mailbox, because nothing can be encrypted for its OpenPGP key any more: it is expired, revoked or cannot be read. Nothing is sent unencrypted in its place.`,
    link === null
      ? "The other mailboxes of the alias got the mail."
      : `The mail is kept in the list of received mail, with the status quarantined. Once the mailbox has a key that works, or none, this link forwards the mail, once and within seven days; pressed too early, it works again:\n${link}`,
    "Further mail is treated in the same way until then. There is one such notice a day.",
  ];
  const subject = "A mail to your alias was not forwarded: it could not be encrypted";
  return toOwner(world, ports, alias, { ...mail, subject, paragraphs, failure: null });
}

type Warned = { to: string; environment: Environment; about_id: string | null; shown: string; why: Suspicious };

/** `addresses`: how many different ones it holds. */
export type Suspicious = { is_named: boolean; addresses: number };

/** A mail with so many addresses is not part of a conversation. */
const LIST_MIN = 50;

/** True if there is anything to warn of. */
export function isSuspicious({ is_named, addresses }: Suspicious): boolean {
  return is_named || addresses >= LIST_MIN;
}

/** Warns a mailbox of the alias of what a contact wrote. `shown`: the contact, as the forward shows it. */
export async function warnOwner(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { shown, why, ...mail }: Warned,
): Promise<RawMessage> {
  const own = addressOf(alias);
  const what = why.is_named
    ? `holds a real address that ${own} forwards to`
    : `holds ${why.addresses} different addresses`;
  const list = why.is_named && why.addresses >= LIST_MIN ? `, in a list of ${why.addresses} addresses` : "";
  const paragraphs = [
    `A mail from ${shown} to ${own} ${what}${list}.`,
    why.is_named
      ? "Whoever wrote it knows or guesses who is behind the alias. An answer does not tell whether the guess is right: what a contact wrote goes back to it as it wrote it."
      : "Such lists are sent to find out by the answer who is behind an alias. An answer does not tell: what a contact wrote goes back to it as it wrote it.",
    "Do not confirm it in your own words. You can block this contact. There is one such warning a month for each contact.",
  ];
  const subject = why.is_named
    ? "A mail to your alias holds your real address"
    : "A mail to your alias holds many addresses";
  return toOwner(world, ports, alias, { ...mail, subject, paragraphs, failure: null });
}

// --- what did not arrive ---------------------------------------------------------------------------------------------------

type Undelivered = {
  to: string;
  environment: Environment;
  about_id: null;
  shown: string;
  reason: string;
  link: string;
};

/** Informs a mailbox of a forward that its server did not take. `shown`: whom it is from, not as an address. */
export async function tellUndelivered(
  world: carry.CarryWorld,
  ports: carry.CarryPorts,
  alias: AliasRow,
  { shown, reason, link, ...mail }: Undelivered,
): Promise<RawMessage> {
  const subject = "A mail to your masked address was not delivered";
  const what = `A mail from ${shown} to ${addressOf(alias)} could not be delivered to your mailbox: ${reason}. Its author was not informed.`;
  return toOwner(world, ports, alias, { ...mail, subject, paragraphs: [what, againBy(link)], failure: null });
}
