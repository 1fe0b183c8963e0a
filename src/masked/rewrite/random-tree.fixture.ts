// Random MIME trees with an address planted anywhere in them, in any disguise, for the property test of replies.
import iconv from "iconv-lite";
import { encodeBase64 } from "../../mail/mime/write/encode-body.ts";
import { encodeWords } from "../../mail/mime/write/encode-header.ts";
import { carrier, FOREIGN, international } from "./carriers.fixture.ts";

export type Dice = (sides: number) => number;

/** The same numbers for the same seed (mulberry32). */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % sides;
  };
}

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;

/** The address as somebody's software may write it. */
export function disguise(dice: Dice, address: string): string {
  const forms: ((text: string) => string)[] = [
    (text) => text,
    (text) => text,
    (text) => text.toUpperCase(),
    (text) => text.replace("@", "%40"),
    (text) => text.replace("@", "%2540"),
    (text) => text.replace("@", "&#64;"),
    (text) => text.replace("@", "&#x40;"),
    (text) => text.replace("@", "&commat;"),
    (text) => text.replace("@", "&amp;#64;"),
    (text) => text.replace(/./g, (char) => `&#${char.charCodeAt(0)};`),
    (text) => text.replace(/./g, (char) => `%${char.charCodeAt(0).toString(16)}`),
    (text) => `${text.slice(0, 3)}\u200b${text.slice(3)}`,
    (text) => `${text.slice(0, 6)}\u00ad${text.slice(6)}`,
    (text) => text.replace("@", "\uff20"),
    (text) => text.replace("@", "+tag@"),
    (text) => `${text.slice(0, 4)}<wbr>${text.slice(4)}`,
    (text) => `<b>${text.slice(0, 2)}</b><i class="x">${text.slice(2)}</i>`,
    (text) => `mailto:${text}?subject=x`,
    (text) => text.replace("@", "&ZeroWidthSpace;@"),
    (text) => `${text.slice(0, 5)}&NoBreak;${text.slice(5)}`,
    (text) => text.replace("@", "<!-- > -->@"),
    (text) => `${text.slice(0, 4)}<b title="a>b"></b>${text.slice(4)}`,
    ...international(address).map((form) => () => form),
  ];
  return pick(dice, forms)(address);
}

/** What programs write into the head of a mail; the address may stand in each of them. */
const FIELDS =
  "Autocrypt ARC-Seal ARC-Authentication-Results Authentication-Results Bcc Comments Content-Base Content-Location DKIM-Signature Delivered-To Disposition-Notification-To DomainKey-Signature Errors-To Face Importance In-Reply-To Keywords List-Id List-Post Mail-Followup-To OpenPGP Organization Precedence Received References Reply-To Resent-From Resent-To Return-Path Return-Receipt-To Sender Thread-Index Thread-Topic User-Agent X-Envelope-To X-Google-Original-From X-Mailer X-MS-Exchange-Organization-AuthAs X-Originating-Email X-Original-To X-Pm-Origin X-Sender X-Yahoo-Profile".split(
    " ",
  );

/** A message with the address in at least one place. */
export function randomMessage(dice: Dice, address: string): Buffer {
  const say = () => (dice(3) === 0 ? disguise(dice, address) : pick(dice, WORDS));
  const header = [
    `From: Anna <${address}>`,
    "To: <r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example>",
    ...(dice(9) === 0 ? [`Subject: ${FOREIGN}`] : []),
    `Subject: ${dice(2) === 0 ? encodeWords(`hello ${say()} ü`, 9) : `hello ${ascii(say())}`}`,
    `Message-ID: <${dice(100_000)}.${address}>`,
    `Received: from home (home.real.example [192.0.2.9]) for <${address}>; Fri, 20 Nov 2026 11:00:00 +0100`,
    ...Array.from({ length: dice(8) }, () => field(dice, address)),
    "MIME-Version: 1.0",
  ];
  const part = randomPart(dice, address, 0);
  return Buffer.concat([Buffer.from(`${header.join("\r\n")}\r\n`), part]);
}

function field(dice: Dice, address: string): string {
  const name = pick(dice, FIELDS);
  const value = disguise(dice, address);
  return `${name}: ${dice(3) === 0 ? encodeWords(value, name.length + 2) : `addr=${ascii(value)}; <${address}>`}`;
}

const WORDS = [
  "Grüße",
  "see below",
  "5 < 6 & 7",
  "=?not a word",
  "On Monday you wrote:",
  "> quoted",
  "--",
  "https://a.example/%20x",
];

function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "");
}

function randomPart(dice: Dice, address: string, depth: number): Buffer {
  const kinds = depth < 4 ? 19 : 13;
  switch (dice(kinds)) {
    case 0:
    case 1:
    case 2:
      return leaf(dice, "text/plain", text(dice, address, "\r\n"));
    case 3:
    case 4:
      return leaf(dice, "text/html", html(dice, address));
    case 5:
      return leaf(dice, "text/calendar; method=REPLY", calendar(dice, address));
    case 6:
      return leaf(dice, pick(dice, NAMING), `BEGIN:VCARD\r\nEMAIL:${address}\r\nEND:VCARD\r\n`);
    case 7:
      return file(dice, address);
    case 8:
      return leaf(dice, "text/csv", text(dice, address, ";"));
    case 9:
      return flowed(dice, address);
    case 10:
      return leaf(dice, pick(dice, ["text/plain", 'text/plain; name="notes.txt"']), carrier(dice, address));
    case 11:
      return leaf(
        dice,
        "text/html",
        `<pre>${carrier(dice, address).replace(/\r\n/g, pick(dice, ["<br>", "\r\n"]))}</pre>`,
      );
    case 12:
      return leaf(dice, 'text/x-odd; name="odd.txt"', text(dice, address, "\r\n"));
    case 13:
      return nested(dice, address, depth);
    default:
      return multipart(dice, address, depth);
  }
}

const NAMING = [
  "text/vcard",
  "application/pgp-keys",
  "application/pgp-signature",
  "application/pkcs7-signature",
  "application/ms-tnef",
  "message/disposition-notification",
];

function text(dice: Dice, address: string, between: string): string {
  const count = 1 + dice(6);
  return Array.from({ length: count }, () =>
    dice(2) === 0 ? `write to ${disguise(dice, address)} now` : pick(dice, WORDS),
  ).join(between);
}

/** RFC 3676: a line with a space at its end goes on in the next, with DelSp without that space. */
function flowed(dice: Dice, address: string): Buffer {
  const half = 1 + dice(address.length - 1);
  const marks = pick(dice, ["", "> ", ">> "]);
  const body = `${marks}write to ${address.slice(0, half)} \r\n${marks}${address.slice(half)} now\r\n-- \r\nx`;
  return leaf(
    dice,
    pick(dice, ["text/plain; format=flowed; delsp=yes", 'text/plain; Format="Flowed"; DelSp="YES"']),
    body,
  );
}

function html(dice: Dice, address: string): string {
  const planted = () => disguise(dice, address);
  const pieces = [
    () => `<p>${planted()}</p>`,
    () => `<a href="mailto:${ascii(planted()).replace(/[<>"]/g, "")}">x</a>`,
    () => `<img src="cid:${address}" alt="${ascii(planted()).replace(/[<>"]/g, "")}">`,
    () => `<blockquote>On Monday ${planted()} wrote:<br>hi</blockquote>`,
    () => `<!-- ${ascii(planted()).replace(/[<>]/g, "")} --><style>.a{content:"${address}"}</style>`,
    () => `<style>.a::after{content:"${address.replace("@", pick(dice, ["\\000040", "\\40 ", "\\@"]))}"}</style>`,
    () => "<p>nothing &amp; nobody</p>",
  ];
  return `<html><body>${Array.from({ length: 1 + dice(4) }, () => pick(dice, pieces)()).join("")}</body></html>`;
}

function calendar(dice: Dice, address: string): string {
  const cn = dice(2) === 0 ? "Anna" : ascii(disguise(dice, address)).replace(/[<>"&;:]/g, "");
  const who = dice(3) === 0 ? FOREIGN : address;
  const line = `ATTENDEE;CN=${cn};PARTSTAT=ACCEPTED:mailto:${who}`;
  return `BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\n${line.slice(0, 20)}\r\n ${line.slice(20)}\r\nEND:VCALENDAR\r\n`;
}

function file(dice: Dice, address: string): Buffer {
  const planted = dice(4) === 0;
  const content = planted ? `\x00\x01${address}\x02` : "\x00\x01\x02\x03";
  const bytes = dice(2) === 0 ? Buffer.from(content, "latin1") : Buffer.from(content, "utf16le");
  const name = dice(3) === 0 ? `${address}.bin` : "a.bin";
  const head = `Content-Type: application/octet-stream; ${named(dice, "name", name)}\r\nContent-Disposition: attachment; ${named(dice, "filename", name)}\r\nContent-ID: <${address}>\r\nContent-Location: http://${address}/\r\nContent-Transfer-Encoding: base64\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), encodeBase64(bytes)]);
}

/** A parameter quoted, in pieces and in percents (RFC 2231), or as encoded words where none may stand. */
function named(dice: Dice, parameter: string, name: string): string {
  const half = Math.floor(name.length / 2);
  const percents = (text: string) => text.replace(/[^a-z]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  return pick(dice, [
    `${parameter}="${name}"`,
    `${parameter}*=utf-8''${percents(name)}`,
    `${parameter}*0="${name.slice(0, half)}"; ${parameter}*1="${name.slice(half)}"`,
    `${parameter}*0*=utf-8'de'${percents(name.slice(0, half))}; ${parameter}*1*=${percents(name.slice(half))}`,
    `${parameter}="${encodeWords(`${name}ü`, 1).replace(/\r\n /g, " ")}"`,
  ]);
}

const CHARSETS = [
  ...["utf-8", "utf-8", "iso-8859-1", "windows-1252", "utf-16le", "utf-16be", "utf-7", "iso-2022-jp", "shift_jis"],
  ...["euc-jp", "gb18030", "big5", "koi8-r", "windows-1251", "macintosh", "us-ascii", "x-unknown"],
];

function leaf(dice: Dice, type: string, content: string): Buffer {
  const charset = pick(dice, CHARSETS);
  const known = iconv.encodingExists(charset) ? charset : "utf-8";
  const bytes = known === "utf-8" ? Buffer.from(content) : iconv.encode(content, known);
  const isWide = charset.startsWith("utf-16");
  const way = isWide ? "base64" : pick(dice, ["base64", "quoted-printable", "8bit"] as const);
  const body = way === "base64" ? encodeBase64(bytes) : way === "8bit" ? bytes : splitQuoted(dice, bytes);
  const from = dice(2) === 0 ? "" : "Content-Description: from me\r\n";
  return Buffer.concat([
    Buffer.from(`Content-Type: ${type}; charset=${charset}\r\n${from}Content-Transfer-Encoding: ${way}\r\n\r\n`),
    body,
  ]);
}

/** Quoted-printable that breaks lines anywhere, and quotes what need not be. */
function splitQuoted(dice: Dice, bytes: Buffer): Buffer {
  let out = "";
  for (const byte of bytes) {
    if (byte === 13) continue;
    if (byte === 10) out += "\r\n";
    else
      out +=
        byte > 126 || byte < 32 || byte === 61 || dice(4) === 0
          ? `=${byte.toString(16).toUpperCase().padStart(2, "0")}`
          : String.fromCharCode(byte);
    if (dice(12) === 0) out += "=\r\n";
  }
  return Buffer.from(out, "latin1");
}

function nested(dice: Dice, address: string, depth: number): Buffer {
  const inner = Buffer.concat([
    Buffer.from(
      `From: ${address}\r\nCc: ${FOREIGN}\r\nTo: ${ascii(disguise(dice, address))}\r\nReceived: from ${address}\r\nSubject: ${encodeWords(disguise(dice, address), 9)}\r\nMIME-Version: 1.0\r\n`,
    ),
    randomPart(dice, address, depth + 2),
  ]);
  return Buffer.concat([Buffer.from("Content-Type: message/rfc822\r\n\r\n"), inner]);
}

function multipart(dice: Dice, address: string, depth: number): Buffer {
  const boundary = dice(3) === 0 ? `b${dice(1e6)}_${address}` : `b${dice(1e9)}`;
  const subtype = pick(dice, ["mixed", "alternative", "related", "signed", "report"]);
  const children = Array.from({ length: 1 + dice(3) }, () => randomPart(dice, address, depth + 1));
  const pieces = children.flatMap((child) => [Buffer.from(`\r\n--${boundary}\r\n`), child]);
  return Buffer.concat([
    Buffer.from(`Content-Type: multipart/${subtype}; boundary="${boundary}"\r\n\r\npreamble of ${address}`),
    ...pieces,
    Buffer.from(`\r\n--${boundary}--\r\nepilogue of ${address}\r\n`),
  ]);
}
