// What the published MIME corpora expect of a message, held against what we read: lists of differences, each with a field,
// what the source has, and what we have. Differences of form are levelled here, with the reason; others are the caller's.
import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decodeText } from "./decode-charset.ts";
import { decodeTransfer } from "./decode-transfer.ts";
import { safeFilename } from "./filename.ts";
import type { ParsedAddress } from "./parse-addresses.ts";
import { parseMessage } from "./parse-message.ts";
import { type Part, parseStructure } from "./parse-structure.ts";
import type { ParsedAttachment, ParsedMail } from "./parsed-mail.ts";

export type Found = { field: string; want: string; got: string };

export const mimeData = fileURLToPath(new URL("../../../../shared/data/", import.meta.url));

/** Paths below a corpus, sorted; none when it is not there. */
export function corpusFiles(pattern: string, folder = mimeData): string[] {
  return existsSync(folder) ? globSync(pattern, { cwd: folder }).toSorted() : [];
}

function levelled(text: string | null | undefined): string {
  return (text ?? "").replace(/\r\n?/g, "\n").replace(/\n+/g, "\n").replaceAll("\0", "\ufffd").trimEnd();
}

/** Equal, but where the source could not decode and shows U+FFFD, anything will do. */
function isLike(want: string, got: string): boolean {
  if (want === got) return true;
  if (!want.includes("\ufffd")) return false;
  const pieces = want.split(/\ufffd+/).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${pieces.join("[^\\x00-\\x7f]{1,4}")}$`, "su").test(got);
}

function compare(found: Found[], field: string, want: unknown, got: unknown): void {
  const [wanted, had] = [want, got].map((value) => (typeof value === "string" ? value : JSON.stringify(value ?? null)));
  // Contents whole: what is cut off may be what differs.
  const show = (text: string) => (field.endsWith("content") ? text : text.slice(0, 300));
  if (!isLike(wanted!, had!)) found.push({ field, want: show(wanted!), got: show(had!) });
}

// --- Stalwart's mail-parser ------------------------------------------------------------------------------------------

type StalwartValue = "Empty" | Record<string, never>;
type StalwartPart = { headers: { name: string | object; value: StalwartValue }[]; body: Record<string, unknown> };
type StalwartMail = { html_body: number[]; text_body: number[]; attachments: number[]; parts: StalwartPart[] };

/** Compares with the whole parse beside `<name>.eml`. `mail`: as the product had it, when not as the parser has it. */
export function stalwartDifferences(emlPath: string, mail: ParsedMail = parseMessage(readFileSync(emlPath))): Found[] {
  const want = JSON.parse(readFileSync(emlPath.replace(/\.eml$/, ".json"), "utf8")) as StalwartMail;
  const found: Found[] = [];
  compareStalwartFields(found, want.parts[0]!, mail);
  compareStalwartBodies(found, want, mail);
  compareStalwartAttachments(found, want, mail);
  return found;
}

function stalwartField(part: StalwartPart, name: string, kind: string): unknown {
  const value = part.headers.find((header) => header.name === name)?.value;
  return value === undefined || value === "Empty" ? undefined : value[kind];
}

function compareStalwartFields(found: Found[], root: StalwartPart, mail: ParsedMail): void {
  compare(found, "subject", stalwartField(root, "subject", "Text"), mail.subject || null);
  for (const name of ["from", "to"] as const)
    compare(found, name, stalwartAddresses(root, name), mail[name].map(asPair));
  compare(found, "message_id", stalwartField(root, "message_id", "Text"), mail.message_id?.slice(1, -1));
  const reply =
    stalwartField(root, "in_reply_to", "Text") ?? (stalwartField(root, "in_reply_to", "TextList") as string[])?.[0];
  compare(found, "in_reply_to", reply, mail.in_reply_to?.slice(1, -1));
  const references = stalwartField(root, "references", "TextList") ?? stalwartField(root, "references", "Text") ?? [];
  compare(
    found,
    "references",
    [references].flat(),
    mail.references.map((id) => id.slice(1, -1)),
  );
  compare(found, "date", stalwartDate(stalwartField(root, "date", "DateTime")), mail.date);
}

function asPair({ name, email }: ParsedAddress): (string | null)[] {
  return [name, email];
}

type StalwartAddress = {
  List?: { name: string | null; address: string | null }[];
  Group?: { addresses: { name: string | null; address: string | null }[] }[];
};

function stalwartAddresses(root: StalwartPart, name: string): (string | null)[][] {
  const all = root.headers.filter((header) => header.name === name && header.value !== "Empty");
  return all.flatMap(({ value }) => {
    const { List, Group } = (value as Record<string, unknown>).Address as StalwartAddress;
    return (List ?? Group!.flatMap(({ addresses }) => addresses)).map((one) => [one.name ?? null, one.address ?? null]);
  });
}

function stalwartDate(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const { year, month, day, hour, minute, second, tz_hour, tz_minute, tz_before_gmt } = value as Record<string, number>;
  const offset = (tz_hour! * 60 + tz_minute!) * (tz_before_gmt ? -1 : 1);
  return new Date(Date.UTC(year!, month! - 1, day, hour, minute! - offset, second)).toISOString();
}

// The source lists a part in both lists when the message has only one kind; we say null for the other.
function compareStalwartBodies(found: Found[], want: StalwartMail, mail: ParsedMail): void {
  const bodies = (list: number[], kind: string) =>
    list.map((index) => want.parts[index]!.body[kind]).filter((body) => typeof body === "string");
  const text = bodies(want.text_body, "Text").map(levelled).join("\n");
  compare(found, "text", levelled(text), levelled(mail.text));
  const html = levelled(mail.html);
  for (const piece of bodies(want.html_body, "Html").map(levelled))
    if (!html.includes(piece)) compare(found, "html", piece, html);
  if (bodies(want.html_body, "Html").length === 0 && html !== "") compare(found, "html", "", html);
}

function compareStalwartAttachments(found: Found[], want: StalwartMail, mail: ParsedMail): void {
  compare(found, "attachments", want.attachments.length, mail.attachments.length);
  if (want.attachments.length !== mail.attachments.length) return;
  for (const [index, at] of want.attachments.entries()) {
    const part = want.parts[at]!;
    const attachment = mail.attachments[index]!;
    const type = stalwartField(part, "content_type", "ContentType") as StalwartType | undefined;
    const disposition = stalwartField(part, "content_disposition", "ContentType") as StalwartType | undefined;
    const name = parameter(disposition, "filename") ?? parameter(type, "name");
    if (name) compare(found, `attachment ${index} name`, safeFilename(name), attachment.filename);
    compareContent(found, `attachment ${index} content`, {
      body: part.body,
      attachment,
      charset: parameter(type, "charset") ?? "",
    });
  }
}

type StalwartType = { attributes?: { name: string; value: string }[] | null };

function parameter(type: StalwartType | undefined, name: string): string | undefined {
  return type?.attributes?.find((attribute) => attribute.name === name)?.value;
}

// Text of the source is decoded; ours are the bytes. A message within is a tree there and bytes here.
function compareContent(
  found: Found[],
  field: string,
  given: { body: Record<string, unknown>; attachment: ParsedAttachment; charset: string },
): void {
  const { body, attachment, charset } = given;
  const text = body.Text ?? body.Html;
  if (typeof text === "string")
    compare(found, field, levelled(text), levelled(decodeText(attachment.content, charset).text));
  const binary = body.Binary ?? body.InlineBinary;
  if (Array.isArray(binary))
    compare(found, field, Buffer.from(binary).toString("hex"), attachment.content.toString("hex"));
}

// --- Apache James mime4j ---------------------------------------------------------------------------------------------

/** Compares the leaves, in order, with those of `<name>_decoded.xml`. `bytes`: as they are stored, when not the file's. */
export function mime4jDifferences(msgPath: string, bytes: Buffer = readFileSync(msgPath)): Found[] {
  const xml = readFileSync(msgPath.replace(/\.msg$/, "_decoded.xml"), "utf8");
  const folder = msgPath.slice(0, msgPath.lastIndexOf("/") + 1);
  const names = [...xml.matchAll(/<(?:text|binary)-body name="([^"]*)"/g)].map((match) => match[1]!);
  const wanted = names.map((name) => readFileSync(folder + name));
  const { root } = parseStructure(bytes, { parts_max: 1_000, depth_max: 50 });
  const got = leavesOf(root);
  const found: Found[] = [];
  compare(found, "leaves", wanted.length, got.length);
  if (wanted.length !== got.length) return found;
  for (const [index, body] of wanted.entries()) {
    const isBinary = names[index]!.endsWith(".bin");
    const show = (bytes: Buffer) => (isBinary ? bytes.toString("hex") : levelled(bytes.toString("latin1")));
    compare(found, `leaf ${index}`, show(body), show(got[index]!));
  }
  return found;
}

// Like the source, we look into messages within here.
function leavesOf(part: Part): Buffer[] {
  if (part.children) return part.children.flatMap(leavesOf);
  const encoding = part.headers.find(({ name }) => name.toLowerCase() === "content-transfer-encoding")?.value ?? "";
  const { bytes } = decodeTransfer(part.body, encoding);
  return part.type === "message/rfc822"
    ? leavesOf(parseStructure(bytes, { parts_max: 1_000, depth_max: 50 }).root)
    : [bytes];
}

// --- mails of many libraries, beside CPython's email package ----------------------------------------------------------

type PythonLeaf = { type: string; filename: string | null; decoded_size: number; disposition: string | null };
export type PythonMail = Record<"subject" | "from" | "to" | "date" | "message-id", string | null | object> & {
  leaf_parts: PythonLeaf[];
};

const spaced = (text: unknown) => (typeof text === "string" ? text.replace(/\s+/g, " ").trim() : "");
const addressesIn = (text: unknown) =>
  (spaced(text).match(/[^\s<>,;:"()[\]]+@[^\s<>,;:"()[\]]+/g) ?? []).toSorted().join(" ");

/** Compares with what CPython's email package reads; a second opinion, not a ruling. */
export function pythonDifferences(bytes: Buffer, want: PythonMail, mail: ParsedMail = parseMessage(bytes)): Found[] {
  const found: Found[] = [];
  compare(found, "subject", spaced(want.subject), spaced(mail.subject));
  compare(
    found,
    "message_id",
    spaced(want["message-id"]).replace(/[<>\s]/g, ""),
    (mail.message_id ?? "").replace(/[<>]/g, ""),
  );
  compare(found, "date", want.date !== null, mail.date !== null);
  for (const name of ["from", "to"] as const) {
    compare(
      found,
      name,
      addressesIn(want[name]),
      mail[name]
        .map(({ email }) => email)
        .filter(Boolean)
        .toSorted()
        .join(" "),
    );
  }
  for (const { filename, decoded_size, type } of want.leaf_parts) {
    if (!filename) continue;
    const same = mail.attachments.filter(
      (one) => one.filename === safeFilename(filename) || isLike(filename.slice(0, 150), one.filename.slice(0, 150)),
    );
    compare(found, `attachment ${filename}`.slice(0, 80), true, same.length > 0);
    // A message within has no size there.
    if (same.length > 0 && !type.startsWith("message/"))
      compare(
        found,
        `size of ${filename}`.slice(0, 80),
        true,
        same.some(({ size }) => size === decoded_size),
      );
  }
  const isText = ({ type, filename, disposition, decoded_size }: PythonLeaf) =>
    /^text\/(?:plain|html)$/.test(type) && !filename && disposition !== "attachment" && decoded_size > 0;
  if (want.leaf_parts.some(isText))
    compare(found, "has text", true, spaced(mail.text ?? mail.html) !== "" || spaced(mail.html) !== "");
  return found;
}
