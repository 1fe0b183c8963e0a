// From the request's fields to the message's parts: addresses, headers, attachments, times, each with an error that names
// the field. Pure but for the clock it is given; templates, suppressions and limits come later.
import { type Address, parseMailbox } from "../../mail/address.ts";
import { decodeBase64 } from "../../mail/base64.ts";
import { normalizeContentId, normalizeContentType } from "../../mail/mime/part-headers.ts";
import type { Attachment } from "../../mail/mime/write/build-message.ts";
import { validateHeaders, validateHeaderText } from "../../mail/mime/write/validate-headers.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import { EXPIRY_MS_MAX, MESSAGE_BYTES_MAX, METADATA_BYTES_MAX, RECIPIENTS_MAX, SCHEDULE_MS_MAX } from "../shape.ts";
import type { SendRequest } from "../types.ts";

export type Mailbox = { name: string | null; email: string };
export type Recipient = Mailbox & { kind: "to" | "cc" | "bcc"; domain: string };

const SUBJECT_OCTETS_MAX = 4_000;
const EXPIRY_MS_MIN = 1_000;

/** The sender's mailbox, or 400 naming `from`. */
export function readFrom(text: string): { mailbox: Mailbox; address: Address } {
  const parsed = parseMailbox(text);
  if (!parsed.ok) throw invalid("from", `the 'from' field is not a sender address: ${parsed.reason}`);
  checkName("from", parsed.name);
  return { mailbox: { name: parsed.name, email: parsed.address.email }, address: parsed.address };
}

/** To, Cc and Bcc in this order; the same address twice counts once, in its first place. At most 50 in all. */
export function readRecipients(request: SendRequest): Recipient[] {
  const found = new Map<string, Recipient>();
  for (const kind of ["to", "cc", "bcc"] as const) {
    for (const [index, text] of (request[kind] ?? []).entries()) {
      const recipient = readRecipient(kind, index, text);
      const key = recipient.email.toLowerCase();
      if (!found.has(key)) found.set(key, recipient);
    }
  }
  if (found.size > RECIPIENTS_MAX) {
    throw invalid("to", `to, cc and bcc together may hold at most ${RECIPIENTS_MAX} recipients`);
  }
  return [...found.values()];
}

function readRecipient(kind: Recipient["kind"], index: number, text: string): Recipient {
  const field = `${kind}[${index}]`;
  const parsed = parseMailbox(text);
  if (!parsed.ok) throw invalid(field, `the '${field}' field is not an e-mail address: ${parsed.reason}`);
  checkName(field, parsed.name);
  return { kind, name: parsed.name, email: parsed.address.email, domain: parsed.address.domain };
}

/** Reply-To mailboxes. */
export function readReplyTo(request: SendRequest): Mailbox[] {
  if (request.reply_to === undefined) return [];
  const isList = Array.isArray(request.reply_to);
  const texts = isList ? (request.reply_to as string[]) : [request.reply_to as string];
  return texts.map((text, index) => {
    const field = isList ? `reply_to[${index}]` : "reply_to";
    const parsed = parseMailbox(text);
    if (!parsed.ok) throw invalid(field, `the '${field}' field is not an e-mail address: ${parsed.reason}`);
    checkName(field, parsed.name);
    return { name: parsed.name, email: parsed.address.email };
  });
}

function checkName(field: string, name: string | null): void {
  if (name === null) return;
  const checked = validateHeaderText(name, SUBJECT_OCTETS_MAX);
  if (!checked.ok) throw invalid(field, `the '${field}' field cannot stand in a header: ${checked.reason}`);
}

/** The subject as it may stand in a header, or 400. */
export function checkSubject(subject: string): string {
  const checked = validateHeaderText(subject, SUBJECT_OCTETS_MAX);
  if (!checked.ok) throw invalid("subject", `the 'subject' field cannot stand in a header: ${checked.reason}`);
  return subject;
}

/** The sender's own headers; reserved names, unsafe values and a second Reply-To are 400 naming `headers.<name>`. */
export function readHeaders({ headers, reply_to }: SendRequest): { name: string; value: string }[] {
  const written = reply_to === undefined || reply_to.length === 0 ? [] : ["reply-to"];
  const checked = validateHeaders(Object.entries((headers ?? {}) as Record<string, string>), written);
  if (checked.ok) return checked.headers;
  throw invalid(`headers.${checked.name}`, `the header '${checked.name}' is refused: ${checked.reason}`);
}

// Part of the message, unlike the link itself: that one is the recipient's own (outbound/path/attempt.ts).
const ONE_CLICK = { name: "List-Unsubscribe-Post", value: "List-Unsubscribe=One-Click" };

/** What `unsubscribe` adds to the message; 400 for a list that no suppression could name, or a second such header. */
export function readUnsubscribe({ unsubscribe, headers }: SendRequest): { name: string; value: string }[] {
  if (!unsubscribe) return [];
  const own = Object.keys(headers ?? {}).find((name) => /^list-unsubscribe(-post)?$/i.test(name));
  if (own) throw invalid(`headers.${own}`, `the header '${own}' cannot stand beside 'unsubscribe', which writes it`);
  if (/[\p{Cc}\p{Cs}]/u.test(unsubscribe.list ?? "")) {
    throw invalid("unsubscribe.list", "the 'unsubscribe.list' field must not hold control characters");
  }
  return unsubscribe.one_click === false ? [] : [ONE_CLICK];
}

/** Decoded attachments; bad base64, types and ids are 400 naming the field, and so is an id that two have (RFC 2045 §7). */
export function readAttachments(request: SendRequest): Attachment[] {
  let total = 0;
  const ids = new Set<string>();
  return (request.attachments ?? []).map((given, index) => {
    const field = `attachments[${index}]`;
    const content = decodeBase64(given.content);
    if (!content) throw invalid(`${field}.content`, `the '${field}.content' field is not base64`);
    total += content.length;
    if (total > MESSAGE_BYTES_MAX) throw tooLarge();
    const content_id = orRefuse(`${field}.content_id`, given.content_id, normalizeContentId, "is not a content id");
    if (content_id !== null && ids.has(content_id)) {
      throw invalid(`${field}.content_id`, `the '${field}.content_id' field is that of another attachment`);
    }
    if (content_id !== null) ids.add(content_id);
    return {
      content,
      filename: checkFilename(`${field}.filename`, given.filename),
      content_type: orRefuse(`${field}.content_type`, given.content_type, normalizeContentType, "is not a media type"),
      content_id,
      disposition: given.disposition ?? null,
    };
  });
}

function checkFilename(field: string, text: string): string {
  const checked = validateHeaderText(text, 1_000);
  if (!checked.ok) throw invalid(field, `the '${field}' field cannot be a file name: ${checked.reason}`);
  return text;
}

function orRefuse(
  field: string,
  text: string | undefined,
  normalize: (text: string) => string | null,
  complaint: string,
): string | null {
  if (text === undefined) return null;
  const value = normalize(text);
  if (value === null) throw invalid(field, `the '${field}' field ${complaint}`);
  return value;
}

/** 400 `payload_too_large`: the message as it would leave is over 25 MiB. */
export function tooLarge(): Refusal {
  return new Refusal("payload_too_large", "the message is larger than 25 MiB", { field: "attachments" });
}

// What JSON.stringify escapes and PostgreSQL cannot store as text or jsonb: NUL, and half of a surrogate pair.
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/i;

/** Metadata within 2 KiB; metadata and tags that can stand in a record. */
export function checkLabels(request: Pick<SendRequest, "tags" | "metadata">): void {
  const metadata = JSON.stringify(request.metadata ?? {});
  const size = Buffer.byteLength(metadata);
  if (size > METADATA_BYTES_MAX) throw invalid("metadata", `the 'metadata' field has ${size} bytes; at most 2048`);
  for (const [index, tag] of (request.tags ?? []).entries()) checkStorable(`tags[${index}]`, JSON.stringify(tag));
  checkStorable("metadata", metadata);
}

function checkStorable(field: string, json: string): void {
  if (!UNSTORABLE.test(json)) return;
  throw invalid(field, `the '${field}' field holds a NUL character or half of a surrogate pair`);
}

/** When to send and until when to try. A time that has just passed means now. */
export function readTimes(request: SendRequest, nowMs: number): { scheduled_at: Date | null; expires_at: Date | null } {
  const scheduledMs = request.scheduled_at === undefined ? null : Date.parse(request.scheduled_at);
  if (scheduledMs !== null && scheduledMs - nowMs > SCHEDULE_MS_MAX) {
    throw invalid("scheduled_at", "the 'scheduled_at' field is more than 30 days ahead");
  }
  const expiresMs = request.expires_at === undefined ? null : Date.parse(request.expires_at);
  const startMs = Math.max(nowMs, scheduledMs ?? nowMs);
  if (expiresMs !== null && expiresMs - startMs < EXPIRY_MS_MIN) {
    const than = scheduledMs !== null && scheduledMs > nowMs ? "'scheduled_at'" : "now";
    throw invalid("expires_at", `the 'expires_at' field must be later than ${than}`);
  }
  if (expiresMs !== null && expiresMs - nowMs > EXPIRY_MS_MAX) {
    throw invalid("expires_at", "the 'expires_at' field is more than 33 days ahead");
  }
  return {
    scheduled_at: scheduledMs !== null && scheduledMs > nowMs ? new Date(scheduledMs) : null,
    expires_at: expiresMs === null ? null : new Date(expiresMs),
  };
}
