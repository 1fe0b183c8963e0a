// What independent parsers see in a message that src/mail/mime built, and the rules every message on the wire keeps.
// CPython's email package (policy.default, read_messages.py) runs once for many messages; postal-mime runs here.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import PostalMime from "postal-mime";
import type { MessageInput } from "../../../src/mail/mime/write/build-message.ts";
import type { HeaderMailbox } from "../../../src/mail/mime/write/encode-header.ts";
import { safeFilename } from "../../../src/mail/mime/filename.ts";
import { decodeWords, headerValues, splitMessage } from "../../../src/mail/mime/parse-head.ts";

const script = fileURLToPath(new URL("./read_messages.py", import.meta.url));

export type Tree = string | [string, ...Tree[]];
export type PythonLeaf = {
  type: string;
  text: string | null;
  content: string;
  filename: string | null;
  disposition: string | null;
  content_id: string | null;
};
export type PythonMessage = {
  headers: [string, string][];
  subject: string | null;
  date: number | null;
  from: [string, string][];
  to: [string, string][];
  cc: [string, string][];
  reply_to: [string, string][];
  tree: Tree;
  leaves: PythonLeaf[];
  defects: string[];
};

/** False when python3 is here, else the reason to skip. */
export const pythonMissing: false | string =
  spawnSync("python3", ["-c", "import email"]).status === 0 ? false : "python3 is not installed";

/** What CPython's email package reads in each message, in order. Throws when the script fails. */
export function readWithPython(messages: readonly Buffer[]): PythonMessage[] {
  const input = messages.map((bytes) => bytes.toString("base64")).join("\n");
  const run = spawnSync("python3", [script], { input, maxBuffer: 256 * 1_024 * 1_024, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  const lines = run.stdout.trimEnd().split("\n");
  assert.equal(lines.length, messages.length);
  return lines.map((line) => JSON.parse(line) as PythonMessage);
}

/** Fails unless the bytes keep RFC 5322 §2.1.1 and §2.3: CRLF only, no NUL, lines of at most 998 octets, a last CRLF. */
export function assertWire(bytes: Buffer, smtputf8 = false): void {
  const text = bytes.toString("latin1");
  assert.ok(text.endsWith("\r\n"), "the message does not end with CRLF");
  assert.doesNotMatch(text, /\r(?!\n)|(?<!\r)\n/, "bare CR or LF");
  assert.ok(!text.includes("\0"), "NUL");
  if (!smtputf8) assert.match(text, /^[\x00-\x7f]*$/, "not 7 bit");
  for (const line of text.split("\r\n")) assert.ok(line.length <= 998, `a line of ${line.length} octets`);
}

/** Text with every line end as LF, half surrogates replaced, and no line end at the end, where parsers differ. */
export function sameText(text: string | null | undefined): string {
  return (text ?? "").toWellFormed().replace(/\r\n?/g, "\n").replace(/\n+$/, "");
}

/** Fails unless postal-mime and our own head parser read back what was put in. */
export async function assertPostalMimeAgrees(bytes: Buffer, input: MessageInput): Promise<void> {
  const seen = await PostalMime.parse(bytes);
  const { headers, defects } = splitMessage(bytes);
  assert.deepEqual(defects, []);
  assert.equal(decodeWords(headerValues(headers, "subject")[0]!), shown(input.subject));
  assert.equal(decodeWords(headerValues(headers, "from")[0]!).includes(input.from.email), true);
  for (const { name, value } of input.headers) assert.equal(decodeWords(headerValues(headers, name)[0]!), shown(value));
  assert.equal((seen.subject ?? "").trim(), shown(input.subject).trim());
  assert.deepEqual(boxes([seen.from!]), expectedBoxes([input.from]));
  assert.deepEqual(boxes(seen.cc ?? []), expectedBoxes(input.cc));
  assert.deepEqual(boxes(seen.replyTo ?? []), expectedBoxes(input.reply_to));
  if (input.to.length > 0) assert.deepEqual(boxes(seen.to ?? []), expectedBoxes(input.to));
  assert.equal(seen.messageId, `<${input.message_id}>`);
  assert.equal(Date.parse(seen.date!), input.date);
  if (input.text !== null) assert.equal(sameText(seen.text), sameText(input.text));
  if (input.html !== null) assert.equal(sameText(seen.html), sameText(input.html));
  // postal-mime writes nested messages and calendars itself, so their octets are CPython's to compare.
  const isCompared = (type: string | null) => !/^(?:message\/rfc822|text\/calendar)/.test(type ?? "");
  const found = seen.attachments.filter((file) => isCompared(file.mimeType));
  const wanted = input.attachments.filter((file) => isCompared(file.content_type));
  assert.equal(seen.attachments.length, input.attachments.length);
  assert.deepEqual(
    found.map((file) => `${file.filename} ${Buffer.from(file.content as ArrayBuffer).toString("base64")}`).sort(),
    wanted.map((file) => `${safeFilename(file.filename)} ${file.content.toString("base64")}`).sort(),
  );
}

/** Fails unless CPython's email package reads back what was put in, without a defect. */
export function assertPythonAgrees(seen: PythonMessage, input: MessageInput): void {
  assert.equal(tight(seen.subject ?? ""), tight(input.subject));
  assert.equal(seen.date, input.date / 1_000);
  assert.deepEqual(pythonBoxes(seen.from), pythonExpected([input.from]));
  assert.deepEqual(pythonBoxes(seen.to), pythonExpected(input.to));
  assert.deepEqual(pythonBoxes(seen.cc), pythonExpected(input.cc));
  assert.deepEqual(pythonBoxes(seen.reply_to), pythonExpected(input.reply_to));
  const bodies = seen.leaves.filter((leaf) => leaf.filename === null);
  const expected = [input.text ?? (input.html === null ? "" : null), input.html].filter((text) => text !== null);
  assert.deepEqual(bodies.map((leaf) => sameText(leaf.text)), expected.map(sameText));
  const files = seen.leaves.filter((leaf) => leaf.filename !== null);
  const wanted = input.attachments.map((file) => `${safeFilename(file.filename)} ${file.content.toString("base64")}`);
  if (!input.attachments.some((file) => file.content_type === "message/rfc822")) {
    assert.deepEqual(files.map((leaf) => `${leaf.filename} ${leaf.content}`).sort(), wanted.sort());
  }
  // The fallback name beside the RFC 2231 one is a duplicate to CPython, which then takes the first.
  assert.deepEqual(seen.defects.filter((defect) => defect !== "Content-Disposition: InvalidHeaderDefect"), []);
}

function boxes(list: readonly { name?: string; address?: string }[]): string[] {
  return list.map((box) => `${(box.name ?? "").trim()} <${box.address}>`);
}

function expectedBoxes(list: readonly HeaderMailbox[]): string[] {
  return list.map((box) => `${shown(box.name ?? "").trim()} <${box.email}>`);
}

// CPython puts a space between two encoded words of a phrase, against RFC 2047 §6.2: names are compared without spaces.
function pythonBoxes(list: readonly [string, string][]): string[] {
  return list.map(([name, email]) => `${tight(name)} <${email}>`);
}

function pythonExpected(list: readonly HeaderMailbox[]): string[] {
  return list.map((box) => `${tight(box.name ?? "")} <${box.email}>`);
}

function tight(text: string): string {
  return shown(text).replace(/\s+/g, "");
}

// What a reader shows of a header text: halves of surrogate pairs replaced, controls as spaces.
function shown(text: string): string {
  return text.toWellFormed().replace(/(?!\t)\p{Cc}/gu, " ");
}
