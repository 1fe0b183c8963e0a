// Tag lists (RFC 6376 §3.2): the syntax of DKIM signatures, DKIM keys, ARC seals and DMARC records. Text is latin1, one
// character for each byte, so that nothing is lost. What a tag means is not known here.

/** Values by tag name (case-sensitive), without the folding white space around them, in the order of the list. */
export type TagList = Map<string, string>;

const tagsMax = 100;
const tagName = /^[A-Za-z][A-Za-z0-9_]*$/;
// Printable ASCII but the semicolon, white space, and bytes above ASCII (RFC 8616 allows UTF-8).
const tagValue = /^[\t\n\r\x20-\x3a\x3c-\x7e\x80-\xff]*$/;

/**
 * Reads a tag list strictly: null when a name is malformed or stands twice, a part is no tag, or there are over 100.
 * With `lenient`, parts that are empty are passed over, as key records in the DNS have them.
 */
export function parseTagList(text: string, lenient = false): TagList | null {
  const tags: TagList = new Map();
  const parts = text.split(";", tagsMax + 2);
  if (trimFws(parts.at(-1)!) === "") parts.pop();
  if (parts.length > tagsMax) return null;
  for (const part of parts) {
    if (lenient && trimFws(part) === "") continue;
    const equals = part.indexOf("=");
    const name = trimFws(part.slice(0, Math.max(equals, 0)));
    const value = trimFws(part.slice(equals + 1));
    if (equals === -1 || !tagName.test(name) || !tagValue.test(value) || tags.has(name)) return null;
    tags.set(name, value);
  }
  return tags;
}

/** Without folding white space at both ends; other spaces (such as U+00A0) are not white space here. */
export function trimFws(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isFws(text.charCodeAt(start))) start++;
  while (end > start && isFws(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Without any white space, as base64 values and lists of names are read (RFC 6376 §3.2, §3.5). */
export function withoutFws(text: string): string {
  return text.replace(/[ \t\r\n]+/g, "");
}

/** The parts of a colon-separated list, without white space, in lower case. */
export function colonList(text: string): string[] {
  return text.split(":").map((part) => trimFws(part).toLowerCase());
}

function isFws(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a;
}

/**
 * A field as it is hashed (RFC 6376 §3.5): the value of its `b=` tag, with the white space around it, taken out. Takes
 * and gives the field's bytes without its last CRLF.
 */
export function withoutSignature(field: Buffer): Buffer {
  let start = field.indexOf(0x3a) + 1;
  while (start <= field.length) {
    const semicolon = field.indexOf(0x3b, start);
    const end = semicolon === -1 ? field.length : semicolon;
    const equals = field.indexOf(0x3d, start);
    if (equals !== -1 && equals < end && trimFws(field.toString("latin1", start, equals)) === "b") {
      return Buffer.concat([field.subarray(0, equals + 1), field.subarray(end)]);
    }
    start = end + 1;
  }
  return field;
}
