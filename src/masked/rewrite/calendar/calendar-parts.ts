// The calendars of a mail on its way to a real mailbox. Its mail program answers an invitation to whom the calendar names,
// from the mailbox: so each calendar is read, its people are exchanged (calendar-person.ts), and it is rewritten in UTF-8,
// with a type and our own encoding, so that a reader sees what was read here and nothing else. What cannot be read, or
// lies beyond the limits, is left out. Attached mails are looked into; archives and encrypted parts are not: who unpacks them
// imports them by hand. All other bytes stay as they came.
import { decodeText } from "../../../mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { readableValue, unfoldedValue } from "../../../mail/mime/header-text.ts";
import { type Header, splitMessage } from "../../../mail/mime/parse-head.ts";
import { defaultParseLimits } from "../../../mail/mime/parse-message.ts";
import {
  type Part,
  parseStructure,
  type Structure,
  type StructureDefect,
  withLineFeeds,
} from "../../../mail/mime/parse-structure.ts";
import { fileHeader } from "../../../mail/mime/part-headers.ts";
import { encodeBase64, encodeText } from "../../../mail/mime/write/encode-body.ts";
import { textHeader } from "../../../mail/mime/write/encode-header.ts";
import { oneLine } from "../header-fields.ts";
import { unwrapFlowed } from "../scrub/flowed.ts";
import { isCard } from "../scrub/part-fate.ts";
import { fieldOf, filenameOf, isCalendarPart } from "../scrub/part-fields.ts";
import { createReplacer, type Replacement } from "../scrub/replace-addresses.ts";
import { changedFile, octetFile, octetsOf, type TextFile } from "../scrub/text-files.ts";
import type { ContentHider } from "../sent/sent-content.ts";
import { rewriteCalendar } from "./calendar.ts";
import { type CalendarPeople, calendarAddresses, knownPeople, namesPerson, rewritePerson } from "./calendar-person.ts";
import { hideFileNames } from "./file-names.ts";
import { calendarMarks, cardMarks, cardsIn, fileMark } from "./sent-objects.ts";

const INVITED_MAX = 30;
const NESTING_MAX = 5;
/** parseStructure keeps no more fields of a part than this. */
const FIELDS_MAX = 50;
const SNIFFED_MAX = 600;
/**
 * The most lines in all calendars of a mail, which are read where everything else waits: a year of meetings has a few
 * thousand.
 */
const CALENDAR_LINES_MAX = 150_000;
const CALENDAR_OCTETS_MAX = 10_000_000;
/** The most octets of lines that name people, enough for ten thousand of them. Those behind are left out. */
const PEOPLE_OCTETS_MAX = 1_000_000;
/** What holds mail in a form of its own, that mail programs read: TNEF, S/MIME that is signed only. */
const OPAQUE = /^application\/(?:(?:vnd\.)?ms-tnef|(?:x-)?pkcs7-mime)$/;
const OPAQUE_NAME = /\.(?:p7m|tnef)$|^win\s?mail\.dat$/i;
const MEETING = /IPM\.(?:Microsoft )?(?:Schedule|Appointment)|BEGIN:VCALENDAR|text\/calendar/i;
const INLINE = /^begin(?:-base64)? [0-7]{3,4} [^\r\n]{0,300}\.(?:ics|ical|icalendar|ifb|vcs)/im;
/** Files of a mail that are known again when they come back. */
const FILES_MAX = 100;
const LEFT_OUT = "[A calendar, or what may have held one, was left out here: it could not be read safely.]\r\n";

/**
 * `known`: whom calendars may name, and what stands for them; `author` is whom everybody else becomes. `hider` writes tokens
 * for the mailbox wherever the author names it; null where the author is the owner.
 */
export type Invited = { known: readonly Replacement[]; author: string; hider?: ContentHider | null };

type Edit = { start: number; end: number; bytes: Buffer };
/** What is left to be read of calendars. */
type Budget = { lines: number; octets: number; people: number; files: number };
type Guarding = CalendarPeople & { budget: Budget; hider: ContentHider | null };
type Work = { bytes: Buffer; root: Part; defects: Set<StructureDefect>; people: Guarding; nesting: number };

/** The mail with nobody in its calendars whom `invited` does not know; the same bytes when there is none. */
export function guardCalendars(bytes: Buffer, { known, author, hider = null }: Invited): Buffer {
  const { text } = createReplacer(known);
  return guardMessage(bytes, { known: knownPeople(known), author, text, budget: newBudget(), hider }, 0);
}

function newBudget(): Budget {
  return { lines: CALENDAR_LINES_MAX, octets: CALENDAR_OCTETS_MAX, people: PEOPLE_OCTETS_MAX, files: FILES_MAX };
}

/** True if enough is left to read it; it is subtracted then. */
function takes(budget: Budget, content: Buffer): boolean {
  let lines = 1;
  for (let at = content.indexOf(10); at !== -1 && lines <= budget.lines; at = content.indexOf(10, at + 1)) lines += 1;
  // Bare carriage returns end lines, too.
  for (let at = content.indexOf(13); at !== -1 && lines <= budget.lines; at = content.indexOf(13, at + 1)) {
    if (content[at + 1] !== 10) lines += 1;
  }
  if (lines > budget.lines || content.length > budget.octets) return false;
  budget.lines -= lines;
  budget.octets -= content.length;
  return true;
}

/** In session and for each alias of a mail the same bytes are asked about. */
const peopleByMail = new WeakMap<Buffer, readonly string[]>();

/** Organizers and attendees of the calendars in a mail, in lower case, once each, organizers first, in bounds. */
export function calendarPeople(bytes: Buffer): readonly string[] {
  const known = peopleByMail.get(bytes);
  if (known) return known;
  const found = calendarAddresses(calendarTexts(bytes, newBudget(), 0));
  const named = [...new Set(found.map((address) => address.toLowerCase()))].slice(0, INVITED_MAX);
  peopleByMail.set(bytes, named);
  return named;
}

/** A mail is asked about before it is written for each of its mailboxes. */
const structures = new WeakMap<Buffer, Structure>();

function structureOf(bytes: Buffer): Structure {
  const known = structures.get(bytes) ?? parseStructure(bytes, defaultParseLimits);
  structures.set(bytes, known);
  return known;
}

function calendarTexts(bytes: Buffer, budget: Budget, nesting: number): string[] {
  return leavesOf(structureOf(bytes).root).flatMap((part) => {
    if (isCalendar(part)) return takes(budget, contentOf(part)) ? [readCalendar(part)] : [];
    return isMessage(part) && nesting < NESTING_MAX ? calendarTexts(contentOf(part), budget, nesting + 1) : [];
  });
}

function guardMessage(given: Buffer, people: Guarding, nesting: number): Buffer {
  // parseStructure would read a copy.
  const bytes = withLineFeeds(given);
  const { root, defects } = structureOf(bytes);
  const work: Work = { bytes, root, defects, people, nesting };
  // A head that is too long hides the types of parts.
  if (defects.has("head_too_large")) {
    return applied(bytes, replaced(work, root, [splitMessage(bytes).body_offset, bytes.length]));
  }
  const leaves = leavesOf(root);
  const edits = leaves.flatMap((part) => guardPart(part, work));
  if (nesting > 0) edits.unshift(...hiddenHead(work));
  // What is put in stands before what is taken out at the same place.
  edits.sort((a, b) => a.start - b.start || a.end - b.end);
  if (defects.has("too_many_parts")) edits.push(cutBehind(leaves, root, bytes));
  const edited = edits.length === 0 ? given : applied(bytes, edits);
  return people.hider === null || !leaves.some((part) => filenameOf(part) !== "")
    ? edited
    : hideFileNames(edited, people.hider);
}

function leavesOf(part: Part): Part[] {
  return part.children ? part.children.flatMap(leavesOf) : [part];
}

function guardPart(part: Part, work: Work): Edit[] {
  const range = rangeOf(part.body, work.bytes);
  if (isUnreadable(part, work)) return replaced(work, part, range);
  if (isCalendar(part)) return rewritten(work, part, range);
  if (!isMessage(part)) {
    // In a text tokens are written, and that is what comes back.
    if (part.type.startsWith("text/")) return readable(work, part, range);
    noteFile(work, () => contentOf(part));
    if (isCard(part)) noteCards(work, decodeText(contentOf(part), part.parameters.get("charset") ?? "").text);
    return [];
  }
  const content = contentOf(part);
  if (work.nesting >= NESTING_MAX) return MEETING.test(content.toString("latin1")) ? replaced(work, part, range) : [];
  const guarded = guardMessage(content, work.people, work.nesting + 1);
  if (guarded === content) return [];
  if (content === part.body) return [{ start: range[0], end: range[1], bytes: guarded }];
  return written(work, part, range, { type: part.type, encoding: "base64", body: encodeBase64(guarded) });
}

/** A part whose parts cannot be seen, and what holds a meeting in a form that is not read here. */
function isUnreadable(part: Part, { root, defects }: Work): boolean {
  if (part.headers.length >= FIELDS_MAX && part !== root) return true;
  if (part.type.startsWith("multipart/")) return true;
  const isBroken = defects.has("boundary_not_found") || defects.has("boundary_missing");
  if (isBroken && /^multipart\//i.test(fieldOf(part, "content-type"))) {
    return /calendar|\.ics\b|base64/i.test(part.body.toString("latin1"));
  }
  if (!OPAQUE.test(part.type) && !OPAQUE_NAME.test(filenameOf(part).trim())) return false;
  return MEETING.test(contentOf(part).toString("latin1").replaceAll("\0", ""));
}

function isMessage(part: Part): boolean {
  return /^message\/(?:rfc822|global)$/.test(part.type) || /\.eml$/i.test(filenameOf(part));
}

/** By its fields, or by its first line, whatever its fields say. */
function isCalendar(part: Part): boolean {
  if (isCalendarPart(part)) return true;
  if (part.headers.length === 0) return false;
  const encoding = fieldOf(part, "content-transfer-encoding");
  const start = decodeTransfer(part.body.subarray(0, SNIFFED_MAX), encoding).bytes.toString("latin1");
  return /^[^A-Za-z]*BEGIN:VCALENDAR/i.test(start.replaceAll("\0", "").replace(FOLDS, ""));
}

function contentOf(part: Part): Buffer {
  return decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding")).bytes;
}

const FOLDS = /\r?\n[ \t]/g;
const BEGINS = /(?:^|[\r\n])[ \t\ufeff]*BEGIN:VCALENDAR/i;

/** The text of a calendar, in its charset, or in the one that its bytes are plainly in. */
function readCalendar(part: Part): string {
  const label = part.parameters.get("charset") ?? "utf-8";
  const content = contentOf(part);
  if (content.includes(0)) {
    const texts = [label, "utf-16", "utf-32"].map((charset) => decodeText(content, charset).text.replace(FOLDS, ""));
    return texts.find((text) => BEGINS.test(text)) ?? "";
  }
  // Old programs fold in the middle of a character (RFC 5545 §3.1 warns of it): unfolded before it is decoded.
  return decodeText(Buffer.from(content.toString("latin1").replace(FOLDS, ""), "latin1"), label).text;
}

function rewritten(work: Work, part: Part, range: Range): Edit[] {
  const text = takes(work.people.budget, contentOf(part)) ? readCalendar(part) : "";
  if (!BEGINS.test(text)) return replaced(work, part, range);
  const calendar = rewriteCalendar(text, (line) => guardLine(line, work.people));
  work.people.hider?.noteObjects(calendarMarks(calendar));
  const { encoding, body } = encodeText(calendar);
  const words = ["method", "component"].flatMap((name) => {
    const value = part.parameters.get(name) ?? "";
    return /^[A-Za-z-]{1,20}$/.test(value) ? [`; ${name}=${value}`] : [];
  });
  const type = `${part.type}; charset=utf-8${words.join("")}`;
  return written(work, part, range, {
    type,
    encoding,
    body: typeof body === "string" ? Buffer.from(body, "latin1") : body,
  });
}

function guardLine(line: string, people: Guarding): string | null {
  if (!namesPerson(line)) return people.hider?.text(line).text ?? line;
  people.budget.people -= line.length;
  return people.budget.people < 0 ? null : rewritePerson(line, people);
}

/** A part with another body, and fields of its type and encoding that fit that; its other fields stay. */
function written(work: Work, part: Part, range: Range, by: { type: string; encoding: string; body: Buffer }): Edit[] {
  const type = `Content-Type: ${by.type}`;
  const name = (part.parameters.get("name") ?? "").replace(/\p{Cc}/gu, "");
  const head = name === "" ? `${type}\r\n` : fileHeader(type, "name", name);
  const fields = `${head}Content-Transfer-Encoding: ${by.encoding}\r\n`;
  return [...inHead(part, work.bytes, /^content-(?:type|transfer-encoding)$/i, fields), bodyEdit(range, by.body)];
}

/**
 * What the author wrote, with tokens for the mailbox. Old programs show a file that stands in the text (uuencode) as attached:
 * a calendar there begins no more.
 */
function readable(work: Work, part: Part, range: Range): Edit[] {
  const { hider } = work.people;
  const content = contentOf(part);
  const label = part.parameters.get("charset")?.trim() ?? "";
  const isInline = part.type === "text/plain" && INLINE.test(content.toString("latin1"));
  if (!isInline && hider === null) return [];
  const octets = isInline || isCard(part) || !isFile(part) ? null : octetsOf(content, label);
  const text = octets ?? decodeText(content, label).text;
  const joined = hider !== null && isGlued(part) ? unwrapFlowed(text, true) : text;
  const bare = isInline ? joined.replace(new RegExp(INLINE, "gim"), "| $&") : joined;
  const hidden = hider === null ? bare : hideIn(hider, part, bare);
  if (isCard(part)) noteCards(work, hidden);
  const file = octets === null ? null : octetFile(hidden, label);
  // What the mailbox gets of it is known as a whole, too.
  if (file !== null) noteFile(work, () => file.bytes);
  if (hidden === text) return [];
  if (file !== null) return tokenized(work, part, range, file);
  if (!isInline && joined === text) return tokenized(work, part, range, changedFile(hidden, content, label));
  const { encoding, body } = encodeText(hidden);
  const bytes = typeof body === "string" ? Buffer.from(body, "latin1") : body;
  return written(work, part, range, { type: `${part.type}; charset=utf-8`, encoding, body: bytes });
}

/**
 * A text with tokens in it, that is otherwise as it came, byte for byte: its reader hands it on as a file, and another charset,
 * or one that is named where none was, would tell the contact that its guess was right.
 */
function tokenized(work: Work, part: Part, range: Range, { bytes, charset }: TextFile): Edit[] {
  // Bare line ends, too, are as they came: a program quotes it as it does any other mail.
  const body = encodeBase64(bytes);
  if (charset === (part.parameters.get("charset")?.trim() || null)) {
    return [
      ...inHead(part, work.bytes, ENCODING_FIELD, "Content-Transfer-Encoding: base64\r\n"),
      bodyEdit(range, body),
    ];
  }
  const words = ["format", "delsp"].flatMap((name) => {
    const value = part.parameters.get(name) ?? "";
    return /^[A-Za-z]{1,20}$/.test(value) ? [`; ${name}=${value}`] : [];
  });
  const type = `${part.type}; charset=${charset ?? "utf-8"}${words.join("")}`;
  return written(work, part, range, { type, encoding: "base64", body });
}

/**
 * True if its reader puts together words that stand in two lines (RFC 3676, DelSp=yes). Programs that know nothing of it quote them
 * as they stand, and a token would be broken elsewhere: so each of its lines goes on as one, whatever it holds.
 */
function isGlued(part: Part): boolean {
  const has = (name: string, value: string) => part.parameters.get(name)?.trim().toLowerCase() === value;
  return part.type === "text/plain" && !isFile(part) && has("format", "flowed") && has("delsp", "yes");
}

function noteCards({ people: { hider } }: Work, text: string): void {
  const cards = cardsIn(text);
  if (cards.length > 0) hider?.noteObjects(cardMarks(cards));
}

/** A file that is known by all its bytes, as it comes back. */
function noteFile({ people: { hider, budget } }: Work, content: () => Buffer): void {
  if (hider === null || budget.files === 0) return;
  budget.files -= 1;
  hider.noteObjects([fileMark(content())]);
}

function isFile(part: Part): boolean {
  return filenameOf(part) !== "" || /^\s*attachment\b/i.test(fieldOf(part, "content-disposition"));
}

const ENCODING_FIELD = /^content-transfer-encoding$/i;

function hideIn(hider: ContentHider, part: Part, text: string): string {
  if (part.type === "text/plain" && filenameOf(part) === "") return hider.text(text).text;
  return (part.type === "text/html" && filenameOf(part) === "" ? hider.html(text) : hider.file(text)).text;
}

/** The fields of an attached mail, read and with tokens for the mailbox. */
function hiddenHead({ root, bytes, people: { hider } }: Work): Edit[] {
  if (hider === null) return [];
  return root.headers.flatMap(({ name, raw }) => {
    if (/^content-/i.test(name)) return [];
    const value = readableValue(unfoldedValue(raw));
    const { text, count } = hider.field(value);
    return count === 0 ? [] : [bodyEdit(rangeOf(raw, bytes), Buffer.from(textHeader(name, oneLine(text))))];
  });
}

/** A part with a sentence in its place. */
function replaced(work: Work, part: Part, range: Range): Edit[] {
  const fields = "Content-Type: text/plain; charset=utf-8\r\n";
  return [...inHead(part, work.bytes, /^content-/i, fields), bodyEdit(range, Buffer.from(LEFT_OUT))];
}

type Range = [start: number, end: number];

function rangeOf(piece: Buffer, bytes: Buffer): Range {
  const start = piece.byteOffset - bytes.byteOffset;
  return [start, start + piece.length];
}

function bodyEdit([start, end]: Range, bytes: Buffer): Edit {
  return { start, end, bytes };
}

/** Takes fields out of a part's head and puts others in the place of the first, or before all that stands there. */
function inHead({ headers, head }: Part, bytes: Buffer, names: RegExp, fields: string): Edit[] {
  const [, end] = rangeOf(head, bytes);
  const gone = headers.filter(({ name }: Header) => names.test(name)).map(({ raw }) => rangeOf(raw, bytes));
  const [at] = gone[0] ?? rangeOf(headers[0]?.raw ?? head, bytes);
  const put: Edit = { start: at, end: at, bytes: Buffer.from(fields) };
  const taken = gone.map((range) => bodyEdit(range, NOTHING));
  // A body that begins without an empty line: what is put in its place might be read as fields.
  const isOpen = !/(?:^|\n)\r?\n$/.test(head.toString("latin1"));
  return [put, ...taken, ...(isOpen ? [{ start: end, end, bytes: Buffer.from("\r\n") }] : [])];
}

const NOTHING = Buffer.alloc(0);

/** What lies behind the last part that was read was looked at by nobody. */
function cutBehind(leaves: readonly Part[], root: Part, bytes: Buffer): Edit {
  const last = Math.max(...leaves.map(({ body }) => rangeOf(body, bytes)[1]));
  return { start: last, end: bytes.length, bytes: Buffer.from(`\r\n--${root.parameters.get("boundary") ?? ""}--\r\n`) };
}

function applied(bytes: Buffer, edits: readonly Edit[]): Buffer {
  const out: Buffer[] = [];
  let end = 0;
  for (const edit of edits) {
    out.push(bytes.subarray(end, edit.start), edit.bytes);
    end = edit.end;
  }
  return Buffer.concat([...out, bytes.subarray(end)]);
}
