// A reply from a real mailbox as it leaves from its alias: a rewritten header from a short allow-list, the body rebuilt
// and scrubbed, and the leak gate over the finished bytes. Who may reply and to whom is decided before.

import { splitMessage } from "../../mail/mime/parse-head.ts";
import { type Part, parseStructure } from "../../mail/mime/parse-structure.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "../../mail/mime/write/encode-header.ts";
import { type Change, createLedger } from "./changes.ts";
import { closeInFiles, closeInNotes, closeInTexts } from "./close/close-look.ts";
import { findLeaks, type Leak, type Secrets } from "./gate/leak-gate.ts";
import { fieldReader, idsField, oneLine } from "./header-fields.ts";
import { hiddenForms } from "./hidden-forms.ts";
import { withRuns } from "./scrub/encoded-runs.ts";
import { telling } from "./scrub/own-name.ts";
import { createReplacer, type Replaced, type Replacement, type Replacer } from "./scrub/replace-addresses.ts";
import { PART_LIMITS, type Replacers, type ScrubRefusal, type ScrubTools, scrubParts } from "./scrub/scrub-parts.ts";
import { keepingSent, objectDigest, rejoining, restoring, type SentContent } from "./sent/sent-content.ts";
import { isLineDigest } from "./sent/wrapped-lines.ts";
import { type Reported, type ReportedLeak, tellLeaks, type Word, withFiles } from "./tell-leaks.ts";

export type ReplyOrder = {
  from: HeaderMailbox;
  to: readonly HeaderMailbox[];
  cc: readonly HeaderMailbox[];
  date_ms: number;
  /** Without angle brackets, at the alias's domain. */
  message_id: string;
  /** Message-IDs as the contact wrote or read them, with angle brackets: they are written as they are. */
  in_reply_to: readonly string[];
  references: readonly string[];
  /** The mailbox's addresses, and what stands for them where `redact` wants it. */
  hidden: readonly Replacement[];
  /** Reverse addresses and how they are shown, and what stands for them everywhere. */
  restored: readonly Replacement[];
  /** `all`: the mailbox's addresses stay nowhere. `quoted`: only in what the author wrote. `off`: in bodies. */
  redact: "all" | "quoted" | "off";
  /** What must not be anywhere in the finished message, besides: reverse addresses, host names. */
  names: readonly string[];
  /** What comes back as the contact sent it, though it names the mailbox. */
  sent: SentContent;
  /** What becomes of a reply with a file that nobody can look into. */
  unopened_files: "hold" | "send";
  /** What becomes of the author's name in running text. */
  own_name: "leave" | "replace";
  /** Random letters and digits that boundaries and Content-IDs begin with. */
  token_seed: string;
};

export type BuiltReply =
  /** `unopened`: files that leave though nobody could look into them. */
  | {
      kind: "built";
      bytes: Buffer;
      redactions: number;
      dropped: string[];
      unopened: ReportedLeak[];
      changes: Change[];
    }
  /** `bytes`: as it would have left. */
  | ({ kind: "held"; bytes: Buffer; redactions: number; unopened: ReportedLeak[]; changes: Change[] } & Reported)
  | { kind: "refused"; reason: ScrubRefusal };

/** Parts that the mutation tests exchange; nothing else does. */
export type ReplySteps = { scrub: typeof scrubParts; gate: typeof findLeaks };

export const STEPS: ReplySteps = { scrub: scrubParts, gate: findLeaks };
const SUBJECT_MAX = 2_000;

/**
 * Builds the reply, or says why it must not leave. Never throws for what the message holds. What the contact sent itself is
 * no leak: where there is such, the gate looks at the reply without it, and only at that. The gate opens files as far as that
 * goes without waiting; buildOpenedReply opens all that can be. What the gate holds is written once more, with a close look
 * (close/close-look.ts), and leaves if the gate then finds nothing.
 */
export function buildReply(bytes: Buffer, order: ReplyOrder, steps: ReplySteps = STEPS): BuiltReply {
  const first = look(bytes, order, steps, false);
  if (first.kind === "refused") return first;
  // What nobody could look into a closer look cannot open either.
  const isMended = first.leaks.length > 0 && !first.leaks.some(({ isUnopened }) => isUnopened);
  const isShort = isMended && textOctets(parseStructure(bytes, PART_LIMITS).root) <= CLOSE_OCTETS_MAX;
  const second = isShort ? look(bytes, order, steps, true) : first;
  const { finished, searched, leaks, unopened } =
    second.kind === "looked" && second.leaks.length === 0 ? second : first;
  const reported = withFiles(searched.bytes, unopened);
  if (leaks.length === 0) return { ...finished, unopened: reported };
  const { bytes: built, redactions, changes } = finished;
  const why = tellLeaks({ bytes: searched.bytes, leaks }, wordsOf(order), steps.gate);
  return { kind: "held", bytes: built, redactions, unopened: reported, changes, ...why };
}

/** A close look takes two to three times the first: with more text a worker has no time for it. */
const CLOSE_OCTETS_MAX = 1_500_000;

function textOctets(part: Part): number {
  if (part.children) return part.children.reduce((sum, child) => sum + textOctets(child), 0);
  return /^(?:text|message)\//.test(part.type) ? part.body.length : 0;
}

type Built = Extract<BuiltReply, { kind: "built" }>;
/** `searched` is what the gate looked at. */
type Looked = { kind: "looked"; finished: Built; searched: Built; leaks: Leak[]; unopened: Leak[] };

function look(
  bytes: Buffer,
  order: ReplyOrder,
  steps: ReplySteps,
  isClose: boolean,
): Looked | Extract<BuiltReply, { kind: "refused" }> {
  const finished = write(bytes, order, steps, { isClose, taken: false });
  if (finished.kind === "refused") return finished;
  const searched = isTelling(order) ? write(bytes, order, steps, { isClose, taken: true }) : finished;
  if (searched.kind === "refused") return searched;
  const all = steps.gate(searched.bytes, secretsOf(order));
  const unopened = all.filter(({ isUnopened }) => isUnopened);
  const leaks = order.unopened_files === "send" ? all.filter(({ isUnopened }) => !isUnopened) : all;
  return { kind: "looked", finished, searched, leaks, unopened };
}

/** True if the order names anything that the contact sent and that must come back as it was. */
function isTelling({ sent, restored, ...order }: ReplyOrder): boolean {
  const { text } = createReplacer(hiddenBy({ ...order, sent, restored }));
  const people = [...order.to, ...order.cc, ...restored.map(({ to }) => ({ email: to }))];
  const given = [...people.map(({ email }) => email), ...order.in_reply_to, ...order.references];
  return sent.digests.some((digest) => !isLineDigest(digest)) || given.some((one) => text(one).count > 0);
}

/** A subject begins no armor: who reads on from it would take the text below for a key or a signature. */
function withoutBegin(subject: string): string {
  return subject.replace(/-{5,}(?=BEGIN PGP )/gi, "");
}

/** What programs write before the subject of the mail that they answer: `Re:`, `AW:`, `RE[2]:`, `回复：`. */
const ANSWERING = /^(?:\p{L}{1,12}(?:\[\d{1,3}\]|\(\d{1,3}\))?[ \u00a0]?[:：]\s*)+/u;

/** The contact's own subject is known as it came, without what an answer puts before it. */
function subjectOf(subject: string, { text }: Replacer): Replaced {
  const [before = ""] = ANSWERING.exec(subject) ?? [];
  const [first, rest] = [text(before), text(subject.slice(before.length))];
  return { text: first.text + rest.text, count: first.count + rest.count };
}

/** How many characters of From are read for the name in it. */
const FROM_MAX = 1_000;

type Written = Extract<BuiltReply, { kind: "built" | "refused" }>;

/** `taken`: with nothing in the place of what the contact sent; `isClose`: with the close look (close/close-look.ts). */
type Writing = { taken: boolean; isClose: boolean };

function write(bytes: Buffer, order: ReplyOrder, steps: ReplySteps, { taken, isClose }: Writing): Written {
  const replacers = replacersOf(order, { taken, isClose });
  const value = fieldReader(bytes);
  const { from: own, own_name, date_ms } = order;
  const [, author = null] = /^\s*"?([^"<>]{1,200}?)"?\s*</.exec(value("from").slice(0, FROM_MAX)) ?? [];
  const mark = markOf(order);
  const tools: ScrubTools = {
    ...{ replacers, own, own_name, date_ms, mark },
    author: telling(author, own.name),
    token: tokensOf(order.token_seed),
    rejoined: rejoining(order.sent, order.token_seed),
    ...{ isSent: sentObjects(order.sent), isTaken: taken },
  };
  const scrubbed = steps.scrub(bytes, tools);
  if (scrubbed.kind === "refused") return scrubbed;
  const subject = subjectOf(withoutBegin(value("subject").slice(0, SUBJECT_MAX)), replacers.strict);
  const { to, cc, in_reply_to, references } = taken ? withoutGiven(order) : order;
  const head = [
    mailboxHeader("From", [order.from]),
    to.length > 0 ? mailboxHeader("To", to) : "",
    cc.length > 0 ? mailboxHeader("Cc", cc) : "",
    textHeader("Subject", oneLine(subject.text.replaceAll(mark, ""))),
    rawHeader("Date", new Date(order.date_ms).toUTCString().replace("GMT", "+0000")),
    `Message-ID: <${order.message_id}>\r\n`,
    idsField("In-Reply-To", in_reply_to),
    idsField("References", references),
    wordField("Auto-Submitted", value("auto-submitted"), /^(?:auto-replied|auto-generated)\b/i),
    wordField("Importance", value("importance"), /^(?:low|normal|high)$/i),
    "MIME-Version: 1.0\r\n",
    scrubbed.part.head,
    "\r\n",
  ].join("");
  const { dropped, redactions, part } = scrubbed;
  const built = Buffer.concat([Buffer.from(head), part.body, END]);
  const ledger = createLedger();
  ledger.replaced({ where: "the message", place: "header" }, subject, mark);
  for (const name of goneFields(bytes)) {
    ledger.note({ where: "the message", place: "header", kind: "left_out", detail: name, count: 1 });
  }
  const changes = [...ledger.all(), ...scrubbed.changes];
  return { kind: "built", bytes: built, redactions: redactions + subject.count, dropped, unopened: [], changes };
}

/** Knows the cards, calendars and files that came from its reader. */
function sentObjects({ key, digests }: SentContent): (mark: string) => boolean {
  const known = new Set(digests);
  return (mark) => known.size > 0 && known.has(objectDigest(key, mark));
}

/** The same people and ids without what only the contact can have said. */
function withoutGiven(order: ReplyOrder): Pick<ReplyOrder, "to" | "cc" | "in_reply_to" | "references"> {
  const { text } = createReplacer(hiddenBy(order));
  const given = [...order.restored.map(({ to }) => to), ...order.sent.tokens.map(({ email }) => email)];
  const people = (list: readonly HeaderMailbox[]) =>
    list.map((one) => (given.includes(one.email) && text(one.email).count > 0 ? { ...one, email: NOBODY } : one));
  const ids = (list: readonly string[]) => list.filter((id) => text(id).count === 0);
  return {
    to: people(order.to),
    cc: people(order.cc),
    in_reply_to: ids(order.in_reply_to),
    references: ids(order.references),
  };
}

const NOBODY = "nobody@contact.invalid";

function tokensOf(seed: string): () => string {
  let made = 0;
  return () => {
    made += 1;
    return `${seed}${made}`;
  };
}

/** Stands before what is written for the owner's mailbox until the name beside it is known to be the owner's. */
function markOf({ token_seed }: ReplyOrder): string {
  return `\ue002${token_seed}\ue003`;
}

function replacersOf(order: ReplyOrder, { taken, isClose }: Writing): Replacers {
  const { from, restored, redact, sent, token_seed: seed } = order;
  const hidden = createReplacer(hiddenBy(order));
  // A contact's own address may hold the mailbox's; it wrote that itself.
  const isTelling = ({ to }: Replacement) => hidden.text(to).count > 0;
  const telling = restored.filter(isTelling).map((one) => restoring(one.from, one.to));
  const plain = restored.filter((one) => !isTelling(one));
  const others = createReplacer(plain, from.email);
  const keeping = (replacer: Replacer) => keepingSent(replacer, { sent, restored: telling, seed, taken, others });
  const marked = hiddenBy(order).map((one) => ({ ...one, to: one.to === "" ? "" : markOf(order) + one.to }));
  const files = createReplacer([...marked, ...plain], from.email, isClose);
  const holds = (octets: string) => hidden.name(octets).count > 0;
  const texts = withRuns(files, holds);
  // In codes there is no place for marks.
  const within = createReplacer([...hiddenBy(order), ...plain], from.email).name;
  const strict = keeping(isClose ? closeInTexts(texts, within) : texts);
  const mild = redact === "all" ? strict : keeping(others);
  const quoted = redact === "off" ? mild : strict;
  const inFiles = isClose ? keeping(closeInFiles(files, within)) : keeping(files);
  const inNotes = isClose ? keeping(closeInNotes(files, within)) : inFiles;
  const isOff = redact === "off";
  return { strict, own: mild, quoted, files: isOff ? mild : inFiles, notes: isOff ? mild : inNotes };
}

const ALLOWED = { all: "nothing", quoted: "own_text", off: "bodies" } as const;

function secretsOf(order: ReplyOrder): Secrets {
  const { to, cc, in_reply_to, references, restored, names, redact } = order;
  const people = [...[...to, ...cc].map(({ email }) => email), ...restored.map((one) => one.to)];
  // What is only taken away stands around another of them.
  const addresses = hiddenBy(order).flatMap(({ from, to }) => (to === "" ? [] : from));
  return { addresses, names, allowed: ALLOWED[redact], given: [...people, ...in_reply_to, ...references] };
}

/** Each of the secrets alone. */
function wordsOf(order: ReplyOrder): Word[] {
  const own = order.hidden.map((one) => ({
    word: one.from,
    secrets: { ...secretsOf({ ...order, hidden: [one] }), names: [] },
  }));
  const names = order.names.map((word) => ({ word, secrets: { ...secretsOf(order), addresses: [], names: [word] } }));
  return [...own, ...names];
}

function hiddenBy({ hidden, to, cc, sent }: ReplyOrder): Replacement[] {
  const named = sent.tokens.map(({ email }) => email);
  const seen = [...to, ...cc].map(({ email }) => email).filter((email) => !named.includes(email));
  return hiddenForms(hidden, seen);
}

const WRITTEN_FIELDS =
  /^(?:from|to|cc|subject|date|message-id|in-reply-to|references|auto-submitted|importance|mime-version|content-.*)$/i;
const FIELDS_TOLD_MAX = 100;

/** The names of the fields of which nothing goes into a reply. */
function goneFields(bytes: Buffer): string[] {
  const names = splitMessage(bytes).headers.map(({ name }) => name);
  return names.filter((name) => !WRITTEN_FIELDS.test(name)).slice(0, FIELDS_TOLD_MAX);
}

const END = Buffer.from("\r\n");

/** The first word of a field that is one of those allowed. */
function wordField(name: string, value: string, allowed: RegExp): string {
  const word = allowed.exec(value.trim())?.[0];
  return word === undefined ? "" : `${name}: ${word.toLowerCase()}\r\n`;
}
