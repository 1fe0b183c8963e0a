// A received message as the values that customers get: text, html, header fields in order, addresses, attachments. Pure;
// takes anything, throws for nothing, says in `defects` what was wrong. Own walker instead of postal-mime: see
// docs/decisions/0010-mime-parser.md. HTML is not cleaned here, and nothing is fetched.

import { automaticMark } from "../automatic-marks.ts";
import { charsetOfText, chooseBodies } from "./choose-bodies.ts";
import { withoutComments } from "./comments.ts";
import { mailboxesOf, readableValue, shownValue, unfoldedValue } from "./header-text.ts";
import type { ParsedAddress } from "./parse-addresses.ts";
import { parseMailDate } from "./parse-date.ts";
import type { Header } from "./parse-head.ts";
import { parseStructure, type StructureLimits } from "./parse-structure.ts";
import { answeredMax, type ParsedMail } from "./parsed-mail.ts";
import { readAttachments } from "./read-attachments.ts";

export const defaultParseLimits: StructureLimits = { parts_max: 1_000, depth_max: 50 };

const referencesMax = 200;
const idCharsMax = 998;
const subjectCharsMax = 10_000;

/** Parses a message. Linear in its size but for the limits, which leave the rest out and say so. */
export function parseMessage(bytes: Buffer, limits: StructureLimits = defaultParseLimits): ParsedMail {
  const { root, defects: structureDefects } = parseStructure(bytes, limits);
  const defects = new Set<string>(structureDefects);
  const fields = createFields(root.headers, charsetOfText(root));
  const bodies = chooseBodies(root, defects);
  const date = fields.first("date");
  const parsedDate = date === null ? null : parseMailDate(date);
  if (date !== null && parsedDate === null) defects.add("bad_date");
  for (const name of ["from", "subject", "date", "message-id"]) {
    if (fields.all(name).length > 1) defects.add(`duplicate_${name.replace("-", "_")}`);
  }
  const answered = readIds(fields.first("in-reply-to")).slice(0, answeredMax);
  const addresses = (name: string) =>
    root.headers
      .filter((header) => header.name.toLowerCase() === name)
      .flatMap(({ raw }) => mailboxesOf(raw, fields.charset))
      .filter(namesSomebody);
  return {
    headers: root.headers.map(({ name, raw }) => ({ name, value: shownValue(name, raw, fields.charset) })),
    from: addresses("from"),
    sender: addresses("sender"),
    to: addresses("to"),
    cc: addresses("cc"),
    reply_to: addresses("reply-to"),
    subject: readSubject(fields.first("subject")),
    date: parsedDate,
    message_id: readOwnId(fields.first("message-id")),
    in_reply_to: answered[0] ?? null,
    answered,
    references: readIds(fields.first("references")).slice(-referencesMax),
    text: bodies.text,
    html: bodies.html,
    attachments: readAttachments(bodies.attachments, defects),
    auto_submitted: isAutoSubmitted(fields, root.type),
    defects: [...defects],
  };
}

function namesSomebody({ name, email }: ParsedAddress): boolean {
  return name !== null || email !== null;
}

type Fields = { charset: string; all(name: string): string[]; first(name: string): string | null };

// Some software writes its headers in the charset of the body, without encoding them.
function createFields(headers: Header[], charset: string): Fields {
  const all = (name: string) =>
    headers.filter((header) => header.name.toLowerCase() === name).map(({ raw }) => unfoldedValue(raw, charset));
  return { charset, all, first: (name) => all(name)[0] ?? null };
}

function readSubject(value: string | null): string | null {
  return value === null ? null : readableValue(value).slice(0, subjectCharsMax).toWellFormed();
}

// Some programs write their own id as one word of whatever kind; in the other fields that may be a word of a sentence.
function readOwnId(value: string | null): string | null {
  const text = readableValue(withoutComments(value ?? ""));
  return readIds(value)[0] ?? (/^[^\s<>]+$/.test(text) && text.length <= idCharsMax - 2 ? `<${text}>` : null);
}

// RFC 5322 §3.6.4, and ids without brackets or with one of them. White space and comments within are the obsolete syntax,
// and dropped.
function readIds(value: string | null): string[] {
  if (value === null) return [];
  const text = readableValue(value);
  const bracketed = text.match(/<[^<>]{1,2000}>/g)?.map((id) => id.replace(/\([^()]*\)|\s/g, ""));
  const ids =
    bracketed ??
    text
      .split(/[\s,]+/)
      .map((id) => id.replace(/^<|>$/g, ""))
      .filter((id) => /^[^<>]+@[^<>]+$/.test(id))
      .map((id) => `<${id}>`);
  return ids.filter((id) => id.length > 2 && id.length <= idCharsMax);
}

function isAutoSubmitted(fields: Fields, type: string): boolean {
  const submitted = fields.first("auto-submitted")?.toLowerCase() ?? "no";
  if (!/^no\b/.test(submitted) && submitted !== "") return true;
  return automaticMark(fields.first) !== null || type === "multipart/report";
}
