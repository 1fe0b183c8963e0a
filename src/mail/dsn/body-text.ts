// The text of a part of a report: transfer encoding, charset and HTML taken off. RFC 2045 §6, tolerant of what is cut
// off or mislabelled. It returns lines as they stand and never throws.

import { decodeTable } from "../mime/decode-charset.ts";
import { stripHtml } from "../mime/strip-html.ts";
import type { Part } from "./parts.ts";

// The longest text part in the corpora has 61 KB (AOL, HTML).
const textOctetsMax = 256 * 1_024;
const textCharsMax = 128 * 1_024;

/** The octets of a part without their transfer encoding, at most 256 KiB of them. */
export function decodeBody(part: Pick<Part, "body" | "encoding">): Buffer {
  if (part.encoding === "base64") {
    const encoded = part.body.toString("latin1", 0, (textOctetsMax * 4) / 3 + 8_192);
    return Buffer.from(encoded, "base64").subarray(0, textOctetsMax);
  }
  const octets = part.body.subarray(0, textOctetsMax);
  return part.encoding === "quoted-printable" ? decodeQuotedPrintable(octets) : octets;
}

/** The text of a part, at most 128 Ki characters, HTML turned into lines. */
export function partText(part: Part): string {
  const octets = decodeBody(part);
  const text = decodeCharset(octets, part.parameters.get("charset")?.toLowerCase() ?? "");
  const lines = isHtml(part, text) ? stripHtml(withAddresses(text)) : text;
  return lines.slice(0, textCharsMax).replaceAll("\r", "").replaceAll("\u00a0", " ");
}

function isHtml(part: Part, text: string): boolean {
  // Yahoo calls plain text HTML; what has no tags keeps its line ends.
  return part.type === "text/html" && /<(?:html|body|br|p|div|table|font|span|pre|a)\b/i.test(text);
}

// "<user@example.com>" in a text that is HTML only by name is an address and no tag.
function withAddresses(html: string): string {
  return html.replace(/<([^<>\s@"=/]{1,128}@[^<>\s@"=/]{1,255})>/g, " &lt;$1&gt; ");
}

function decodeQuotedPrintable(octets: Buffer): Buffer {
  // RFC 2045 §6.7 (3): blanks at the end of a line were added on the way. Behind the first of them none is looked at again.
  const text = octets
    .toString("latin1")
    .replace(/(?<![ \t])[ \t]+(?![^\n])/g, "")
    .replaceAll("=\n", "");
  const decoded = text.replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, "latin1");
}

function decodeCharset(octets: Buffer, charset: string): string {
  // Japanese reports are often unlabelled; ESC $ says it all (RFC 1468).
  const label = octets.includes("\x1b$") ? "iso-2022-jp" : charset;
  if (label === "" || label === "us-ascii") return decodeUnlabelled(octets);
  const text = decodeAs(octets, label);
  const spare = text.includes("\ufffd") ? (mislabelled.get(label) ?? []) : [];
  // Of the charsets that are taken for each other, the one that leaves the fewest characters unknown.
  return spare.map((other) => decodeAs(octets, other)).reduce(fewerUnknown, text);
}

const mislabelled = new Map([
  ["iso-2022-jp", ["euc-jp", "shift_jis", "utf-8"]],
  ["shift_jis", ["euc-jp", "utf-8"]],
  ["euc-jp", ["shift_jis", "utf-8"]],
  ["gb2312", ["gb18030", "utf-8"]],
  ["utf-8", ["gb18030"]],
]);

function fewerUnknown(best: string, other: string): string {
  return unknownCount(other) < unknownCount(best) ? other : best;
}

function unknownCount(text: string): number {
  return text.split("\ufffd").length;
}

function decodeUnlabelled(octets: Buffer): string {
  const text = octets.toString("utf8");
  return text.includes("\ufffd") ? octets.toString("latin1") : text;
}

function decodeAs(octets: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(octets);
  } catch {
    // A label that the platform does not know.
  }
  return decodeTable(octets, charset) ?? octets.toString("latin1");
}
