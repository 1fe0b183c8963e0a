// Random mails with invitations in them, in every shape that programs and their enemies give them: a stranger stands in
// lines that an answer would go to, and nowhere else. For the property test of forwards and for the fuzzer.
import iconv from "iconv-lite";
import { encodeBase64 } from "../../mail/mime/write/encode-body.ts";
import type { Dice } from "./random-tree.fixture.ts";

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;

/** A whole mail; `stranger` is an address. */
export function randomInvitation(dice: Dice, stranger: string): Buffer {
  const head = "From: Shop <shop@example.com>\r\nTo: k3x@mask.example\r\nSubject: Tea\r\nMIME-Version: 1.0\r\n";
  return Buffer.concat([Buffer.from(head), placed(dice, stranger, 0)]);
}

function placed(dice: Dice, stranger: string, depth: number): Buffer {
  const part = () => invitation(dice, stranger);
  const kinds = [
    part,
    () => mixed(dice, [Buffer.from("Content-Type: text/plain\r\n\r\nhi"), part(), part()]),
    () => mixed(dice, [...Array.from({ length: pick(dice, MANY) }, () => Buffer.from("\r\nx")), part()]),
    () => Array.from({ length: pick(dice, [3, 22, 60]) }).reduce<Buffer>((inner) => mixed(dice, [inner]), part()),
    () => broken(dice, part()),
    () => message(dice, placed(dice, stranger, depth + 1)),
    () => mixed(dice, [message(dice, placed(dice, stranger, depth + 1)), part()]),
    () => tnef(stranger),
  ];
  return pick(dice, depth > 2 ? kinds.slice(0, 2) : kinds)();
}

const MANY = [...Array.from({ length: 40 }, (_, n) => n), 310, 1_200];

function mixed(dice: Dice, parts: readonly Buffer[]): Buffer {
  const boundary = `b${dice(1e9)}x`;
  const pieces = parts.flatMap((part) => [Buffer.from(`\r\n--${boundary}\r\n`), part]);
  const head = Buffer.from(`Content-Type: multipart/mixed; boundary=${boundary}\r\n\r\n`);
  return Buffer.concat([head, ...pieces, Buffer.from(`\r\n--${boundary}--\r\n`)]);
}

/** A multipart that is not closed, names no boundary, or has a type twice. */
function broken(dice: Dice, part: Buffer): Buffer {
  const head = pick(dice, [
    "Content-Type: multipart/mixed; boundary=zz\r\n\r\n--zz\r\n",
    "Content-Type: multipart/mixed\r\n\r\n--zz123\r\n\r\nhi\r\n--zz123\r\n",
    'Content-Type: multipart/mixed; boundary="zz"\r\nContent-Type: text/plain\r\n\r\n--zz  \r\n',
  ]);
  return Buffer.concat([Buffer.from(head), part]);
}

function message(dice: Dice, inner: Buffer): Buffer {
  const whole = Buffer.concat([Buffer.from("From: x@y.example\r\nSubject: inner\r\n"), inner]);
  if (dice(2) === 0) return Buffer.concat([Buffer.from("Content-Type: message/rfc822\r\n\r\n"), whole]);
  const head = "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n";
  return Buffer.concat([Buffer.from(head), encodeBase64(whole)]);
}

function tnef(stranger: string): Buffer {
  const bytes = Buffer.from(`\x78\x9f\x3e\x22IPM.Microsoft Schedule.MtgReq\0SMTP:${stranger}\0`, "latin1");
  const head = `Content-Type: application/ms-tnef; name="winmail.dat"\r\nContent-Transfer-Encoding: base64\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), encodeBase64(bytes)]);
}

const TYPES = [
  ...["text/calendar; method=REQUEST", "text/calendar; method=REQUEST", "application/ics", "text/x-vcalendar"],
  ...['application/octet-stream; name="invite.ics"', "application/octet-stream; name*=utf-8''invite%2Eics"],
  ...['application/octet-stream; name="=?utf-8?Q?inv=69te=2Eics?="', "text/plain", "application/x-any"],
];
const CHARSETS = ["utf-8", "utf-8", "utf-8", "utf-16", "utf-16le", "utf-16be", "iso-8859-1", "utf-7", "x-none"];

function invitation(dice: Dice, stranger: string): Buffer {
  const charset = pick(dice, CHARSETS);
  const text = calendar(dice, stranger);
  const bytes = iconv.encodingExists(charset) ? iconv.encode(text, charset) : Buffer.from(text);
  const isWide = charset.startsWith("utf-16");
  const way = isWide ? "base64" : pick(dice, ["base64", "quoted-printable", "8bit"]);
  const type = `Content-Type: ${pick(dice, TYPES)}; charset=${charset}\r\n`;
  const file = 'Content-Disposition: attachment; filename="invite.ics"\r\n';
  const twice = pick(dice, ["", "", file, "Content-Type: text/calendar\r\n"]);
  const head = `${dice(2) === 0 ? twice + type : type + twice}Content-Transfer-Encoding: ${way}\r\n\r\n`;
  const quoted = () => Buffer.from(bytes.toString("latin1").replace(/[^\x21-\x3c\x3e-\x7e\r\n]|@/g, percent), "latin1");
  return Buffer.concat([Buffer.from(head), way === "base64" ? encodeBase64(bytes) : way === "8bit" ? bytes : quoted()]);
}

function percent(char: string): string {
  return `=${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

function calendar(dice: Dice, stranger: string): string {
  const many = Array.from({ length: pick(dice, [0, 1, 35]) }, (_, at) => `ATTENDEE:mailto:guest${at}@x.example`);
  const lines = [...many, ...Array.from({ length: 1 + dice(4) }, () => personLine(dice, stranger))];
  const end = pick(dice, ["\r\n", "\r\n", "\n"]);
  const all = ["BEGIN:VCALENDAR", "METHOD:REQUEST", "BEGIN:VEVENT", ...lines, "SUMMARY:Tee für zwei", "END:VEVENT"];
  return [...all.map((line) => folded(dice, line, end)), "END:VCALENDAR", ""].join(end);
}

function personLine(dice: Dice, stranger: string): string {
  const address = pick(dice, [
    `mailto:${stranger}`,
    `MAILTO:${stranger.toUpperCase()}`,
    `mailto:${stranger.replace("@", "%40")}`,
    `mailto:${stranger}?subject=a`,
    `mailto:"${stranger}"`,
    `<${stranger}>`,
    `"mailto:${stranger}"`,
    ` ${stranger}`,
    `http://x.example/${stranger}`,
    `mailto:mailto:${stranger}`,
  ]);
  const shop = "mailto:shop@example.com";
  return pick(dice, [
    `ORGANIZER:${address}`,
    `ORGANIZER;CN="A; B: C":${address}`,
    `ORGANIZER;CN=a^nb^'c^':${address}`,
    `organizer;cn=x:${address}`,
    `ORGANIZER ;CN=x:${address}`,
    `grp.ORGANIZER:${address}`,
    `ORGANIZER;SENT-BY="mailto:${stranger}":${shop}`,
    `ORGANIZER;DIR="ldap://x/${stranger}":${shop}`,
    `ORGANIZER;EMAIL=${stranger}:urn:uuid:1`,
    `ORGANIZER;CN="unclosed:${address}`,
    `ATTENDEE;ROLE=CHAIR;DELEGATED-TO="mailto:${stranger}","${shop}":${address}`,
    `ATTENDEE;MEMBER="mailto:${stranger}";X-ANY=${stranger}:${shop}`,
    `X-MS-OLK-SENDER;CN=x:${address}`,
    `X-ORGANIZER;VALUE=CAL-ADDRESS:${address}`,
    `X-OWNER:mailto:${stranger}`,
    `CALENDAR-ADDRESS:${address}`,
  ]);
}

function folded(dice: Dice, line: string, end: string): string {
  if (dice(2) === 0) return line;
  const at = 1 + dice(line.length - 1);
  return `${line.slice(0, at)}${end}${pick(dice, [" ", "\t"])}${line.slice(at)}`;
}
