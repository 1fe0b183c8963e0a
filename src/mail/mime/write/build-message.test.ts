import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import MailComposer from "nodemailer/lib/mail-composer";
import PostalMime from "postal-mime";
import {
  assertPostalMimeAgrees,
  assertPythonAgrees,
  assertWire,
  type PythonMessage,
  pythonMissing,
  readWithPython,
  sameText,
  type Tree,
} from "../../../../test/cases/mime/oracles.ts";
import { headerValues, splitMessage } from "../parse-head.ts";
import { type Attachment, buildMessage, type MessageInput } from "./build-message.ts";

const base: MessageInput = {
  from: { name: "Acme Inc.", email: "noreply@acme.example" },
  to: [{ name: null, email: "jane@example.com" }],
  cc: [],
  reply_to: [],
  subject: "Your order",
  date: Date.UTC(2025, 10, 20, 9, 41, 0),
  message_id: "0193f1a2-7c3e-7000-8000-000000000001@acme.example",
  headers: [],
  html: "<p>Hello</p>",
  text: "Hello",
  attachments: [],
  boundary_seed: "0193f1a27c3e70008000000000000001",
};

function message(changes: Partial<MessageInput>): MessageInput {
  return { ...base, ...changes };
}

function file(changes: Partial<Attachment>): Attachment {
  const plain = { filename: "report.pdf", content: Buffer.from("%PDF-1.7"), content_type: "application/pdf" };
  return { ...plain, content_id: null, disposition: null, ...changes };
}

const texts: [string, string][] = [
  ["plain English", "Hello Jane, your order has shipped."],
  ["German", "Grüße aus Köln: Straße, Öl, Übermut"],
  ["Russian", "Привет, ваш заказ отправлен"],
  ["Greek", "Γειά σου Κόσμε"],
  ["Japanese", "ご注文の商品を発送しました。ありがとうございます"],
  ["Chinese", "您的订单已发货,感谢您的购买"],
  ["Korean", "주문하신 상품이 발송되었습니다"],
  ["Arabic", "مرحبا، تم شحن طلبك رقم ١٢٣"],
  ["Hebrew", "שלום, ההזמנה שלך נשלחה"],
  ["Hindi with joiners", "नमस्ते क्\u200dष आपका ऑर्डर"],
  ["Thai", "สวัสดี คำสั่งซื้อของคุณถูกจัดส่งแล้ว"],
  ["emoji families and flags", "👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 😀".repeat(8)],
  ["a combining storm", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘"],
  ["a word of 300 letters", "x".repeat(300)],
  ["300 words", "word ".repeat(300).trim()],
  ["a word of 300 umlauts", "ü".repeat(300)],
  ["spaces at both ends and doubled", "  a   b  c  "],
  ["only spaces", "   "],
  ["a tab", "a\tb"],
  ["what looks like an encoded word", "=?UTF-8?Q?a?= and =?utf-8?b?YQ==?="],
  ["question marks, underscores, equals signs", "a_b=c? ==?? __ =20 = ?="],
  ["quotes, commas, brackets, backslashes", 'a "b", (c) <d@e.example>; [f]: \\g \\" \\'],
  ["nothing", ""],
];

describe("messages that other parsers read back", () => {
  const inputs: [string, MessageInput][] = [];
  for (const [name, text] of texts) {
    const box = { name: text, email: "a.b+c@example.com" };
    inputs.push([
      `subject and names: ${name}`,
      message({ subject: text, from: box, to: [box, box], cc: [box], reply_to: [box] }),
    ]);
    inputs.push([`text and HTML: ${name}`, message({ text: text.repeat(3), html: `<p>${text}</p>\n`.repeat(9) })]);
    inputs.push([`file name: ${name}`, message({ attachments: [file({ filename: `${text}.pdf` })] })]);
  }
  const bodies: [string, string][] = [
    ["a line of 1,000 characters", `${"x".repeat(1_000)}\nend`],
    ["a line of 900 characters", "x".repeat(900)],
    ["a line of 901 characters", "x".repeat(901)],
    ["lines of 1,000 umlauts", `${"ü".repeat(1_000)}\n`.repeat(3)],
    ["From at the start of a line", "From me\nFrom you\n\nFrom ü\n>From"],
    ["dots at the start of a line", ".\n..\n.a\n.\nü\n."],
    ["white space at the end of a line", "a \nb\t\n \n\t\nü  \nc  "],
    [
      "white space at column 75",
      `${"é".repeat(12)}${"x".repeat(2)} \n${"y".repeat(74)} \n${"z".repeat(75)} \n${"q".repeat(73)}\t\nü`,
    ],
    ["empty lines", "\n\n\na\n\n\nb"],
    ["every kind of line end", "a\r\nb\rc\nd\n\re"],
    ["a lone surrogate", "a\ud800b"],
    ["control characters", "a\x01b\x1bc\x7fd\x0be\x0cf"],
    ["NUL", "a\0b"],
    ["a line that is a boundary", "--=_0193f1a27c3e70008000000000000001.a\n--=_0193f1a27c3e70008000000000000001.a--"],
    ["equals signs", "=\n=3D\n= \n====="],
    ["U+2028 and U+0085", "a\u2028b\u0085c"],
  ];
  for (const [name, text] of bodies) {
    inputs.push([`body: ${name}`, message({ text, html: null })]);
    inputs.push([`both bodies: ${name}`, message({ text, html: text })]);
  }
  inputs.push(["no body at all", message({ text: null, html: null })]);
  inputs.push(["only HTML", message({ text: null })]);
  inputs.push(["empty text and HTML", message({ text: "", html: "" })]);
  inputs.push([
    "50 recipients",
    message({
      to: Array.from({ length: 50 }, (_, i) => ({
        name: i % 2 ? `Näme ${i}` : `N. ${i}`,
        email: `user${i}@example.com`,
      })),
    }),
  ]);
  inputs.push(["no recipient in the header", message({ to: [] })]);
  inputs.push(["a quoted local part", message({ to: [{ name: "X", email: '"a b@c"@example.com' }] })]);
  inputs.push([
    "the longest address",
    message({ to: [{ name: "é".repeat(99), email: `${"a".repeat(64)}@${"b".repeat(60)}.${"c".repeat(60)}.example` }] }),
  ]);
  const custom = [
    { name: "X-Long", value: "word ".repeat(500).trim() },
    { name: "X-Word", value: "x".repeat(899) },
    {
      name: "References",
      value: Array.from({ length: 40 }, (_, i) => `<${i}.${"a".repeat(30)}@example.com>`).join(" "),
    },
    { name: "X-Text", value: "é".repeat(500) },
    { name: `X-${"N".repeat(74)}`, value: "é".repeat(50) },
    { name: "X-Empty", value: "" },
  ];
  inputs.push(["custom headers", message({ headers: custom })]);
  for (const size of [0, 1, 56, 57, 58, 114, 1_048_576]) {
    const content = Buffer.alloc(size, "\x00\xff\r\n.From =", "latin1");
    inputs.push([
      `an attachment of ${size} octets`,
      message({ attachments: [file({ content, filename: "x.bin", content_type: null })] }),
    ]);
  }
  const logo = file({
    filename: "logo.png",
    content_type: "image/png",
    content_id: "logo@acme",
    disposition: "inline",
  });
  inputs.push(["an inline image and an attachment", message({ attachments: [logo, file({})] })]);
  inputs.push(["an inline image without text", message({ text: null, attachments: [logo] })]);
  inputs.push(["an inline image without HTML", message({ html: null, attachments: [logo] })]);
  inputs.push([
    "a text file in UTF-8",
    message({ attachments: [file({ filename: "é.csv", content: Buffer.from("a;ü\r\n"), content_type: "text/csv" })] }),
  ]);
  const invitation = file({
    filename: "invite.ics",
    content: Buffer.from("BEGIN:VCALENDAR"),
    content_type: "text/calendar; method=REQUEST",
  });
  inputs.push(["a calendar", message({ attachments: [invitation] })]);
  const mail = file({
    filename: "old.eml",
    content: Buffer.from("Subject: old\n\nHello\n"),
    content_type: "message/rfc822",
  });
  inputs.push(["a forwarded message", message({ attachments: [mail] })]);
  for (const [i, input] of fc.sample(messageInput(), { numRuns: 60, seed: 7 }).entries())
    inputs.push([`generated ${i}`, input]);

  const built = inputs.map(([, input]) => buildMessage(input));
  const python = pythonMissing ? [] : readWithPython(built.map(({ bytes }) => bytes));
  for (const [i, [name, input]] of inputs.entries()) {
    it(name, async () => {
      const { bytes } = built[i]!;
      assertWire(bytes);
      await assertPostalMimeAgrees(bytes, input);
    });
    it(`${name} (CPython)`, { skip: pythonMissing }, () => assertPythonAgrees(python[i]!, input));
  }
});

describe("the structure", () => {
  const image = file({ filename: "logo.png", content_type: "image/png", content_id: "logo", disposition: "inline" });
  const cases: [string, Partial<MessageInput>][] = [
    ["text", { html: null }],
    ["HTML", { text: null }],
    ["text and HTML", {}],
    ["text and an attachment", { html: null, attachments: [file({})] }],
    ["HTML and an attachment", { text: null, attachments: [file({})] }],
    ["text, HTML and two attachments", { attachments: [file({}), file({ content_type: "image/png" })] }],
    ["HTML with an inline image", { text: null, attachments: [image] }],
    ["text and HTML with an inline image", { attachments: [image] }],
    ["all of it", { attachments: [image, file({}), image] }],
  ];
  const ours = cases.map(([, changes]) => buildMessage(message(changes)).bytes);
  for (const [i, [name, changes]] of cases.entries()) {
    it(`is that of nodemailer's MailComposer for ${name}`, { skip: pythonMissing }, async () => {
      const theirs = await composeWithNodemailer(message(changes));
      const [us, them] = readWithPython([ours[i]!, theirs]);
      assert.deepEqual(us!.tree, them!.tree);
      const kinds = (seen: PythonMessage) =>
        seen.leaves.map((leaf) => [leaf.type, leaf.disposition, leaf.content_id, leaf.content]);
      assert.deepEqual(kinds(us!), kinds(them!));
    });
  }

  it("is inline where no disposition is given and the HTML shows it", { skip: pythonMissing }, () => {
    const unsaid = { ...image, disposition: null };
    const odd = { ...unsaid, content_id: "<a&b%c@shop.example>" };
    const [shown, escaped, encoded, unused, plain] = readWithPython(
      [
        { html: '<img src="cid:logo">', attachments: [unsaid] },
        { html: '<img src="cid:a&amp;b%c@shop.example">', attachments: [odd] },
        { html: '<img src="cid:a%26b%25c%40shop.example">', attachments: [odd] },
        { html: "<p>See the file.</p>", attachments: [unsaid] },
        { html: null, text: "See the file.", attachments: [unsaid] },
      ].map((changes) => buildMessage(message({ text: null, ...changes })).bytes),
    );
    for (const one of [shown, escaped, encoded]) {
      assert.deepEqual(one!.tree, ["multipart/related", "text/html", "image/png"] satisfies Tree);
      assert.equal(one!.leaves[1]!.disposition, "inline");
    }
    assert.deepEqual(unused!.tree, ["multipart/mixed", "text/html", "image/png"] satisfies Tree);
    assert.deepEqual(plain!.tree, ["multipart/mixed", "text/plain", "image/png"] satisfies Tree);
    assert.deepEqual([unused!.leaves[1]!.disposition, plain!.leaves[1]!.disposition], ["attachment", "attachment"]);
  });
});

describe("buildMessage", () => {
  it("gives the same bytes for the same input and says where the body starts", () => {
    const input = message({ attachments: [file({})] });
    const { bytes, body_offset: offset } = buildMessage(input);
    assert.deepEqual(buildMessage(input).bytes, bytes);
    assert.equal(bytes.indexOf("\r\n\r\n") + 4, offset);
    assert.equal(splitMessage(bytes).body_offset, offset);
  });

  it("writes the fields of RFC 5322, each once, with the date in UTC", () => {
    const { headers } = splitMessage(buildMessage(message({ cc: base.to, reply_to: base.to })).bytes);
    const names = ["From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"];
    assert.deepEqual(
      headers.map((header) => header.name),
      names,
    );
    assert.deepEqual(headerValues(headers, "date"), ["Thu, 20 Nov 2025 09:41:00 +0000"]);
    assert.deepEqual(headerValues(headers, "message-id"), [`<${base.message_id}>`]);
    assert.deepEqual(headerValues(headers, "from"), ['"Acme Inc." <noreply@acme.example>']);
  });

  it("leaves ASCII text as it is, escapes a little, and encodes what is mostly not ASCII", () => {
    const encodingOf = (text: string) =>
      headerValues(
        splitMessage(buildMessage(message({ html: null, text })).bytes).headers,
        "content-transfer-encoding",
      )[0];
    assert.equal(encodingOf("Hello \n.\n"), "7bit");
    assert.equal(encodingOf("x".repeat(900)), "7bit");
    assert.equal(encodingOf("x".repeat(901)), "quoted-printable");
    assert.equal(encodingOf("a\nFrom b"), "quoted-printable");
    assert.equal(encodingOf("Viele Grüße aus Köln am Rhein"), "quoted-printable");
    assert.equal(encodingOf("Привет, мир"), "base64");
  });

  it("keeps encoded lines within 76 columns", () => {
    const text = `Grüße ${"x".repeat(500)} ${"é".repeat(100)} \n. ${"y ".repeat(200)}\n`.repeat(3);
    const { bytes } = buildMessage(
      message({
        subject: text.replaceAll("\n", ""),
        text,
        html: text,
        attachments: [file({ content: Buffer.alloc(999) })],
      }),
    );
    for (const line of bytes.toString("latin1").split("\r\n")) assert.ok(line.length <= 76, line);
  });

  it("writes UTF-8 only for UTF-8 local parts, and then says so", async () => {
    const input = message({ to: [{ name: "José", email: "josé@xn--mnchen-3ya.example" }] });
    const { bytes, smtputf8, body_offset: offset } = buildMessage(input);
    assert.equal(smtputf8, true);
    assertWire(bytes, true);
    assert.equal(bytes.toString("utf8", 0, offset).includes("<josé@xn--mnchen-3ya.example>"), true);
    assert.deepEqual((await PostalMime.parse(bytes)).to, [{ address: "josé@xn--mnchen-3ya.example", name: "José" }]);
    assert.equal(splitMessage(bytes).body_offset, offset);
    assert.equal(buildMessage(base).smtputf8, false);
  });

  it("writes base64 only where RFC 2046 lets it", () => {
    const bad = [Buffer.from("Subject: ü\n\n"), Buffer.from(`a: ${"x".repeat(999)}`), Buffer.from("a\0b")];
    for (const content of bad)
      assert.deepEqual(fileTypes([file({ filename: "a.eml", content, content_type: null })]), [
        "application/octet-stream",
      ]);
    const kinds = [
      "multipart/mixed; boundary=x",
      "message/partial; id=1",
      "message/external-body",
      "message/delivery-status",
    ];
    for (const kind of kinds) assert.deepEqual(fileTypes([file({ content_type: kind })]), ["application/octet-stream"]);
  });

  it("never uses a boundary that stands in a part, even one written to collide", async () => {
    const seed = base.boundary_seed;
    const text = Array.from({ length: 20 }, (_, i) => `--=_${seed}${i === 0 ? "" : `.${i}`}.a`).join("\n");
    const mail = file({
      filename: "a.eml",
      content: Buffer.from(`Subject: x\r\n\r\n--=_${seed}.20.m--\r\n`),
      content_type: null,
    });
    const parsed = await PostalMime.parse(buildMessage(message({ text, html: text, attachments: [mail] })).bytes);
    assert.equal(sameText(parsed.text), text);
    assert.equal(sameText(parsed.html), text);
    assert.equal(parsed.attachments.length, 1);
  });

  it("refuses what its caller must have checked", () => {
    const unsafe: Partial<MessageInput>[] = [
      { headers: [{ name: "Subject", value: "x" }] },
      { headers: [{ name: "content-type", value: "x" }] },
      { headers: [{ name: "Bcc", value: "x@example.com" }] },
      { headers: [{ name: "X Y", value: "x" }] },
      { headers: [{ name: "X-Ü", value: "x" }] },
      { headers: [{ name: "", value: "x" }] },
      { headers: [{ name: "Reply-To", value: "x@example.com" }], reply_to: base.to },
      { message_id: "a b@c" },
      { message_id: "" },
      { boundary_seed: "" },
      { to: [{ name: null, email: "a@b.example, c@d.example" }] },
      { to: [{ name: null, email: "a@b.example> <c@d.example" }] },
      { to: [{ name: null, email: '"a@b.example' }] },
      { attachments: [file({ content_type: "text" })] },
      { attachments: [file({ content_id: "a b" })] },
      { date: Number.NaN },
    ];
    for (const changes of unsafe) assert.throws(() => buildMessage(message(changes)), Error, JSON.stringify(changes));
  });
});

describe("header injection", () => {
  const payloads = [
    "\r\nBcc: evil@example.com",
    "\nBcc: evil@example.com",
    "\rBcc: evil@example.com",
    "\r\n\r\n<script>",
    "\0",
    "\u2028Bcc: x",
    "\u0085Bcc: x",
    "\r\n Bcc: x",
    "\v\nBcc: x",
    "\ud800\r\nBcc: x",
    "%0d%0aBcc: x",
    "=0D=0ABcc: x",
    "=?utf-8?Q?=0D=0ABcc:_x?=",
  ];
  const places: [string, (text: string) => Partial<MessageInput>][] = [
    ["from name", (text) => ({ from: { name: text, email: base.from.email } })],
    ["from address", (text) => ({ from: { name: "x", email: text } })],
    ["address with the text inside", (text) => ({ to: [{ name: null, email: `a${text}@example.com` }] })],
    ["to name", (text) => ({ to: [{ name: text, email: base.from.email }] })],
    ["cc", (text) => ({ cc: [{ name: text, email: base.from.email }] })],
    ["reply_to", (text) => ({ reply_to: [{ name: text, email: base.from.email }] })],
    ["subject", (text) => ({ subject: text })],
    ["message_id", (text) => ({ message_id: text })],
    ["header name", (text) => ({ headers: [{ name: text, value: "x" }] })],
    ["header value", (text) => ({ headers: [{ name: "X-A", value: text }] })],
    ["filename", (text) => ({ attachments: [file({ filename: text })] })],
    ["content_type", (text) => ({ attachments: [file({ content_type: text })] })],
    ["content_type parameter", (text) => ({ attachments: [file({ content_type: `text/plain; a="${text}"` })] })],
    ["content_id", (text) => ({ attachments: [file({ content_id: text })] })],
    ["boundary_seed", (text) => ({ boundary_seed: text })],
    ["text", (text) => ({ text })],
    ["html", (text) => ({ html: text })],
  ];
  for (const [place, change] of places) {
    it(`is impossible through ${place}`, async () => {
      for (const payload of payloads.flatMap((text) => [text, `x${text}`, `x${text}\r\n`]))
        await assertNoInjection(message(change(payload)));
    });
  }

  it("is impossible through any string in any place", async () => {
    const place = fc.constantFrom(...places.map(([, change]) => change));
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom("\r", "\n", "\0", ":", " ", "Bcc", "=?", "?=", '"', "<", ">", "@"),
        fc.string({ unit: "binary", maxLength: 1 }),
      ),
    });
    await fc.assert(
      fc.asyncProperty(place, text, (change, given) => assertNoInjection(message(change(given)))),
      { numRuns: 400 },
    );
  });
});

describe("any message", () => {
  it("keeps the rules of the wire and is read back equal", async () => {
    await fc.assert(
      fc.asyncProperty(messageInput(), async (input) => {
        const { bytes } = buildMessage(input);
        assertWire(bytes);
        await assertPostalMimeAgrees(bytes, input);
      }),
      { numRuns: 250 },
    );
  });
});

function messageInput(): fc.Arbitrary<MessageInput> {
  const unit = fc.oneof(
    fc.constantFrom("a", "b", " ", " ", '"', "=", "?", "_", ".", "ü", "日", "😀"),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
  );
  const line = fc.string({ unit, maxLength: 120, size: "max" }).map((text) => text.replace(/\p{Cc}/gu, ""));
  const box = fc.record({
    name: fc.option(line),
    email: fc.constantFrom("a@example.com", '"a b"@example.com', `${"l".repeat(64)}@example.com`),
  });
  const body = fc.option(
    fc
      .array(
        fc.string({ unit: fc.oneof(unit, fc.constantFrom("\t", "From ", "\ud800")), maxLength: 300, size: "max" }),
        {
          maxLength: 5,
        },
      )
      .map((lines) => lines.join("\n")),
  );
  const attachment = fc.record({
    filename: line,
    content: fc.uint8Array({ maxLength: 300, size: "max" }).map((bytes) => Buffer.from(bytes)),
    content_type: fc.constantFrom(null, "application/pdf", "image/png"),
    content_id: fc.constantFrom(null, "logo", "x@y"),
    disposition: fc.constantFrom(null, "attachment" as const, "inline" as const),
  });
  return fc.record({
    from: box,
    to: fc.array(box, { maxLength: 4 }),
    cc: fc.array(box, { maxLength: 2 }),
    reply_to: fc.array(box, { maxLength: 2 }),
    subject: line,
    date: fc.integer({ min: 0, max: 4_102_444_800_000 }).map((ms) => ms - (ms % 1_000)),
    message_id: fc.constant("id@acme.example"),
    headers: fc
      .array(line, { maxLength: 3 })
      .map((values) => values.map((value, i) => ({ name: `X-H${i}`, value: value.trim() }))),
    html: body,
    text: body,
    attachments: fc.array(attachment, { maxLength: 3 }),
    boundary_seed: fc.constant("seed0123456789abcdef"),
  });
}

async function composeWithNodemailer(input: MessageInput): Promise<Buffer> {
  const attachments = input.attachments.map((part) => ({
    filename: part.filename,
    content: part.content,
    contentType: part.content_type ?? undefined,
    contentDisposition: part.disposition ?? undefined,
    cid: part.content_id ?? undefined,
  }));
  const mail = { from: input.from.email, subject: input.subject, attachments };
  const bodies = { text: input.text ?? undefined, html: input.html ?? undefined };
  return new MailComposer({ ...mail, ...bodies }).compile().build();
}

function fileTypes(attachments: Attachment[]): string[] {
  const text = buildMessage(message({ html: null, attachments })).bytes.toString("latin1");
  return [...text.matchAll(/^Content-Type: ([a-z-]+\/[a-z0-9.+-]+)/gm)].map((match) => match[1]!).slice(2);
}

const fieldNames = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"];
const mayAppear = new Set([...fieldNames, "Cc", "Reply-To", "X-A", "x", "Content-Transfer-Encoding"]);

// Either the builder refuses, or every head in the message has only the fields that were meant, and no Bcc anywhere.
async function assertNoInjection(input: MessageInput): Promise<void> {
  let bytes: Buffer;
  try {
    ({ bytes } = buildMessage(input));
  } catch (error) {
    assert.match(
      (error as Error).message,
      /holds CR, LF or NUL|not safe|not well formed|may not have this name|is empty/,
    );
    return;
  }
  assertWire(bytes, true);
  const { headers, defects } = splitMessage(bytes);
  assert.deepEqual(defects, []);
  const names = headers.map((header) => header.name);
  const allowed = new Set([...mayAppear, ...input.headers.map(({ name }) => name)]);
  for (const name of names) assert.ok(allowed.has(name), `a field ${name}`);
  assert.equal(new Set(names).size, names.length);
  const seen = await PostalMime.parse(bytes);
  assert.equal(seen.bcc, undefined);
  assert.equal(seen.headers.length, names.length);
  assert.equal(seen.attachments.length, input.attachments.length);
}
