// A mail to an alias as it goes on to the real mailbox: a rewritten header from an allow-list, From and every other
// recipient as reverse addresses, To the alias and never the mailbox (clients quote that line in replies). The body stays
// as it came, but for calendars, whose people are rewritten so that an answer comes back through the alias, and for lines that
// strict servers refuse: what leaves is ours.

import { unfoldedValue } from "../../mail/mime/header-text.ts";
import { parseMailDate } from "../../mail/mime/parse-date.ts";
import { type Header, headerValues, splitMessage } from "../../mail/mime/parse-head.ts";
import { parseParameters } from "../../mail/mime/parse-parameters.ts";
import { fileHeader } from "../../mail/mime/part-headers.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "../../mail/mime/write/encode-header.ts";
import { LINE_OCTETS_MAX, toShortLines } from "../../mail/mime/write/to-seven-bit.ts";
import { guardCalendars } from "./calendar/calendar-parts.ts";
import { fieldReader, idsField, oneLine } from "./header-fields.ts";
import type { Replacement } from "./scrub/replace-addresses.ts";
import type { ContentHider } from "./sent/sent-content.ts";

export type ForwardParts = {
  from: HeaderMailbox;
  to: readonly HeaderMailbox[];
  cc: readonly HeaderMailbox[];
  reply_to: readonly HeaderMailbox[];
  /** Message-IDs as the mailbox knows them, with angle brackets. */
  in_reply_to: readonly string[];
  references: readonly string[];
  /** Without angle brackets. */
  message_id: string;
  /** When it came: the date of a mail without one that can be read. */
  received_ms: number;
  loop_mark: string;
  /** The field Authentication-Results with what was found here; null for the owner's own mail. */
  authentication: string | null;
  /** Our page for the mailto: List-Unsubscribe; null when there is none. */
  unsubscribe_page: string | null;
  /** Our links that stand for its List-Unsubscribe, https first; absent where it stays its author's. */
  unsubscribe_own?: readonly string[];
  /** What calendar parts say of people, and what the mailbox is to see. */
  calendar: readonly Replacement[];
  /** Writes tokens for the mailbox into what the author wrote; null where the author is the owner. */
  hider: ContentHider | null;
};

export const LOOP_FIELD = "X-Mask-Loop";

/** Fields that pass with their value as text. */
const KEPT = ["Auto-Submitted", "Precedence", "X-Auto-Response-Suppress", "List-Id"];
const VALUE_MAX = 998;
const LINKS_MAX = 5;
const MARKS_MAX = 20;

/** The message to send on. Never throws for what the message holds. */
export function buildForward(given: Buffer, parts: ForwardParts): Buffer {
  const { hider } = parts;
  const bytes = guardCalendars(given, { known: parts.calendar, author: parts.from.email, hider });
  const hidden = (text: string) => hider?.field(text).text ?? text;
  const { headers, text_offset } = splitMessage(bytes);
  const value = fieldReader(bytes);
  const head = [
    // RFC 8601 §5: on top; what others put into such a field goes with all else.
    parts.authentication ?? "",
    mailboxHeader("From", [parts.from]),
    parts.to.length > 0 ? mailboxHeader("To", parts.to) : "",
    parts.cc.length > 0 ? mailboxHeader("Cc", parts.cc) : "",
    parts.reply_to.length > 0 ? mailboxHeader("Reply-To", parts.reply_to) : "",
    textHeader("Subject", oneLine(hidden(value("subject").slice(0, 2_000)))),
    dateField(value("date"), parts.received_ms),
    `Message-ID: <${parts.message_id}>\r\n`,
    idsField("In-Reply-To", parts.in_reply_to),
    idsField("References", parts.references),
    ...KEPT.map((name) => machineField(name, value(name.toLowerCase()))),
    parts.unsubscribe_own?.length
      ? unsubscribeFields(parts.unsubscribe_own, true)
      : listUnsubscribe(value("list-unsubscribe"), value("list-unsubscribe-post"), parts.unsubscribe_page),
    ...[...foreignMarks(headers), parts.loop_mark].map((mark) => `${LOOP_FIELD}: ${mark}\r\n`),
    "MIME-Version: 1.0\r\n",
  ].join("");
  const content = Buffer.from(`${contentFields(headers).join("")}\r\n`, "latin1");
  return toShortLines(Buffer.concat([Buffer.from(head), content, bytes.subarray(text_offset)]));
}

/** Marks of masks that it passed before: a circle through several is seen only if each keeps those of the others. */
function foreignMarks(headers: readonly Header[]): string[] {
  const marks = headerValues(headers, LOOP_FIELD).map((mark) => mark.trim());
  return marks.filter((mark) => /^[0-9a-f]{32}$/.test(mark)).slice(0, MARKS_MAX);
}

function machineField(name: string, value: string): string {
  const line = oneLine(value).slice(0, VALUE_MAX);
  return line === "" || !/^[\x20-\x7e]*$/.test(line) ? "" : rawHeader(name, line);
}

/** RFC 5322 §3.6: there must be one, and nobody behind us adds it. Its own words where they can be read. */
function dateField(value: string, receivedMs: number): string {
  const own = parseMailDate(value) === null ? "" : machineField("Date", value);
  return own || rawHeader("Date", new Date(receivedMs).toUTCString().replace("GMT", "+0000"));
}

/** RFC 2369, RFC 8058: https as it is; mail would leave from the real mailbox, so it goes through our page. */
function listUnsubscribe(value: string, post: string, page: string | null): string {
  const links = [...value.matchAll(/<(https:\/\/[\x21-\x3b\x3d\x3f-\x7e]{1,900})>/gi)].map(
    (match) => match[1] as string,
  );
  if (links.length > 0) {
    const oneClick = /^List-Unsubscribe=One-Click$/i.test(post.trim());
    return unsubscribeFields(links.slice(0, LINKS_MAX), oneClick);
  }
  return page === null || mailtoToLeave(value) === null ? "" : unsubscribeFields([page], true);
}

/** The mailto: link in the value of a List-Unsubscribe field; null when there is none. */
export function mailtoToLeave(value: string): string | null {
  return /<(mailto:[\x21-\x3b\x3d\x3f-\x7e]{1,900})>/i.exec(value)?.[1] ?? null;
}

function unsubscribeFields(links: readonly string[], oneClick: boolean): string {
  const more = oneClick ? "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" : "";
  return `List-Unsubscribe: ${links.map((link) => `<${link}>`).join(",\r\n ")}\r\n${more}`;
}

/** The first of each Content field, its value as it came where its lines may be so long, so that the body reads as it was meant. */
function contentFields(headers: readonly Header[]): string[] {
  const seen = new Set<string>();
  return headers.flatMap(({ name, raw }) => {
    const lower = name.toLowerCase();
    const isKept = /^content-(?:type|transfer-encoding|disposition|id|language)$/.test(lower) && !seen.has(lower);
    seen.add(lower);
    if (!isKept) return [];
    const lines = raw.toString("latin1").trimEnd();
    // RFC 5322 §4.5: blanks before the colon may be read, not written.
    const kept = `${name}:${lines.slice(lines.indexOf(":") + 1).replace(/\r?\n/g, "\r\n")}`;
    return kept.split("\r\n").some(({ length }) => length > LINE_OCTETS_MAX) ? refolded(name, raw) : [`${kept}\r\n`];
  });
}

/** With a line for each parameter, or for pieces of it (RFC 2231 §3); a value that is too long itself is left out. */
function refolded(name: string, raw: Buffer): string[] {
  const given = unfoldedValue(raw);
  if (!/^content-(?:type|disposition)$/i.test(name))
    return given.length > VALUE_MAX ? [] : [rawHeader(name, oneLine(given))];
  const { value, parameters } = parseParameters(given);
  if (value.length > VALUE_MAX || !/^[\x21-\x7e]+$/.test(value)) return [];
  let field = `${name}: ${value}`;
  for (const [parameter, text] of parameters) {
    if (!/^[\x21-\x7e]{1,60}$/.test(parameter)) continue;
    const isBoundary = parameter === "boundary" && /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(text);
    // No reader puts a boundary together from pieces.
    field = isBoundary ? `${field};\r\n boundary="${text}"` : fileHeader(field, parameter, oneLine(text)).trimEnd();
  }
  return [`${field}\r\n`];
}
