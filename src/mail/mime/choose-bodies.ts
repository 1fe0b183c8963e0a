// Which parts of a message are its text, which its HTML, and which are attachments: the algorithm of RFC 8621 §4.1.4, so
// that a message reads as it does in mail programs. Parts with a file name are attachments besides. Decodes the bodies.
import { isUtf8 } from "node:buffer";
import { decodePlainText, decodeText, saysNothing } from "./decode-charset.ts";
import { decodeTransfer } from "./decode-transfer.ts";
import { bareId, readableValue, unfoldedValue } from "./header-text.ts";
import type { Header } from "./parse-head.ts";
import { type FieldWithParameters, parseParameters } from "./parse-parameters.ts";
import type { Part } from "./parse-structure.ts";

/** A part without children. `filename`: as given, decoded, not yet safe; "" when there is none. */
export type Leaf = { part: Part; disposition: "inline" | "attachment" | null; filename: string; encoding: string };

export type Bodies = { text: string | null; html: string | null; attachments: Leaf[] };

type Lists = { text: Leaf[] | null; html: Leaf[] | null; attachments: Leaf[] };
type Leaves = Map<Part, Leaf>;

/** Sorts the parts and decodes those that are bodies; what does not decode is said in `defects`. */
export function chooseBodies(root: Part, defects: Set<string>): Bodies {
  const leaves: Leaves = new Map();
  collectLeaves(root, leaves, charsetOfText(root));
  const lists = { text: [] as Leaf[], html: [] as Leaf[], attachments: [] as Leaf[] };
  sortParts([root], { multipart: "mixed", main: 0, in_alternative: false, leaves }, lists);
  if (lists.text.length === 0 && lists.html.length === 0) lists.text.push(...otherText(root, leaves));
  const plain = lists.text.filter((leaf) => isText(leaf) && leaf.part.type !== "text/html");
  const html = lists.html.filter((leaf) => leaf.part.type === "text/html" || leaf.part.type === "text/plain");
  const isAttached = (leaf: Leaf) => leaf.filename !== "" || !isBody(leaf) || leaf.disposition === "attachment";
  const attached = new Set([...lists.attachments, ...[...leaves.values()].filter(isAttached)]);
  return {
    text: plain.length === 0 ? null : joinText(plain.map((leaf) => decodeBody(leaf, defects))),
    html: html.some((leaf) => leaf.part.type === "text/html") ? joinHtml(html, defects) : null,
    attachments: [...leaves.values()].filter((leaf) => attached.has(leaf)),
  };
}

function isText(leaf: Leaf): boolean {
  return leaf.part.type.startsWith("text/");
}

function isBody(leaf: Leaf): boolean {
  return leaf.part.type === "text/plain" || leaf.part.type === "text/html";
}

/**
 * The first charset that a part of the message names and means, else the first that a text in HTML names in itself; "" when
 * none does. What is not encoded was written in it.
 */
export function charsetOfText(root: Part): string {
  return charsetNamed(root) || charsetMeant(root);
}

function charsetNamed({ parameters, children }: Part): string {
  const named = parameters.get("charset") ?? "";
  if (!saysNothing(named) && hasAscii(named)) return named;
  return firstOf(children, charsetNamed);
}

function charsetMeant(part: Part): string {
  if (part.type !== "text/html") return firstOf(part.children, charsetMeant);
  const encoding = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding");
  const label = charsetInHtml(decodeTransfer(part.body.subarray(0, 4 * htmlHeadOctets), encoding?.value ?? "").bytes);
  return !saysNothing(label) && hasAscii(label) ? label : "";
}

function firstOf(parts: readonly Part[] | null, read: (part: Part) => string): string {
  for (const part of parts ?? []) {
    const charset = read(part);
    if (charset !== "") return charset;
  }
  return "";
}

// No field is in UTF-16.
function hasAscii(charset: string): boolean {
  return decodeText(ASCII, charset).text === ASCII.toString();
}

const ASCII = Buffer.from("a=");

function collectLeaves(part: Part, leaves: Leaves, charset: string): void {
  if (part.children) for (const child of part.children) collectLeaves(child, leaves, charset);
  else leaves.set(part, readLeaf(part, charset));
}

function readLeaf(part: Part, charset: string): Leaf {
  const field = (name: string) => part.headers.find((header) => header.name.toLowerCase() === name);
  const disposed = parseParameters(field("content-disposition")?.value ?? "");
  const disposition = disposed.value === "" ? null : disposed.value === "inline" ? "inline" : "attachment";
  const label = charsetNamed({ ...part, children: null }) || charset;
  const parameters = inCharset(field("content-disposition"), label, disposed.parameters);
  const named = inCharset(field("content-type"), label, part.parameters);
  const filename = readableValue(parameters.get("filename") || named.get("name") || parameters.get("name") || "");
  return { part, disposition, filename, encoding: field("content-transfer-encoding")?.value ?? "" };
}

/** The parameters of a field, which was sent as it is in another charset than UTF-8; else `read`. */
function inCharset(
  header: Header | undefined,
  charset: string,
  read: FieldWithParameters["parameters"],
): FieldWithParameters["parameters"] {
  if (header === undefined || charset === "" || isUtf8(header.raw)) return read;
  return parseParameters(unfoldedValue(header.raw, charset)).parameters;
}

/** `main`: which part is the body of a multipart/related. */
type Around = { multipart: string; main: number; in_alternative: boolean; leaves: Leaves };

// RFC 8621 §4.1.4 parseStructure, word for word but for the names and for RFC 2387's choice of the main part.
function sortParts(parts: Part[], around: Around, lists: Lists): void {
  const textBefore = lists.text?.length ?? -1;
  const htmlBefore = lists.html?.length ?? -1;
  const { multipart, in_alternative, leaves } = around;
  let { text, html } = lists;
  for (const [index, part] of parts.entries()) {
    if (part.children) {
      const inner = part.type.slice("multipart/".length);
      const inAlternative = in_alternative || inner === "alternative";
      const within = { multipart: inner, main: mainPart(part, inner), in_alternative: inAlternative, leaves };
      sortParts(part.children, within, { text, html, attachments: lists.attachments });
      continue;
    }
    const leaf = leaves.get(part)!;
    if (!isInline(leaf, index === around.main, multipart)) lists.attachments.push(leaf);
    else if (multipart === "alternative") {
      if (part.type === "text/plain") text?.push(leaf);
      else if (part.type === "text/html") html?.push(leaf);
      else lists.attachments.push(leaf);
    } else {
      if (in_alternative && part.type === "text/plain") html = null;
      if (in_alternative && part.type === "text/html") text = null;
      text?.push(leaf);
      html?.push(leaf);
    }
  }
  if (multipart !== "alternative" || !text || !html) return;
  if (textBefore === text.length && htmlBefore !== html.length) text.push(...html.slice(htmlBefore));
  else if (htmlBefore === html.length && textBefore !== text.length) html.push(...text.slice(textBefore));
}

/**
 * Which of the parts of a multipart with this subtype the others belong to (RFC 2387 §3.1, §3.2): the one that start= names;
 * else the first, or the first of the type= announced.
 */
export function mainPart(part: Part, multipart: string): number {
  if (multipart !== "related") return 0;
  const start = bareId(part.parameters.get("start") ?? "");
  const id = ({ headers }: Part) =>
    bareId(headers.find((header) => header.name.toLowerCase() === "content-id")?.value ?? "");
  const named = start === "" ? -1 : part.children!.findIndex((child) => id(child) === start);
  if (named !== -1) return named;
  const type = part.parameters.get("type")?.toLowerCase();
  const typed = isBodyType(part.children![0]?.type) ? -1 : part.children!.findIndex((child) => child.type === type);
  return Math.max(typed, 0);
}

function isBodyType(type: string | undefined): boolean {
  return type === "text/plain" || type === "text/html" || type?.startsWith("multipart/") === true;
}

function isInline(leaf: Leaf, isMain: boolean, multipart: string): boolean {
  if (leaf.disposition === "attachment") return false;
  const isMedia = /^(?:image|audio|video)\//.test(leaf.part.type);
  if (!isMedia && !isBody(leaf)) return false;
  return isMain || (multipart !== "related" && (isMedia || leaf.filename === ""));
}

// No body of the two kinds: another kind of text that is not meant to be saved, such as text/markdown.
function otherText(root: Part, leaves: Leaves): Leaf[] {
  if (root.children) return [];
  const leaf = leaves.get(root)!;
  return isText(leaf) && leaf.disposition !== "attachment" && leaf.filename === "" ? [leaf] : [];
}

function joinText(texts: string[]): string {
  const isLine = (text: string, index: number) => text === "" || text.endsWith("\n") || index === texts.length - 1;
  return texts.map((text, index) => (isLine(text, index) ? text : `${text}\n`)).join("");
}

function joinHtml(leaves: Leaf[], defects: Set<string>): string {
  return leaves
    .map((leaf) => (leaf.part.type === "text/html" ? decodeBody(leaf, defects) : asHtml(decodeBody(leaf, defects))))
    .filter((html) => html !== "")
    .join("\n");
}

// Text that stands between pieces of HTML, such as the footer of a mailing list.
function asHtml(text: string): string {
  if (text.length > footerCharsMax || text.trim() === "") return "";
  const escaped = (slice: string) =>
    slice.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\n/g, "<br>\n");
  return `<div>${escaped(text.trimEnd())}</div>`;
}

// What is longer is no footer; it stands in the text.
const footerCharsMax = 256 * 1_024;
const sliceChars = 1 << 18;

// A replacement keeps a list of all matches: over a whole body of line ends it would fill the worker's heap.
function inSlices(text: string, change: (slice: string) => string): string {
  if (text.length <= sliceChars) return change(text);
  const slices: string[] = [];
  for (let start = 0; start < text.length; ) {
    // Not between CR and LF.
    const end = start + sliceChars + (text[start + sliceChars - 1] === "\r" ? 1 : 0);
    slices.push(change(text.slice(start, end)));
    start = end;
  }
  return slices.join("");
}

// Line ends become LF; NUL, which no database takes, becomes U+FFFD as in HTML.
function decodeBody({ part, encoding }: Leaf, defects: Set<string>): string {
  const transferred = decodeTransfer(part.body, encoding);
  const named = part.parameters.get("charset") ?? "";
  const isUnsaid = named === "" || (saysNothing(named) && !isUtf8(transferred.bytes));
  const charset = part.type === "text/html" && isUnsaid ? charsetInHtml(transferred.bytes) : named;
  const { text, defect } = decodePlainText(transferred.bytes, charset);
  for (const found of [transferred.defect, defect]) if (found !== null) defects.add(found);
  return inSlices(text, (slice) => slice.replace(/\r\n/g, "\n").replace(/\0/g, "\ufffd"));
}

const htmlHeadOctets = 2_048;

function charsetInHtml(bytes: Buffer): string {
  const head = bytes.toString("latin1", 0, htmlHeadOctets);
  const label = /<meta[^>]{0,200}?charset\s*=\s*["']?([a-z0-9_:.-]{1,40})/i.exec(head)?.[1] ?? "";
  // Words that can be read so are not in UTF-16, whatever they say (HTML, "prescan a byte stream", 13).
  return /^(?:utf-?(?:16|32)|ucs-?\d|unicode$)/i.test(label) ? "" : label;
}
