// The last look at a finished reply, by code that shares nothing with what wrote it: every header and every decoded part is
// searched for addresses and names that must not leave. Own splitting, own decoding, own undoing of disguises; it errs on
// the side of holding a message. It opens archives, documents, PDFs and pictures, and decodes what text holds in base64 and
// its like, once and in bounds; what is encrypted it cannot read, so armor of OpenPGP is held.
import iconv from "iconv-lite";
import { withoutComments } from "../../../mail/mime/comments.ts";
import { GAP, undisguised } from "./disguises.ts";
import { decodeWord, encodedReadings, hexRuns } from "./encoded-readings.ts";
import { holdsSecret, mayHold, type Needles, needlesOf, octetsMayHold, type Searched } from "./needles.ts";
import { fileDigest, needsOpening, type OpenedFile, type OpenedFiles } from "./open-files.ts";
import { packedContents } from "./packed-contents.ts";

/** `where` tells the owner what to look at; it never holds what was found. `isUnopened`: nobody could look into it. */
export type Leak = { where: string; isUnopened?: true };

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
  needles: Needles;
  names: Needles;
  allowed: Secrets["allowed"];
  /** Reverse addresses of other services that are the recipients' own. */
  reverse: readonly string[];
  leaks: Leak[];
  count: { parts: number };
  opened: OpenedFiles | null;
};

/**
 * Searches the message for what is secret. Empty: nothing was found. `opened` are its files; without them they are opened as
 * far as that goes without waiting.
 */
export function findLeaks(
  message: Buffer,
  { addresses, names, allowed, given }: Secrets,
  opened: OpenedFiles | null = null,
): Leak[] {
  const plain = (list: readonly string[]) =>
    list.map((secret) => secret.normalize("NFKC").toLowerCase()).filter((secret) => secret !== "");
  const strict = needlesOf(plain(names));
  const needles = needlesOf([...plain(addresses), ...plain(names)]);
  const reverse = plain(given).filter((one) => /^r\.[a-z2-7]{26}@./.test(one));
  const look: Look = { needles, names: strict, allowed, reverse, leaks: [], count: { parts: 0 }, opened };
  const own = needlesOf(plain(addresses));
  const isTelling = (id: string) => holdsSecret({ text: id.toLowerCase(), chance: false }, own);
  const ids = given.filter((one) => one.startsWith("<") && !isTelling(one));
  const raw = withoutIds(message.toString("latin1"), ids);
  lookInto(look, raw, "the message", 0);
  // Whatever was read wrongly: last, because it does not say where.
  if (look.leaks.every(({ isUnopened }) => isUnopened))
    searchPlain(look, raw, "the message", allowed === "nothing" ? needles : strict);
  return look.leaks;
}

/** The message without these ids, which its recipients gave and which name their servers. */
function withoutIds(raw: string, ids: readonly string[]): string {
  const end = raw.indexOf("\r\n\r\n");
  const head = raw
    .slice(0, end)
    .replace(/^(?:In-Reply-To|References):.*(?:\r\n[ \t].*)*/gim, (field) =>
      ids.reduce((left, id) => left.replaceAll(id, ""), field),
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
      if (piece.startsWith("--")) search(look, asText(piece), `${where}, behind its last part`, look.needles);
      else lookInto(look, piece.replace(/^[^\n]*\n/, ""), `part ${at + 1} of ${where}`, depth + 1);
    });
    search(look, asText(pieces[0] ?? ""), `${where}, before its first part`, look.needles);
    return;
  }
  lookAtLeaf(look, { head, body, type }, where, depth);
}

function asText(text: string): Searched {
  return { text, chance: false };
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
  // Digits are signs of base64: who looks at the source reads a number where a program reads a file.
  const digits = encoding === "base64" ? hexRuns(body.replace(/\s+/g, "")) : [];
  for (const octets of digits) searchPlain(look, octets, place, isFree ? look.names : look.needles);
  // Nobody writes codes of HTML into the middle of a picture: what is no text is read so at its beginning only.
  const readable = /^(?:text|message)\//.test(type) ? bytes : bytes.subarray(0, DISGUISES_OCTETS_MAX);
  const chance = isBinary(bytes.toString("latin1"));
  for (const reading of readings(readable, charset)) {
    const text = legible(reading);
    lookAtText(look, { text, chance }, place, isFree ? look.names : look.needles);
    if (isFree && look.allowed === "own_text") lookAtText(look, { text: quotes(text), chance }, place, look.needles);
    if (ARMOR.test(text)) look.leaks.push({ where: `${place}, a key or signature in it` });
  }
  const inside = insideOf(look.opened, bytes);
  for (const content of inside.contents) lookAtPacked(look, content, place, isFree);
  for (const why of inside.unopened) {
    look.leaks.push({ where: `${place}, which could not be looked into: ${why}`, isUnopened: true });
  }
  if (!type.startsWith("message/")) return;
  // Nobody rewrites an attached message: none of it is the author's own text.
  const needles = look.allowed === "bodies" ? look.names : look.needles;
  const within: Look = { ...look, needles, allowed: "nothing" };
  lookInto(within, bytes.toString("latin1"), `the message in ${where}`, depth + 1);
}

/** What is in a file, opened before or here. */
function insideOf(opened: OpenedFiles | null, bytes: Buffer): OpenedFile {
  const inside = opened?.get(fileDigest(bytes));
  if (inside) return inside;
  const isMissed = opened !== null && needsOpening(bytes);
  return { contents: packedContents(bytes), unopened: isMissed ? ["it was not opened"] : [] };
}

/** The text itself, and what it holds in encodings. */
function lookAtText(look: Look, given: Searched, place: string, needles: Needles): void {
  search(look, given, place, needles);
  const { texts, isCut } = encodedReadings(given.text);
  const where = `${place}, which could not be looked into: it holds packed text that is too long`;
  if (isCut && !look.leaks.some((leak) => leak.where === where)) look.leaks.push({ where, isUnopened: true });
  for (const { text, chance } of texts) {
    if (chance && !octetsMayHold(text, needles)) continue;
    for (const one of withoutZeros({ text, chance: chance || given.chance })) search(look, one, place, needles);
  }
}

/** What holds controls is no text: lengths and marks stand beside its strings, and may look like letters. */
function isBinary(latin: string): boolean {
  return /[\x00-\x08\x0e-\x1f\x7f]/.test(latin);
}

/** Strings that may hold an address in another form than its own; those that hold it as it is were found already. */
const STRINGS = /[\t\n\r\x20-\x7e\xa0-\ufffc\u{10000}-\u{10ffff}]{8,}/gu;
const SIGNS = /[@&%=\\\uff20\ufe6b]|[A-Za-z0-9+/]{20}/;

/** The strings in what is binary, apart from each other: all the rest is long, and no reader sees letters in it. */
function legible(text: string): string {
  // The lines of yEnc hold controls.
  if (!isBinary(text) || text.includes("=ybegin ")) return text;
  const strings = text.match(STRINGS) ?? [];
  return strings.filter((string) => SIGNS.test(string)).join("\x01");
}

/** OpenPGP, and not only a word about it: keys name their owners, signatures name keys. */
const ARMOR = /-----BEGIN(?:\s|&nbsp;|&#160;){1,9}PGP(?:\s|&nbsp;|&#160;)[\s\S]{0,400}?[A-Za-z0-9+/]{24}/i;

/** A file within a file: XML mostly, in which an address stands as in HTML. */
function lookAtPacked(look: Look, content: Buffer, place: string, isFree: boolean): void {
  const needles = isFree ? look.names : look.needles;
  const latin = content.toString("latin1");
  const chance = isBinary(latin);
  searchPlain(look, latin, `${place}, packed`, needles);
  const readable = content.subarray(0, DISGUISES_OCTETS_MAX).toString("utf8");
  for (const { text } of withoutZeros({ text: readable, chance })) {
    lookAtText(look, { text: legible(text), chance: chance || text !== readable }, `${place}, packed`, needles);
  }
}

/** From the first line or element that can begin a quote to the end. */
function quotes(text: string): string {
  const first = text.search(BEGINNING);
  return first === -1 ? "" : text.slice(first);
}

/** What stands before the name of an earlier author, as mail programs write it in their languages. */
const AUTHOR = [
  ...[
    "from",
    "von",
    "de",
    "da",
    "dari",
    "van",
    "från",
    "fra",
    "od",
    "от",
    "від",
    "lähettäjä",
    "saatja",
    "nuo",
    "kimden",
  ],
  ...[
    "gönderen",
    "feladó",
    "šalje",
    "από",
    "từ",
    "מאת",
    "من",
    "จาก",
    "差出人",
    "送信者",
    "寄件者",
    "寄件人",
    "发件人",
    "發件人",
  ],
  ...["보낸 사람", "보낸사람"],
].join("|");

const BEGINNING = new RegExp(
  [
    String.raw`^\s{0,4}>`,
    String.raw`^-{3,200}[^-\n].{0,80}?-{3,200}\s*$`,
    String.raw`^_{10,}\s*$`,
    String.raw`^[ \t]{0,4}\*?(?:${AUTHOR})[ \t\u00a0\u202f]?(?::\*?\s|：)`,
    String.raw`>(?:\s|&nbsp;){0,20}(?:${AUTHOR})\s?(?:</?[a-z][^<>]{0,300}>){0,3}[:：]`,
    String.raw`^[^\n@]{0,300}@[^\n@]{1,200}(?:\n[^\n@]{0,60})?[:：]\s*$`,
    String.raw`[^<>@\s]{1,64}@[^<>@]{1,200}(?:</a>[^<>@]{0,200})?[:：]\s{0,20}<(?:br|/?p|/?div)\b`,
    String.raw`^[^\n@]{0,200}<[^\n@]{1,100}@[^\n@>]{1,255}>\s{1,9}>`,
    "olk_src_body_section",
    '<hr id="?stopspelling',
    "<blockquote",
    String.raw`[_-]quote\b`,
    "yahoo_quoted",
    "rplyfwdmsg",
    "appendonsend",
    "cite-prefix",
    String.raw`border-top:\s*solid #(?:e1e1e1|b5c4df)`,
  ].join("|"),
  "im",
);

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
  const decoded = words.replace(/=\?[^?*\s]+[^?]*\?[bq]\?[^?]*\?=/gi, decodeWord);
  const octets = Buffer.from(line, "latin1").toString("utf8");
  const place = `the field ${name} of ${where}`;
  // Names of files and of parts are no addresses that somebody writes to.
  const chance = /^content-/i.test(name);
  for (const text of [line, octets, decoded.replace(/\s+/g, GAP)]) search(look, { text, chance }, place, look.needles);
  for (const one of withoutZeros({ text: decoded, chance })) lookAtText(look, one, place, look.needles);
}

/** As it stands, in any case. */
function searchPlain(look: Look, latin: string, where: string, needles: Needles): void {
  const texts = withoutZeros({ text: latin.toLowerCase(), chance: isBinary(latin) });
  if (texts.some((text) => holds(look, text, needles))) look.leaks.push({ where });
}

function search(look: Look, { text, chance }: Searched, where: string, needles: Needles): void {
  if (look.leaks.some((leak) => leak.where === where)) return;
  for (const one of undisguised(text, !chance, (reading) => mayHold(reading, needles))) {
    if (!holds(look, { text: one, chance }, needles)) continue;
    look.leaks.push({ where });
    return;
  }
}

/** The text, and what stands in it with zeros between the letters (UTF-16, UTF-32). */
function withoutZeros(given: Searched): Searched[] {
  return given.text.includes("\0") ? [given, { text: given.text.replaceAll("\0", ""), chance: true }] : [given];
}

/** A secret, or anybody's reverse address. */
function holds(look: Look, given: Searched, needles: Needles): boolean {
  if (holdsSecret(given, needles)) return true;
  const plain = given.text.includes(GAP) ? given.text.replaceAll(GAP, "") : given.text;
  // Behind its address a sentence may end, or the next line begin.
  const isGiven = (address: string) => look.reverse.some((one) => address.startsWith(one));
  return (plain.match(REVERSE) ?? []).some((address) => !isGiven(address));
}

const REVERSE = /r\.[a-z2-7]{26}(?:\+[^@\s<>]{0,600})?@[a-z0-9.-]*/g;
