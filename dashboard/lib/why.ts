// "Why did this not arrive?": a recipient's state in a sentence, the server's own words, what Postern does next, and what a
// person can do now. Pure: from the recipient and its events as /v1 gives them.
import type { Schemas } from "../api/client.ts";
import { sayShortly } from "./times.ts";

export type Tone = "good" | "warn" | "bad" | "idle";
export type Why = { tone: Tone; title: string; text: string; said: string | null };
type Recipient = Schemas["Recipient"];
type Event = Schemas["EmailEvent"];
type Known = { recipient: Recipient; events: readonly Event[]; nowMs: number };

const BOUNCES: Record<string, string> = {
  invalid_recipient: "The address does not exist there. Check how it is written; Postern will not write to it again.",
  mailbox_full: "The mailbox is full. The person has to make room before anything can arrive.",
  content: "The server took the message for spam. Look at its text, its links and the domain's DMARC.",
  blocked:
    "The server does not accept mail from this sending address. Its own words often name the list to be removed from.",
  auth: "The server does not accept how the message proves its sender. Check the domain's SPF, DKIM and DMARC.",
  too_large: "The message is larger than the server accepts. Send a link in place of the attachment.",
  inactive_mailbox: "The mailbox is closed or asleep. The server takes no mail for it.",
  bad_domain: "The part after the @ receives no mail. Check how it is written.",
  routing: "The mail servers of that domain do not lead to a mailbox. Only its owner can mend that.",
};

/** Always a full sentence; `said` is the remote server's text or null. */
export function sayWhy(known: Known): Why {
  return SAY[known.recipient.status](known);
}

const SAY: Record<Recipient["status"], (known: Known) => Why> = {
  queued: ({ recipient, events, nowMs }) => waiting(recipient, events, nowMs),
  deferred: deferredWhy,
  delivered: ({ events }) => ({
    tone: "good",
    title: "Delivered",
    text: `${hostOf(events) ?? "The recipient's server"} has accepted the message. Where it files it, inbox or junk, only that server knows.`,
    said: saidBy(events),
  }),
  bounced: bouncedWhy,
  complained: () => ({
    tone: "bad",
    title: "Delivered, then marked as spam",
    text: "The person pressed “spam”. Postern holds back further mail to this address.",
    said: null,
  }),
  suppressed: ({ events }) => ({
    tone: "bad",
    title: "Held back: the address is suppressed",
    text: "Nothing was sent. The address bounced, complained or unsubscribed before. Remove the entry only when you know that the person wants mail.",
    said: lastMessage(events),
  }),
  failed: ({ events }) => ({
    tone: "bad",
    title: "Not delivered",
    text: "Postern has given up on this recipient. The reason stands below.",
    said: saidBy(events),
  }),
  expired: ({ events }) => ({
    tone: "bad",
    title: "Not delivered in time",
    text: "Postern tried until the message expired, and no server accepted it. You can retry it.",
    said: saidBy(events),
  }),
  canceled: () => ({
    tone: "idle",
    title: "Canceled",
    text: "Somebody canceled it before it was delivered. Nothing more will be tried.",
    said: null,
  }),
  simulated: () => ({
    tone: "idle",
    title: "Simulated: a test key sent it",
    text: "Everything was checked as for a live mail, and nothing was sent. Send it with a live key to deliver it.",
    said: null,
  }),
};

function waiting(recipient: Recipient, events: readonly Event[], nowMs: number): Why {
  const next = recipient.next_attempt_at;
  const isLater = next !== null && Date.parse(next) > nowMs + 60_000;
  return {
    tone: "warn",
    title: isLater ? "Waits for its time" : "On its way",
    text: isLater
      ? `Postern sends it at ${sayShortly(next, nowMs)}.`
      : "Postern has the message and hands it over in a moment.",
    said: events.length > 1 ? lastMessage(events) : null,
  };
}

const DEFERRALS: Record<string, string> = {
  rate_limited: "the recipient's server asks us to slow down",
  greylisted: "the recipient's server lets new senders wait",
  busy: "the recipient's server is busy",
  mailbox_full: "the mailbox is full",
  connection: "the recipient's server could not be reached",
  dns: "the mail servers of the recipient's domain could not be found out",
  bad_domain: "the recipient's domain is not there. Check how it is written",
};

/** By the limits of a young domain, a pause, or because the domain is switched off: no server was asked. */
function heldBackWhy({ recipient, events, nowMs }: Known): Why {
  const next = recipient.next_attempt_at;
  return {
    tone: "warn",
    title: "Not sent yet: Postern holds it back",
    text: `No server was asked yet. ${next === null ? "Postern looks again." : `Postern looks again at ${sayShortly(next, nowMs)}.`}`,
    said: recipient.diag_message ?? lastMessage(events),
  };
}

function deferredWhy(known: Known): Why {
  const { recipient, events, nowMs } = known;
  if (recipient.attempts === 0) return heldBackWhy(known);
  const next = recipient.next_attempt_at;
  const again = next === null ? "Postern tries again." : `Postern tries again at ${sayShortly(next, nowMs)}.`;
  const host = hostOf(events);
  const reason = DEFERRALS[recipient.bounce_class ?? ""] ?? "the recipient's server said “later”";
  return {
    tone: "warn",
    title: `Not delivered yet: ${reason}`,
    text: `${host ? `${host} answered for ${domainOf(recipient.email)}. ` : ""}${again} That was attempt ${recipient.attempts}.`,
    said: saidBy(events),
  };
}

function bouncedWhy({ recipient, events }: Known): Why {
  const isHard = recipient.bounce_type === "hard";
  const known = recipient.bounce_class === null ? undefined : BOUNCES[recipient.bounce_class];
  return {
    tone: "bad",
    title: isHard ? "Bounced: this address takes no mail" : "Bounced: the server refused the message",
    text:
      known ??
      `The server refused it for good. ${isHard ? "Postern holds back further mail to it." : "Its own words say why."}`,
    said: bounceWords(recipient) ?? saidBy(events),
  };
}

function bounceWords({ bounce_code, diag_code, diag_message }: Recipient): string | null {
  return [bounce_code, diag_code, diag_message].filter((part) => part !== null && part !== "").join(" ") || null;
}

function saidBy(events: readonly Event[]): string | null {
  const last = events.findLast(({ smtp_code }) => smtp_code !== null) ?? events.at(-1);
  return last === undefined ? null : serverWords(last);
}

/** An event's code and words in one line, each once. */
export function serverWords({ smtp_code, enhanced_code, message }: Event): string | null {
  const text = message ?? "";
  const codes = [smtp_code, enhanced_code].filter((code): code is string => code !== null && !text.includes(code));
  return [...codes, text].join(" ").trim() || null;
}

function lastMessage(events: readonly Event[]): string | null {
  return events.findLast(({ message }) => message !== null)?.message ?? null;
}

function hostOf(events: readonly Event[]): string | null {
  return events.findLast(({ mx_host }) => mx_host !== null)?.mx_host ?? null;
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1);
}
