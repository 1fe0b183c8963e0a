// The head of a message that a customer submits ready-made: who it says it is from, what is ours in it, and what must not
// leave. Strict where a receiver could see another author than we do (RFC 5322 §3.6, §3.6.2): such a message is refused,
// never repaired. The customer's own structure is kept byte for byte. It does not look into the body.
import { type Address, parseAddress, parseMailbox } from "../../address.ts";
import { readableValue } from "../header-text.ts";
import { parseAddressList } from "../parse-addresses.ts";
import { type Header, headerValues, splitMessage } from "../parse-head.ts";

export type SubmittedHead = {
  from: { name: string | null; address: Address };
  /** Whom else the head names as author or sender. */
  senders: { field: string; address: Address }[];
  /** Addresses as they stand there, in lower case. */
  to: Set<string>;
  cc: Set<string>;
  reply_to: string[];
  subject: string;
  /** Without angle brackets; null when there is none that can be used. */
  message_id: string | null;
  has_date: boolean;
  /** Values of X-Service-Tag. */
  tags: string[];
  /** Names behind X-Service-Metadata- in lower case, with their values. */
  metadata: Map<string, string>;
  /** The fields that leave, as they were. */
  kept: Buffer[];
  body_offset: number;
};

/** `author`: the author cannot be read, or is named twice. */
export type SubmittedResult =
  | { ok: true; head: SubmittedHead }
  | { ok: false; problem: "malformed" | "author"; reason: string };

// RFC 5322 §2.1.1, without the CRLF; servers such as Exim refuse longer ones.
const lineOctetsMax = 998;
const subjectCharsMax = 2_000;
const messageIdCharsMax = 900;
// What parseMailbox reads at most; the patterns here would take a second for a From that is as long as a header may be.
const mailboxCharsMax = 1_500;

// RFC 5322 §3.6 and RFC 2045 §3: at most one of each. Receivers refuse a second one, or show another one than is signed.
const singular = new Set(
  "from sender reply-to to cc subject date message-id mime-version content-type content-transfer-encoding".split(" "),
);
const removed = new Set(["bcc", "resent-bcc", "return-path"]);
const ownPrefixes = ["x-service-", "x-postern-"];
const tagName = "x-service-tag";
const metadataPrefix = "x-service-metadata-";
const senderFields = ["Sender", "Resent-From", "Resent-Sender"];

/** Reads the head of a message whose lines end in CRLF. Never throws. */
export function readSubmittedHead(bytes: Buffer): SubmittedResult {
  const { headers, body_offset, defects } = splitMessage(bytes);
  const problem = headProblem(headers, defects) ?? lineProblem(bytes);
  if (problem !== null) return { ok: false, problem: "malformed", reason: problem };
  const from = readFrom(headerValues(headers, "From"));
  if (typeof from === "string") return { ok: false, problem: "author", reason: from };
  const senders = readSenders(headers);
  if (typeof senders === "string") return { ok: false, problem: "author", reason: senders };
  const message_id = messageId(headers);
  const isKept = (header: Header) => staysIn(header.name.toLowerCase(), message_id);
  return {
    ok: true,
    head: {
      from,
      senders,
      to: addresses(headers, "To"),
      cc: addresses(headers, "Cc"),
      reply_to: [...addresses(headers, "Reply-To")],
      subject: readableValue(headerValues(headers, "Subject")[0] ?? "")
        .slice(0, subjectCharsMax)
        .toWellFormed(),
      message_id,
      has_date: headerValues(headers, "Date").length > 0,
      ...labels(headers),
      kept: headers.filter(isKept).map(({ raw }) => ended(raw)),
      body_offset,
    },
  };
}

function headProblem(headers: readonly Header[], defects: readonly string[]): string | null {
  if (defects.includes("head_too_large")) return "the header is larger than 256 KiB or has more than 1,000 fields";
  if (defects.includes("line_without_field")) return "the header holds a line that is not a header field";
  const seen = new Set<string>();
  for (const { name, raw } of headers) {
    const lower = name.toLowerCase();
    // RFC 5322 §4.5: obsolete, and not every reader knows it.
    if (raw[name.length] !== 0x3a) return `the header field ${name} has a space before its colon`;
    if (singular.has(lower) && lower !== "from" && seen.has(lower)) return `the header has more than one ${name}`;
    seen.add(lower);
  }
  return null;
}

function lineProblem(bytes: Buffer): string | null {
  let start = 0;
  for (let end = bytes.indexOf(0x0a); ; end = bytes.indexOf(0x0a, start)) {
    const length = end === -1 ? bytes.length - start : end - 1 - start;
    if (length > lineOctetsMax) {
      return `a line has ${length} octets, more than ${lineOctetsMax}: encode the part as quoted-printable or base64`;
    }
    if (end === -1) return null;
    start = end + 1;
  }
}

/** One field with one mailbox that two readings agree on, or what is wrong. */
function readFrom(values: readonly string[]): SubmittedHead["from"] | string {
  const [value = ""] = values;
  if (values.length !== 1)
    return values.length === 0 ? "the message has no From" : "the message has more than one From";
  if (value.length > mailboxCharsMax) return `the From of the message is longer than ${mailboxCharsMax} characters`;
  const parsed = parseMailbox(value.replace(/^(\S+@\S+)\s+\([^()<>"\\]*\)$/, "$1"));
  if (!parsed.ok) return `the From of the message is not one mailbox: ${parsed.reason}`;
  const found = parseAddressList(value).flatMap(({ email }) => email ?? []);
  const [only] = found;
  const again = only === undefined ? null : parseAddress(only);
  // RFC 5322 §3.2.5: outside quotes a name has no @, and a careless reader takes what has one for the address.
  const name = value.slice(0, Math.max(0, value.lastIndexOf("<"))).replace(/"(?:[^"\\]|\\.)*"/g, "");
  const isClear = found.length === 1 && !name.includes("@");
  if (!isClear || !again?.ok || again.address.email !== parsed.address.email) {
    return "the From of the message can be read as more than one mailbox";
  }
  return { name: parsed.name === null ? null : readableValue(parsed.name), address: parsed.address };
}

function readSenders(headers: readonly Header[]): SubmittedHead["senders"] | string {
  const senders: SubmittedHead["senders"] = [];
  for (const field of senderFields) {
    for (const value of headerValues(headers, field)) {
      const found = parseAddressList(value);
      if (found.length === 0) return `the ${field} of the message names nobody`;
      for (const { email } of found) {
        const parsed = parseAddress(email ?? "");
        if (!parsed.ok) return `the ${field} of the message holds something that is not an address: ${parsed.reason}`;
        senders.push({ field, address: parsed.address });
      }
    }
  }
  return senders;
}

function addresses(headers: readonly Header[], name: string): Set<string> {
  const all = headerValues(headers, name).flatMap((value) => parseAddressList(value));
  return new Set(all.flatMap(({ email }) => (email === null ? [] : [normalized(email)])));
}

function normalized(email: string): string {
  const parsed = parseAddress(email);
  return (parsed.ok ? parsed.address.email : email).toLowerCase();
}

function messageId(headers: readonly Header[]): string | null {
  const id = /^<([\x21-\x3b\x3d\x3f-\x7e]+@[\x21-\x3b\x3d\x3f-\x7e]+)>$/.exec(
    headerValues(headers, "Message-ID")[0] ?? "",
  )?.[1];
  return id === undefined || id.length > messageIdCharsMax ? null : id;
}

/** A Message-ID that is none gives way to ours. */
function staysIn(lower: string, messageIdKept: string | null): boolean {
  if (lower === "message-id") return messageIdKept !== null;
  return !removed.has(lower) && !ownPrefixes.some((prefix) => lower.startsWith(prefix));
}

function labels(headers: readonly Header[]): Pick<SubmittedHead, "tags" | "metadata"> {
  const metadata = new Map<string, string>();
  const tags: string[] = [];
  for (const { name, value } of headers) {
    const lower = name.toLowerCase();
    if (lower === tagName) tags.push(readableValue(value));
    if (lower.startsWith(metadataPrefix)) metadata.set(lower.slice(metadataPrefix.length), readableValue(value));
  }
  return { tags, metadata };
}

/** The last field of a message that ends within its head may lack its line end. */
function ended(raw: Buffer): Buffer {
  return raw.at(-1) === 0x0a ? raw : Buffer.concat([raw, Buffer.from("\r\n")]);
}
