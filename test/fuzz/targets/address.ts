// Addresses: our strict reading, the tolerant one of other people's header fields, and that no two of our own
// readings of one text disagree about whom it names.
import assert from "node:assert/strict";
import { formatMailbox, normalizeDomain, parseAddress, parseMailbox } from "../../../src/mail/address.ts";
import { fromFields } from "../../../src/mail/auth/authenticate.ts";
import { findAuthor } from "../../../src/mail/auth/author.ts";
import { splitFields } from "../../../src/mail/dkim/canonicalize.ts";
import { mailboxesOf, unfoldedValue } from "../../../src/mail/mime/header-text.ts";
import { addressesMax, parseAddressList } from "../../../src/mail/mime/parse-addresses.ts";
import { headersMax } from "../../../src/mail/mime/parse-head.ts";
import { parseMessage } from "../../../src/mail/mime/parse-message.ts";
import { mailboxHeader } from "../../../src/mail/mime/write/encode-header.ts";
import { parsePathCommand } from "../../../src/mail/smtp-server/command.ts";
import { assertOneLine, assertStorable } from "../invariants.ts";
import type { Target } from "../target.ts";

const WORDS = [
  ...[
    "@",
    "<",
    ">",
    '"',
    "\\",
    ".",
    ",",
    ";",
    ":",
    "(",
    ")",
    "a@b.example",
    "xn--",
    "bücher.example",
    "İ.example",
    "\u212a",
  ],
  ...[
    "[192.0.2.1]",
    '"a b"@example.com',
    "<a@b.example>",
    "=?utf-8?Q?a=40b.example?=",
    "group: a@b.example;",
    "%40",
    "\u037e",
  ],
];
const SHARED = ["address-syntax/*"];

const address: Target = {
  name: "address",
  holds: "an address that is accepted is read the same again, by RCPT, in a header field and by each of our readers",
  seeds: { lines: "address.jsonl", shared: SHARED },
  words: WORDS,
  bytes_max: 8_192,
  check(input) {
    const read = parseAddress(input.toString("utf8"));
    if (!read.ok) return read.reason;
    const { email, local, domain, smtputf8 } = read.address;
    assert.equal(email, `${local}@${domain}`);
    assert.ok(Buffer.byteLength(email) <= 254 && Buffer.byteLength(local) <= 64);
    assert.match(domain, /^[a-z0-9.-]+$/);
    assert.doesNotMatch(email, /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}<>]/u);
    assert.deepEqual(parseAddress(email), read);
    const path = parsePathCommand(`TO:<${email}>`, "TO")?.path;
    assert.deepEqual(path, { text: email, local, domain, smtputf8 }, "RCPT reads another address");
    const field = mailboxHeader("To", [{ name: null, email }]);
    const found = parseAddressList(
      field
        .slice(3)
        .replace(/\r\n(?=[ \t])/g, "")
        .trim(),
    );
    assert.deepEqual(
      found.map((one) => one.email),
      [email],
      "a reader of the header field sees other addresses",
    );
    return `${smtputf8} ${local.startsWith('"')} ${domain.includes("xn--")}`;
  },
};

const domainName: Target = {
  name: "domain-name",
  holds: "a domain that is accepted is ASCII, within the DNS's limits, and stays as it is",
  seeds: { lines: "domain-name.jsonl" },
  words: ["xn--", "-", ".", "ü", "İ", "日本", "example", "。", "\u00ad", "\u200d"],
  bytes_max: 4_096,
  check(input) {
    const given = input.toString("utf8");
    const domain = normalizeDomain(given);
    if (domain === null) return "none";
    assert.match(domain, /^(?=.{4,253}$|.{3}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{1,63}$/);
    assert.equal(normalizeDomain(domain), domain);
    assert.equal(normalizeDomain(given.toLowerCase()) ?? domain, domain, "case decides where mail goes");
    return domain.includes("xn--") ? "idn" : "ascii";
  },
};

const mailbox: Target = {
  name: "mailbox",
  holds:
    "a mailbox that is accepted comes back from its own text and from a header field with the same name and address",
  seeds: { lines: "mailbox.jsonl", shared: SHARED },
  words: [...WORDS, "Name ", '"Q, N" '],
  bytes_max: 8_192,
  check(input) {
    const read = parseMailbox(input.toString("utf8"));
    if (!read.ok) return read.reason;
    const { name, address: given } = read;
    assertOneLine("name", name);
    assertStorable("name", name, 256);
    const again = parseMailbox(formatMailbox({ name, email: given.email }));
    assert.ok(again.ok, "its own text is refused");
    assert.deepEqual(again.address, given);
    assert.equal(again.name, name);
    const field = mailboxHeader("From", [{ name, email: given.email }]);
    const lines = field.slice(0, -2).split("\r\n");
    assert.ok(lines.slice(1).every((line) => /^[ \t]/.test(line)) && lines.every((line) => line.length <= 998));
    const found = parseAddressList(unfoldedValue(Buffer.from(field)));
    assert.deepEqual(
      found.map(({ email }) => email),
      [given.email],
      "a reader of the field sees another address",
    );
    return `${name !== null} ${field.includes("=?")}`;
  },
};

const addressList: Target = {
  name: "address-list",
  holds: "other people's lists give a bounded number of addresses whose texts can be stored",
  seeds: { lines: "address-list.jsonl", shared: SHARED },
  words: WORDS,
  check(input) {
    const found = mailboxesOf(Buffer.concat([Buffer.from("To: "), input]));
    assert.ok(found.length <= addressesMax);
    for (const { name, email } of found) {
      assertStorable("name", name, 1_000);
      assertStorable("email", email, 1_000);
      assertOneLine("name", name);
      assertOneLine("email", email);
    }
    return `${Math.min(found.length, 8)} ${found.some(({ email }) => email === null)} ${found.some(({ name }) => name)}`;
  },
};

const CLEAN = /^(?:[^\r\n\0]|\r\n)*$/;

const author: Target = {
  name: "author",
  holds: "the author whom DMARC judges is the one that the parsed mail shows, whatever the head looks like",
  seeds: { lines: "author.jsonl", shared: ["mime-misc/**/*.eml", "spam-and-ham/**/*.eml"] },
  words: [
    ...WORDS,
    "From: ",
    "\r\nFrom: a@b.example\r\n",
    "\r\n ",
    "\r\n\r\n",
    "from :",
    "From\t:",
    "\r\nTo: x\r\n",
    "=?utf-8?",
    ...["shift_jis", "gbk", "big5", "iso-2022-jp", "hz-gb-2312", "utf-7", "utf-16le"].map(
      (charset) => `Content-Type: text/plain; charset=${charset}\r\n`,
    ),
    ...['\x1b$B"!\x1b(B', "\x1b$B", "\x1b(B", "~{", "~}", "+ADw-", "+AD4-", '\\"'],
  ],
  bytes_max: 16_384,
  check(input) {
    // At the door everything else is refused (data-framing).
    if (!CLEAN.test(input.toString("latin1"))) return "refused at the door";
    const all = splitFields(input).fields;
    // Nobody is judged in a head beyond the limits (authenticate.ts), and parsed mail shows its first thousand fields.
    if (all.length > headersMax) return "too many fields";
    const judged = findAuthor(fromFields(all));
    if (judged.domain === null) return judged.reason;
    const shown = parseMessage(input).from.map(({ email }) => email);
    assert.ok(shown.length >= 1, "DMARC judges an author whom the parsed mail does not show");
    for (const email of shown) {
      const domain = findAuthor([Buffer.from(`From: <${email}>`)]).domain;
      // In a charset that takes `@` for half of a letter no address is left, and so nobody else's either.
      if (domain !== null) assert.equal(domain, judged.domain, "shown is another domain than the one that was judged");
    }
    return "one";
  },
};

export const ADDRESS_TARGETS: readonly Target[] = [address, domainName, mailbox, addressList, author];
