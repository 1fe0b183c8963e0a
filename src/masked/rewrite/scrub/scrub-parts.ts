// The body of a reply, rebuilt so that nothing of the mailbox it came from is left: new boundaries and Content-IDs, no
// preamble, no epilogue, part headers by allow-list, texts decoded, replaced and encoded again, and no parts that name
// their author (signatures, keys, vCards, TNEF, receipts). Nested messages are treated the same. What is no text is kept as
// it is: the leak gate looks into it.
import { domainOf } from "../../../mail/address.ts";
import { mainPart } from "../../../mail/mime/choose-bodies.ts";
import { decodeText } from "../../../mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { safeFilename } from "../../../mail/mime/filename.ts";
import { parseParameters } from "../../../mail/mime/parse-parameters.ts";
import { type Part, parseStructure } from "../../../mail/mime/parse-structure.ts";
import { fileHeader } from "../../../mail/mime/part-headers.ts";
import { nameByType } from "../../../mail/mime/read-attachments.ts";
import { encodeBase64, encodeText } from "../../../mail/mime/write/encode-body.ts";
import type { HeaderMailbox } from "../../../mail/mime/write/encode-header.ts";
import { rewriteCalendar } from "../calendar/calendar.ts";
import { writeAnswer } from "../calendar/calendar-answer.ts";
import { namedAnew } from "../calendar/calendar-person.ts";
import { calendarMarks, cardMarks, cardsIn, fileMark } from "../calendar/sent-objects.ts";
import { ARMOR, type Change, createLedger, type Ledger } from "../changes.ts";
import { oneLine } from "../header-fields.ts";
import { cutArmor, cutHtmlArmor } from "./armor.ts";
import { isCardOf, readableCard } from "./contact-cards.ts";
import { unwrapFlowed } from "./flowed.ts";
import { nestedHead } from "./nested-head.ts";
import { replaceName, replaceNameBeside } from "./own-name.ts";
import { fateOf, isCard } from "./part-fate.ts";
import { fieldOf, filenameOf, isCalendarPart } from "./part-fields.ts";
import { splitQuoted } from "./quoted-part.ts";
import type { Replaced, Replacer } from "./replace-addresses.ts";
import { unwrapLinks } from "./rewritten-links.ts";
import { changedFile, octetFile, octetsOf, type TextFile, unchangedFile } from "./text-files.ts";

/** What is replaced where: in text that the author wrote, in quotes, in what only machines write, in files, and in those to be read. */
export type Replacers = { own: Replacer; quoted: Replacer; strict: Replacer; files: Replacer; notes: Replacer };

/**
 * `rejoined` has the lines of quotes as they were sent; `isSent` knows cards, calendars and files
 * (calendar/sent-objects.ts); `isTaken`: of files that were sent nothing is left. `own` is whom the reply comes from; `author` the name that its author goes by at home, null where it has none to hide.
 * `mark` stands before each address that is written for a mailbox of the owner; `token` gives random letters and digits, new at
 * each call.
 */
export type ScrubTools = {
  replacers: Replacers;
  rejoined(text: string, isHtml: boolean): string;
  isSent(mark: string): boolean;
  isTaken: boolean;
  own: HeaderMailbox;
  author: string | null;
  mark: string;
  own_name: "leave" | "replace";
  date_ms: number;
  token(): string;
};

/** `head` are the Content-* lines of the part. */
export type BuiltPart = { head: string; body: Buffer };

export type Scrubbed =
  | { kind: "built"; part: BuiltPart; redactions: number; dropped: string[]; changes: Change[] }
  | { kind: "refused"; reason: ScrubRefusal };

/** `lost_file`: without what names its author, a file or the whole content would be missing. */
export type ScrubRefusal = "encrypted" | "too_complex" | "lost_file";

/** Beyond them a reply is refused. */
export const PART_LIMITS = { parts_max: 300, depth_max: 20 };
const NESTING_MAX = 5;

/** Where HTML names the program that wrote it, and whom that knows as its author. */
const GENERATOR =
  /<meta\s[^<>]{0,200}\bname\s*=\s*["']?(?:generator|progid|originator|author)\b[^<>]{0,300}>|<o:(Author|LastAuthor|Manager|Company)>[^<>]{0,300}<\/o:\1>/gi;

/** The id of the mail that is quoted, as the program of the mailbox knows it. */
const CITED_ID = /(?<!\s)\s+cite\s*=\s*(?:"\s*mid:[^"]*"|'\s*mid:[^']*'|mid:[^\s>]*)/gi;

type Work = ScrubTools & {
  cids: Map<string, string>;
  count: number;
  ledger: Ledger;
  /** The part that is at hand, as the leak gate names it. */
  where: string;
  dropped: string[];
  nesting: number;
  refusal: ScrubRefusal | null;
  /** Whether anything is left for the contact to read. */
  has_content: boolean;
};

/** Rebuilds the body of `bytes`, a whole message. */
export function scrubParts(bytes: Buffer, tools: ScrubTools): Scrubbed {
  const work: Work = {
    ...tools,
    ...{ cids: new Map(), count: 0, dropped: [], nesting: 0, refusal: null, has_content: false },
    ...{ ledger: createLedger(), where: "the message" },
  };
  const { root, defects } = parseStructure(bytes, PART_LIMITS);
  if (defects.has("too_deep") || defects.has("too_many_parts")) return { kind: "refused", reason: "too_complex" };
  collectIds(root, work);
  const part = answerIn(root, work) ?? rebuild(root, work) ?? textPart("text/plain", "", []);
  if (work.refusal !== null) return { kind: "refused", reason: work.refusal };
  const { count, dropped, has_content, ledger } = work;
  // What was cut out of a text is no part.
  if (!has_content && dropped.some((type) => type !== ARMOR)) return { kind: "refused", reason: "lost_file" };
  return { kind: "built", part, redactions: count, dropped, changes: ledger.all() };
}

/** An answer to an invitation, where the mail is one: its calendar and a sentence, and nothing of what a program wrote beside. */
function answerIn(part: Part, work: Work): BuiltPart | null {
  if (part.children) {
    for (const child of part.children) {
      const answer = answerIn(child, work);
      if (answer !== null) return answer;
    }
    return null;
  }
  if (!isCalendarPart(part) || /\+(?:xml|json)$/.test(part.type)) return null;
  const { bytes } = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding"));
  const { text } = decodeText(bytes, part.parameters.get("charset") ?? "utf-8");
  const known = (line: string) => withoutMark(counted(work, work.replacers.strict.text(line)), work);
  const answer = writeAnswer(text, { own: work.own, date_ms: work.date_ms, known });
  if (answer === null) return null;
  note(work, "part", "written_anew", part.type);
  work.has_content = true;
  const boundary = `=_${work.token()}`;
  const parts = [
    textPart("text/plain", `${answer.sentence}\r\n`, []),
    textPart("text/calendar", answer.calendar, [`method=${answer.method}`]),
  ];
  const pieces = parts.flatMap(({ head, body }) => [Buffer.from(`--${boundary}\r\n${head}\r\n`), body, CRLF]);
  return {
    head: `Content-Type: multipart/alternative;\r\n boundary="${boundary}"\r\n`,
    body: Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]),
  };
}

/** Content-IDs get new names before any text that mentions them is written. */
function collectIds(part: Part, work: Work): void {
  const id = fieldOf(part, "content-id").replace(/^<|>$/g, "").trim();
  if (id !== "") work.cids.set(id, newId(work));
  for (const child of part.children ?? []) collectIds(child, work);
}

function rebuild(part: Part, work: Work): BuiltPart | null {
  if (part.children) return rebuildMultipart(part, work);
  const filename = filenameOf(part);
  const { bytes } = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding"));
  const fate = fateOf(part, () => bytes);
  if (fate === "dropped" && isCard(part)) {
    const others = othersCards(decodeText(bytes, part.parameters.get("charset") ?? "utf-8").text, work);
    if (others !== "") return rebuildFile({ ...part, type: "text/vcard" }, Buffer.from(others), work);
  }
  if (fate !== "kept") {
    leaveOut(work, "part", part.type);
    if (fate !== "dropped") work.refusal ??= fate === "lost" ? "lost_file" : "encrypted";
    return null;
  }
  if (part.type === "message/rfc822" || part.type === "message/global" || /\.eml$/i.test(filename)) {
    return rebuildMessage(bytes, work);
  }
  if (isCalendarPart(part) && !/\+(?:xml|json)$/.test(part.type)) return calendarPart(part, bytes, work);
  if (part.type.startsWith("text/") && !isAttachedFile(part)) return rebuildText(part, bytes, work);
  return rebuildFile(part, bytes, work);
}

/** The contact cards that are not the author's own: those name its mailbox, or it, and nobody else sent them. */
function othersCards(text: string, work: Work): string {
  const cards = cardsIn(text);
  const all = cardMarks(cards).at(-1) ?? "";
  const isOwn = (card: string) => {
    const lines = readableCard(card);
    if (work.replacers.strict.html(lines).text.includes(`${work.mark}${work.own.email}`)) return true;
    return work.author !== null && isCardOf(lines, work.author) && ![...cardMarks([card]), all].some(work.isSent);
  };
  return cards.filter((card) => !isOwn(card)).join("");
}

function rebuildMultipart(part: Part, work: Work): BuiltPart | null {
  const children = part.children ?? [];
  if (part.type === "multipart/encrypted") work.refusal = "encrypted";
  // RFC 1847: the signature is over bytes that change, and names its author.
  if (part.type === "multipart/signed") {
    if (children[1]) note(work, "part", "left_out", children[1].type);
    return children[0] ? rebuild(children[0], work) : null;
  }
  const subtype = /^multipart\/(alternative|related)$/.exec(part.type)?.[1] ?? "mixed";
  // RFC 2387 §3.2: without start= the main part is the first.
  const main = mainPart(part, subtype);
  const ordered = [...children.slice(main, main + 1), ...children.slice(0, main), ...children.slice(main + 1)];
  const { where } = work;
  const built = ordered.flatMap((child) => {
    work.where = `part ${children.indexOf(child) + 1} of ${where}`;
    return rebuild(child, work) ?? [];
  });
  work.where = where;
  if (built.length === 0) return null;
  if (built.length === 1) return built[0] as BuiltPart;
  const boundary = `=_${work.token()}`;
  const pieces = built.flatMap(({ head, body }) => [Buffer.from(`--${boundary}\r\n${head}\r\n`), body, CRLF]);
  const body = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { head: `Content-Type: multipart/${subtype};\r\n boundary="${boundary}"\r\n`, body };
}

const CRLF = Buffer.from("\r\n");

function rebuildText(part: Part, bytes: Buffer, work: Work): BuiltPart {
  const isHtml = part.type === "text/html";
  const text = readText(part, bytes);
  const { text: bare, cut, is_encrypted } = isHtml ? cutHtmlArmor(text) : cutArmor(text);
  if (is_encrypted) work.refusal = "encrypted";
  if (cut > 0) leaveOut(work, "text", ARMOR);
  const replaced = replaceText(
    isHtml ? withNewIds(bare.replace(GENERATOR, "").replace(CITED_ID, ""), work) : bare,
    isHtml,
    work,
  );
  work.has_content ||= isRead(replaced, isHtml);
  return textPart(isHtml ? "text/html" : "text/plain", replaced, []);
}

function isRead(text: string, isHtml: boolean): boolean {
  const shown = isHtml ? text.replace(/<(?!img\b)[^<>]*>|&nbsp;|&#160;/gi, "") : text;
  return /[^\s\u200b\u00ad]/.test(shown);
}

/** As its reader sees it: a reader of flowed text joins lines. */
function readText(part: Part, bytes: Buffer): string {
  const { text } = decodeText(bytes, part.parameters.get("charset") ?? "");
  const isFlowed = part.parameters.get("format")?.trim().toLowerCase() === "flowed";
  return isFlowed ? unwrapFlowed(text, part.parameters.get("delsp")?.trim().toLowerCase() === "yes") : text;
}

function replaceText(text: string, isHtml: boolean, work: Work): string {
  const name = work.own.name ?? work.own.email;
  const unwrapped = unwrapLinks(text, isHtml);
  if (unwrapped !== text) note(work, "text", "link");
  const replaced = replaceAddresses(work.rejoined(unwrapped, isHtml), isHtml, work);
  if (work.author === null) return withoutMark(replaced, work);
  const { own, quoted } =
    work.own_name === "replace" && work.nesting === 0 ? splitQuoted(replaced, isHtml) : { own: "", quoted: replaced };
  const everywhere = named(work, replaceName(own, work.author, name));
  return withoutMark(named(work, replaceNameBeside(everywhere + quoted, { ...work, author: work.author, name })), work);
}

function withoutMark(text: string, { mark }: Work): string {
  return text.replaceAll(mark, "");
}

function replaceAddresses(text: string, isHtml: boolean, work: Work): string {
  const { own, quoted } = work.replacers;
  const run = (replacer: Replacer, piece: string) =>
    counted(work, isHtml ? replacer.html(piece) : replacer.text(piece));
  // In one go where both are treated alike, so that nothing hides across the border; nested mail is all quote.
  if (own === quoted || work.nesting > 0) return run(quoted, text);
  const split = splitQuoted(text, isHtml);
  // Before a reverse address that it would cut, because what was sent must not move it.
  const cut = /\br\.[a-z2-7]{0,26}(?:<[^<>]*>|[\s>|])*$/i.exec(split.own.slice(-CUT_CHARS_MAX))?.[0].length ?? 0;
  const border = split.own.length - cut;
  return run(own, text.slice(0, border)) + run(quoted, text.slice(border));
}

const CUT_CHARS_MAX = 400;

/** An address of a part that is not there tells its maker's domain as well. */
function withNewIds(html: string, work: Work): string {
  return html.replace(/(["'=(]?)cid:([^\s"'<>)]{1,998})/gi, (whole, before: string, given: string) => {
    const id = decodePercents(given);
    const known = work.cids.get(given) ?? work.cids.get(id);
    if (known === undefined && (before === "" || !id.includes("@"))) return whole;
    if (known === undefined) work.cids.set(id, newId(work));
    return `${before}cid:${known ?? work.cids.get(id)}`;
  });
}

function newId({ token, own }: Work): string {
  return `${token()}@${domainOf(own.email)}`;
}

function decodePercents(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function textPart(type: string, text: string, parameters: readonly string[]): BuiltPart {
  const { encoding, body } = encodeText(text);
  const head = [`${type}; charset=utf-8`, ...parameters].join("; ");
  return {
    head: `Content-Type: ${head}\r\nContent-Transfer-Encoding: ${encoding}\r\n`,
    body: typeof body === "string" ? Buffer.from(body, "latin1") : body,
  };
}

function calendarPart(part: Part, bytes: Buffer, work: Work): BuiltPart {
  const { text } = decodeText(bytes, part.parameters.get("charset") ?? "utf-8");
  work.has_content = true;
  const isSent = calendarMarks(text).some(work.isSent);
  const ofAuthor = (line: string) =>
    work.author === null || isSent
      ? line
      : named(work, replaceName(line, work.author, work.own.name ?? work.own.email));
  const calendar = rewriteCalendar(withoutAlarms(text), (line) => {
    if (namesProgram(line)) return null;
    const known = withoutMark(counted(work, work.replacers.strict.text(ownProgram(line))), work);
    return ofAuthor(namedAnew(known, work.own));
  });
  const method = part.parameters.get("method");
  const isMethod = method !== undefined && /^[A-Za-z-]{1,20}$/.test(method);
  const built = textPart("text/calendar", calendar, isMethod ? [`method=${method}`] : []);
  const filename = filenameOf(part) === "" ? "" : writtenName(part, work);
  if (filename === "") return built;
  return { ...built, head: built.head + fileHeader("Content-Disposition: attachment", "filename", filename) };
}

/** Reminders are the author's own, and say where its program lies. */
function withoutAlarms(text: string): string {
  return text.replace(/^BEGIN:VALARM\b[\s\S]*?^END:VALARM[^\n]*(?:\n|$)/gim, "");
}

/** Properties that programs add of their own tell which program, and where its owner is (`X-WR-TIMEZONE`). */
function namesProgram(line: string): boolean {
  return /^(?:X-|URL[;:]|CONFERENCE[;:])/i.test(line);
}

/** PRODID is required (RFC 5545 §3.7.3) and names the program. */
function ownProgram(line: string): string {
  return /^PRODID[;:]/i.test(line) ? "PRODID:-//Postern//Masked addresses//EN" : line;
}

/** A message within the message: what a reader sees of its header, and its body rebuilt the same way. */
function rebuildMessage(bytes: Buffer, work: Work): BuiltPart | null {
  if (work.nesting >= NESTING_MAX) {
    work.refusal ??= "too_complex";
    return null;
  }
  const { root } = parseStructure(bytes, PART_LIMITS);
  work.nesting += 1;
  const { where } = work;
  work.where = `the message in ${where}`;
  work.has_content = true;
  collectIds(root, work);
  const part = rebuild(root, work) ?? textPart("text/plain", "", []);
  work.nesting -= 1;
  const { head, replaced } = nestedHead(root, work.replacers.quoted, work);
  for (const one of replaced) counted(work, one, "header");
  work.where = where;
  const body = Buffer.concat([Buffer.from(`${head}MIME-Version: 1.0\r\n${part.head}\r\n`), part.body]);
  return { head: "Content-Type: message/rfc822\r\nContent-Disposition: attachment\r\n", body };
}

function rebuildFile(part: Part, bytes: Buffer, work: Work): BuiltPart {
  const filename = writtenName(part, work);
  const disposition = parseParameters(fieldOf(part, "content-disposition")).value;
  const id = fieldOf(part, "content-id").replace(/^<|>$/g, "").trim();
  const cid = work.cids.get(id);
  const type = /^(?:multipart|message)\//.test(part.type) ? "application/octet-stream" : part.type;
  const { bytes: content, charset } = writtenFile(part, bytes, work);
  work.has_content = true;
  const where = /^(?:inline)?$/.test(disposition) && cid !== undefined ? "inline" : "attachment";
  return {
    head:
      `Content-Type: ${type}${charset === null ? "" : `; charset=${charset}`}\r\n` +
      "Content-Transfer-Encoding: base64\r\n" +
      fileHeader(`Content-Disposition: ${where}`, "filename", filename) +
      (cid === undefined ? "" : `Content-ID: <${cid}>\r\n`),
    body: encodeBase64(content),
  };
}

/** A text is scrubbed. Anything else stays as it is, for the gate to look into, but for what its reader sent. */
function writtenFile(part: Part, bytes: Buffer, work: Work): TextFile {
  if (part.type.startsWith("text/")) return scrubFile(part, bytes, work);
  const isGone = work.isTaken && work.isSent(fileMark(bytes));
  return { bytes: isGone ? Buffer.alloc(0) : bytes, charset: null };
}

function writtenName(part: Part, work: Work): string {
  const given = safeFilename(filenameOf(part) || nameByType(part.type));
  return oneLine(withoutMark(counted(work, work.replacers.strict.name(given), "file_name"), work));
}

/** Text files are texts, too. */
function scrubFile(part: Part, bytes: Buffer, work: Work): TextFile {
  const label = part.parameters.get("charset")?.trim() ?? "";
  const { files, notes } = work.replacers;
  const octets = octetsOf(bytes, label);
  // A code in which its reader wrote to the mailbox may be read in another charset alone.
  if (octets !== null && work.isTaken && work.isSent(fileMark(bytes))) return octetFile("", label);
  const given = octets ?? readText(part, bytes);
  const replaced = (isNote(part) ? notes : files).html(given);
  const text = counted(work, replaced, "file");
  if (octets !== null) return octetFile(withoutMark(text, work), label);
  // Where something was taken out that its reader sent nothing is counted.
  const isSame = replaced.count === 0 && text === given;
  return isSame ? unchangedFile(bytes, label) : changedFile(withoutMark(text, work), bytes, label);
}

/** A file that people read: no program needs a key in it. */
function isNote({ type }: Part): boolean {
  return type === "text/plain" || type === "text/markdown";
}

function isAttachedFile(part: Part): boolean {
  const { value } = parseParameters(fieldOf(part, "content-disposition"));
  return value === "attachment" || filenameOf(part) !== "";
}

function counted(work: Work, replaced: Replaced, place: Change["place"] = "text"): string {
  work.count += replaced.count;
  work.ledger.replaced({ where: work.where, place }, replaced, work.mark);
  return replaced.text;
}

/** Notes how often the author's name was replaced. */
function named(work: Work, { text, count }: Replaced): string {
  work.count += count;
  work.ledger.note({ where: work.where, place: "text", kind: "name", detail: null, count });
  return text;
}

function note(work: Work, place: Change["place"], kind: Change["kind"], detail: string | null = null): void {
  work.ledger.note({ where: work.where, place, kind, detail, count: 1 });
}

function leaveOut(work: Work, place: Change["place"], type: string): void {
  work.dropped.push(type);
  note(work, place, "left_out", type);
}
