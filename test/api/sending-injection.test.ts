// Header and SMTP injection through every field of POST /v1/send (nodemailer GHSA-c7w3, -vvjj, -p6gq and their like): a
// payload is refused, or it arrives as text. What a real SMTP server got decides, not what we stored.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { headersOf, type SendingApi, sendingApi } from "./sender.ts";

const VICTIM = "victim@evil.example";

/** What may end a line somewhere: in a header, in SMTP, after a decoding too many, or cut down to bytes. */
const BREAKS = [
  ...["\r\n", "\n", "\r", "\n\r", "\r\r\n", "\r\n\r\n", "\n\n", "\r\n ", "\r\n\t", "\n ", "\r \n"],
  ...["\0", "\0\r\n", "\u000b", "\u000c", "\u001b", "\u007f", "\u0085", "\u009f", "\u2028", "\u2029"],
  ...["\ud800", "\udfff\n", "嘊嘍", "%0d%0a", "\\r\\n", "\\u000d\\u000a", "=0D=0A", "&#13;&#10;", "\u202e"],
];
const PAYLOADS = [
  ...BREAKS.map((end) => `x${end}Bcc: ${VICTIM}`),
  `x=?utf-8?Q?=0D=0ABcc:_${VICTIM}?=`,
  `x\r\n.\r\nMAIL FROM:<${VICTIM}>\r\nRCPT TO:<${VICTIM}>\r\nDATA\r\nSubject: y\r\n\r\ny\r\n.\r\n`,
  `x\n.\nRCPT TO:<${VICTIM}>\nDATA`,
  `x\r\n.\nRCPT TO:<${VICTIM}>`,
  `x\n.\r\nRCPT TO:<${VICTIM}>`,
  `x>\r\nRCPT TO:<${VICTIM}`,
  `x> SIZE=1 NOTIFY=NEVER <${VICTIM}`,
  `x", ${VICTIM}, "`,
  `x>, <${VICTIM}`,
  `x\r\nContent-Type: text/html\r\n\r\n<script>`,
];

/** C0 but for tab, DEL, C1, line and paragraph separators, half surrogates: never in a header. */
function isUnsafe(text: string): boolean {
  return /[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]/.test(text) || !text.isWellFormed();
}

type Field = { change(payload: string): Record<string, unknown>; inHeader: boolean };

const attachment = (own: Record<string, unknown>) => ({
  attachments: [{ filename: "a.txt", content: "aGk=", ...own }],
});
const FIELDS: Record<string, Field> = {
  "the sender's name": { change: (text) => ({ from: `"${text}" <orders@sender.example>` }), inHeader: true },
  "the sender's address": { change: (text) => ({ from: `${text}@sender.example` }), inHeader: true },
  "the end of the sender's address": { change: (text) => ({ from: `orders@sender.example${text}` }), inHeader: true },
  "a recipient's name": { change: (text) => ({ to: [`"${text}" <anna@recipient.example>`] }), inHeader: true },
  "a recipient's address": { change: (text) => ({ to: [`"${text}"@recipient.example`] }), inHeader: true },
  "the end of a recipient's address": { change: (text) => ({ to: [`anna@recipient.example${text}`] }), inHeader: true },
  cc: { change: (text) => ({ cc: [`${text} <bert@recipient.example>`] }), inHeader: true },
  bcc: { change: (text) => ({ bcc: [`${text} <bert@recipient.example>`] }), inHeader: true },
  reply_to: { change: (text) => ({ reply_to: `${text} <help@sender.example>` }), inHeader: true },
  subject: { change: (text) => ({ subject: text }), inHeader: true },
  "a header's value": { change: (text) => ({ headers: { "X-Test": text } }), inHeader: true },
  "a header's name": { change: (text) => ({ headers: { [text]: "1" } }), inHeader: true },
  "a list header": {
    change: (text) => ({ headers: { "List-Unsubscribe": `<https://a.example/${text}>` } }),
    inHeader: true,
  },
  "a file name": { change: (filename) => attachment({ filename }), inHeader: true },
  "a media type": { change: (text) => attachment({ content_type: `text/plain; x=${text}` }), inHeader: true },
  "a content id": { change: (content_id) => attachment({ content_id }), inHeader: true },
  "a variable in a template's subject": {
    change: (text) => ({ template: "hello", variables: { v: text }, subject: undefined, html_body: undefined }),
    inHeader: true,
  },
  html_body: { change: (text) => ({ html_body: text }), inHeader: false },
  text_body: { change: (text) => ({ text_body: text }), inHeader: false },
  "a tag": { change: (text) => ({ tags: [text.slice(0, 64)] }), inHeader: false },
  "a value of metadata": { change: (text) => ({ metadata: { a: text } }), inHeader: false },
  "a key of metadata": { change: (text) => ({ metadata: { [text]: 1 } }), inHeader: false },
};

/** Our own fields and what a payload's field legitimately adds. */
const HEADER_NAMES = new Set(
  [
    ..."from to cc reply-to subject date message-id mime-version content-type content-transfer-encoding".split(" "),
    ..."dkim-signature x-postern-id cfbl-address cfbl-feedback-id x-test list-unsubscribe received".split(" "),
  ].map((name) => name.toLowerCase()),
);

let api: SendingApi;
let sink: SmtpSink;

before(async () => {
  sink = await startSmtpSink();
  api = await sendingApi({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  receiveAt(api.dns, "recipient.example");
  await api.startMta();
  const hello = { name: "Hello", slug: "hello", subject: "Hi {{v}}", html_body: "<p>{{v}}</p>" };
  assert.equal((await api.ask("POST", "/v1/templates", hello)).status, 201);
});

after(async () => {
  await api?.close();
  await sink?.stop();
});

describe("an injection", () => {
  let accepted = 0;
  let refused = 0;

  for (const [what, field] of Object.entries(FIELDS)) {
    it(`through ${what} is refused or arrives as text`, async () => {
      for (const payload of PAYLOADS) {
        const { status, body } = await api.send(field.change(payload));
        const shown = `${what}: ${JSON.stringify(payload)} gives ${status} ${JSON.stringify(body)}`;
        assert.ok(status === 202 || (status === 400 && typeof body.field === "string"), shown);
        if (field.inHeader && isUnsafe(payload)) assert.equal(status, 400, shown);
        if (status === 202) accepted += 1;
        else refused += 1;
      }
    });
  }

  it("adds no recipient and no header to any mail that arrived", async () => {
    assert.equal(refused + accepted, PAYLOADS.length * Object.keys(FIELDS).length);
    assert.ok(PAYLOADS.length >= 40 && refused >= 450 && accepted >= 50, `${refused} refused, ${accepted} accepted`);
    const { body } = await api.ask("GET", "/v1/emails?limit=1");
    assert.equal(body.total, accepted);
    const recipients = await settled();
    assert.ok(recipients.every(({ email }) => /@recipient\.example$/.test(email)));
    for (const message of sink.messages) checkArrived(message.to, message.bytes);
    // The library behind the sink refuses some quoted local parts that RFC 5321 allows.
    const delivered = recipients.filter(({ status }) => status === "delivered");
    assert.equal(sink.messages.length, delivered.length);
    for (const { email, status } of recipients) assert.ok(status === "delivered" || email.startsWith('"'), email);
  });
});

/** All recipients, once none is open. */
async function settled() {
  return until("no recipient is open", async () => {
    const rows = await api.world.db.query<{ email: string; status: string }>("select email, status from recipient");
    return rows.every(({ status }) => status !== "queued") && rows;
  });
}

function checkArrived(to: string[], bytes: Buffer): void {
  const wire = bytes.toString("latin1");
  assert.ok(to.length === 1 && !to.includes(VICTIM) && to[0]?.endsWith("@recipient.example"), String(to));
  assert.ok(!/(^|[^\r])\n|\r(?!\n)/.test(wire), "a bare CR or LF left us");
  assert.ok(!/[^\r\n]{999}/.test(wire), "a line over 998 octets left us");
  const names = headersOf(wire).map(([name]) => name.toLowerCase());
  assert.deepEqual(
    names.filter((name) => !HEADER_NAMES.has(name)),
    [],
  );
  const once = names.filter((name) => name !== "dkim-signature");
  assert.equal(new Set(once).size, once.length, `a header is there twice: ${once.join(" ")}`);
}
