// What clients send that means something plain: null for what they leave out, names that are nearly right, empty lists.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GOOD, type SendingApi, sendingApi } from "./sender.ts";

let api: SendingApi;

before(async () => {
  api = await sendingApi();
});

after(async () => {
  await api?.close();
});

const NO_MORE = Object.fromEntries(
  [
    ...["cc", "bcc", "reply_to", "text_body", "auto_text", "template", "template_id", "variables", "headers"],
    ...["attachments", "tags", "metadata", "scheduled_at", "expires_at", "unsubscribe", "ip_pool", "require_tls"],
  ].map((name) => [name, null]),
);

describe("null for an optional field of a create", () => {
  it("means that the field is absent, in a send and in a batch", async () => {
    const plain = await api.ask("POST", "/v1/send", GOOD);
    const { status, body } = await api.ask("POST", "/v1/send", { ...GOOD, ...NO_MORE });
    assert.equal(status, 202, JSON.stringify(body));
    const [bare, nulled] = await Promise.all(
      [plain.body.id, body.id].map(async (id) => {
        const { content } = (await api.ask("GET", `/v1/emails/${id}/content`)).body;
        return { html: content.html_body, text: content.text_body, attachments: content.attachments };
      }),
    );
    assert.deepEqual(nulled, bare);
    const batch = await api.ask("POST", "/v1/send/batch", { emails: [{ ...GOOD, ...NO_MORE }], validation: null });
    assert.deepEqual([batch.status, batch.body.accepted], [202, 1]);
  });

  it("means so inside of lists and objects, and is the customer's own value in free objects", async () => {
    const attachment = { filename: "a.txt", content: "YQ==", content_type: null, content_id: null, disposition: null };
    const mail = {
      ...GOOD,
      attachments: [attachment],
      unsubscribe: { list: null, one_click: null },
      metadata: { a: null },
    };
    const { status, body } = await api.ask("POST", "/v1/send", mail);
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual((await api.ask("GET", `/v1/emails/${body.id}`)).body.email.metadata, { a: null });
  });

  it("means so in the other creates", async () => {
    const creates: [string, Record<string, unknown>][] = [
      ["/v1/domains", { domain: "nulls.example", type: null, catch_all_enabled: null, inbound_mx_acknowledged: null }],
      ["/v1/webhooks", { url: "https://hooks.example.com/x", events: null, domain_id: null, match_pattern: null }],
      ["/v1/templates", { name: "N", slug: "n-n", subject: "s", html_body: "x", text_body: null, description: null }],
      ["/v1/suppressions", { email: "n@x.example", reason: null, scope_type: null, scope_id: null, expires_at: null }],
    ];
    for (const [path, body] of creates) {
      const answer = await api.ask("POST", path, body);
      assert.equal(answer.status, 201, `${path}: ${JSON.stringify(answer.body)}`);
    }
    const { webhooks } = (await api.ask("GET", "/v1/webhooks")).body;
    assert.deepEqual(webhooks[0].event_types, ["email.received"]);
  });

  it("does not stand for a required field, nor clear one that a change does not let be empty", async () => {
    for (const name of ["from", "to"]) {
      const { status, body } = await api.ask("POST", "/v1/send", { ...GOOD, [name]: null });
      assert.deepEqual([status, body.field], [400, name]);
    }
    const { id } = (await api.ask("GET", "/v1/domains")).body.domains[0];
    const { status, body } = await api.ask("PUT", `/v1/domains/${id}`, { tls_policy: null });
    assert.deepEqual([status, body.field], [400, "tls_policy"]);
  });

  it("clears a list in a change, where it may be empty, and is in its description", async () => {
    const made = await api.ask("POST", "/v1/domains", { domain: "lists.example", type: "both" });
    const { body: hook } = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example.com/clear" });
    const path = `/v1/domains/${made.body.id}`;
    const ids = [hook.webhook.id];
    for (const [given, kept] of [
      [ids, ids],
      [null, []],
    ]) {
      const { status, body } = await api.ask("PUT", path, { catch_all_webhook_ids: given });
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual((await api.ask("GET", path)).body.catch_all_webhook_ids, kept);
    }
    const events = await api.ask("PUT", `/v1/webhooks/${hook.webhook.id}`, { events: null });
    assert.deepEqual([events.status, events.body.field], [400, "events"]);
    const { components } = (await api.app.inject({ url: "/openapi.json" })).json();
    assert.equal(components.schemas.UpdateDomainSpamRequest.properties.block.nullable, true);
  });

  it("is in the description of every create", async () => {
    const { components } = (await api.app.inject({ url: "/openapi.json" })).json();
    const { SendRequest: body, SendAttachment: attachment } = components.schemas;
    assert.equal(body.properties.html_body.nullable, true);
    assert.equal(body.properties.reply_to.anyOf[0].nullable, true);
    assert.equal(attachment.properties.content_id.nullable, true);
    assert.deepEqual(attachment.properties.disposition.enum, ["attachment", "inline", null]);
    assert.equal(body.properties.from.nullable, undefined);
  });
});

describe("a field that is not known", () => {
  it("is named with the known one that it resembles", async () => {
    const cases: [path: string, body: unknown, field: string, says: string][] = [
      ["/v1/send", { ...GOOD, html: "<p>x</p>" }, "html", "is not known; did you mean `html_body`?"],
      ["/v1/send", { ...GOOD, replyTo: "a@b.example" }, "replyTo", "did you mean `reply_to`?"],
      [
        "/v1/send",
        { ...GOOD, attachments: [{ filename: "a", content: "YQ==", contentType: "text/plain" }] },
        "attachments[0].contentType",
        "did you mean `content_type`?",
      ],
      ["/v1/send", { ...GOOD, text_body: undefined, text: "x" }, "text", "did you mean `text_body`?"],
      ["/v1/send/batch", { emial: [GOOD] }, "emails", "required; 'emial' is not known; did you mean `emails`?"],
      ["/v1/send/batch", GOOD, "emails", "the 'emails' field is required; 'from' is not known"],
      ["/v1/send/batch", { emails: [GOOD], valdation: "strict" }, "valdation", "did you mean `validation`?"],
      ["/v1/domains", { domain: "a.example", typ: "both" }, "typ", "did you mean `type`?"],
      [
        "/v1/webhooks",
        { webhook_url: "https://x.example" },
        "url",
        "the 'url' field is required; 'webhook_url' is not known",
      ],
      [
        "/v1/send",
        { ...GOOD, from: undefined, frm: GOOD.from },
        "from",
        "required; 'frm' is not known; did you mean `from`?",
      ],
      [
        "/v1/send",
        { ...GOOD, attachments: [{ content: "YQ==", file_name: "a" }] },
        "attachments[0].filename",
        "`filename`?",
      ],
      [
        "/v1/api-keys",
        { environment: "test", nam: "x", colour: 1 },
        "name",
        "'nam' is not known; did you mean `name`?",
      ],
      ["/v1/webhooks", { url: "https://x.example", event: [] }, "event", "did you mean `events`?"],
      ["/v1/webhooks", { url: "https://x.example", event_types: [] }, "event_types", "did you mean `events`?"],
    ];
    for (const [path, sent, field, says] of cases) {
      const { status, body } = await api.ask("POST", path, sent);
      assert.deepEqual([status, body.field], [400, field], JSON.stringify(body));
      assert.ok(body.error.includes(says), body.error);
    }
    const { body } = await api.ask("POST", "/v1/send", { ...GOOD, colour: "blue" });
    assert.equal(body.error, "the 'colour' field is not known");
    const item = await api.ask("POST", "/v1/send/batch", [{ ...GOOD, html: "x" }]);
    assert.match(item.body.results[0].error, /did you mean `html_body`\?$/);
  });
});

it("an empty list of reply_to is none", async () => {
  const { status, body } = await api.ask("POST", "/v1/send", { ...GOOD, reply_to: [] });
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual((await api.ask("GET", `/v1/emails/${body.id}`)).body.email.reply_to, []);
  const own = { ...GOOD, reply_to: [], headers: { "Reply-To": "help@sender.example" } };
  assert.equal((await api.ask("POST", "/v1/send", own)).status, 202);
});
