// POST /v1/send, field by field: what each one does to the answer, the record and the message. Refusals
// are in sending-refusals.test.ts, what becomes of the mail in ../scenarios.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import PostalMime from "postal-mime";
import { headersOf, type SendingApi, sendingApi, wireOf } from "./sender.ts";

const DAY_MS = 86_400_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const RECORD = [
  "id message_id status environment from to cc bcc reply_to subject tags metadata template_id domain_id size created_at",
  "scheduled_at completed_at recipients",
].flatMap((line) => line.split(" "));
const RECIPIENT = [
  "email kind status attempts next_attempt_at delivered_at bounce_type bounce_code diag_code diag_message bounce_class",
].flatMap((line) => line.split(" "));

let api: SendingApi;

before(async () => {
  api = await sendingApi();
});

after(async () => {
  await api?.close();
});

/** Sends, and reads the record and the message back. */
async function sent(change: Record<string, unknown> = {}) {
  const { status, body } = await api.send(change);
  assert.equal(status, 202, JSON.stringify(body));
  const shown = await api.ask("GET", `/v1/emails/${body.id}`);
  const wire = await wireOf(api, body.id);
  return { answer: body, email: shown.body.email, wire, headers: new Map(headersOf(wire)), mail: await parse(wire) };
}

async function parse(wire: string) {
  const { from, to, cc, bcc, replyTo, subject, text, html, attachments } = await PostalMime.parse(wire);
  return { from, to, cc, bcc, replyTo, subject, text, html, attachments };
}

describe("an accepted e-mail", () => {
  it("is answered with every field of the contract", async () => {
    const { status, body, headers } = await api.send();
    assert.equal(status, 202);
    assert.match(String(headers["x-request-id"]), UUID);
    assert.match(body.id, UUID);
    assert.deepEqual(body, {
      id: body.id,
      message_id: `${body.id}@sender.example`,
      status: "queued",
      environment: "live",
      suppressed: [],
      quota_limit: body.quota_limit,
      quota_used: body.quota_used,
      quota_remaining: body.quota_limit - body.quota_used,
    });
    assert.ok(body.quota_used >= 1);
  });

  it("has a record with every field, null where there is nothing", async () => {
    const { email, answer } = await sent();
    assert.deepEqual(Object.keys(email).sort(), [...RECORD].sort());
    assert.deepEqual(Object.keys(email.recipients[0]).sort(), [...RECIPIENT].sort());
    const { id, message_id, created_at, size, recipients, ...rest } = email;
    assert.deepEqual([id, message_id], [answer.id, answer.message_id]);
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(size > 200);
    assert.deepEqual(rest, {
      status: "queued",
      environment: "live",
      from: "Shop <orders@sender.example>",
      to: ["anna@recipient.example"],
      cc: [],
      bcc: [],
      reply_to: [],
      subject: "Hello",
      tags: [],
      metadata: {},
      template_id: null,
      domain_id: api.domain_id,
      scheduled_at: null,
      completed_at: null,
    });
    const { next_attempt_at, ...recipient } = recipients[0];
    assert.equal(next_attempt_at, created_at);
    assert.deepEqual(recipient, {
      email: "anna@recipient.example",
      kind: "to",
      status: "queued",
      attempts: 0,
      delivered_at: null,
      bounce_type: null,
      bounce_code: null,
      diag_code: null,
      diag_message: null,
      bounce_class: null,
    });
  });

  it("has Date, Message-ID and MIME-Version once, and no trace of what was not asked for", async () => {
    const { wire, answer } = await sent();
    const names = headersOf(wire).map(([name]) => name.toLowerCase());
    for (const name of ["date", "message-id", "mime-version", "from", "to", "subject", "content-type"]) {
      assert.equal(names.filter((other) => other === name).length, 1, `${name}: ${names.join(" ")}`);
    }
    for (const name of ["cc", "bcc", "reply-to", "sender", "x-mailer"]) assert.ok(!names.includes(name), name);
    assert.ok(wire.includes(`Message-ID: <${answer.message_id}>`));
  });
});

describe("addresses", () => {
  it("are taken bare or with a name, in any script", async () => {
    const { mail, email } = await sent({
      from: "Ünï Çode <ORDERS@Sender.Example>",
      to: ['"Doe, Jane" <jane@recipient.example>', "weiß@bücher.example"],
    });
    assert.deepEqual(mail.from, { address: "ORDERS@sender.example", name: "Ünï Çode" });
    assert.deepEqual(mail.to, [
      { address: "jane@recipient.example", name: "Doe, Jane" },
      { address: "weiß@xn--bcher-kva.example", name: "" },
    ]);
    assert.deepEqual(email.to, ["jane@recipient.example", "weiß@xn--bcher-kva.example"]);
  });

  it("in to, cc and bcc are recipients; bcc is never written", async () => {
    const { mail, wire, email } = await sent({
      to: ["a@recipient.example"],
      cc: ["b@recipient.example"],
      bcc: ["hidden@recipient.example"],
    });
    assert.deepEqual(
      email.recipients.map(({ email: address, kind }: { email: string; kind: string }) => [address, kind]),
      [
        ["a@recipient.example", "to"],
        ["b@recipient.example", "cc"],
        ["hidden@recipient.example", "bcc"],
      ],
    );
    assert.deepEqual([mail.to?.length, mail.cc?.length, mail.bcc], [1, 1, undefined]);
    assert.ok(!/hidden|^bcc/im.test(wire));
    assert.deepEqual([email.to, email.cc, email.bcc].flat().length, 3);
  });

  it("given twice count once, in their first place", async () => {
    const { email, answer } = await sent({
      to: ["a@recipient.example", "Anna <A@recipient.example>"],
      cc: ["a@RECIPIENT.example", "b@recipient.example"],
      bcc: ["B@recipient.example"],
    });
    assert.deepEqual([email.to, email.cc, email.bcc], [["a@recipient.example"], ["b@recipient.example"], []]);
    assert.equal(answer.quota_used - (await quotaUsed()), -1, "the next e-mail counts one more");
  });

  it("may be fifty together", async () => {
    const many = (kind: string, count: number) =>
      Array.from({ length: count }, (_, n) => `${kind}${n}@recipient.example`);
    const { email } = await sent({ to: many("t", 20), cc: many("c", 20), bcc: many("b", 10) });
    assert.equal(email.recipients.length, 50);
  });

  it("for replies may be one or several", async () => {
    assert.deepEqual((await sent({ reply_to: "Help <help@sender.example>" })).mail.replyTo, [
      { address: "help@sender.example", name: "Help" },
    ]);
    const { mail, email } = await sent({ reply_to: ["a@elsewhere.example", "b@elsewhere.example"] });
    assert.equal(mail.replyTo?.length, 2);
    assert.deepEqual(email.reply_to, ["a@elsewhere.example", "b@elsewhere.example"]);
  });
});

async function quotaUsed(): Promise<number> {
  return (await api.send()).body.quota_used;
}

describe("content", () => {
  it("keeps subject and bodies in any script", async () => {
    const { mail, email } = await sent({
      subject: "Grüße 你好 🎉",
      html_body: "<p>Ü 🎉</p>",
      text_body: "Ü 🎉\nzweite Zeile",
    });
    assert.equal(mail.subject, "Grüße 你好 🎉");
    assert.equal(email.subject, "Grüße 你好 🎉");
    assert.equal(mail.html?.trim(), "<p>Ü 🎉</p>");
    assert.equal(mail.text?.trim().replace(/\r\n/g, "\n"), "Ü 🎉\nzweite Zeile");
  });

  it("gets a text part made from the HTML, unless auto_text is false", async () => {
    const made = await sent({ html_body: "<h1>Order 17</h1><p>Thank <b>you</b></p>" });
    assert.match(made.mail.text ?? "", /Order 17[\s\S]*Thank\s+\**you/i);
    const without = await sent({ auto_text: false });
    assert.match(without.headers.get("Content-Type") ?? "", /^text\/html/);
    const textOnly = await sent({ html_body: undefined, text_body: "only text" });
    assert.match(textOnly.headers.get("Content-Type") ?? "", /^text\/plain/);
    assert.equal(textOnly.mail.html, undefined);
  });

  it("may have an empty subject and an empty text", async () => {
    const { mail, headers } = await sent({ subject: "", html_body: undefined, text_body: "" });
    assert.equal(mail.subject ?? "", "");
    assert.equal(headers.get("Subject"), "");
  });

  it("takes the sender's own headers", async () => {
    const { headers, wire } = await sent({
      headers: {
        "X-Campaign": "spring",
        "List-Unsubscribe": "<https://sender.example/u>",
        "X-Grüße-Nein": undefined,
        "X-Name": "Grüße",
      },
    });
    assert.equal(headers.get("X-Campaign"), "spring");
    assert.equal(headers.get("List-Unsubscribe"), "<https://sender.example/u>");
    assert.match(wire, /^X-Name: =\?utf-8\?/im);
  });

  it("takes attachments and inline images", async () => {
    const content = Buffer.from([0, 1, 2, 250, 255, 13, 10, 46, 13, 10]);
    const { mail } = await sent({
      html_body: '<img src="cid:logo">',
      attachments: [
        { filename: "Rechnung Größe M.pdf", content: content.toString("base64") },
        { filename: "logo.png", content: "iVBORw0KGgo=", content_id: "<logo>", disposition: "inline" },
        { filename: "odd", content: "", content_type: "application/x-odd; v=1" },
      ],
    });
    const shown = mail.attachments.map(({ filename, mimeType, contentId, disposition }) => ({
      filename,
      mimeType,
      contentId,
      disposition,
    }));
    const own = mail.attachments.find(({ filename }) => filename === "Rechnung Größe M.pdf");
    assert.deepEqual(Buffer.from(own?.content as ArrayBuffer), content);
    assert.equal(own?.mimeType, "application/pdf");
    assert.ok(
      shown.some(
        ({ mimeType, contentId, disposition }) =>
          mimeType === "image/png" && contentId === "<logo>" && disposition === "inline",
      ),
      JSON.stringify(shown),
    );
    assert.ok(shown.some(({ mimeType, filename }) => mimeType === "application/x-odd" && filename === "odd"));
  });

  it("beyond 256 KiB comes back from the blob store byte for byte", async () => {
    const content = Buffer.alloc(700_000, 7);
    const { mail, email } = await sent({
      attachments: [{ filename: "large.bin", content: content.toString("base64") }],
    });
    assert.ok(email.size > 900_000);
    assert.ok(Buffer.from(mail.attachments[0]?.content as ArrayBuffer).equals(content));
  });

  it("is not said to be gone while its blob is missing: the folder may be another machine's", async () => {
    const { answer } = await sent({ attachments: [{ filename: "large.bin", content: "x".repeat(400_000) }] });
    const { blobs, db } = api.world;
    const [row] = await db.query<{ blob_key: string }>("select blob_key from message_body where id = $1", [answer.id]);
    const key = row?.blob_key as string;
    const bytes = (await blobs.get(key)) as Buffer;
    await blobs.delete(key);
    const missing = await api.ask("GET", `/v1/emails/${answer.id}/content`);
    assert.deepEqual([missing.status, missing.body.code], [503, "unavailable"]);
    assert.ok(Number(missing.headers["retry-after"]) > 0);
    await blobs.put(bytes);
    assert.equal((await api.ask("GET", `/v1/emails/${answer.id}/content`)).status, 200);
  });

  it("is shown as JSON too, attachments without their bytes", async () => {
    const { answer } = await sent({
      attachments: [
        { filename: "a.txt", content: "aGk=" },
        { filename: "b.png", content: "aGk=", content_id: "one" },
      ],
    });
    const { status, body } = await api.ask("GET", `/v1/emails/${answer.id}/content`);
    assert.equal(status, 200);
    const { headers, ...rest } = body.content;
    assert.ok(
      headers.some(({ name, value }: { name: string; value: string }) => name === "Subject" && value === "Hello"),
    );
    assert.deepEqual(rest, {
      id: answer.id,
      message_id: answer.message_id,
      text_body: rest.text_body,
      html_body: "<p>Hello</p>",
      attachments: rest.attachments,
    });
    const byName = (a: { filename: string }, b: { filename: string }) => (a.filename < b.filename ? -1 : 1);
    assert.deepEqual(rest.attachments.sort(byName), [
      { filename: "a.txt", content_type: "text/plain", content_id: null, size: 2 },
      { filename: "b.png", content_type: "image/png", content_id: "one", size: 2 },
    ]);
  });

  it("is shown as a download with Accept: message/rfc822", async () => {
    const { answer } = await sent();
    const { headers } = await api.ask("GET", `/v1/emails/${answer.id}/content`, undefined, {
      headers: { accept: "message/rfc822" },
    });
    assert.match(String(headers["content-type"]), /^message\/rfc822/);
    assert.match(String(headers["content-disposition"]), /^attachment; filename="[0-9a-f-]+\.eml"$/);
    assert.equal(headers["x-content-type-options"], "nosniff");
  });
});

describe("labels", () => {
  it("are kept as given", async () => {
    const metadata = { order: 17, id: 2 ** 53, nested: { list: [1, "two", null, true] }, ключ: "значение" };
    const { email } = await sent({ tags: ["a", "b", "a"], metadata });
    assert.deepEqual(email.tags, ["a", "b", "a"]);
    assert.deepEqual(email.metadata, metadata);
  });

  it("never become properties of the engine's own objects", async () => {
    const { email } = await sent({ metadata: JSON.parse('{"constructor": 1, "toString": "x"}'), tags: ["__proto__"] });
    assert.deepEqual(email.metadata, { constructor: 1, toString: "x" });
    assert.deepEqual(email.tags, ["__proto__"]);
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });
});

describe("templates", () => {
  before(async () => {
    const { status, body } = await api.ask("POST", "/v1/templates", {
      name: "Welcome",
      slug: "welcome",
      subject: "Hi {{name}}",
      html_body: "<p>{{name}}, {{{link}}}</p>",
      text_body: "{{name}}",
    });
    assert.equal(status, 201, JSON.stringify(body));
  });

  it("are chosen by slug or id and rendered with the variables", async () => {
    const { body } = await api.ask("GET", "/v1/templates/welcome");
    const byTemplate = { subject: undefined, html_body: undefined, variables: { name: "<Anna>", link: "<a>" } };
    for (const chosen of [{ template: "welcome" }, { template_id: body.template.id }]) {
      const { mail, email } = await sent({ ...byTemplate, ...chosen });
      assert.equal(mail.subject, "Hi <Anna>");
      assert.equal(mail.html?.trim(), "<p>&lt;Anna&gt;, <a></p>");
      assert.equal(mail.text?.trim(), "<Anna>");
      assert.equal(email.template_id, body.template.id);
    }
  });
});

describe("times", () => {
  it("scheduled_at keeps the mail until then", async () => {
    const at = new Date(api.world.clock.now() + 2 * DAY_MS).toISOString();
    const { answer, email } = await sent({ scheduled_at: at });
    assert.equal(answer.status, "scheduled");
    assert.equal(email.status, "scheduled");
    assert.equal(email.scheduled_at, at);
    assert.deepEqual([email.recipients[0].status, email.recipients[0].next_attempt_at], ["queued", at]);
  });

  it("scheduled_at in the past means now", async () => {
    const { answer, email } = await sent({ scheduled_at: "2020-01-01T00:00:00Z" });
    assert.deepEqual([answer.status, email.scheduled_at], ["queued", null]);
  });

  it("expires_at and require_tls are taken", async () => {
    const at = new Date(api.world.clock.now() + DAY_MS).toISOString();
    assert.equal((await sent({ expires_at: at, require_tls: true })).answer.status, "queued");
    const later = new Date(api.world.clock.now() + 3 * DAY_MS).toISOString();
    assert.equal((await sent({ scheduled_at: at, expires_at: later })).answer.status, "scheduled");
  });

  it("may be in any zone", async () => {
    const { email } = await sent({
      scheduled_at: `${new Date(api.world.clock.now() + DAY_MS).toISOString().slice(0, 19)}+02:00`,
    });
    assert.equal(Date.parse(email.scheduled_at) % 1000, 0);
    assert.ok(Date.parse(email.scheduled_at) < api.world.clock.now() + DAY_MS);
  });
});
