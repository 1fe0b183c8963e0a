// Header fields as bytes on the wire: folding, encoded words, phrases and lists of mailboxes.
// RFC 5322 §2.2.3 and §3.4 (folding, mailboxes), RFC 2047 (encoded words), RFC 6532 (UTF-8 local parts).
// It does not decide which fields a message has, and it does not validate what a customer may set: a CR, LF or NUL that
// arrives here is a bug of the caller and throws.

/** A mailbox for a header field: `email` as `parseAddress` returned it, `name` as plain text. */
export type HeaderMailbox = { name: string | null; email: string };

// RFC 2047 §2: an encoded word has at most 75 characters, and a line that holds one at most 76.
const lineMax = 76;
const encodedWordMax = 75;
// "=?UTF-8?Q?" and "?="
const encodedWordFrame = 12;
// Longer names go into encoded words, which fold anywhere; a quoted string folds only where it has spaces.
const phraseMax = 60;

const printable = /^[\x20-\x7e]*$/;
const atoms = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const lineBreaking = /[\r\n\0]/;
const wireEmail = /^(?:[^\x00-\x20\x7f"(),:;<>@[\]\\]+|"(?:[^\x00-\x1f\x7f"\\]|\\[\x20-\x7e])+")@[A-Za-z0-9.-]+$/;

/**
 * One whole header line, ended with CRLF, for free text such as Subject: folded when it is plain ASCII, encoded words
 * when it holds anything else, spaces at its ends, text that reads as an encoded word, or a word longer than a line.
 * Lone surrogates become U+FFFD. Throws on CR, LF or NUL.
 */
export function textHeader(name: string, text: string): string {
  assertOneLine(name, text);
  const column = name.length + 2;
  if (staysPlain(text)) {
    if (column + text.length <= lineMax) return `${name}: ${text}\r\n`;
    // A fold within a run of spaces leaves some at the end of a line, where gateways cut them off.
    if (longestWord(text) <= lineMax - column && !text.includes("  ")) return `${foldLine(`${name}: ${text}`)}\r\n`;
  }
  return `${name}: ${encodeWords(text, column)}\r\n`;
}

/**
 * One whole header line, ended with CRLF, for a value a machine reads: printable ASCII is kept character for character
 * and only folded at its spaces (a long word stays whole); anything else becomes encoded words. Blanks around it do not
 * survive. Throws on CR, LF or NUL.
 */
export function rawHeader(name: string, value: string): string {
  assertOneLine(name, value);
  if (!/^[\x20-\x7e\t]*$/.test(value)) return `${name}: ${encodeWords(value, name.length + 2)}\r\n`;
  return `${foldLine(value === "" ? `${name}:` : `${name}: ${value}`)}\r\n`;
}

/** A header line with a list of mailboxes, folded between them, ended with CRLF. Throws if one is not safe to write. */
export function mailboxHeader(name: string, mailboxes: readonly HeaderMailbox[]): string {
  let out = `${name}:`;
  let column = out.length;
  for (const [index, mailbox] of mailboxes.entries()) {
    const comma = index < mailboxes.length - 1 ? 1 : 0;
    let text = ` ${encodeMailbox(mailbox, column + 1)}`;
    if (index > 0 && (column + text.length + comma > lineMax || text.includes("\r\n"))) {
      text = `\r\n ${encodeMailbox(mailbox, 1)}`;
    }
    out += comma === 1 ? `${text},` : text;
    const lastBreak = text.lastIndexOf("\n");
    column = (lastBreak === -1 ? column + text.length : text.length - lastBreak - 1) + comma;
  }
  return `${out}\r\n`;
}

/**
 * Encoded words for the whole text, joined by CRLF SP, in Q or B, whichever is shorter; a UTF-8 character is never
 * split (RFC 2047 §5). `column` is where the first word starts on its line.
 */
export function encodeWords(text: string, column: number): string {
  const bytes = Buffer.from(text);
  const encode = qLength(bytes) <= Math.ceil(bytes.length / 3) * 4 ? encodeQ : encodeB;
  let out = "";
  let start = 0;
  let room = lineMax - column;
  // Too little room for even one character of four octets in Q: start on a new line.
  if (room < encodedWordFrame + 12) {
    out = "\r\n ";
    room = encodedWordMax;
  }
  while (start < bytes.length) {
    const word = encode(bytes, start, Math.min(room, encodedWordMax) - encodedWordFrame);
    out += (start === 0 ? "" : "\r\n ") + word.text;
    start = word.end;
    room = encodedWordMax;
  }
  return out;
}

/** Throws unless the text can stand in one header line. `what` names the field, never its content (logs). */
export function assertOneLine(what: string, text: string): void {
  if (lineBreaking.test(text)) throw new Error(`${what} holds CR, LF or NUL`);
}

function staysPlain(text: string): boolean {
  return printable.test(text) && !text.startsWith(" ") && !text.endsWith(" ") && !text.includes("=?");
}

function encodeMailbox({ name, email }: HeaderMailbox, column: number): string {
  if (!wireEmail.test(email)) throw new Error("an address is not safe in a header");
  // Some readers take a quoted local part for a name unless it stands in angle brackets (postal-mime 4.0 does).
  if (name === null || name === "") return email.startsWith('"') ? `<${email}>` : email;
  const phrase = encodePhrase(name, column);
  const end = phrase.length - (phrase.lastIndexOf("\n") + 1) + (phrase.includes("\n") ? 0 : column);
  return end + email.length + 3 > lineMax ? `${phrase}\r\n <${email}>` : `${phrase} <${email}>`;
}

// RFC 5322 §3.2.5 phrase: atoms, a quoted string, or encoded words (RFC 2047 §5 (3)).
function encodePhrase(name: string, column: number): string {
  assertOneLine("a display name", name);
  if (name.length <= phraseMax && staysPlain(name)) {
    return atoms.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
  }
  return encodeWords(name, column);
}

// RFC 5322 §2.2.3: a fold stands before white space. Never two folds with only white space between them, never right
// after the field's name.
function foldLine(line: string): string {
  if (line.length <= lineMax) return line;
  let out = "";
  let start = 0;
  let floor = line.indexOf(":") + 2;
  while (line.length - start > lineMax) {
    const cut = foldPoint(line, floor, start + lineMax);
    if (cut === -1) break;
    out += `${line.slice(start, cut)}\r\n`;
    start = cut;
    floor = cut + 1;
  }
  return out + line.slice(start);
}

// The last place to fold up to `target`, else the first one behind it; -1 when the rest has none.
function foldPoint(line: string, floor: number, target: number): number {
  for (let i = Math.min(target, line.length - 2); i > floor; i--) if (isFoldPoint(line, i)) return i;
  for (let i = target + 1; i < line.length - 1; i++) if (isFoldPoint(line, i)) return i;
  return -1;
}

function isFoldPoint(line: string, i: number): boolean {
  return isBlank(line.charCodeAt(i)) && !isBlank(line.charCodeAt(i + 1));
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function longestWord(text: string): number {
  let longest = 0;
  let start = 0;
  for (let end = text.indexOf(" "); end !== -1; end = text.indexOf(" ", start)) {
    longest = Math.max(longest, end - start);
    start = end + 1;
  }
  return Math.max(longest, text.length - start);
}

// RFC 2047 §5 (3): the characters that stand for themselves in Q even within a phrase.
const qText: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  if (char === " ") return "_";
  return /[A-Za-z0-9!*+/-]/.test(char) ? char : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
});

function qLength(bytes: Buffer): number {
  let length = 0;
  for (const byte of bytes) length += qText[byte]!.length;
  return length;
}

function encodeQ(bytes: Buffer, start: number, room: number): { text: string; end: number } {
  let payload = "";
  let end = start;
  while (end < bytes.length) {
    const next = characterEnd(bytes, end);
    let char = "";
    for (let i = end; i < next; i++) char += qText[bytes[i]!]!;
    if (payload.length + char.length > room) break;
    payload += char;
    end = next;
  }
  return { text: `=?UTF-8?Q?${payload}?=`, end };
}

function encodeB(bytes: Buffer, start: number, room: number): { text: string; end: number } {
  let end = Math.min(bytes.length, start + Math.floor(room / 4) * 3);
  while (end < bytes.length && isContinuation(bytes[end]!)) end--;
  return { text: `=?UTF-8?B?${bytes.toString("base64", start, end)}?=`, end };
}

function characterEnd(bytes: Buffer, start: number): number {
  let end = start + 1;
  while (end < bytes.length && isContinuation(bytes[end]!)) end++;
  return end;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
