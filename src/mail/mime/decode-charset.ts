// Text in any charset that mail has, as well-formed UTF-8 text: labels as people write them, iconv-lite for the tables,
// own transformations for the charsets with shifts that no library has. Never throws; what cannot be decoded becomes
// U+FFFD. Guesses only where a label is missing, unknown or plainly wrong. Works on bytes: lists of matches, one for each
// character of a hostile body, would be more than a worker's heap. Line ends are not touched here.
import { isAscii, isUtf8 } from "node:buffer";
import iconv from "iconv-lite";
import { detectCharset } from "./detect-charset.ts";

/** `defect` tells that the label was unknown or the bytes did not fit it. */
export type DecodedText = { text: string; defect: "unknown_charset" | "undecodable_text" | null };

// Labels that iconv-lite does not know, or knows as something narrower than what writers mean (WHATWG Encoding §4.2).
const aliases = new Map([
  ["iso-8859-1", "windows-1252"],
  ["iso8859-1", "windows-1252"],
  ["latin1", "windows-1252"],
  ["latin-1", "windows-1252"],
  ["l1", "windows-1252"],
  ["csisolatin1", "windows-1252"],
  ["iso-ir-100", "windows-1252"],
  ["cp819", "windows-1252"],
  ["ibm819", "windows-1252"],
  ["iso-8859-9", "windows-1254"],
  ["latin5", "windows-1254"],
  ["l5", "windows-1254"],
  ["csisolatin5", "windows-1254"],
  ["iso-ir-148", "windows-1254"],
  ["gb2312", "gb18030"],
  ["gb_2312", "gb18030"],
  ["csgb2312", "gb18030"],
  ["csiso58gb231280", "gb18030"],
  ["gb_2312-80", "gb18030"],
  ["gbk", "gb18030"],
  ["x-gbk", "gb18030"],
  ["cn-gb", "gb18030"],
  ["euc-cn", "gb18030"],
  ["x-euc-cn", "gb18030"],
  ["big5", "big5-hkscs"],
  ["x-big5", "big5-hkscs"],
  ["cn-big5", "big5-hkscs"],
  ["ks_c_5601-1987", "cp949"],
  ["ks_c_5601-1989", "cp949"],
  ["ksc5601", "cp949"],
  ["ksc_5601", "cp949"],
  ["euc-kr", "cp949"],
  ["x-windows-949", "cp949"],
  ["uhc", "cp949"],
  ["sjis", "shift_jis"],
  ["x-sjis", "shift_jis"],
  ["ms_kanji", "shift_jis"],
  ["windows-31j", "shift_jis"],
  ["cp932", "shift_jis"],
  ["x-euc-jp", "euc-jp"],
  ["cseucpkdfmtjapanese", "euc-jp"],
  ["unicode-1-1-utf-8", "utf-8"],
  ["koi8", "koi8-r"],
  ["koi", "koi8-r"],
  ["x-mac-roman", "macintosh"],
  ["mac", "macintosh"],
  ["x-mac-cyrillic", "maccyrillic"],
  ["x-mac-ukrainian", "maccyrillic"],
  ["x-mac-ce", "maccenteuro"],
  ["x-mac-croatian", "maccroatian"],
  ["x-mac-greek", "macgreek"],
  ["x-mac-icelandic", "maciceland"],
  ["x-mac-romanian", "macromania"],
  ["x-mac-turkish", "macturkish"],
  ["tis-620", "windows-874"],
  ["tis620", "windows-874"],
  ["iso-8859-11", "windows-874"],
  ["windows-874-2000", "windows-874"],
  ["dos-874", "windows-874"],
  ["sun_eu_greek", "iso-8859-7"],
  ["logical", "iso-8859-8"],
  ["visual", "iso-8859-8"],
  ["csisolatin9", "iso-8859-15"],
  ["unicode", "utf-16"],
  ["csunicode", "utf-16"],
  ["iso-10646-ucs-2", "utf-16"],
]);
// Labels that say nothing.
const unsaid = new Set([
  "",
  "us-ascii",
  "ascii",
  "ansi_x3.4-1968",
  "iso646-us",
  "7bit",
  "8bit",
  "default",
  "none",
  "unknown",
  "unknown-8bit",
  "x-unknown",
  "x-user-defined",
  "unspecified",
  "binary",
]);
const labelCharsMax = 80;
// What iconv-lite has beside charsets, in its spelling: encodings of bytes, which would show a body in hexadecimal, and its
// own UTF-7, which takes 40 s for a message of nothing else.
const noCharsets = new Set(["hex", "base64", "binary", "utf7", "utf7imap", "unicode11utf7"]);
const utf7 = /^(?:cs)?(?:unicode-?1-?1-?)?utf[-_]?7$/;

/** Decodes bytes with a label as it stood in the mail; "" is no label. */
export function decodeText(bytes: Buffer, label: string): DecodedText {
  const name = charsetOf(label);
  const found = decodeAs(bytes, name);
  const { text, defect } = found ?? { text: guess(bytes), defect: "unknown_charset" as const };
  return { text: withoutBom(text).toWellFormed(), defect };
}

/** Most mail has one of a few labels, and each field of a head is decoded by one. */
const known = new Map<string, string>();
const knownMax = 100;

/** The charset that a label means, as iconv-lite names it where it knows it. */
export function charsetOf(label: string): string {
  const before = known.get(label);
  if (before !== undefined) return before;
  const name = nameOfLabel(label);
  if (known.size < knownMax && label.length <= labelCharsMax) known.set(label, name);
  return name;
}

function nameOfLabel(label: string): string {
  // Some writers put a list or an escape sequence there: `utf-8, us-ascii`, `_iso-2022-jp$ESC`.
  const bare = label
    .slice(0, labelCharsMax)
    .toLowerCase()
    .replace(/["'\s]/g, "")
    .replace(/^_+|[,;$].*$/g, "")
    .replace(/^(?:charset=|x-(?=cp\d|windows-|iso-))/, "");
  const spelled = bare
    .replace(/^(?:cp-?|win-?|windows_|windows-?cp-?|ansi[-_])(125\d|874)$/, "windows-$1")
    .replace(/^(?:(?:cs)?iso)?[-_]?8859[-_]?(\d{1,2})(?::\d{4})?(?:-?[ei])?$/, "iso-8859-$1");
  return aliases.get(spelled) ?? spelled;
}

/** True for a label that says nothing about the charset: none, or one that writers give to everything. */
export function saysNothing(label: string): boolean {
  return unsaid.has(charsetOf(label));
}

/** Null when the charset is not known. */
function decodeAs(bytes: Buffer, name: string): DecodedText | null {
  if (unsaid.has(name)) return { text: guess(bytes), defect: null };
  if (name === "utf-8" || name === "utf8") return decodeUtf8(bytes);
  const text = decodeShifted(bytes, name) ?? decodeTable(bytes, name);
  if (!text?.includes("\ufffd")) return text === null ? null : { text, defect: null };
  // What is no text of its label and is UTF-8 beyond ASCII was written in UTF-8.
  const isOther = isUtf8(bytes) && !isAscii(bytes);
  return { text: isOther ? bytes.toString("utf8") : text, defect: "undecodable_text" };
}

/** By the tables of iconv-lite, for a name in whatever spelling; null when it has none. */
export function decodeTable(bytes: Buffer, name: string): string | null {
  // As iconv-lite spells names: `ba_se:1999 64` is base64 for it.
  const spelled = name.toLowerCase().replace(/:\d{4}|[^0-9a-z]/g, "");
  return noCharsets.has(spelled) || !iconv.encodingExists(name) ? null : iconv.decode(bytes, name);
}

// UTF-8 if it is, else what most mail without a label was written in.
function guess(bytes: Buffer): string {
  return decodeUtf8(bytes).text;
}

const JIS = /\x1b\$[@B]/;

/**
 * Text of a body or of a field for people, whose label is missing or says less than its bytes: JIS is known by its escapes
 * (RFC 1468; bytes beyond ASCII do not occur in it), and Cyrillic and the scripts of East Asia by their bytes. Not for fields with a structure: letters of JIS are spelled with quotes
 * and brackets.
 */
export function decodePlainText(bytes: Buffer, label: string): DecodedText {
  const name = charsetOf(label);
  const isJis = (unsaid.has(name) || name === "utf-8" || name === "utf8") && bytes.includes("\x1b$") && holdsJis(bytes);
  if (isJis) return decodeText(bytes, "iso-2022-jp");
  return decodeText(bytes, unsaid.has(name) && isForeign(bytes) ? detectCharset(bytes) || label : label);
}

/** Neither UTF-8, nor most of it, nor UTF-16 by its mark. */
function isForeign(bytes: Buffer): boolean {
  return !isUtf8(bytes) && !utf16Marks.has(bytes.toString("hex", 0, 2)) && !isMostlyUtf8(bytes.toString("utf8"));
}

function holdsJis(bytes: Buffer): boolean {
  return JIS.test(bytes.toString("latin1")) && bytes.every((byte) => byte < 0x80);
}

// More wrong than right in it: it is no UTF-8, whatever the label says, and the text can be saved.
function decodeUtf8(bytes: Buffer): DecodedText {
  const text = bytes.toString("utf8");
  // Not by looking for U+FFFD: that may stand in the mail itself.
  if (isUtf8(bytes)) return { text, defect: null };
  const order = bytes.length % 2 === 0 ? utf16Marks.get(bytes.toString("hex", 0, 2)) : undefined;
  if (order !== undefined) return { text: iconv.decode(bytes, order), defect: "undecodable_text" };
  return { text: isMostlyUtf8(text) ? text : iconv.decode(bytes, "windows-1252"), defect: "undecodable_text" };
}

/** Byte order marks: no UTF-8 begins so. */
const utf16Marks = new Map([
  ["fffe", "utf-16le"],
  ["feff", "utf-16be"],
]);
const charsJudgedMax = 100_000;

function isMostlyUtf8(text: string): boolean {
  let right = 0;
  let wrong = 0;
  const start = Math.max(text.indexOf("\ufffd") - charsJudgedMax, 0);
  for (let at = start; at < Math.min(text.length, start + 2 * charsJudgedMax); at++) {
    const code = text.charCodeAt(at);
    if (code === 0xfffd) wrong += 1;
    else if (code > 0x7f) right += 1;
  }
  return right > wrong;
}

function decodeShifted(bytes: Buffer, name: string): string | null {
  if (/^(?:cs)?iso-?2022-?jp/.test(name) || /^cp5022\d$/.test(name))
    return new TextDecoder("iso-2022-jp").decode(bytes);
  if (/^(?:cs)?iso-?2022-?kr$/.test(name)) return iconv.decode(withHighBits(bytes), "cp949");
  // iconv-lite has their tables from before the euro sign.
  if (/^(?:mac(?:intosh|roman)|csmacintosh)$/.test(name)) return new TextDecoder("macintosh").decode(bytes);
  if (/^mac(?:cyrillic|ukraine)$/.test(name)) return new TextDecoder("x-mac-cyrillic").decode(bytes);
  if (/^iso-?2022-?cn/.test(name)) return iconv.decode(withHighBits(bytes), "gb18030");
  if (utf7.test(name)) return decodeUtf7(bytes);
  if (/^hz(?:-gb(?:-?2312)?)?$/.test(name)) return iconv.decode(fromHz(bytes), "gb18030");
  return null;
}

// RFC 2152: between `+` and what is no base64, UTF-16 in base64. iconv-lite takes 40 s for a message of nothing else.
function decodeUtf7(bytes: Buffer): string {
  const out = Buffer.alloc(bytes.length * 2);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== 0x2b) {
      length = out.writeUInt16LE(bytes[at]!, length);
      continue;
    }
    const start = at + 1;
    let bits = 0;
    let held = 0;
    for (at = start; at < bytes.length; at++) {
      const value = base64Value(bytes[at]!);
      if (value === -1) break;
      held = ((held << 6) | value) & 0x3fffff;
      bits += 6;
      if (bits < 16) continue;
      bits -= 16;
      length = out.writeUInt16LE((held >> bits) & 0xffff, length);
    }
    if (at === start && bytes[at] === 0x2d) length = out.writeUInt16LE(0x2b, length);
    // A hyphen belongs to the shift, anything else is text again.
    if (bytes[at] !== 0x2d) at -= 1;
  }
  return out.toString("utf16le", 0, length);
}

function base64Value(byte: number): number {
  if (byte >= 0x41 && byte <= 0x5a) return byte - 0x41;
  if (byte >= 0x61 && byte <= 0x7a) return byte - 0x47;
  if (byte >= 0x30 && byte <= 0x39) return byte + 4;
  return byte === 0x2b ? 62 : byte === 0x2f ? 63 : -1;
}

const ESC = 0x1b;
const SHIFT_OUT = 0x0e;
const SHIFT_IN = 0x0f;

/** RFC 1557 and RFC 1922: between SO and SI each byte stands for itself with the high bit set; escapes name the set. */
function withHighBits(bytes: Buffer): Buffer {
  const out = Buffer.alloc(bytes.length);
  let length = 0;
  let high = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === ESC && bytes[at + 1] === 0x24) at += 3;
    else if (byte === SHIFT_OUT) high = 0x80;
    else if (byte === SHIFT_IN) high = 0;
    else if (byte === 0x0a || byte === 0x0d) {
      out[length++] = byte;
      high = 0;
    } else out[length++] = byte > 0x20 ? byte | high : byte;
  }
  return out.subarray(0, length);
}

/** RFC 1843: `~{` and `~}` around two-byte characters, `~~` for a tilde, `~` and a line end for nothing. */
function fromHz(bytes: Buffer): Buffer {
  const out = Buffer.alloc(bytes.length);
  let length = 0;
  let high = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    const next = bytes[at + 1];
    if (byte === 0x7e && high === 0 && next === 0x7b) high = 0x80;
    else if (byte === 0x7e && next === 0x7d) high = 0;
    else if (byte === 0x7e && high === 0 && next === 0x7e) out[length++] = 0x7e;
    else if (byte !== 0x7e || next !== 0x0a) {
      out[length++] = byte > 0x20 ? byte | high : byte;
      continue;
    }
    at += 1;
  }
  return out.subarray(0, length);
}

function withoutBom(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
