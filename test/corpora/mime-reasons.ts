// Why a mail may be read otherwise than a suite reads it: by what is wrong with the mail, as its record tells, or by what
// stands in its bytes and what came of it. Never by the name of a file, and never for what must hold for every mail.
import type { Found } from "../../src/mail/mime/parse-corpora.fixture.ts";

/** A second opinion and no ruling; `defects`: how many it finds in the mail itself. */
export type OtherReader = { is_python: true; defects: number };

type About = { defects: readonly string[]; bytes: Buffer; other: OtherReader | undefined };

/** Of all of them together: the first's reason, when each has one. */
export function reasonOf(found: readonly Found[], { defects, bytes, other }: About): string | null {
  const text = bytes.toString("latin1");
  const reasons = found.map((one) => {
    if (isLost(one)) return null;
    return byDefect(one.field, defects) ?? byBytes(one, text) ?? (other && byOther(one, other));
  });
  return reasons.every((reason) => reason) ? (reasons[0] ?? null) : null;
}

const HEAD = /^(?:subject|from|to|message_id|in_reply_to|references)$/;
const EMPTY = new Set(["", "null", "[]"]);

/** A field of the head that others read and we have nothing of. */
function isLost({ field, want, got }: Found): boolean {
  return HEAD.test(field) && EMPTY.has(got) && !EMPTY.has(want);
}

const BY_DEFECT: [defect: RegExp, field: RegExp, reason: string][] = [
  [
    /^boundary_(?:not_found|missing|not_closed)$/,
    /^(?:text|html|attachments?\b|lea(?:f|ves)\b)/,
    "its multiparts lack boundaries that RFC 2046 §5.1.1 requires; where that has no answer, each reader recovers parts its own way",
  ],
  [
    /^(?:no_empty_line|line_without_field)$/,
    /^(?:has text|text|html|attachments?\b.*|size of .*|lea(?:f|ves)\b.*)$/,
    "lines in its head are no fields (RFC 5322 §2.2): readers differ in whether the body has begun there",
  ],
  [/^bad_date$/, /^date$/, "its date is none by RFC 5322 §3.3 and §4.3: no instant, so null"],
  [
    /^(?:undecodable_text|unknown_charset|unknown_encoding|bad_quoted_printable)$/,
    /^(?:text|html|subject|from|to|attachment .* (?:name|content))$/,
    "its text is not in the charset or encoding that it names: readers repair that each its own way",
  ],
];

function byDefect(field: string, defects: readonly string[]): string | null {
  return BY_DEFECT.find(([is, at]) => at.test(field) && defects.some((one) => is.test(one)))?.[2] ?? null;
}

const MESSAGES = /^content-type:[ \t]*(?:message\/|multipart\/digest)/gim;

/** What must stand in the bytes, and what must have come of it. */
const BY_BYTES: [field: RegExp, isSo: (text: string, found: Found) => boolean, reason: string][] = [
  [
    /content$/,
    (text) => /^content-transfer-encoding:\s*(?:x-)?uu/im.test(text),
    "uuencoded: we decode it, the reference leaves it",
  ],
  [
    /content$/,
    (_text, { want, got }) => isSameButCr(want, got),
    "the reference drops CR from an attachment, whose bytes are data (RFC 2046 §4.5.1)",
  ],
  [
    /^(?:has text|attachment .*)$/,
    (text, { want, got }) => want === "true" && got === "false" && text.search(MESSAGES) !== -1,
    "it is within an attached message, or a piece of one, which is not looked into",
  ],
  [
    /^attachments$/,
    (text, { want, got }) => Number(want) < Number(got) && Number(got) <= (text.match(MESSAGES)?.length ?? 0),
    "RFC 2046 §5.1.2: the outer boundary ends a message within, also where that left its own multipart open",
  ],
  [
    /^(?:from|to)$/,
    (text, { want, got }) => /"[^"\r\n]*@[^"\r\n]*"[ \t]*</.test(text) && isWithin(got, `${want} ${namesIn(text)}`),
    "a display name has an @, and is no address",
  ],
  [
    /^(?:from|to)$/,
    (text, { field, want, got }) => repeated(text, field) && isWithin(want, got),
    "the field stands twice in the head: both are read",
  ],
  [
    /^message_id$/,
    (_text, { want, got }) => want !== "" && got.startsWith(`${want}@`),
    "the id is what stands between the angle brackets, also with two @: threads compare it whole",
  ],
];

function byBytes(found: Found, text: string): string | null {
  return BY_BYTES.find(([field, isSo]) => field.test(found.field) && isSo(text, found))?.[2] ?? null;
}

/** Both are hexadecimal, and whole. */
function isSameButCr(want: string, got: string): boolean {
  const [wanted, had] = [want, got].map((hex) => (hex.match(/../g) ?? []).filter((octet) => octet !== "0d").join(""));
  return had !== "" && wanted === had;
}

const wordsOf = (text: string) => text.split(" ").filter((word) => word !== "");

function isWithin(some: string, all: string): boolean {
  const there = new Set(wordsOf(all));
  return wordsOf(some).length > 0 && wordsOf(some).every((word) => there.has(word));
}

/** What stands in angle brackets in the head. */
function namesIn(text: string): string {
  const head = text.slice(0, text.search(/\r\n\r\n|$/));
  return [...head.matchAll(/<([^<>\s]*)>/g)].map(([, name]) => name).join(" ");
}

function repeated(text: string, field: string): boolean {
  const head = text.slice(0, text.search(/\r\n\r\n|$/));
  return [...head.matchAll(new RegExp(`^${field}[ \t]*:`, "gim"))].length > 1;
}

/** CPython raises, or gives up: it then has less than we read. What it finds broken in the body it reads its own way. */
function byOther({ field, want, got }: Found, { defects }: OtherReader): string | null {
  const isMore = (want === "" && got !== "") || (want === "false" && got === "true");
  return isMore || (defects > 0 && /^(?:has text|attachment |size of )/.test(field))
    ? "a second opinion (CPython's email), not a standard: it keeps raw bytes and rejects what readers repair"
    : null;
}
