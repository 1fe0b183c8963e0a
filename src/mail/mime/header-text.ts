// Values of header fields as text: unfolded, in whatever charset they were sent, encoded words decoded, without controls
// (RFC 5322 §2.2.3, RFC 6532, RFC 2047). Structure within values is read elsewhere.
import { isUtf8 } from "node:buffer";
import { decodePlainText, decodeText } from "./decode-charset.ts";
import { type ParsedAddress, parseAddressList } from "./parse-addresses.ts";
import { decodeWords, heldAsOctets, holdOctets } from "./parse-head.ts";

/**
 * The value of a raw field, one line, encoded words as they were. Octets above 0x7f are UTF-8 or else in `charset`, or
 * else in windows-1252.
 */
export function unfoldedValue(raw: Buffer, charset = ""): string {
  const octets = octetsOf(raw);
  const { text } = decodeText(octets, isUtf8(octets) ? "" : charset);
  return text.replace(/\r?\n/g, "").trim();
}

function octetsOf(raw: Buffer): Buffer {
  return raw.subarray(raw.indexOf(0x3a) + 1);
}

/**
 * The mailboxes of a raw field, what they hold beyond ASCII in UTF-8 or else in `charset`. Where one ends is recognised by the
 * octets alone: in charsets such as Shift_JIS or UTF-7 a quote or bracket may be part of a letter or be spelled by letters,
 * and who is shown would then not be who is judged (auth/author.ts).
 */
export function mailboxesOf(raw: Buffer, charset = ""): ParsedAddress[] {
  const octets = octetsOf(raw);
  if (isUtf8(octets)) return parseAddressList(unfoldedValue(raw));
  const held = holdOctets(octets.toString("latin1"));
  return parseAddressList(held.replace(/\r?\n/g, "").trim()).map(({ name, email }) => ({
    name: name === null ? null : readHeldName(name, charset),
    email: email === null ? null : decodeText(Buffer.from(heldAsOctets(email), "latin1"), "").text,
  }));
}

const ADDRESS_FIELD = /^(?:resent-)?(?:from|sender|reply-to|to|cc|bcc)$/i;

/** What a raw field says to people; in one of addresses every ASCII octet is itself, for the same reason. */
export function shownValue(name: string, raw: Buffer, charset: string): string {
  if (!ADDRESS_FIELD.test(name)) return readableValue(unfoldedValue(raw, charset));
  const octets = octetsOf(raw);
  const text = isUtf8(octets)
    ? octets.toString("utf8")
    : octets.toString("latin1").replace(/[\x80-\xff]+/g, (run) => decodeText(Buffer.from(run, "latin1"), charset).text);
  return oneLine(decodeWords(text.replace(/\r?\n/g, "")));
}

// Between what encoded words said stands what was sent as it is.
function readHeldName(name: string, charset: string): string | null {
  const text = name.replace(/[\x00-\x7f\uf780-\uf7ff]+/g, (piece) =>
    /[^\x00-\x7f]/.test(piece) ? decodeText(Buffer.from(heldAsOctets(piece), "latin1"), charset).text : piece,
  );
  return (
    text
      .replace(/[\s\p{Cc}]+/gu, " ")
      .trim()
      .toWellFormed() || null
  );
}

/** A value for people and for JSON: words decoded, no controls but tabs, well-formed. */
export function readableValue(value: string): string {
  return oneLine(decodeWords(withoutEscapes(value)));
}

function oneLine(text: string): string {
  return text
    .replace(/(?!\t)\p{Cc}/gu, " ")
    .trim()
    .toWellFormed();
}

/** What stands in angle brackets, comments around it or not (RFC 5322 §3.6.4), or all of it where they are missing. */
export function bareId(value: string): string {
  return (/<([^<>]*)>/.exec(value)?.[1] ?? value.replace(/^<|>$/g, "")).trim();
}

// JIS as it is, which was sent in fields before there were encoded words, and is still.
function withoutEscapes(value: string): string {
  return value.includes("\x1b$") ? decodePlainText(Buffer.from(value), "").text : value;
}
