// E-mail addresses as customers and envelopes give them: one strict reading of addr-spec, one of `Name <address>`.
// RFC 5321 §4.1.2 (Mailbox, without address literals and source routes), RFC 5322 §3.4.1 (without comments, folding
// white space, groups and every obs- form), RFC 6531 (UTF-8 local parts), UTS #46 (international domains).
// It does not read whole header fields with lists, and asks no DNS.
//
// Quoted local parts are accepted, because RFC 5321 has them and mailboxes such as "a b"@… exist; they are brought to
// the form with the least quoting (§4.1.2: all quoted forms are one mailbox), so that suppression and deduplication
// see one address. Refused inside the quotes: controls, and `<` `>`, which our SMTP client cannot put in an envelope.

import { domainToASCII, domainToUnicode } from "node:url";

/** An address ready for envelope and header: `email` is `local@domain`, the domain ASCII and lower-case. */
export type Address = { local: string; domain: string; email: string; smtputf8: boolean };
export type AddressResult = { ok: true; address: Address } | { ok: false; reason: string };
export type MailboxResult = { ok: true; name: string | null; address: Address } | { ok: false; reason: string };

// RFC 5321 §4.5.3.1.3 allows a path of 256 octets with its angle brackets: 254 are left (RFC 3696 erratum 1690).
const emailOctetsMax = 254;
// RFC 5321 §4.5.3.1.1
const localOctetsMax = 64;
// RFC 1035 §2.3.4: 255 octets on the wire are 253 as text.
const domainOctetsMax = 253;
// A U-label may be longer than its A-label by no more than this whole limit; it bounds the work before conversion.
const domainCharsMax = 1_000;
const mailboxCharsMax = 1_500;
const nameCharsMax = 256;

const asciiOnly = /^[\x00-\x7f]*$/;
// RFC 5322 §3.2.3 atext, with RFC 6532 §3.2 UTF8-non-ascii.
const dotAtom =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*$/u;
const dotsAndAtoms = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\u{80}-\u{10ffff}-]+$/u;
// RFC 5321 §4.1.2 Quoted-string: qtextSMTP and quoted-pairSMTP, plus UTF-8 (RFC 6531 §3.3).
const quotedLocal = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e\u{80}-\u{10ffff}]|\\[\x20-\x7e])+"$/u;
// Controls (C0, DEL, C1), line and paragraph separators, lone surrogates, spaces beyond ASCII, and invisible format
// characters (bidirectional overrides, zero-width space) except the joiners that Persian and Indic words need.
const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}|(?![\u200c\u200d])\p{Cf}/u;
// What a display name may not hold. Direction marks are letters' business there, line breaks and controls are not.
const unsafeInName = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
// RFC 5321 §4.1.2 Domain with RFC 1123 §2.1: letters, digits, inner hyphens, labels of 63, the last one not a number.
const ldhDomain = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const domainChars = /^[A-Za-z0-9.\u{80}-\u{10ffff}-]+$/u;

/**
 * Reads one bare address strictly. On success the domain is ASCII and lower-case, the local part keeps its case, is in
 * NFC (RFC 6532 §3.1) and has the least quoting; `smtputf8` tells that the local part is not ASCII. Never throws.
 */
export function parseAddress(text: string): AddressResult {
  if (text.length > mailboxCharsMax) return refuse(`longer than ${emailOctetsMax} octets`);
  if (unsafe.test(text)) return refuse("holds a control, invisible or unusual space character");
  const at = text.lastIndexOf("@");
  if (at === -1) return refuse("has no @");
  const local = normalizeLocal(text.slice(0, at));
  if (!local.ok) return local;
  const domain = normalizeDomain(text.slice(at + 1));
  if (domain === null) return refuse("the part after @ is not a domain name");
  const email = `${local.text}@${domain}`;
  if (Buffer.byteLength(email) > emailOctetsMax) return refuse(`longer than ${emailOctetsMax} octets`);
  return { ok: true, address: { local: local.text, domain, email, smtputf8: !asciiOnly.test(local.text) } };
}

/**
 * Reads an address as somebody else wrote it in a header field: where only the quotes are missing because of its dots
 * (`a..b@x.example`, `a.@x.example`, which some providers gave out), it has them then. Otherwise as `parseAddress`.
 */
export function parseWrittenAddress(text: string): AddressResult {
  const strict = parseAddress(text);
  const at = text.lastIndexOf("@");
  if (strict.ok || at < 1 || !dotsAndAtoms.test(text.slice(0, at))) return strict;
  return parseAddress(`"${text.slice(0, at)}"${text.slice(at)}`);
}

/**
 * Reads `address`, `<address>`, `Name <address>` or `"Quoted, Name" <address>`; exactly one, never a list or a group.
 * The name comes back unquoted, null when empty. Spaces around are ignored. Never throws.
 */
export function parseMailbox(text: string): MailboxResult {
  const read = readMailbox(text);
  return read.ok || !holdsSeveral(text) ? read : refuse("holds more than one address; each must stand alone");
}

/** Addresses with commas or semicolons between them, as a header field or a person writes them. */
function holdsSeveral(text: string): boolean {
  if (text.length > mailboxCharsMax) return false;
  const pieces = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,;"])+/g) ?? [];
  const written = pieces.filter((piece) => piece.trim() !== "");
  return written.length > 1 && written.every((piece) => readMailbox(piece).ok);
}

function readMailbox(text: string): MailboxResult {
  if (text.length > mailboxCharsMax) return refuse(`longer than ${mailboxCharsMax} characters`);
  // Before trimming, which would drop a trailing CR or LF.
  if (unsafeInName.test(text)) return refuse("holds a control character");
  const trimmed = text.trim();
  if (!trimmed.endsWith(">")) return bareMailbox(trimmed);
  const open = trimmed.lastIndexOf("<");
  if (open === -1) return refuse("has > without <");
  const phrase = readPhrase(trimmed.slice(0, open));
  if (!phrase.ok) return phrase;
  if (phrase.text.length > nameCharsMax) return refuse(`the name is longer than ${nameCharsMax} characters`);
  const parsed = parseAddress(trimmed.slice(open + 1, -1));
  return parsed.ok ? { ok: true, name: phrase.text === "" ? null : phrase.text, address: parsed.address } : parsed;
}

/**
 * Writes a mailbox for people and for JSON; `parseMailbox` reads it back. Not for header fields: those go through the
 * MIME encoder, which folds and encodes.
 */
export function formatMailbox(mailbox: { name: string | null; email: string }): string {
  const { name, email } = mailbox;
  if (name === null || name === "") return email;
  const plain = /^[^"<>,;:@()[\]\\\s]+(?: [^"<>,;:@()[\]\\\s]+)*$/.test(name);
  return `${plain ? name : quote(name)} <${email}>`;
}

/**
 * Brings a domain name to ASCII lower-case letters, digits and hyphens with at least two labels, international labels as
 * A-labels; null when it is no such name (trailing dot, underscore, number as last label, address literal, bad A-label).
 */
export function normalizeDomain(text: string): string | null {
  // Checked before conversion: domainToASCII reads a host of a URL, so it would cut at `/` and decode `%`.
  if (text.length > domainCharsMax || !domainChars.test(text) || unsafe.test(text)) return null;
  const ascii = asciiOnly.test(text) ? text.toLowerCase() : domainToASCII(text);
  if (ascii.length > domainOctetsMax || !ldhDomain.test(ascii)) return null;
  return hasBadALabel(ascii) ? null : ascii;
}

/**
 * What somebody writes who looks for an address, or for a part of one, with the domain as addresses have it: `@bücher` is
 * `@xn--bcher-kva`. Text without a letter beyond ASCII in its domain stays as it is.
 */
export function withAsciiDomain(text: string): string {
  const domain = text.slice(text.lastIndexOf("@") + 1);
  if (asciiOnly.test(domain) || !domainChars.test(domain)) return text;
  const ascii = domainToASCII(domain);
  return ascii === "" ? text : text.slice(0, text.length - domain.length) + ascii;
}

/**
 * True if a label of an ASCII name begins with `xn--` and is no A-label (RFC 5890 §2.3.2.1): node:url leaves what it
 * cannot decode.
 */
export function hasBadALabel(ascii: string): boolean {
  if (!ascii.includes("xn--")) return false;
  const isALabel = (label: string) => label.startsWith("xn--");
  if (!ascii.split(".").some(isALabel)) return false;
  const unicode = domainToUnicode(ascii);
  return unicode === "" || unicode.split(".").some(isALabel);
}

function normalizeLocal(given: string): { ok: true; text: string } | { ok: false; reason: string } {
  // NFC first: it can turn a letter into ASCII punctuation (U+037E becomes `;`), which the checks must then see.
  const text = given.normalize("NFC");
  const local = text.startsWith('"') ? requote(text) : text;
  if (local === null) return refuse("the quoted part before @ is not well formed, or holds < or >");
  if (local === "") return refuse("has nothing before @");
  if (!local.startsWith('"') && !dotAtom.test(local))
    return refuse("the part before @ holds a character or dot that needs quotes");
  if (Buffer.byteLength(local) > localOctetsMax)
    return refuse(`the part before @ is longer than ${localOctetsMax} octets`);
  return { ok: true, text: local };
}

// RFC 5321 §4.1.2: all quoted forms are equivalent and the one with the least quoting is sent. Null when not well formed.
function requote(text: string): string | null {
  if (!quotedLocal.test(text)) return null;
  const content = unquote(text.slice(1, -1));
  if (/[<>]/.test(content)) return null;
  return dotAtom.test(content) ? content : quote(content);
}

function bareMailbox(text: string): MailboxResult {
  const parsed = parseAddress(text);
  return parsed.ok ? { ok: true, name: null, address: parsed.address } : parsed;
}

// RFC 5322 §3.2.5 phrase, but any character except `" < > , ;` may stand outside quotes: people write
// `Acme Inc. (Sales)`. The comma and the semicolon stay refused, so that a list or a group is never taken for a name.
function readPhrase(text: string): { ok: true; text: string } | { ok: false; reason: string } {
  const word = /"((?:[^"\\]|\\.)*)"|[^"<>,;]+/uy;
  let name = "";
  while (word.lastIndex < text.length) {
    const match = word.exec(text);
    if (match === null) return refuse("the name holds a character that must stand in double quotes");
    name += match[1] === undefined ? match[0].replace(/\s+/g, " ") : unquote(match[1]);
  }
  return { ok: true, text: name.trim() };
}

function unquote(text: string): string {
  return text.replace(/\\(.)/gu, "$1");
}

/** A quoted string (RFC 5322 §3.2.4) of a name on one line. */
export function quote(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** What stands behind the last `@` of an address that has been read; all of a text without one. */
export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf("@") + 1);
}

function refuse(reason: string): { ok: false; reason: string } {
  return { ok: false, reason };
}
