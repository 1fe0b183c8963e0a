// The last look at a finished reply, by code that shares nothing with what wrote it: every header and every decoded part is
// searched for addresses and names that must not leave. Own splitting, own decoding, own undoing of disguises; it errs on
// the side of holding a message. It opens ZIP archives (documents are), gzip and the streams of PDFs, and decodes what text
// holds in base64 and its like, once and in bounds; what is encrypted it cannot read, so armor of OpenPGP is held.
import iconv from "iconv-lite";
import { withoutComments } from "../mime/comments.ts";
import { encodedReadings } from "./encoded-readings.ts";
import { packedContents } from "./packed-contents.ts";

/** `where` tells the owner what to look at; it never holds what was found. */
export type Leak = { where: string };

/**
 * What must not be there: `addresses` of mailboxes, and `names` (reverse addresses, hosts). The owner may have decided that
 * the addresses may stand in the text before the first quote (`own_text`), or in bodies at all (`bodies`).
 */
export type Secrets = {
  addresses: readonly string[];
  names: readonly string[];
  allowed: "nothing" | "own_text" | "bodies";
  /** What the recipients gave themselves, and see as it is: their addresses, the ids of their mails. */
  given: readonly string[];
};

const DEPTH_MAX = 30;
const PARTS_MAX = 2_000;
const DISGUISES_OCTETS_MAX = 1_000_000;

type Look = {
  needles: readonly string[];
  names: readonly string[];
  allowed: Secrets["allowed"];
  given: ReadonlySet<string>;
  leaks: Leak[];
  count: { parts: number };
};

/** Searches the message for what is secret. Empty: nothing was found. */
export function findLeaks(message: Buffer, { addresses, names, allowed, given }: Secrets): Leak[] {
  const plain = (list: readonly string[]) =>
    list.map((secret) => secret.normalize("NFKC").toLowerCase()).filter((secret) => secret !== "");
  const strict = plain(names);
  const needles = [...plain(addresses), ...strict];
  const look: Look = { needles, names: strict, allowed, given: new Set(plain(given)), leaks: [], count: { parts: 0 } };
  const raw = withoutIds(message.toString("latin1"), given);
  searchPlain(look, raw, "the message", allowed === "nothing" ? needles : strict);
  lookInto(look, raw, "the message", 0);
  return look.leaks;
}

/** The message without ids that its recipients gave, which name their servers. */
function withoutIds(raw: string, given: readonly string[]): string {
  const end = raw.indexOf("\r\n\r\n");
  const head = raw
    .slice(0, end)
    .replace(/^(?:In-Reply-To|References):.*(?:\r\n[ \t].*)*/gim, (field) =>
      given.filter((id) => id.startsWith("<")).reduce((left, id) => left.replaceAll(id, ""), field),
    );
  return head + raw.slice(end);
}

function lookInto(look: Look, raw: string, where: string, depth: number): void {
  look.count.parts += 1;
  if (depth > DEPTH_MAX || look.count.parts > PARTS_MAX) {
    look.leaks.push({ where: `${where}, which is too complex to be searched` });
    return;
  }
  const gap = /\r?\n\r?\n/.exec(raw);
  const head = (gap ? raw.slice(0, gap.index) : raw).replace(/\r?\n(?=[ \t])/g, "");
  const body = gap ? raw.slice(gap.index + gap[0].length) : "";
  for (const line of head.split(/\r?\n/)) lookAtField(look, line, where);
  const type = /^content-type:\s*([^;\s]+)/im.exec(head)?.[1]?.toLowerCase() ?? "text/plain";
  const boundary = /^content-type:[^\n]*?boundary\s*=\s*(?:"([^"]*)"|([^\s;]+))/im.exec(head);
  const name = boundary?.[1] ?? boundary?.[2];
  if (type.startsWith("multipart/") && name) {
    const pieces = `\n${body}`.split(`\n--${name}`);
    pieces.slice(1).forEach((piece, at) => {
      if (piece.startsWith("--")) search(look, piece, `${where}, behind its last part`);
      else lookInto(look, piece.replace(/^[^\n]*\n/, ""), `part ${at + 1} of ${where}`, depth + 1);
    });
    search(look, pieces[0] ?? "", `${where}, before its first part`);
    return;
  }
  lookAtLeaf(look, { head, body, type }, where, depth);
}

type Found = { head: string; body: string; type: string };

function lookAtLeaf(look: Look, { head, body, type }: Found, where: string, depth: number): void {
  const transfer = withoutComments(/^content-transfer-encoding:([^\n]*)/im.exec(head)?.[1] ?? "");
  const encoding = /[^\s;]+/.exec(transfer)?.[0].toLowerCase() ?? "7bit";
  const charset = /^content-type:[^\n]*?charset\s*=\s*"?([^\s;"]+)/im.exec(head)?.[1] ?? "utf-8";
  const bytes = undoTransfer(body, encoding);
  const place = `${where} (${type.slice(0, 60)})`;
  const isText =
    /^text\/(?:plain|html)$/.test(type) && !/^content-disposition:\s*attachment|\bname\*?\d*=/im.test(head);
  const isFree = look.allowed === "bodies" || (look.allowed === "own_text" && isText);
  searchPlain(look, bytes.toString("latin1"), place, isFree ? look.names : look.needles);
  // Nobody writes codes of HTML into the middle of a picture: what is no text is read so at its beginning only.
  const readable = /^(?:text|message)\//.test(type) ? bytes : bytes.subarray(0, DISGUISES_OCTETS_MAX);
  for (const text of readings(readable, charset)) {
    search(look, text, place, look.names);
    if (!isFree) search(look, text, place);
    else if (look.allowed === "own_text") search(look, quotes(text), place);
    for (const decoded of encodedReadings(text)) search(look, decoded, place, isFree ? look.names : look.needles);
    if (isFree && look.allowed === "own_text") {
      for (const decoded of encodedReadings(quotes(text))) search(look, decoded, place);
    }
    if (ARMOR.test(text)) look.leaks.push({ where: `${place}, a key or signature in it` });
  }
  for (const content of packedContents(bytes)) lookAtPacked(look, content, place, isFree);
  if (!type.startsWith("message/")) return;
  // Nobody writes an attached message anew: none of it is the author's own text.
  const needles = look.allowed === "bodies" ? look.names : look.needles;
  const within: Look = { ...look, needles, allowed: "nothing" };
  lookInto(within, bytes.toString("latin1"), `the message in ${where}`, depth + 1);
}

/** OpenPGP, and not only a word about it: keys name their owners, signatures name keys. */
const ARMOR = /-----BEGIN(?:\s|&nbsp;|&#160;){1,9}PGP(?:\s|&nbsp;|&#160;)[\s\S]{0,400}?[A-Za-z0-9+/]{24}/i;

/** A file within a file: XML mostly, in which an address stands as in HTML. */
function lookAtPacked(look: Look, content: Buffer, place: string, isFree: boolean): void {
  const needles = isFree ? look.names : look.needles;
  searchPlain(look, content.toString("latin1"), `${place}, packed`, needles);
  search(look, content.subarray(0, DISGUISES_OCTETS_MAX).toString("utf8"), `${place}, packed`, needles);
}

/** From the first line or element that can begin a quote to the end. */
function quotes(text: string): string {
  const first = text.search(BEGINNING);
  return first === -1 ? "" : text.slice(first);
}

const BEGINNING =
  /^\s{0,4}>|^-{3,200}[^-\n].{0,80}?-{3,200}\s*$|^_{10,}\s*$|^(?:from|von|de|da|van|från|fra|od|от|差出人|发件人):\s|<blockquote|[_-]quote\b|yahoo_quoted|rplyfwdmsg|appendonsend|cite-prefix|border-top:\s*solid #(?:e1e1e1|b5c4df)/im;

function undoTransfer(body: string, encoding: string): Buffer {
  if (encoding === "base64") return Buffer.from(body, "base64");
  if (encoding !== "quoted-printable") return Buffer.from(body, "latin1");
  const joined = body.replace(/=[ \t]*\r?\n/g, "");
  const decoded = joined.replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, "latin1");
}

/** The bytes as text in its charset and in those that hide ASCII between zeros, each text once. */
function readings(bytes: Buffer, charset: string): Set<string> {
  const latin = bytes.toString("latin1");
  const texts = new Set([latin, latin.replaceAll("\0", "")]);
  if (!isAscii(latin)) texts.add(bytes.toString("utf8"));
  if (iconv.encodingExists(charset)) texts.add(iconv.decode(bytes, charset));
  return texts;
}

function isAscii(text: string): boolean {
  return !/[^\x00-\x7f]/.test(text);
}

function lookAtField(look: Look, line: string, where: string): void {
  const colon = line.indexOf(":");
  const name = colon > 0 ? line.slice(0, colon).slice(0, 60) : "a line";
  const words = line.replace(/(\?=)\s+(=\?)/g, "$1$2");
  const decoded = words.replace(/=\?([^?*\s]+)[^?]*\?([bq])\?([^?]*)\?=/gi, decodeWord);
  const octets = Buffer.from(line, "latin1").toString("utf8");
  for (const text of [line, decoded, octets, decoded.replace(/\s+/g, ""), ...encodedReadings(decoded)]) {
    search(look, text, `the field ${name} of ${where}`);
  }
}

function decodeWord(_: string, charset: string, kind: string, text: string): string {
  const bytes =
    kind.toLowerCase() === "b"
      ? Buffer.from(text, "base64")
      : undoTransfer(text.replaceAll("_", " "), "quoted-printable");
  return iconv.encodingExists(charset) ? iconv.decode(bytes, charset) : bytes.toString("latin1");
}

/** As it stands, in any case, and with zeros between the letters. */
function searchPlain(look: Look, latin: string, where: string, needles: readonly string[]): void {
  const lower = latin.toLowerCase();
  const texts = lower.includes("\0") ? [lower, lower.replaceAll("\0", "")] : [lower];
  if (texts.some((text) => holds(look, text, needles))) look.leaks.push({ where });
}

function search(look: Look, given: string, where: string, needles: readonly string[] = look.needles): void {
  if (look.leaks.some((leak) => leak.where === where)) return;
  for (const text of undisguised(given)) {
    if (!holds(look, text, needles)) continue;
    look.leaks.push({ where });
    return;
  }
}

/** A secret, or anybody's reverse address. */
function holds(look: Look, text: string, needles: readonly string[]): boolean {
  if (needles.some((needle) => contains(text, needle))) return true;
  return (text.match(REVERSE) ?? []).some((address) => !look.given.has(address));
}

const REVERSE = /r\.[a-z2-7]{26}(?:\+[^@\s<>]{0,64})?@[a-z0-9.-]*/g;

/** The secret, an address also with a +tag. */
function contains(text: string, needle: string): boolean {
  if (text.includes(needle)) return true;
  const at = needle.lastIndexOf("@");
  if (at === -1) return false;
  const start = `${needle.slice(0, at)}+`;
  for (let from = text.indexOf(start); from !== -1; from = text.indexOf(start, from + 1)) {
    const rest = text.slice(from + start.length, from + start.length + 400);
    if (/^[^@\s<>]*@/.test(rest) && rest.slice(rest.indexOf("@")).startsWith(needle.slice(at))) return true;
  }
  return false;
}

function undisguised(given: string): Set<string> {
  const texts = new Set([fold(given)]);
  let [text = ""] = texts;
  for (let layer = 0; layer < LAYERS_MAX && /[&%]/.test(text); layer += 1) {
    text = undoReferences(text).replace(/(?:%[0-9a-f]{2})+/g, undoPercents);
    text = fold(text);
    if (texts.has(text)) break;
    texts.add(text);
  }
  for (const one of [...texts]) {
    if (!one.includes("<")) continue;
    texts.add(one.replace(/<[^<>]*>/g, ""));
    if (LINE_TAG.test(one)) texts.add(one.replace(new RegExp(LINE_TAG, "g"), "\n").replace(/<[^<>]*>/g, ""));
  }
  for (const one of [...texts]) {
    // Folded lines of calendars and cards; lines that a reader of format=flowed joins (RFC 3676), in quotes, too.
    if (/\n[ \t]/.test(one)) texts.add(one.replace(/\r?\n[ \t]/g, ""));
    if (one.includes("\n")) texts.add(one.replace(/(?<![ \t])[ \t]*\r?\n[>| \t]*/g, ""));
  }
  return texts;
}

const LINE_TAG = /<(?:br|p|div)\b[^<>]*>/;

function undoPercents(run: string): string {
  return Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8");
}

const LAYERS_MAX = 5;

function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return withoutInvisible(text).normalize("NFKC").replaceAll("\u3002", ".").toLowerCase();
}

function withoutInvisible(text: string): string {
  return isAscii(text) ? text : text.replace(/[\p{Cf}\p{DI}]/gu, "");
}

const REFERENCES: Readonly<Record<string, string>> = {
  amp: "&",
  commat: "@",
  period: ".",
  lowbar: "_",
  hyphen: "-",
  dash: "-",
  plus: "+",
  percnt: "%",
  num: "#",
  semi: ";",
  lt: "<",
  gt: ">",
  quot: '"',
  szlig: "ß",
  oslash: "ø",
  aelig: "æ",
  shy: "",
  zwj: "",
  zwnj: "",
};

/** Combining marks: HTML has a name for each letter with one of them. */
const MARKS: Readonly<Record<string, string>> = {
  uml: "\u0308",
  acute: "\u0301",
  grave: "\u0300",
  circ: "\u0302",
  tilde: "\u0303",
  cedil: "\u0327",
  ring: "\u030a",
  caron: "\u030c",
};

function undoReferences(text: string): string {
  return text
    .replace(/&#x0*([0-9a-f]{1,6});?/g, (_, hex: string) => character(Number.parseInt(hex, 16)))
    .replace(/&#0*(\d{1,7});?/g, (_, digits: string) => character(Number(digits)))
    .replace(/&([a-z])(uml|acute|grave|circ|tilde|cedil|ring|caron);?/g, (_, letter: string, mark: string) =>
      `${letter}${MARKS[mark] ?? ""}`.normalize("NFC"),
    )
    .replace(/&([a-z]{2,6});?/g, (whole, name: string) =>
      Object.hasOwn(REFERENCES, name) ? REFERENCES[name]! : whole,
    );
}

function character(code: number): string {
  return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "";
}
