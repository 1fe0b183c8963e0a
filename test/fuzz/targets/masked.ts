// Masked addresses: what goes on to a real mailbox, and what leaves from it; and what spam is judged by.
import assert from "node:assert/strict";
import PostalMime from "postal-mime";
import { splitMessage } from "../../../src/mail/mime/parse-head.ts";
import { parseMessage } from "../../../src/mail/mime/parse-message.ts";
import { addUp, findSymptoms } from "../../../src/mail/spam/spam.ts";
import { rewriteCalendar } from "../../../src/masked/rewrite/calendar/calendar.ts";
import { guardCalendars } from "../../../src/masked/rewrite/calendar/calendar-parts.ts";
import { carrier } from "../../../src/masked/rewrite/carriers.fixture.ts";
import { buildForward } from "../../../src/masked/rewrite/forward.ts";
import { randomInvitation } from "../../../src/masked/rewrite/random-invitation.fixture.ts";
import { diceOf, disguise, randomMessage } from "../../../src/masked/rewrite/random-tree.fixture.ts";
import { buildReply, type ReplyOrder } from "../../../src/masked/rewrite/reply.ts";
import { createReplacer } from "../../../src/masked/rewrite/scrub/replace-addresses.ts";
import type { Target } from "../target.ts";

const MAILBOX = "anna.real@home.real.example";
/** The mailbox, and no longer address that begins or ends like it; GAP is where a line ended. */
const GAP = "\uffff";
const SHOWN = new RegExp(
  `(?<![a-z0-9]|[a-z0-9][.-])${[...MAILBOX].map((char) => char.replace(".", "\\.")).join(`${GAP}?`)}(?![a-z0-9.-]*[a-z0-9])`,
);
const ALIAS = "k3x@mask.example";
const REVERSE = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
const CONTACT = "shop@example.com";
const DISGUISED = Array.from({ length: 60 }, (_, seed) => disguise(diceOf(seed), MAILBOX));
const CARRIERS = Array.from({ length: 40 }, (_, seed) => carrier(diceOf(seed), MAILBOX));
const PIECES = [
  ...[
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "\r\n--b\r\n",
    "\r\n--b--\r\n",
    "Content-Type: message/rfc822\r\n\r\n",
    "> ",
    "On Fri wrote:\r\n",
  ],
  ...[
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Type: text/calendar\r\n",
    "Content-Type: text/plain; format=flowed; delsp=yes\r\n",
    "ATTENDEE:mailto:",
    "Subject: ",
    "\r\n\r\n",
    "Content-ID: <a@home.real.example>\r\n",
  ],
];

function order(): ReplyOrder {
  return {
    ...{
      from: { name: "Anna", email: ALIAS },
      to: [{ name: null, email: CONTACT }],
      cc: [],
      date_ms: 1_795_000_000_000,
    },
    ...{ message_id: "m1@mask.example", in_reply_to: ["<c1@example.com>"], references: ["<c0@example.com>"] },
    ...{
      hidden: [{ from: MAILBOX, to: ALIAS }],
      restored: [{ from: REVERSE, to: CONTACT }],
      redact: "all",
      unopened_files: "hold",
      own_name: "leave",
      names: [REVERSE],
    },
    ...{ sent: { key: "00", digests: [], tokens: [] }, token_seed: "token" },
  };
}

/** Between what stands in different places: nobody reads on from one into the next. */
const BETWEEN = "\0";

/** What a reader of the finished message could see, by a parser that is not ours. */
async function readable(bytes: Buffer): Promise<string> {
  const texts = [bytes.toString("latin1")];
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
  texts.push(mail.subject ?? "", mail.text ?? "", mail.html ?? "", ...mail.headers.map(({ value }) => String(value)));
  for (const { filename, content } of mail.attachments) {
    texts.push(filename ?? "", Buffer.from(content as ArrayBuffer).toString("utf8"));
  }
  return texts.join(BETWEEN).toLowerCase();
}

const maskedReply: Target = {
  name: "masked-reply",
  holds: "a reply is held, refused, or shows the mailbox it comes from nowhere, and has our own header alone",
  seeds: { files: ["masked"], shared: ["masked-forwarding/**/*.eml", "mime-misc/**/*.eml"] },
  words: [...DISGUISED, ...CARRIERS, ...PIECES, REVERSE],
  bytes_max: 32_768,
  generate: (chance) => randomMessage(diceOf(chance.between(0, 2 ** 31)), MAILBOX),
  async check(input) {
    const built = buildReply(input, order());
    if (built.kind !== "built") return built.kind;
    const text = await readable(built.bytes);
    assert.doesNotMatch(text, SHOWN, "the mailbox is shown");
    assert.doesNotMatch(text, /r\.[a-z2-7]{26}@/, "a reverse address is shown");
    assert.doesNotMatch(
      text,
      /-----begin pgp (?!signed)[a-z0-9 ,/]+-----\s*\n[^\0]{0,300}?[a-z0-9+/]{40}/,
      "a key or signature is shown",
    );
    const joined = text.replace(/(?<![ \t])[ \t]*\r?\n[> \t]*/g, GAP).replaceAll(BETWEEN, "\n");
    assert.doesNotMatch(joined, SHOWN, "the mailbox is shown in two lines");
    const runs = joined.replaceAll(GAP, "").match(/[a-z0-9+/]{24,}/gi) ?? [];
    assert.ok(!runs.some((run) => Buffer.from(run, "hex").includes(MAILBOX)), "the mailbox is shown in digits");
    const { headers } = splitMessage(built.bytes);
    const names = headers.map(({ name }) => name.toLowerCase());
    assert.equal(new Set(names).size, names.length, "a field stands twice");
    for (const name of names) {
      const isOurs =
        /^(?:from|to|subject|date|message-id|in-reply-to|references|auto-submitted|importance|mime-version|content-.*)$/;
      assert.match(name, isOurs);
    }
    assert.deepEqual(parseMessage(built.bytes).from, [{ name: "Anna", email: ALIAS }]);
    return `built ${Math.min(5, built.redactions)} ${built.dropped.length > 0}`;
  },
};

const maskedForward: Target = {
  name: "masked-forward",
  holds:
    "a forwarded mail is from whom we say to the alias, never names the mailbox, and its head has no line of another's",
  seeds: { files: ["masked", "mail"], shared: ["masked-forwarding/**/*.eml", "mime-misc/**/*.eml"] },
  words: [
    ...PIECES,
    "From: evil@x.example\r\n",
    "Message-ID: <a\r\n b>\r\n",
    "List-Unsubscribe: <mailto:a@b.example>\r\n",
    "Subject: =?utf-8?Q?a=0D=0ABcc:_x?=\r\n",
  ],
  bytes_max: 64 * 1_024,
  check(input) {
    if (/\0|\r(?!\n)|(?<!\r)\n/.test(input.toString("latin1"))) return "refused at the door";
    const bytes = buildForward(input, {
      ...{ from: { name: "Shop", email: REVERSE }, to: [{ name: null, email: ALIAS }], cc: [], reply_to: [] },
      ...{ in_reply_to: [], references: [], message_id: "f1@mask.example", authentication: null, loop_mark: "mark" },
      received_ms: 1_795_000_000_000,
      unsubscribe_page: "https://mask.example/unsubscribe/x",
      hider: null,
      calendar: [{ from: ALIAS, to: MAILBOX }],
    });
    const end = bytes.indexOf("\r\n\r\n");
    assert.ok(end !== -1);
    const head = bytes.toString("latin1", 0, end + 2);
    assert.match(head, /^(?:[\x21-\x39\x3b-\x7e]+:(?:[^\r\n\0]|\r\n[ \t])*\r\n)+$/);
    const mail = parseMessage(bytes);
    assert.deepEqual(
      mail.from.map(({ email }) => email),
      [REVERSE],
    );
    assert.deepEqual(
      mail.to.map(({ email }) => email),
      [ALIAS],
    );
    const names = splitMessage(bytes).headers.map(({ name }) => name.toLowerCase());
    assert.ok(!names.includes("bcc") && names.filter((name) => name === "subject").length === 1);
    return names.join(" ").slice(0, 200);
  },
};

const STRANGER = "evil@stranger.example";

const invitation: Target = {
  name: "masked-invitation",
  holds: "no line of a calendar that goes on to a mailbox lets it answer somebody whom the alias does not know",
  seeds: { files: ["masked", "mail"], shared: ["masked-forwarding/**/*.eml"] },
  words: [...PIECES, "ORGANIZER:mailto:", `ORGANIZER;SENT-BY="mailto:${STRANGER}":`, STRANGER, "BEGIN:VCALENDAR\r\n"],
  bytes_max: 64 * 1_024,
  generate: (chance) => randomInvitation(diceOf(chance.between(0, 2 ** 31)), STRANGER),
  async check(input) {
    if (/\0|\r(?!\n)|(?<!\r)\n/.test(input.toString("latin1"))) return "refused at the door";
    const known = [
      { from: CONTACT, to: REVERSE },
      { from: ALIAS, to: MAILBOX },
    ];
    const bytes = guardCalendars(input, { known, author: REVERSE });
    const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
    for (const { mimeType, content } of mail.attachments.filter((one) => one.mimeType === "text/calendar")) {
      const lines = Buffer.from(content as ArrayBuffer)
        .toString("utf8")
        .replace(/\r?\n[ \t]/g, "")
        .split(/\r?\n/);
      // Without a value it names nobody.
      const people = lines.filter((line) => /^(?:ORGANIZER|ATTENDEE)(?:;.*)?:./i.test(line));
      for (const line of people) {
        assert.match(line, new RegExp(`:mailto:(?:${REVERSE}|${MAILBOX})$`), mimeType);
      }
    }
    return bytes === input ? "as it came" : `rewritten ${mail.attachments.length}`;
  },
};

const replaceAddresses: Target = {
  name: "replace-addresses",
  holds: "no plain spelling of an address is left in a text, nothing else is lost, and a second look finds nothing",
  seeds: { lines: "replace-addresses.jsonl" },
  words: [
    ...[...DISGUISED, "&#64;", "%40", "<b>", "</b>", "\u200b", "+tag", "@", "mailto:"],
    ...["<!--", "-->", '<b title="', '">', "&NoBreak;", "\\40 ", "\\", "kunden", ".com", "=", "&"],
  ],
  bytes_max: 32_768,
  check(input) {
    const replacer = createReplacer([{ from: MAILBOX, to: ALIAS }]);
    const text = input.toString("utf8");
    for (const kind of ["text", "html"] as const) {
      const { text: replaced, count } = replacer[kind](text);
      assert.doesNotMatch(replaced.toLowerCase(), SHOWN, `${kind}: the address is left`);
      assert.ok(replaced.length <= text.length + count * ALIAS.length);
      if (count === 0) assert.equal(replaced, text);
      else assert.equal(replacer[kind](replaced).count, 0, `${kind}: a second look finds more`);
    }
  },
};

const calendar: Target = {
  name: "calendar",
  holds: "a calendar that is not rewritten keeps every line, folded at 75 octets",
  seeds: { lines: "calendar.jsonl" },
  words: ["BEGIN:VCALENDAR\r\n", "ATTENDEE;CN=a:mailto:a@b.example\r\n", "\r\n ", "\n\t", "😀", "é", "\r"],
  bytes_max: 32_768,
  check(input) {
    const text = input.toString("utf8");
    const unfold = (given: string) => given.replace(/(?:\r\n|\r|\n)[ \t]/g, "").split(/\r\n|\r|\n/);
    const written = rewriteCalendar(text, (line) => line);
    for (const line of written.split("\r\n")) assert.ok(Buffer.byteLength(line) <= 75);
    // A folded line behind an empty one begins with white space once it is unfolded, and is part of the line before.
    if (!unfold(text).some((line) => /^[ \t]/.test(line))) assert.deepEqual(unfold(written), unfold(text));
  },
};

const spam: Target = {
  name: "spam-score",
  holds: "any mail has a finite score, which is the sum of named symbols",
  seeds: { files: ["mail"], shared: ["spam-and-ham/**/*.eml"] },
  words: [
    "VIAGRA",
    "http://a.example/",
    "100% FREE",
    "<a href=",
    "Click here",
    "$$$",
    "Subject: ",
    "Date: ",
    "From: ",
    "\u200b",
  ],
  bytes_max: 128 * 1_024,
  check(input) {
    const mail = parseMessage(input);
    const session = { helo: "x", remote_ip: "8.8.8.8", host: "x", recipients: ["a@b.example"], received_ms: 0 };
    const symbols = findSymptoms({ ...mail, auth: { spf: "fail", dkim: "none", dmarc: "fail" }, session });
    const score = addUp(symbols);
    assert.ok(Number.isFinite(score));
    const sum = symbols.reduce((total, symbol) => total + symbol.score, 0);
    assert.ok(Math.abs(sum - score) < 0.02, `${score} is not the sum ${sum}`);
    assert.ok(symbols.every(({ name, description }) => /^[A-Z0-9_]+$/.test(name) && description !== ""));
    return symbols.map(({ name }) => name).join(" ");
  },
};

export const MASKED_TARGETS: readonly Target[] = [
  maskedForward,
  invitation,
  maskedReply,
  replaceAddresses,
  calendar,
  spam,
];
