// Attached text files in a reply. One that shows nobody leaves byte for byte; one that does keeps its charset, its mark of
// byte order and its line ends, because programs read it: XML says its encoding itself, shells choke on CR.
import { isUtf8 } from "node:buffer";
import iconv from "iconv-lite";
import { charsetOf, decodeText } from "../../../mail/mime/decode-charset.ts";
import { readOctets, writeOctets } from "./octet-text.ts";

/** `charset` as its label stood; null when none stood there. */
export type TextFile = { bytes: Buffer; charset: string | null };

/**
 * The text of a file by its octets, for one whose bytes no charset would give again: what is not exchanged in it stays, byte for
 * byte. Null for any other.
 */
export function octetsOf(bytes: Buffer, label: string): string | null {
  const isKnown = label === "" || isTable(label) || decodeText(bytes, label).defect === "unknown_charset";
  return isKnown && !fitsCharset(bytes, label) ? readOctets(bytes) : null;
}

/** The file of such a text. */
export function octetFile(text: string, label: string): TextFile {
  return { bytes: writeOctets(text), charset: LABEL.test(label) ? label : null };
}

/** A file of this label whose text was not changed; in UTF-8 where the leak gate could not read it. */
export function unchangedFile(bytes: Buffer, label: string): TextFile {
  if (label === "") return { bytes, charset: null };
  return isTable(label)
    ? { bytes, charset: label }
    : { bytes: Buffer.from(decodeText(bytes, label).text), charset: "utf-8" };
}

/**
 * The new text of a file, as its bytes before were written: by what gives just these bytes again, if anything does. In UTF-8
 * where its charset has no room for it.
 */
export function changedFile(text: string, before: Buffer, label: string): TextFile {
  if (label !== "" && !isTable(label)) return { bytes: Buffer.from(text), charset: "utf-8" };
  const addBOM = hasMark(before);
  const charset = label === "" ? null : label;
  const exact = exactCharset(before, label, addBOM) ?? [];
  const others = label !== "" ? [label, "windows-1252"] : [isUtf8(before) ? "utf-8" : "windows-1252"];
  for (const name of [exact, ...others.filter(isTable)].flat()) {
    const bytes = iconv.encode(text, name, { addBOM });
    if (decodeText(bytes, label).text === text) return { bytes, charset };
  }
  return { bytes: Buffer.from(text), charset: "utf-8" };
}

/** True if there is a charset in which the text of the file gives exactly these bytes again. */
function fitsCharset(bytes: Buffer, label: string): boolean {
  if (/^(?:utf-8|us-ascii)?$/i.test(label) && isUtf8(bytes)) return true;
  return exactCharset(bytes, label, hasMark(bytes)) !== undefined;
}

function exactCharset(before: Buffer, label: string, addBOM: boolean): string | undefined {
  const names = [...(label === "" ? [] : [charsetOf(label), label]), ...WRITTEN].filter(isTable);
  const known = decodeText(before, label).text;
  return names.find((name) => iconv.encode(known, name, { addBOM }).equals(before));
}

function hasMark(bytes: Buffer): boolean {
  return MARKS.some((mark) => bytes.subarray(0, mark.length).equals(mark));
}

/** What texts are written in, whatever their label says, or where it leaves the order of bytes open. */
const WRITTEN = ["utf-8", "windows-1252", "utf-16le", "utf-16be", "utf-32le", "utf-32be"];
const MARKS = [Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

const LABEL = /^[A-Za-z0-9._:-]{1,40}$/;

/** A charset with a table, which the leak gate reads as well: not UTF-7, and none of iconv-lite's encodings of bytes. */
function isTable(label: string): boolean {
  const isSafe = LABEL.test(label) && !/utf-?7|hex|base64|binary/i.test(label);
  return isSafe && iconv.encodingExists(label);
}
