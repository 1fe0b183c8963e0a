// A reply from a real mailbox as it leaves from its alias: a header written anew from a short allow-list, the body rebuilt
// and scrubbed, and the leak gate over the finished bytes. Who may reply and to whom is decided before.

import { domainOf } from "../address.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "../mime/encode-header.ts";
import { fieldReader, idsField, oneLine } from "./header-fields.ts";
import { findLeaks, type Leak, type Secrets } from "./leak-gate.ts";
import { createReplacer, type Replacement } from "./replace-addresses.ts";
import { type Replacers, type ScrubRefusal, type ScrubTools, scrubParts } from "./scrub-parts.ts";
import { shownReplacements } from "./shown-address.ts";
import { spellings } from "./spellings.ts";

export type ReplyOrder = {
  from: HeaderMailbox;
  to: readonly HeaderMailbox[];
  cc: readonly HeaderMailbox[];
  date_ms: number;
  /** Without angle brackets, at the alias's domain. */
  message_id: string;
  /** Message-IDs as the contact knows them, with angle brackets. */
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
  /** Random letters and digits that boundaries and Content-IDs begin with. */
  token_seed: string;
};

export type BuiltReply =
  | { kind: "built"; bytes: Buffer; redactions: number; dropped: string[] }
  | { kind: "held"; leaks: Leak[] }
  | { kind: "refused"; reason: ScrubRefusal };

/** Parts that the mutation tests exchange; nothing else does. */
export type ReplySteps = { scrub: typeof scrubParts; gate: typeof findLeaks };

const STEPS: ReplySteps = { scrub: scrubParts, gate: findLeaks };
const SUBJECT_MAX = 2_000;

/** Builds the reply, or says why it must not leave. Never throws for what the message holds. */
export function buildReply(bytes: Buffer, order: ReplyOrder, steps: ReplySteps = STEPS): BuiltReply {
  const replacers = replacersOf(order);
  const tools: ScrubTools = { replacers, own: order.from, token: tokensOf(order.token_seed) };
  const scrubbed = steps.scrub(bytes, tools);
  if (scrubbed.kind === "refused") return scrubbed;
  const value = fieldReader(bytes);
  const subject = replacers.strict.text(value("subject").slice(0, SUBJECT_MAX));
  const head = [
    mailboxHeader("From", [order.from]),
    order.to.length > 0 ? mailboxHeader("To", order.to) : "",
    order.cc.length > 0 ? mailboxHeader("Cc", order.cc) : "",
    textHeader("Subject", oneLine(subject.text)),
    rawHeader("Date", new Date(order.date_ms).toUTCString().replace("GMT", "+0000")),
    `Message-ID: <${order.message_id}>\r\n`,
    idsField("In-Reply-To", withoutHidden(order, order.in_reply_to)),
    idsField("References", withoutHidden(order, order.references)),
    wordField("Auto-Submitted", value("auto-submitted"), /^(?:auto-replied|auto-generated)\b/i),
    wordField("Importance", value("importance"), /^(?:low|normal|high)$/i),
    "MIME-Version: 1.0\r\n",
    scrubbed.part.head,
    "\r\n",
  ].join("");
  const built = Buffer.concat([Buffer.from(head), scrubbed.part.body, END]);
  const leaks = steps.gate(built, secretsOf(order));
  if (leaks.length > 0) return { kind: "held", leaks };
  const { dropped, redactions } = scrubbed;
  return { kind: "built", bytes: built, redactions: redactions + subject.count, dropped };
}

function tokensOf(seed: string): () => string {
  let made = 0;
  return () => {
    made += 1;
    return `${seed}${made}`;
  };
}

function replacersOf(order: ReplyOrder): Replacers {
  const { from, restored, redact } = order;
  const strict = createReplacer([...hiddenBy(order), ...restored], from.email);
  const mild = redact === "all" ? strict : createReplacer(restored, from.email);
  return { strict, own: mild, quoted: redact === "off" ? mild : strict };
}

const ALLOWED = { all: "nothing", quoted: "own_text", off: "bodies" } as const;

function secretsOf(order: ReplyOrder): Secrets {
  const { to, cc, in_reply_to, references, restored, names, redact } = order;
  const people = [...[...to, ...cc].map(({ email }) => email), ...restored.map((one) => one.to)];
  // What is only taken away stands around another of them.
  const addresses = hiddenBy(order).flatMap(({ from, to }) => (to === "" ? [] : from));
  return { addresses, names, allowed: ALLOWED[redact], given: [...people, ...in_reply_to, ...references] };
}

function hiddenBy({ hidden, to, cc }: ReplyOrder): Replacement[] {
  const seen = [...to, ...cc].map(({ email }) => email);
  const known = hidden.flatMap((one) => spellings(one, seen));
  // The owner's mailboxes are shown to each other as contacts are, and quoted so.
  return known.flatMap((one) => [one, forwarded(one), ...shownReplacements(one.from, one.to)]);
}

/** As the addresses of those who forward hold it (SRS): the domain first. */
function forwarded({ from, to }: Replacement): Replacement {
  const turned = (email: string) => `${domainOf(email)}=${email.slice(0, email.lastIndexOf("@"))}`;
  return { from: turned(from), to: turned(to) };
}

/** Programs make ids of their owner's address, too. */
function withoutHidden(order: ReplyOrder, ids: readonly string[]): string[] {
  const { text } = createReplacer(hiddenBy(order));
  return ids.filter((id) => text(id).count === 0);
}

const END = Buffer.from("\r\n");

/** The first word of a field that is one of those allowed. */
function wordField(name: string, value: string, allowed: RegExp): string {
  const word = allowed.exec(value.trim())?.[0];
  return word === undefined ? "" : `${name}: ${word.toLowerCase()}\r\n`;
}
