// What we write: whole messages, header fields, names of files; read back by our own parser and by postal-mime.
import assert from "node:assert/strict";
import PostalMime from "postal-mime";
import { parseAddress } from "../../../src/mail/address.ts";
import { decodeTransfer } from "../../../src/mail/mime/decode-transfer.ts";
import { safeFilename } from "../../../src/mail/mime/filename.ts";
import { decodeWords, splitMessage } from "../../../src/mail/mime/parse-head.ts";
import { parseMessage } from "../../../src/mail/mime/parse-message.ts";
import { parseParameters } from "../../../src/mail/mime/parse-parameters.ts";
import { fileHeader, normalizeContentId, normalizeContentType } from "../../../src/mail/mime/part-headers.ts";
import { buildMessage, type MessageInput } from "../../../src/mail/mime/write/build-message.ts";
import { encodeText } from "../../../src/mail/mime/write/encode-body.ts";
import { rawHeader, textHeader } from "../../../src/mail/mime/write/encode-header.ts";
import { validateHeaders, validateHeaderText } from "../../../src/mail/mime/write/validate-headers.ts";
import { assertWire } from "../../cases/mime/oracles.ts";
import { type Draw, drawFrom, randomBytes } from "../draw.ts";
import type { Target } from "../target.ts";

const EMAILS = ["a@b.example", '"a b"@c.example', "jos\u00e9@d.example", "x+y@xn--bcher-kva.example", "o'h@e.example"];
const oneLine = (text: string) => text.replace(/[\r\n\0]/g, " ");
/** What a reader shows of a text: halves of surrogate pairs replaced, controls as spaces, blanks at the ends gone. */
const shown = (text: string) => text.toWellFormed().replace(/(?!\t)\p{Cc}/gu, " ");

function drawMailbox(draw: Draw): MessageInput["from"] {
  const parsed = parseAddress(draw.pick(EMAILS));
  assert.ok(parsed.ok);
  const name = draw.oneIn(3)
    ? null
    : draw
        .text(40)
        .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, "")
        .trim();
  return { name: name === "" ? null : name, email: parsed.address.email };
}

function drawFile(draw: Draw): MessageInput["attachments"][number] {
  return {
    filename: draw.text(60),
    content: draw.bytes(200),
    content_type: draw.pick([null, "application/pdf", "text/plain", "image/png", "text/csv; header=present"]),
    content_id: draw.oneIn(4) ? (normalizeContentId(draw.text(12, ["a", "b", "@", ".", "1"])) ?? null) : null,
    disposition: draw.pick([null, "attachment", "inline"]),
  };
}

function drawMessage(draw: Draw): MessageInput {
  const headers = validateHeaders(
    draw.list(3, () => [`X-${draw.text(8, ["a", "B", "-", "1"])}z`, draw.text(80)] as const),
  );
  return {
    from: drawMailbox(draw),
    to: draw.list(3, () => drawMailbox(draw)),
    cc: draw.list(2, () => drawMailbox(draw)),
    reply_to: draw.list(1, () => drawMailbox(draw)),
    subject: oneLine(draw.text(150)),
    date: 1_795_000_000_000,
    message_id: "1@b.example",
    headers: headers.ok ? headers.headers : [],
    html: draw.oneIn(3) ? null : draw.text(200),
    text: draw.oneIn(3)
      ? null
      : draw.text(300, ["a", "b c ", "\n", "\r\n", "\r", ".", "--=_", "é", "=", " \n", "日本", "From "]),
    attachments: draw.list(3, () => drawFile(draw)),
    boundary_seed: "aaaaaaaaaaaaaaaa",
  };
}

const lines = (text: string | null) =>
  (text ?? "").toWellFormed().replace(/\r\n?/g, "\n").replace(/\0/g, "\ufffd").replace(/\n+$/, "");

const builder: Target = {
  name: "message-builder",
  holds:
    "whatever goes into a message comes out of our parser and of postal-mime: fields, texts and files, byte for byte",
  seeds: {},
  bytes_max: 4_096,
  generate: (chance) => randomBytes(chance, 2_000),
  async check(input) {
    const given = drawMessage(drawFrom(input));
    const { bytes, body_offset, smtputf8 } = buildMessage(given);
    assertWire(bytes, smtputf8);
    assert.equal(splitMessage(bytes).body_offset, body_offset);
    const mail = parseMessage(bytes);
    assert.deepEqual(mail.defects, []);
    assert.deepEqual(
      mail.from.map(({ email }) => email),
      [given.from.email],
    );
    for (const field of ["to", "cc", "reply_to"] as const) {
      assert.deepEqual(
        mail[field].flatMap(({ email }) => email ?? []),
        given[field].map(({ email }) => email),
        field,
      );
    }
    assert.equal(mail.subject, shown(given.subject).trim() === "" ? mail.subject : shown(given.subject).trim());
    if (given.text !== null) assert.equal(lines(mail.text), lines(given.text));
    if (given.html !== null) assert.equal(lines(mail.html), lines(given.html));
    assert.deepEqual(files(mail.attachments), files(given.attachments));
    const theirs = await PostalMime.parse(bytes);
    assert.equal(theirs.from?.address, given.from.email);
    // postal-mime shows text that is to be shown inline with the text.
    const isText = mail.attachments.some(({ content_type }) => content_type.startsWith("text/"));
    if (!isText) assert.equal(theirs.attachments.length, given.attachments.length, "postal-mime finds other parts");
    return `${given.text === null} ${given.html === null} ${given.attachments.length} ${smtputf8}`;
  },
};

function files(attachments: readonly { filename: string; content: Buffer }[]): string[] {
  return attachments.map(({ filename, content }) => `${safeFilename(filename)} ${content.toString("base64")}`).sort();
}

const headerBuild: Target = {
  name: "header-build",
  holds: "a header that customers may set leaves as one field with that name and that value, whatever it holds",
  seeds: { lines: "header-build.jsonl" },
  words: ["\r\nBcc: x@y.example", "\n", "\u0085", "\u2028", "=?utf-8?Q?a?=", ": ", "X-A", "\t", "é", "\ud800", "  "],
  bytes_max: 8_192,
  check(input) {
    const text = input.toString("utf8");
    const cut = text.indexOf(":");
    const [name, value] = cut === -1 ? ["X-Test", text] : [text.slice(0, cut), text.slice(cut + 1)];
    const asText = validateHeaderText(value, 2_000);
    if (asText.ok) checkField(textHeader("Subject", value), "Subject", value.trim());
    const checked = validateHeaders([[name, value]]);
    if (!checked.ok) return checked.reason.slice(0, 30);
    const [header] = checked.headers;
    checkField(rawHeader(header!.name, header!.value), name, header!.value);
    return `${/^[\x20-\x7e\t]*$/.test(value)}`;
  },
};

function checkField(written: string, name: string, value: string): void {
  const { headers, defects } = splitMessage(Buffer.from(`${written}\r\n`));
  assert.deepEqual(defects, []);
  assert.equal(headers.length, 1, `${headers.length} fields came of one`);
  assert.equal(headers[0]!.name, name);
  for (const line of written.split("\r\n")) assert.ok(line.length <= 998 && /^[\x20-\x7e\t]*$/.test(line));
  // Encoded words that a customer writes into a header for machines stay as they are.
  if (!value.includes("=?")) assert.equal(decodeWords(headers[0]!.value).trim(), shown(value).trim());
}

const fileNames: Target = {
  name: "file-header",
  holds: "a file's name comes out of its header as it went in, within lines of 998 octets of ASCII",
  seeds: { lines: "filename.jsonl" },
  words: ["é", "日本", "😀", '"', "\\", "=?utf-8?Q?a?=", "%41", "'", "*", ";", ".pdf"],
  bytes_max: 4_096,
  check(input) {
    const name = safeFilename(input.toString("utf8"));
    const field = fileHeader("Content-Disposition: attachment", "filename", name);
    assert.match(field, /^(?:[\x20-\x7e]|\r\n (?=[\x21-\x7e]))+\r\n$/);
    for (const line of field.split("\r\n")) assert.ok(line.length <= 998, `a line of ${line.length}`);
    const { headers } = splitMessage(Buffer.from(`${field}\r\n`));
    assert.equal(parseParameters(headers[0]!.value).parameters.get("filename"), name);
    const type = normalizeContentType(input.toString("latin1"));
    if (type !== null) {
      assert.match(type, /^[\x20-\x7e]+$/);
      assert.equal(normalizeContentType(type), type);
    }
    return `${field.includes("*0*")} ${field.includes("*=")} ${type !== null}`;
  },
};

const bodyEncode: Target = {
  name: "body-encode",
  holds: "a text comes back from its encoding with every character, on lines short enough for every server",
  seeds: { files: ["html"], shared: ["spam-and-ham/**/*.eml"] },
  words: ["\r", "\n", "\r\n", ".", "From ", " \r\n", "\t\n", "=", "é", "😀", "\0", "\x0c", "日本語"],
  check(input) {
    const text = input.toString("utf8");
    const { encoding, body } = encodeText(text);
    const octets = Buffer.from(body as string, "latin1");
    assert.match(octets.toString("latin1"), /^(?:[^\r\n\0\x80-\xff]|\r\n)*$/);
    for (const line of octets.toString("latin1").split("\r\n"))
      assert.ok(line.length <= (encoding === "7bit" ? 900 : 76));
    const decoded = decodeTransfer(octets, encoding);
    assert.equal(decoded.defect, null);
    assert.equal(decoded.bytes.toString("utf8"), text.replace(/\r\n?|\n/g, "\r\n"));
    return encoding;
  },
};

const TYPES = ["text/plain", "application/octet-stream", "image/png", "message/rfc822"];
const LINES = [
  "--",
  "--b",
  "--b-",
  "--b--x",
  "--bb",
  "-- b",
  "x",
  "",
  "--b ",
  "--b.c",
  "Content-Type: text/html",
  "=",
  "\t",
];

type Tree = { boundary: string; parts: (Tree | string)[] };

/** Boundaries that begin with one another, and bodies of lines that are nearly boundaries. */
function drawTree(draw: Draw, depth: number): Tree {
  const boundary = `${draw.pick(["b", "bb", "b.c", "b-", "--b", "b b", "b="])}${"z".repeat(depth + 1)}`;
  const parts = Array.from({ length: draw.between(1, 3) }, () =>
    depth < 3 && draw.oneIn(3) ? drawTree(draw, depth + 1) : draw.list(4, () => draw.pick(LINES)).join("\r\n"),
  );
  return { boundary, parts };
}

function writeTree({ boundary, parts }: Tree, draw: Draw): string {
  const pieces = parts.map((part) =>
    typeof part === "string"
      ? `Content-Type: ${draw.pick(TYPES.slice(1, 3))}; name=f\r\nContent-Disposition: attachment\r\n\r\n${part}`
      : writeTree(part, draw),
  );
  const body = pieces.map((piece) => `--${boundary}\r\n${piece}\r\n`).join("");
  return `Content-Type: multipart/mixed;\r\n boundary="${boundary}"\r\n\r\npreamble\r\n${body}--${boundary}--`;
}

const leaves = (tree: Tree): string[] => tree.parts.flatMap((part) => (typeof part === "string" ? part : leaves(part)));

const mimeFraming: Target = {
  name: "mime-framing",
  holds:
    "the parts of well-formed trees are those that were put in, for us and for postal-mime, whatever their lines begin with",
  seeds: {},
  bytes_max: 512,
  generate: (chance) => randomBytes(chance, 200),
  async check(input) {
    const draw = drawFrom(input);
    const tree = drawTree(draw, 0);
    const bytes = Buffer.from(`From: a@b.example\r\nMIME-Version: 1.0\r\n${writeTree(tree, draw)}\r\n`);
    const wanted = leaves(tree);
    const mail = parseMessage(bytes);
    assert.deepEqual(
      mail.attachments.map(({ content }) => content.toString("latin1")),
      wanted,
    );
    const theirs = await PostalMime.parse(bytes);
    const contents = theirs.attachments.map(({ content }) => Buffer.from(content as ArrayBuffer).toString("latin1"));
    // postal-mime gives parts that are not encoded with LF, and one at their end.
    assert.deepEqual(
      contents,
      wanted.map((content) => `${content.replaceAll("\r\n", "\n")}\n`),
      "postal-mime finds other parts",
    );
    return `${wanted.length}`;
  },
};

export const BUILD_TARGETS: readonly Target[] = [builder, headerBuild, fileNames, bodyEncode, mimeFraming];
