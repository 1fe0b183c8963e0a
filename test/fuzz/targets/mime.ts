// MIME as others wrote it: heads, structure, encoded words, parameters, encodings, charsets, dates, names of files, HTML.
import assert from "node:assert/strict";
import { decodeText } from "../../../src/mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../../src/mail/mime/decode-transfer.ts";
import { filenameCharsMax, safeFilename } from "../../../src/mail/mime/filename.ts";
import { decodeEntities } from "../../../src/mail/mime/html-entities.ts";
import { parseMailDate } from "../../../src/mail/mime/parse-date.ts";
import { decodeWords, headersMax, splitMessage } from "../../../src/mail/mime/parse-head.ts";
import { defaultParseLimits, parseMessage } from "../../../src/mail/mime/parse-message.ts";
import { parseParameters } from "../../../src/mail/mime/parse-parameters.ts";
import { stripHtml } from "../../../src/mail/mime/strip-html.ts";
import { readSubmittedHead } from "../../../src/mail/mime/write/submitted-head.ts";
import { escapeHtml } from "../../../src/templates/language/render.ts";
import { assertOneLine, assertSameBytes, assertStorable, assertStorableAll, assertUnpolluted } from "../invariants.ts";
import type { Target } from "../target.ts";

const MAILS = ["mime-misc/**/*.eml", "mime-mime4j/**/*.msg", "mime-stalwart/**/*.eml", "spam-and-ham/**/*.eml"];
const FIELDS = [
  ...[
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "Content-Type: text/html; charset=utf-8\r\n",
    "\r\n--b\r\n",
    "\r\n--b--\r\n",
  ],
  ...[
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "Content-Type: message/rfc822\r\n\r\n",
  ],
  ...[
    "Content-Disposition: attachment; filename=a\r\n",
    "Content-ID: <a@b>\r\n",
    'boundary=""',
    "filename*0*=utf-8''%41;",
    "\r\n\r\n",
  ],
  ...[
    "=?utf-8?B?w6k=?=",
    "=?iso-2022-jp?B?GyRC?=",
    "=3D",
    "=\r\n",
    "begin 644 a\r\n",
    "__proto__: x\r\n",
    "Subject: a\r\n",
    "Date: ",
  ],
];

const mimeParse: Target = {
  name: "mime-parse",
  holds: "any bytes give one mail of bounded size whose texts can all be stored and whose files have safe names",
  seeds: { files: ["mail"], shared: MAILS },
  words: FIELDS,
  bytes_max: 128 * 1_024,
  check(input) {
    const mail = parseMessage(input);
    assertStorableAll("mail", { ...mail, attachments: mail.attachments.map(({ content, ...rest }) => rest) });
    assert.ok(mail.headers.length <= headersMax);
    assert.ok(mail.attachments.length <= defaultParseLimits.parts_max);
    for (const { name, value } of mail.headers) assertOneLine(name, value);
    const boxes = [mail.from, mail.sender, mail.to, mail.cc, mail.reply_to].flat();
    assert.ok(
      boxes.every(({ name, email }) => name !== null || email !== null),
      "a mailbox of nobody",
    );
    for (const file of mail.attachments) {
      assert.equal(file.size, file.content.length);
      assert.equal(safeFilename(file.filename), file.filename);
    }
    const size = mail.attachments.reduce((sum, file) => sum + file.size, 0);
    assert.ok(size <= input.length * 2 + 1_000, `attachments of ${size} bytes out of ${input.length}`);
    assert.ok((mail.text?.length ?? 0) + (mail.html?.length ?? 0) <= input.length * 12 + 1_000);
    assertUnpolluted();
    return `${mail.defects.sort().join(" ")} ${mail.attachments.length > 0} ${mail.html !== null}`;
  },
};

const headerFields: Target = {
  name: "header-fields",
  holds: "the fields of a head are pieces of it in order, with names of printable ASCII and values on one line",
  seeds: { files: ["mail"], shared: MAILS },
  words: [...FIELDS, ": ", "\r\n ", "\n", "\r\n\t", "__proto__:", " :"],
  check(input) {
    const { headers, body_offset, defects } = splitMessage(input);
    assert.ok(headers.length <= headersMax && body_offset <= input.length);
    let at = 0;
    for (const { name, value, raw } of headers) {
      assert.match(name, /^[\x21-\x39\x3b-\x7e]+$/);
      assert.doesNotMatch(value, /\n/);
      const start = input.indexOf(raw, at);
      assert.ok(start >= at && start + raw.length <= body_offset, `${name} does not stand in the head, in order`);
      at = start + raw.length;
    }
    return `${defects.join(" ")} ${Math.min(headers.length, 5)}`;
  },
};

const encodedWord: Target = {
  name: "encoded-word",
  holds: "decoding encoded words gives well-formed text, not much longer, and hides no line end in one line",
  seeds: { lines: "encoded-word.jsonl", shared: ["mime-misc/**/*.json"] },
  words: [
    "=?utf-8?Q?",
    "=?utf-8?B?",
    "=?utf-7?Q?",
    "=?iso-2022-jp?B?",
    "=?hz-gb-2312?Q?",
    "?=",
    "=0D=0A",
    "=00",
    "_",
    "*en",
  ],
  check(input) {
    const given = input.toString("utf8").replace(/[\r\n\0]/g, " ");
    const decoded = decodeWords(given);
    assertOneLine("decoded", decoded);
    assert.ok(decoded.isWellFormed());
    const octets = Buffer.byteLength(given);
    assert.ok(decoded.length <= octets * 2 + 10, `${decoded.length} characters out of ${octets} octets`);
    if (!given.includes("=?")) assert.equal(decoded, given);
    return `${decoded === given} ${decoded.includes("\ufffd")} ${decoded.includes("=?")}`;
  },
};

const PARAMETER_CHARS_MAX = 16_384;

const rfc2231: Target = {
  name: "rfc2231",
  holds:
    "parameters of any field are few, cut where they are long, well-formed, and the first of two plain ones counts",
  seeds: { lines: "rfc2231.jsonl", shared: ["mime-misc/**/*.json"] },
  words: [
    ..."; name*0*= ; name*1= ; name= utf-8'' ''".split(" "),
    "filename*=",
    "%41",
    "%FF",
    '"',
    "\\",
    "*999=",
    "boundary=",
  ],
  check(input) {
    const { value, parameters } = parseParameters(input.toString("utf8"));
    assert.equal(value, value.toLowerCase());
    assert.ok(parameters.size <= 100);
    for (const [name, text] of parameters) {
      assert.ok(name.length <= 80);
      assert.ok(text.length <= PARAMETER_CHARS_MAX && text.isWellFormed());
    }
    assertUnpolluted();
    const first = /^[a-z/]+; ?name=([a-z0-9]+)(?:; ?[a-z]+=[a-z0-9]+)*$/.exec(input.toString("latin1"));
    if (first) assert.equal(parameters.get("name"), first[1]?.slice(0, PARAMETER_CHARS_MAX));
    return `${Math.min(parameters.size, 4)} ${[...parameters.values()].some((text) => text.includes("\ufffd"))}`;
  },
};

const ENCODINGS = ["base64", "quoted-printable", "x-uuencode", "7bit", "binary", "unheard-of"];

const transferDecode: Target = {
  name: "transfer-decode",
  holds: "undoing a transfer encoding never makes more bytes, and base64 reads what Node reads",
  seeds: { lines: "transfer-decode.jsonl", shared: MAILS },
  words: ["=", "=\r\n", "=3D", "==", "\r\n", "begin 644 a\r\n", "`\r\nend\r\n", "M", " \r\n", "----"],
  check(input) {
    for (const encoding of ENCODINGS) {
      const { bytes } = decodeTransfer(input, encoding);
      assert.ok(bytes.length <= input.length, `${encoding}: ${bytes.length} bytes out of ${input.length}`);
    }
    const text = input.toString("latin1").replace(/[^A-Za-z0-9+/]/g, "");
    const { bytes, defect } = decodeTransfer(Buffer.from(text), "base64");
    assertSameBytes("base64", bytes, Buffer.from(text, "base64"));
    const plain = decodeTransfer(input, "quoted-printable");
    return `${defect} ${plain.defect} ${decodeTransfer(input, "uue").defect}`;
  },
};

const CHARSETS = [
  ..."utf-8 utf-7 utf-16 utf-16le utf-32 us-ascii iso-8859-1 iso-8859-15 windows-1252 koi8-r shift_jis euc-jp".split(
    " ",
  ),
  ..."iso-2022-jp iso-2022-kr hz-gb-2312 gb18030 big5 euc-kr windows-874 x-user-defined unknown-8bit".split(" "),
];
const SINGLE_BYTE = ["windows-1251", "windows-1250", "koi8-r", "iso-8859-2", "windows-1252"];

const charset: Target = {
  name: "charset",
  holds:
    "text in any charset becomes well-formed text of bounded size; UTF-8 and single bytes read as WHATWG's decoder",
  seeds: { lines: "charset.jsonl", shared: ["mime-misc/**/*.eml"] },
  words: ["\x1b$B", "\x1b(B", "~{", "~}", "+AGE-", "\ufeff", "\xff\xfe", "é", "日本", "😀", "\x0e", "\x0f"],
  bytes_max: 32_768,
  check(input) {
    const pick = (input[0] ?? 0) % CHARSETS.length;
    const bytes = input.subarray(1);
    const { text, defect } = decodeText(bytes, CHARSETS[pick]!);
    assert.ok(text.isWellFormed());
    assert.ok(text.length <= bytes.length * 2 + 2);
    if (isUtf8(bytes)) assert.equal(decodeText(bytes, "utf-8").text, new TextDecoder("utf-8").decode(bytes));
    const label = SINGLE_BYTE[bytes.length % SINGLE_BYTE.length]!;
    const reference = new TextDecoder(label).decode(bytes);
    const isPlain = !/[\x80-\x9f\ufffd]/.test(reference);
    if (isPlain && decodeText(bytes, label).defect === null) assert.equal(decodeText(bytes, label).text, reference);
    return `${CHARSETS[pick]} ${defect}`;
  },
};

function isUtf8(bytes: Buffer): boolean {
  return !bytes.toString("utf8").includes("\ufffd");
}

const mailDate: Target = {
  name: "mail-date",
  holds: "a date that is read is an instant, and reads the same when written by the letter of RFC 5322",
  seeds: { lines: "mail-date.jsonl" },
  words: ["Mon, ", "Feb", "30", "-0000", "+9999", "24:00:60", "GMT", "(c)", "0099", "12:00 PM", "T", "Z"],
  bytes_max: 2_048,
  check(input) {
    const read = parseMailDate(input.toString("utf8"));
    if (read === null) return "none";
    assert.match(read, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const instant = new Date(read);
    assert.ok(Number.isFinite(instant.getTime()));
    assert.equal(parseMailDate(instant.toUTCString().replace("GMT", "+0000")), read);
    return read.slice(0, 2);
  },
};

const filename: Target = {
  name: "filename",
  holds: "a name of a file is safe for headers and folders, never empty, and safe again as it is",
  seeds: { lines: "filename.jsonl" },
  words: ["/", "\\", "..", ".", "\u202e", "\0", "CON", ":", "\u200d", "😀", "\ud83d", ".exe", " "],
  check(input) {
    const name = safeFilename(input.toString(input.length % 2 === 0 ? "utf8" : "utf16le"));
    assert.ok(name.length >= 1 && name.length <= filenameCharsMax && name.isWellFormed());
    assert.doesNotMatch(name, /[/\\\p{Cc}\p{Zl}\p{Zp}<>:"|?*\u202a-\u202e\u2066-\u2069]|^\.{1,2}$|[. ]$/u);
    assert.equal(safeFilename(name), name);
    return `${name === "attachment"} ${name.length === filenameCharsMax}`;
  },
};

const MARK = "zqx7mark";

const htmlToText: Target = {
  name: "html-to-text",
  holds:
    "text out of HTML is bounded, shows nothing of scripts and styles, and does not change when one is put in front",
  seeds: { files: ["html"], shared: ["spam-and-ham/**/*.eml", "masked-forwarding/**/*.eml"] },
  words: [
    "<div>",
    "</div>",
    "<p>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<a href=",
    "<li>",
    "<ol>",
    "<td>",
    "&nbsp;",
    "<blockquote>",
  ],
  bytes_max: 256 * 1_024,
  check(input) {
    const html = input.toString("utf8");
    const text = stripHtml(html);
    assert.ok(text.length <= html.length * 3 + 1_000, `${text.length} characters out of ${html.length}`);
    const hidden = `<style>${MARK}{}</style><script>"${MARK}"</script>`;
    const withHidden = stripHtml(`${hidden}${html}`);
    assert.ok(!withHidden.includes(MARK), "what a script holds is shown");
    assert.equal(withHidden, text);
    return `${text === ""} ${Math.min(5, text.split("\n").length)} ${text.includes("> ")}`;
  },
};

const htmlEntities: Target = {
  name: "html-entities",
  holds: "character references never make text longer or unstorable, and undo what escaping did",
  seeds: { lines: "html-entities.jsonl" },
  words: ["&amp;", "&#", "&#x", ";", "&#0;", "&#xd800;", "&#x110000;", "&lt", "&notit;", "&#99999999999;"],
  check(input) {
    const given = input.toString("utf8");
    const decoded = decodeEntities(given);
    assert.ok(decoded.length <= given.length && decoded.isWellFormed());
    if (!given.includes("\0")) assertStorable("decoded", decoded);
    assert.equal(decodeEntities(escapeHtml(given)), given);
    return `${decoded === given}`;
  },
};

const submittedHead: Target = {
  name: "submitted-head",
  holds: "a submitted head that is accepted has one author, hides no field, and reads the same when written again",
  seeds: { files: ["mail"], lines: "author.jsonl", shared: ["mime-misc/**/*.eml", "spam-and-ham/**/*.eml"] },
  words: [
    ...FIELDS,
    "From: ",
    "Bcc: x@y.example\r\n",
    "Sender: ",
    "X-Service-Tag: ",
    "X-Service-Metadata-__proto__: 1\r\n",
    "Message-ID: <",
  ],
  check(input) {
    if (/\0|\r(?!\n)|(?<!\r)\n/.test(input.toString("latin1"))) return "refused at the door";
    const read = readSubmittedHead(input);
    if (!read.ok) return read.problem;
    const { head } = read;
    for (const raw of head.kept)
      assert.match(raw.toString("latin1"), /^[\x21-\x39\x3b-\x7e]+:(?:[^\r\n]|\r\n[ \t])*\r\n$/);
    const names = head.kept.map((raw) => raw.toString("latin1", 0, raw.indexOf(0x3a)).toLowerCase());
    assert.ok(!names.includes("bcc") && !names.some((name) => name.startsWith("x-service-")));
    assert.equal(names.filter((name) => name === "from").length, 1);
    const again = readSubmittedHead(Buffer.concat([...head.kept, Buffer.from("\r\n")]));
    assert.ok(again.ok, "its own fields are refused");
    assert.deepEqual(again.head.from, head.from);
    assertStorableAll("labels", [head.subject, head.tags, head.metadata, head.from, [...head.to], [...head.cc]]);
    assertUnpolluted();
    return `${head.senders.length} ${head.message_id === null} ${head.tags.length > 0} ${head.metadata.size > 0}`;
  },
};

export const MIME_TARGETS: readonly Target[] = [
  ...[mimeParse, headerFields, encodedWord, rfc2231, transferDecode, charset, mailDate, filename],
  ...[htmlToText, htmlEntities, submittedHead],
];
