// Hostile bytes: mutations of the corpora and of nothing at all are read without an exception, within bounds and time.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { parseComplaint } from "../arf/arf.ts";
import { parseBounce } from "./dsn.ts";

const corpora = join(import.meta.dirname, "../../../../shared/data");
const skip = existsSync(corpora) ? false : "../shared/data is not here";
const folders = [
  "bounce-sisimai/eml",
  "bounce-flufl/mail",
  "dsn-misc/mimekit",
  "dsn-misc/ruby-mail",
  "arf-feedback/mail-auth",
];
const seeds = skip
  ? []
  : folders.flatMap((folder) =>
      readdirSync(join(corpora, folder)).map((name) => readFileSync(join(corpora, folder, name))),
    );
const timeMaxMs = 1_000;

// What breaks readers of mail: boundaries, encodings, fields, addresses, codes, controls, other charsets.
const pieces = [
  "\r",
  "\n",
  "\r\n\r\n",
  "\0",
  "--",
  "--b",
  "=",
  "=\n",
  "=?utf-8?B?",
  "?=",
  ":",
  ";",
  "<",
  ">",
  "@",
  "a@b.example",
  '"',
  "\\",
  "(",
  ")",
  "550 5.1.1 ",
  "4.4.7",
  "Final-Recipient: rfc822; ",
  "Action: failed\n",
  "Status: 5.1.1\n",
  "Content-Type: multipart/mixed; boundary=b\n",
  "Content-Type: message/delivery-status\n\n",
  "Content-Transfer-Encoding: base64\n\n",
  "<html><p>",
  "&#x1F600;",
  "\x1b$B",
  "\xff\xfe",
  '{"notificationType":"Bounce",',
  "[".repeat(300),
  "could not be delivered to the following recipients:\n",
  ">>> RCPT TO:<",
  "<<< 550 ",
  "__proto__: x\n",
  "constructor: y\n",
].map((text) => Buffer.from(text, "latin1"));

const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.nat({ max: 400 }),
  kind: fc.constantFrom("cut", "insert", "repeat", "flip", "end"),
  piece: fc.constantFrom(...pieces),
  times: fc.integer({ min: 1, max: 200 }),
});

function apply(
  mail: Buffer,
  { at, length, kind, piece, times }: { at: number; length: number; kind: string; piece: Buffer; times: number },
): Buffer {
  const start = Math.floor(at * mail.length);
  const end = Math.min(mail.length, start + length);
  const [before, middle, after] = [mail.subarray(0, start), mail.subarray(start, end), mail.subarray(end)];
  if (kind === "cut") return Buffer.concat([before, after]);
  if (kind === "insert") return Buffer.concat([before, piece, middle, after]);
  if (kind === "repeat") return Buffer.concat([before, ...Array.from({ length: times }, () => middle), after]);
  if (kind === "flip") return Buffer.concat([before, middle.map((octet) => octet ^ 0x80), after]);
  return before;
}

function check(mail: Buffer): void {
  const used = startProcessorTime();
  const bounce = parseBounce(mail);
  const complaint = parseComplaint(mail);
  const ms = used();
  assert.ok(ms < timeMaxMs, `${ms} ms`);
  if (bounce.kind === "bounce") {
    assert.ok(bounce.recipients.length > 0 && bounce.recipients.length <= 500);
    for (const one of bounce.recipients) {
      assert.ok(one.diagnostic.length <= 1_000 && !/[\r\n]/.test(one.diagnostic));
      assert.ok(!one.suppress || (one.bounce_type === "hard" && one.action === "failed"));
      assert.ok(one.email === null || !/[\s<>]/.test(one.email), one.email ?? "");
    }
    assert.ok(bounce.original.headers.length <= 200);
  }
  assert.ok(complaint === null || (complaint.recipients.length <= 200 && complaint.incidents >= 1));
}

test("mutations of the corpora never throw, stay within bounds and take less than a second", { skip }, (t) => {
  const property = fc.property(
    fc.constantFrom(...seeds),
    fc.array(edit, { minLength: 1, maxLength: 12 }),
    (seed, edits) => {
      check(edits.reduce(apply, seed));
    },
  );
  fc.assert(property, { numRuns: rounds(80, 1_500) });
  t.diagnostic(`${seeds.length} seeds`);
  assert.ok(seeds.length > 350, String(seeds.length));
});

test("arbitrary bytes and arbitrary texts never throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (octets) => check(Buffer.from(octets))),
    { numRuns: 300 },
  );
  const words = fc.array(fc.constantFrom(...pieces), { maxLength: 200 });
  fc.assert(
    fc.property(words, (parts) => check(Buffer.concat(parts))),
    { numRuns: 500 },
  );
});

const head = "From: MAILER-DAEMON@mx.example\nTo: b@us.example\nSubject: failure notice\n";
const hostile = [
  "message could not ",
  "mail unable ",
  "a@",
  "@",
  "<",
  "(",
  " ",
  "\t",
  "\n",
  "550 ",
  "5.",
  "-",
  "a:",
  '"',
  "\\",
  "'",
  "<user@there.example>: ",
  "user@there.example\n",
  ">>> RCPT TO:<a@b.example>\n<<< 550 no\n",
  "(expanded from: ",
  "mailbox ",
  "the following recipients could not be delivered user@a.example <b@c.example> 550 5.1.1 ",
  "メールの配信",
  "не может быть ",
  "Final-Recipient: rfc822;a@b.example\nAction: failed\n\n",
  " x\n",
  "--b\n",
  "--b\n\n",
  "<p>",
  "&lt;",
  "=\n",
  '{"a":',
];

test("reading is linear: up to a quarter of a mebibyte of one hostile word takes less than a second", () => {
  const octets = rounds(32, 256) * 1_024;
  for (const type of [
    "",
    "Content-Type: text/html\n",
    "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n",
  ]) {
    for (const word of hostile) {
      for (const width of [0, 300, 950]) {
        const words = word.repeat(Math.ceil(octets / word.length));
        const body = width === 0 ? words : (words.match(new RegExp(`[^]{1,${width}}`, "g")) ?? []).join("\n");
        check(
          Buffer.from(
            `${head}${type}\n--b\n\ncould not be delivered\n${body}\n--b\nContent-Type: message/delivery-status\n\n${body}`,
          ),
        );
      }
    }
  }
});
