// A mail to an alias as it goes on to the real mailbox: a header written anew from an allow-list, From and every other
// recipient as reverse addresses, To the alias and never the mailbox (clients quote that line in replies). The body stays
// as it came, but for calendar parts, whose people are rewritten so that an answer comes back through the alias.
import { decodeText } from "../mime/decode-charset.ts";
import { decodeTransfer } from "../mime/decode-transfer.ts";
import { encodeBase64 } from "../mime/encode-body.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "../mime/encode-header.ts";
import { readableValue, unfoldedValue } from "../mime/header-text.ts";
import { type Header, headerValues, splitMessage } from "../mime/parse-head.ts";
import { parseParameters } from "../mime/parse-parameters.ts";
import { type Part, parseStructure } from "../mime/parse-structure.ts";
import { calendarAddresses, isPersonLine, rewriteCalendar } from "./calendar.ts";
import { createReplacer, type Replacement } from "./replace-addresses.ts";
import { idsField } from "./reply.ts";
import { oneLine } from "./scrub-parts.ts";

export type ForwardParts = {
  from: HeaderMailbox;
  to: readonly HeaderMailbox[];
  cc: readonly HeaderMailbox[];
  reply_to: readonly HeaderMailbox[];
  /** Message-IDs as the mailbox knows them, with angle brackets. */
  in_reply_to: readonly string[];
  references: readonly string[];
  /** Instead of a missing or unusable Message-ID; without angle brackets. */
  fallback_id: string;
  loop_mark: string;
  /** Our page for a mailto: List-Unsubscribe; null when there can be none. */
  unsubscribe_page(mailto: string): string | null;
  /** What calendar parts say of people, and what the mailbox is to see. */
  calendar: readonly Replacement[];
};

export const LOOP_FIELD = "X-Mask-Loop";

const LIMITS = { parts_max: 300, depth_max: 20 };
/** Fields that pass with their value as text. */
const KEPT = ["Auto-Submitted", "Precedence", "X-Auto-Response-Suppress", "List-Id"];
const VALUE_MAX = 998;
const LINKS_MAX = 5;
const INVITED_MAX = 30;
const MARKS_MAX = 20;

/** The message to send on. Never throws for what the message holds. */
export function buildForward(bytes: Buffer, parts: ForwardParts): Buffer {
  const { headers, body_offset } = splitMessage(bytes);
  const value = (name: string) => fieldValue(headers, name);
  const head = [
    mailboxHeader("From", [parts.from]),
    parts.to.length > 0 ? mailboxHeader("To", parts.to) : "",
    parts.cc.length > 0 ? mailboxHeader("Cc", parts.cc) : "",
    parts.reply_to.length > 0 ? mailboxHeader("Reply-To", parts.reply_to) : "",
    textHeader("Subject", oneLine(value("subject").slice(0, 2_000))),
    machineField("Date", value("date")),
    idsField("Message-ID", ownId(value("message-id"), parts.fallback_id)),
    idsField("In-Reply-To", parts.in_reply_to),
    idsField("References", parts.references),
    ...KEPT.map((name) => machineField(name, value(name.toLowerCase()))),
    listUnsubscribe(value("list-unsubscribe"), value("list-unsubscribe-post"), parts.unsubscribe_page),
    ...[...foreignMarks(headers), parts.loop_mark].map((mark) => `${LOOP_FIELD}: ${mark}\r\n`),
    "MIME-Version: 1.0\r\n",
  ].join("");
  const content = Buffer.from(`${contentFields(headers).join("")}\r\n`, "latin1");
  return Buffer.concat([Buffer.from(head), content, rewriteCalendars(bytes, body_offset, parts.calendar)]);
}

function fieldValue(headers: readonly Header[], name: string): string {
  const field = headers.find((header) => header.name.toLowerCase() === name);
  return field ? readableValue(unfoldedValue(field.raw)) : "";
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

function ownId(value: string, fallback: string): string[] {
  const id = /<[^<>\s]{1,900}>/.exec(value)?.[0];
  return [id ?? `<${fallback}>`];
}

/** RFC 2369, RFC 8058: https as it is; mail would leave from the real mailbox, so it goes through our page. */
function listUnsubscribe(value: string, post: string, pageOf: ForwardParts["unsubscribe_page"]): string {
  const links = [...value.matchAll(/<(https:\/\/[\x21-\x3b\x3d\x3f-\x7e]{1,900})>/gi)].map(
    (match) => match[1] as string,
  );
  if (links.length > 0) {
    const oneClick = /^List-Unsubscribe=One-Click$/i.test(post.trim());
    return unsubscribeFields(links.slice(0, LINKS_MAX), oneClick);
  }
  const [, mailto] = /<(mailto:[\x21-\x3b\x3d\x3f-\x7e]{1,900})>/i.exec(value) ?? [];
  const page = mailto === undefined ? null : pageOf(mailto);
  return page === null ? "" : unsubscribeFields([page], true);
}

function unsubscribeFields(links: readonly string[], oneClick: boolean): string {
  const more = oneClick ? "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" : "";
  return `List-Unsubscribe: ${links.map((link) => `<${link}>`).join(",\r\n ")}\r\n${more}`;
}

/** The first of each Content field, its bytes as they came, so that the body reads as it was meant. */
function contentFields(headers: readonly Header[]): string[] {
  const seen = new Set<string>();
  return headers.flatMap(({ name, raw }) => {
    const lower = name.toLowerCase();
    const isKept = /^content-(?:type|transfer-encoding|disposition|id|language)$/.test(lower) && !seen.has(lower);
    seen.add(lower);
    if (!isKept) return [];
    const lines = raw.toString("latin1").trimEnd();
    return [`${lines.replace(/\r?\n/g, "\r\n")}\r\n`];
  });
}

function rewriteCalendars(bytes: Buffer, bodyOffset: number, replacements: readonly Replacement[]): Buffer {
  if (replacements.length === 0 || !mayHoldCalendar(bytes)) return bytes.subarray(bodyOffset);
  const { root } = parseStructure(bytes, LIMITS);
  const { text: replace } = createReplacer(replacements);
  const out: Buffer[] = [];
  let end = bodyOffset;
  for (const part of calendarsOf(root)) {
    const start = part.body.byteOffset - bytes.byteOffset;
    // The structure was read from a copy (a mail with bare CR): it stays as it is.
    if (part.body.buffer !== bytes.buffer || start < end) continue;
    out.push(
      bytes.subarray(end, start),
      rewritten(part, (line) => personLine(line, replace)),
    );
    end = start + part.body.length;
  }
  return Buffer.concat([...out, bytes.subarray(end)]);
}

function mayHoldCalendar(bytes: Buffer): boolean {
  return /BEGIN:VCALENDAR|text\/calendar|application\/ics|\.ics\b/i.test(bytes.toString("latin1"));
}

function calendarsOf(part: Part): Part[] {
  if (part.children) return part.children.flatMap(calendarsOf);
  return /^(?:text\/calendar|application\/ics)$/.test(part.type) || isNamedCalendar(part) ? [part] : [];
}

function isNamedCalendar({ headers, parameters }: Part): boolean {
  const field = headers.find(({ name }) => name.toLowerCase() === "content-disposition")?.value ?? "";
  const name = parseParameters(field).parameters.get("filename") ?? parameters.get("name") ?? "";
  return /\.ics$/i.test(name.trim());
}

/** Organizers and attendees of the calendars in a mail, once each, in bounds. */
export function calendarPeople(bytes: Buffer): string[] {
  if (!mayHoldCalendar(bytes)) return [];
  const found = calendarsOf(parseStructure(bytes, LIMITS).root).flatMap((part) =>
    calendarAddresses(calendarText(part).text),
  );
  return [...new Set(found.map((address) => address.toLowerCase()))].slice(0, INVITED_MAX);
}

function personLine(line: string, replace: (text: string) => { text: string }): string {
  return isPersonLine(line) ? replace(line).text : line;
}

function calendarText(part: Part): { text: string; encoding: string; isUtf8: boolean } {
  const field = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding");
  const encoding = (field?.value ?? "7bit").trim().toLowerCase();
  const { bytes } = decodeTransfer(part.body, encoding);
  const label = part.parameters.get("charset") ?? "utf-8";
  const isUtf8 = /^(?:utf-?8|us-ascii)$/i.test(label);
  return { text: isUtf8 ? decodeText(bytes, "utf-8").text : bytes.toString("latin1"), encoding, isUtf8 };
}

function rewritten(part: Part, rewrite: (line: string) => string): Buffer {
  const { text, encoding, isUtf8 } = calendarText(part);
  const calendar = Buffer.from(rewriteCalendar(text, rewrite), isUtf8 ? "utf8" : "latin1");
  if (encoding === "base64") return encodeBase64(calendar);
  if (encoding !== "quoted-printable") return calendar;
  return Buffer.from(softBreaks(calendar));
}

function quoted(char: string): string {
  return `=${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Quoted-printable with a soft break every 70 characters (RFC 2045 §6.7). */
function softBreaks(bytes: Buffer): string {
  const lines = bytes.toString("latin1").split("\r\n");
  return lines
    .map((line) =>
      (line.match(/[\s\S]{1,22}/g) ?? [""]).map((piece) => piece.replace(/[^\x21-\x3c\x3e-\x7e]/g, quoted)),
    )
    .map((pieces) => pieces.join("=\r\n"))
    .join("\r\n");
}
