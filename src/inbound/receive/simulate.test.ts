// POST /v1/inbound-emails/simulate: the whole pipeline without SMTP and without DNS.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";

let api: TestApi;
let dns: DnsServer;
let aliasId: string;
let domainId: string;
let webhookId: string;

before(async () => {
  dns = await startDnsServer({ "sender.example": { TXT: ["v=spf1 ip4:198.51.100.7 -all"] } });
  api = await testApi({ POSTERN_DNS: dns.address });
  const domain = await api.ask("POST", "/v1/domains", { domain: "sim.example" });
  domainId = domain.body.id;
  const webhook = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/in" });
  webhookId = webhook.body.webhook.id;
  const alias = await api.ask("POST", "/v1/aliases", {
    domain_id: domainId,
    local_part: "desk",
    webhook_ids: [webhookId],
  });
  aliasId = alias.body.alias.id;
});
after(async () => {
  await api.close();
  await dns.stop();
});

const simulate = (body: unknown, key = api.test_key) => api.ask("POST", "/v1/inbound-emails/simulate", body, { key });

test("a mail from JSON goes all the way to the webhook, as test mail, on a domain without DNS", async () => {
  const { status, body } = await simulate({
    to: "desk+x@sim.example",
    from: "Anna Ä <anna@sender.example>",
    cc: ["Bob <bob@sender.example>"],
    reply_to: "reply@sender.example",
    subject: "Grüße",
    text: "Hallo",
    html: "<p>Hallo</p>",
    headers: { "In-Reply-To": "<x@y.example>", "X-Kind": "order" },
    attachments: [{ filename: "a.txt", content: Buffer.from("Inhalt").toString("base64"), content_type: "text/plain" }],
    remote_ip: "198.51.100.7",
    helo: "mail.sender.example",
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.accepted, true);
  const { email } = body;
  assert.deepEqual(body.results, [
    {
      recipient: "desk+x@sim.example",
      accepted: true,
      smtp_code: 250,
      enhanced_code: "2.0.0",
      message: "taken",
      email_id: email.id,
    },
  ]);
  assert.deepEqual(
    [email.environment, email.status, email.from, email.cc, email.reply_to, email.subject, email.text, email.html],
    [
      "test",
      "delivered",
      "Anna Ä <anna@sender.example>",
      ["Bob <bob@sender.example>"],
      "reply@sender.example",
      "Grüße",
      "Hallo",
      "<p>Hallo</p>",
    ],
  );
  assert.deepEqual(
    [email.spf, email.auth_results.spf.from_aligned, email.envelope.remote_ip],
    ["pass", true, "198.51.100.7"],
  );
  assert.deepEqual([email.recipient_tag, email.alias_id, email.thread.in_reply_to], ["x", aliasId, "<x@y.example>"]);
  assert.equal(email.headers.find((h: { name: string }) => h.name === "X-Kind").value, "order");
  assert.equal(email.attachments[0].filename, "a.txt");
  assert.deepEqual(
    email.deliveries.map((d: { endpoint_id: string }) => d.endpoint_id),
    [webhookId],
  );
  const [stored] = await api.world.db.query<{ body: Buffer }>("select body from webhook_event where id = $1", [
    email.deliveries[0].event_id,
  ]);
  assert.equal(JSON.parse(String(stored?.body)).environment, "test");
});

test("a raw message goes through as it is, text or base64", async () => {
  const raw = "From: a@sender.example\nSubject: raw\nMessage-ID: <r@s.example>\n\nline\n.\nend";
  for (const given of [{ raw }, { raw_base64: Buffer.from(raw).toString("base64") }]) {
    const { status, body } = await simulate({ to: ["desk@sim.example"], envelope_from: "", ...given });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      [body.email.message_id, body.email.subject, body.email.text, body.email.envelope.from],
      ["<r@s.example>", "raw", "line\n.\nend\n", ""],
    );
    const shown = await api.ask("GET", `/v1/inbound-emails/${body.email.id}/raw`);
    assert.ok(shown.body.endsWith("\r\nSubject: raw\r\nMessage-ID: <r@s.example>\r\n\r\nline\r\n.\r\nend\r\n"));
  }
});

test("an address that is named twice is one recipient: one mail, one event, the same answer twice", async () => {
  const subject = "named twice";
  const to = ["desk@sim.example", "nobody@sim.example", "desk@sim.example", "nobody@sim.example"];
  const { body } = await simulate({ to, from: "a@sender.example", subject, text: "x" });
  const id = body.email.id;
  assert.deepEqual(
    body.results.map((one: Record<string, unknown>) => [one.recipient, one.smtp_code, one.email_id]),
    [
      ["desk@sim.example", 250, id],
      ["nobody@sim.example", 550, null],
      ["desk@sim.example", 250, id],
      ["nobody@sim.example", 550, null],
    ],
  );
  const listed = await api.ask("GET", `/v1/inbound-emails?subject=${encodeURIComponent(subject)}`);
  assert.deepEqual([listed.body.total, body.email.deliveries.length], [1, 1]);
});

test("recipients that SMTP would refuse are named, one by one", async () => {
  const { body } = await simulate({
    to: ["nobody@sim.example", "desk@sim.example", "x@elsewhere.example"],
    from: "a@sender.example",
    text: "x",
  });
  assert.deepEqual(
    body.results.map((r: Record<string, unknown>) => [r.accepted, r.smtp_code, r.enhanced_code]),
    [
      [false, 550, "5.1.1"],
      [true, 250, "2.0.0"],
      [false, 550, "5.7.1"],
    ],
  );
  assert.equal(body.results[1].email_id, body.email.id);
  const none = await simulate({ to: "nobody@sim.example", from: "a@sender.example", text: "x" });
  assert.deepEqual([none.status, none.body.accepted, none.body.email], [200, false, null]);
});

test("what SMTP would refuse after reading the message is refused", async () => {
  const raw = `${"Received: from a by b; Thu, 1 Jan 1970 00:00:00 +0000\r\n".repeat(31)}Subject: x\r\n\r\nx`;
  const { body } = await simulate({ to: "desk@sim.example", raw });
  assert.deepEqual([body.accepted, body.results[0].smtp_code, body.results[0].enhanced_code], [false, 554, "5.4.6"]);
});

test("a forward is recorded and never sent", async () => {
  await api.ask("POST", "/v1/aliases", {
    domain_id: domainId,
    local_part: "fwd",
    action: "forward",
    forward_to: ["real@elsewhere.example"],
  });
  const { body } = await simulate({ to: "fwd@sim.example", from: "a@sender.example", text: "x" });
  assert.deepEqual([body.email.status, body.email.forwards.length], ["delivered", 1]);
  const sent = await api.ask("GET", `/v1/emails/${body.email.forwards[0]}`);
  assert.deepEqual([sent.body.email.status, sent.body.email.environment], ["simulated", "test"]);
  assert.equal((await api.world.db.query("select 1 from delivery")).length, 0);
});

test("the address of another organization is not reached", async () => {
  const other = await api.organization();
  const theirs = await api.ask(
    "POST",
    "/v1/domains",
    { domain: "theirs.example", catch_all_enabled: true },
    { key: other.live_key },
  );
  assert.equal(theirs.status, 201);
  await api.world.db.query("update domain set claimed = true where id = $1", [theirs.body.id]);
  const { body } = await simulate({ to: "x@theirs.example", from: "a@sender.example", text: "x" });
  assert.equal(body.accepted, false);
  assert.equal((await api.ask("GET", "/v1/inbound-emails", undefined, { key: other.live_key })).body.total, 0);
});

test("a live key simulates test mail too", async () => {
  const { body } = await simulate({ to: "desk@sim.example", from: "a@sender.example", text: "x" }, api.live_key);
  assert.equal(body.email.environment, "test");
});

for (const [why, body, field] of [
  ["no recipient", { from: "a@b.example", text: "x" }, "to"],
  ["a bad recipient", { to: "nonsense nonsense", from: "a@b.example" }, "to"],
  ["a second bad recipient", { to: ["desk@sim.example", ""], from: "a@b.example" }, "to"],
  ["no author", { to: "desk@sim.example", text: "x" }, "from"],
  ["a bad author", { to: "desk@sim.example", from: "x" }, "from"],
  ["a bad envelope sender", { to: "desk@sim.example", from: "a@b.example", envelope_from: "x" }, "envelope_from"],
  ["two messages", { to: "desk@sim.example", raw: "x", raw_base64: "eA==" }, "raw_base64"],
  ["a raw message beside fields", { to: "desk@sim.example", raw: "x", subject: "x" }, "subject"],
  ["an empty raw message", { to: "desk@sim.example", raw_base64: "=" }, "raw_base64"],
  ["a raw message that is not base64", { to: "desk@sim.example", raw_base64: "Zm9v!" }, "raw_base64"],
  ["a raw message that was cut off", { to: "desk@sim.example", raw_base64: "RnJvb" }, "raw_base64"],
  ["NUL", { to: "desk@sim.example", raw: "a\u0000b" }, "raw"],
  ["a line break in the subject", { to: "desk@sim.example", from: "a@b.example", subject: "a\nb" }, "subject"],
  ["a refused header", { to: "desk@sim.example", from: "a@b.example", headers: { Received: "x" } }, "headers.Received"],
  [
    "Reply-To twice",
    { to: "desk@sim.example", from: "a@b.example", reply_to: "a@b.example", headers: { "Reply-To": "a@b.example" } },
    "headers.Reply-To",
  ],
  ["a bad address", { to: "desk@sim.example", from: "a@b.example", remote_ip: "1.2.3" }, "remote_ip"],
  ["a bad helo", { to: "desk@sim.example", from: "a@b.example", helo: "a b" }, "helo"],
  ["a bad cc", { to: "desk@sim.example", from: "a@b.example", cc: ["x"] }, "cc[0]"],
  [
    "bad base64",
    { to: "desk@sim.example", from: "a@b.example", attachments: [{ filename: "x", content: "§" }] },
    "attachments[0].content",
  ],
  [
    "a million blanks that are no base64",
    { to: "desk@sim.example", from: "a@b.example", attachments: [{ filename: "x", content: `${" ".repeat(1e6)}!` }] },
    "attachments[0].content",
  ],
  [
    "a bad type",
    { to: "desk@sim.example", from: "a@b.example", attachments: [{ filename: "x", content: "", content_type: "x" }] },
    "attachments[0].content_type",
  ],
  ["an unknown field", { to: "desk@sim.example", from: "a@b.example", color: "red" }, "color"],
] as const) {
  test(`a simulation with ${why} is refused with 400 naming ${field}`, async () => {
    const answer = await simulate(body);
    assert.equal(answer.status, 400, JSON.stringify(answer.body));
    assert.ok(String(answer.body.field).startsWith(field), answer.body.field);
  });
}
