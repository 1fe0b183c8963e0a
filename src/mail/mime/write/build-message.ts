// A whole message as bytes, ready to be signed and sent: header fields, text, HTML, inline images, attachments.
// RFC 5322 (format), RFC 2045/2046 (MIME), RFC 2387 (related), RFC 2392 (cid). Canonical: every line ends in CRLF, no
// other CR or LF, no line over 998 octets, and all is ASCII but for UTF-8 local parts in address fields (RFC 6532).
// Bcc is not an input, so it cannot be written. It does not sign, and it does not validate what customers send
// (validate-headers.ts, address.ts): an unsafe value that arrives here is a bug of the caller and throws.

import { isUtf8 } from "node:buffer";
import { safeFilename } from "../filename.ts";
import { fileHeader, normalizeContentId, normalizeContentType, typeFromFilename } from "../part-headers.ts";
import { type EncodedBody, encodeBase64, encodePlainOctets, encodeText } from "./encode-body.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "./encode-header.ts";

/**
 * `content_type` null: by the file's extension. `disposition` null: inline when the HTML shows its `content_id` (RFC 2392),
 * else attachment: what is inline and shown nowhere, readers hide.
 */
export type Attachment = {
  filename: string;
  content: Buffer;
  content_type: string | null;
  content_id: string | null;
  disposition: "attachment" | "inline" | null;
};

/** `date` in milliseconds since 1970; `message_id` without angle brackets; `boundary_seed` 16 or more random letters or digits. */
export type MessageInput = {
  from: HeaderMailbox;
  to: readonly HeaderMailbox[];
  cc: readonly HeaderMailbox[];
  reply_to: readonly HeaderMailbox[];
  subject: string;
  date: number;
  message_id: string;
  headers: readonly { name: string; value: string }[];
  html: string | null;
  text: string | null;
  attachments: readonly Attachment[];
  boundary_seed: string;
  /** The message is a report, and its attachment what is reported (RFC 6522). */
  report_type?: "tlsrpt";
};

/** `body_offset` is where the body starts; `smtputf8` tells that the header needs RFC 6531 on the way. */
export type BuiltMessage = { bytes: Buffer; body_offset: number; smtputf8: boolean };

// One octet in each character (below 0x100) or octets: a part is its header lines, an empty line, its body.
type Chunk = string | Buffer;
type Part = { head: string; body: readonly Chunk[] };

/**
 * Builds the message. Same input, same bytes. Text and HTML keep every character (line ends become CRLF, lone
 * surrogates U+FFFD). Throws when a field holds CR, LF or NUL, an address is not one from `parseAddress`, or a custom
 * header repeats a field that the message has already.
 */
export function buildMessage(input: MessageInput): BuiltMessage {
  const root = bodyPart(input);
  const written = messageHead(input);
  const smtputf8 = !/^[\x00-\x7f]*$/.test(written);
  const head = `${smtputf8 ? Buffer.from(written).toString("latin1") : written}${root.head}\r\n`;
  return { bytes: concat([head, ...root.body, lastLineEnd(root)]), body_offset: head.length, smtputf8 };
}

// The last line ends like every other; an empty body has no line.
function lastLineEnd(root: Part): string {
  const last = root.body.at(-1)!;
  const isEnded = typeof last === "string" ? last.endsWith("\r\n") : last.at(-1) === 0x0a;
  return last.length === 0 || isEnded ? "" : "\r\n";
}

function messageHead(input: MessageInput): string {
  const { message_id: messageId } = input;
  if (!/^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(messageId)) throw new Error("message_id is not safe in a header");
  let head = mailboxHeader("From", [input.from]);
  // RFC 5322 §3.6.3 lets To be absent; an empty group is what filters expect of mail that went to Bcc only.
  head += input.to.length > 0 ? mailboxHeader("To", input.to) : "To: undisclosed-recipients:;\r\n";
  if (input.cc.length > 0) head += mailboxHeader("Cc", input.cc);
  if (input.reply_to.length > 0) head += mailboxHeader("Reply-To", input.reply_to);
  head += textHeader("Subject", input.subject);
  head += `Date: ${formatDate(input.date)}\r\nMessage-ID: <${messageId}>\r\nMIME-Version: 1.0\r\n`;
  for (const header of input.headers) head += customHeader(header, input);
  return head;
}

// RFC 5322 §3.6: these stand at most once, and the builder has written them.
const ownFields = new Set(["from", "to", "cc", "bcc", "sender", "subject", "date", "message-id", "mime-version"]);

function customHeader({ name, value }: { name: string; value: string }, input: MessageInput): string {
  const lower = name.toLowerCase();
  const taken =
    ownFields.has(lower) || lower.startsWith("content-") || (lower === "reply-to" && input.reply_to.length > 0);
  if (taken || !/^[\x21-\x39\x3b-\x7e]{1,76}$/.test(name)) throw new Error("a custom header may not have this name");
  return rawHeader(name, value);
}

let lastDate = { second: Number.NaN, text: "" };

// RFC 5322 §3.3 in UTC: "Thu, 20 Nov 2025 09:41:00 +0000". Thousands of messages are of the same second.
function formatDate(ms: number): string {
  if (!Number.isFinite(ms)) throw new Error("date is not a number");
  const second = Math.floor(ms / 1000);
  if (second !== lastDate.second) lastDate = { second, text: new Date(ms).toUTCString().replace("GMT", "+0000") };
  return lastDate.text;
}

// text/plain or text/html or multipart/alternative, the HTML with its images in multipart/related, and all of it in
// multipart/mixed (multipart/report) when there are attachments.
function bodyPart(input: MessageInput): Part {
  const { html, attachments } = input;
  const isInline = ({ content_id, disposition }: Attachment) =>
    html !== null && content_id !== null && (disposition ?? shownIn(html, content_id)) === "inline";
  const text = input.text === null && html !== null ? null : textPart("plain", input.text ?? "");
  const page = html === null ? null : textPart("html", html);
  const images = attachments.length === 0 ? [] : attachments.filter(isInline).map((file) => filePart(file, "inline"));
  const files = attachments
    .filter((file) => !isInline(file))
    .map((file) => filePart(file, file.disposition ?? "attachment"));
  const boundary = freeBoundary(input.boundary_seed, [text, page, ...images, ...files]);
  const related = page === null ? null : wrap("related", boundary, [page, ...images]);
  const body = wrap("alternative", boundary, [text, related]);
  return wrap(input.report_type ? "report" : "mixed", boundary, [body, ...files], input.report_type);
}

function shownIn(html: string, contentId: string): "inline" | "attachment" {
  const id = normalizeContentId(contentId);
  if (id === null) return "attachment";
  const forms = [id, encodeURIComponent(id), id.replaceAll("&", "&amp;")];
  return forms.some((form) => html.includes(`cid:${form}`)) ? "inline" : "attachment";
}

function textPart(subtype: "plain" | "html", text: string): Part {
  const { encoding, body } = encodeText(text);
  return {
    head: `Content-Type: text/${subtype}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n`,
    body: [body],
  };
}

function filePart(file: Attachment, disposition: "attachment" | "inline"): Part {
  const filename = safeFilename(file.filename);
  const given = normalizeContentType(file.content_type ?? typeFromFilename(filename));
  if (given === null) throw new Error("content_type of an attachment is not well formed");
  const { type, encoded } = encodeFile(given, file.content);
  const start = `Content-Type: ${type}`;
  // `name` beside `filename` is for old readers, which need it in ASCII; longer or other names are in `filename`.
  const isPlain = /^[A-Za-z0-9._ -]{1,60}$/.test(filename);
  let head = isPlain ? fileHeader(start, "name", filename) : `${start}\r\n`;
  head += `Content-Transfer-Encoding: ${encoded.encoding}\r\n`;
  head += fileHeader(`Content-Disposition: ${disposition}`, "filename", filename);
  if (file.content_id !== null) head += contentIdHeader(file.content_id);
  return { head, body: [encoded.body] };
}

// RFC 2046 §5.1 and §5.2: multipart and message types may not be base64. A message that is mail text goes as it is;
// everything else of that kind would be misread by a receiver's parser, so it goes as plain octets.
function encodeFile(type: string, content: Buffer): { type: string; encoded: EncodedBody } {
  const base64 = () => ({ encoding: "base64" as const, body: encodeBase64(content) });
  if (!/^(?:multipart|message)\//.test(type)) return { type: withCharset(type, content), encoded: base64() };
  const plain = /^message\/rfc822(?:;|$)/.test(type) ? encodePlainOctets(content) : null;
  return plain === null ? { type: "application/octet-stream", encoded: base64() } : { type, encoded: plain };
}

// RFC 2046 §4.1.2: text without a charset is US-ASCII, so a preview would spoil the UTF-8 that most files are in.
function withCharset(type: string, content: Buffer): string {
  if (!type.startsWith("text/") || type.includes("; charset=")) return type;
  return isUtf8(content) ? `${type}; charset=utf-8` : type;
}

function contentIdHeader(given: string): string {
  const id = normalizeContentId(given);
  if (id === null) throw new Error("content_id is not well formed");
  return `Content-ID: <${id}>\r\n`;
}

const BOUNDARY_ENDS = { alternative: "a", related: "r", mixed: "m", report: "t" };

function wrap(
  kind: keyof typeof BOUNDARY_ENDS,
  boundary: string,
  maybe: readonly (Part | null)[],
  reportType?: string,
): Part {
  const parts = maybe.filter((part) => part !== null);
  if (parts.length === 1) return parts[0]!;
  const own = `${boundary}.${BOUNDARY_ENDS[kind]}`;
  const body: Chunk[] = [];
  for (const part of parts) body.push(`${body.length === 0 ? "" : "\r\n"}--${own}\r\n${part.head}\r\n`, ...part.body);
  body.push(`\r\n--${own}--`);
  // RFC 2387 §3.1 demands the type of the root, RFC 6522 §3 that of the report.
  const type = kind === "related" ? '; type="text/html"' : kind === "report" ? `; report-type="${reportType}"` : "";
  return { head: `Content-Type: multipart/${kind}${type};\r\n boundary="${own}"\r\n`, body };
}

const boundarySeedMax = 48;
const boundaryTriesMax = 1_000;

// `=_` cannot occur in quoted-printable and base64 (RFC 2045 §6.7); parts in 7bit are searched, so that uniqueness
// does not hang on the seed being secret.
function freeBoundary(seed: string, parts: readonly (Part | null)[]): string {
  const clean = seed.replace(/[^A-Za-z0-9]/g, "").slice(0, boundarySeedMax);
  if (clean === "") throw new Error("boundary_seed is empty");
  const bodies = parts.flatMap((part) => part?.body ?? []).filter((chunk) => typeof chunk === "string");
  for (let attempt = 0; attempt < boundaryTriesMax; attempt++) {
    const boundary = `=_${clean}${attempt === 0 ? "" : `.${attempt}`}`;
    if (!bodies.some((body) => body.includes(boundary))) return boundary;
  }
  throw new Error("no free boundary found");
}

function concat(chunks: readonly Chunk[]): Buffer {
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  const bytes = Buffer.allocUnsafe(length);
  let offset = 0;
  for (const chunk of chunks) {
    offset += typeof chunk === "string" ? bytes.write(chunk, offset, "latin1") : chunk.copy(bytes, offset);
  }
  return bytes;
}
