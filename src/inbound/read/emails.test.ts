// /v1/inbound-emails as its users see it: lists, one, downloads, replay, release, delete.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";

let r: Receiving;
let aliasId: string;

before(async () => {
  r = await startTestReceiving();
  aliasId = (await addAlias(r, "desk")).id;
});
after(() => r.close());

const NOBODY = "00000000-0000-7000-8000-00000000abcd";
const get = (path: string, key?: string) =>
  r.api.ask("GET", `/v1/inbound-emails${path}`, undefined, key === undefined ? {} : { key });
const post = (path: string, key?: string) =>
  r.api.ask("POST", `/v1/inbound-emails${path}`, undefined, key === undefined ? {} : { key });
/** Sends a mail with this subject and waits for it. */
const receive = async (subject: string, more: object = {}) => {
  await r.send({ from: "Anna <anna@sender.example>", to: "desk@in.example", subject, text: "Hello", ...more });
  return (await r.processed(`subject=${encodeURIComponent(subject)}`))[0];
};

test("a listed mail has every field", async () => {
  const { id, received_at, processed_at, size, thread_id, ...rest } = await receive("fields", {
    messageId: "<f1@sender.example>",
  });
  assert.ok(id && thread_id && size > 100 && received_at <= processed_at);
  assert.deepEqual(rest, {
    message_id: "<f1@sender.example>",
    from_address: "Anna <anna@sender.example>",
    to_address: "desk@in.example",
    subject: "fields",
    status: "delivered",
    environment: "live",
    alias_id: aliasId,
    domain_id: r.domain.id,
    has_attachments: false,
    spam_score: 0,
  });
});

test("lists are newest first, sorted as asked, filtered by every field, paged and counted", async () => {
  const file = { filename: "x.txt", content: "x" };
  const first = await receive("Order 1", { envelope: { from: "b1@bounce.example", to: ["desk+eu@in.example"] } });
  const second = await receive("order 2", {
    from: "Zoë <zoe@other.example>",
    attachments: [file],
    text: "x".repeat(5000),
  });
  const list = async (query: string) => {
    const { status, body } = await get(`?subject=order%20${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.emails.map((email: { id: string }) => (email.id === first.id ? 1 : email.id === second.id ? 2 : 0));
  };
  assert.deepEqual(await list(""), [2, 1]);
  assert.deepEqual(await list("&direction=asc"), [1, 2]);
  assert.deepEqual(await list("&sort=from&direction=asc"), [1, 2]);
  assert.deepEqual(await list("&sort=to&direction=desc"), [2, 1]);
  assert.deepEqual(await list("&sort=subject"), [2, 1]);
  assert.deepEqual(await list("&sort=size"), [2, 1]);
  for (const sort of ["received_at", "processed_at", "spam_score"])
    assert.equal((await list(`&sort=${sort}`)).length, 2);
  const page = await get("?subject=order%20&limit=1&offset=1");
  assert.deepEqual([page.body.emails[0].id, page.body.total, page.body.limit, page.body.offset], [first.id, 2, 1, 1]);
  for (const [filter, found] of [
    ["q=zoe%40other", [2]],
    ["q=ORDER%201", [1]],
    ["q=desk%2Beu", [1]],
    ["from=Zo%C3%AB", [2]],
    ["to=%2Beu", [1]],
    ["envelope_sender=bounce.example", [1]],
    ["status=delivered", [2, 1]],
    ["status=quarantined", []],
    ["environment=live", [2, 1]],
    ["environment=test", []],
    [`domain_id=${r.domain.id}`, [2, 1]],
    [`domain_id=${NOBODY}`, []],
    [`alias_id=${aliasId}`, [2, 1]],
    [`alias_id=${NOBODY}`, []],
    [`thread_id=${first.thread_id}`, [1]],
    ["has_attachments=true", [2]],
    ["has_attachments=false", [1]],
    [`from_date=${first.received_at}`, [2, 1]],
    [`from_date=${encodeURIComponent(second.received_at)}`, [2]],
    [`to_date=${first.received_at}`, [1]],
    [`from_date=${first.received_at.slice(0, 10)}&to_date=${first.received_at.slice(0, 10)}`, [2, 1]],
    ["from_date=2030-01-01", []],
    ["to_date=2020-01-01", []],
    ["q=%25", []],
  ] as const) {
    assert.deepEqual(await list(`&${filter}`), found, filter);
  }
});

test("lists find letters beyond ASCII in either case, and international domains as people write them", async () => {
  const domain = await r.api.ask("POST", "/v1/domains", { domain: "bücher.example" });
  await r.api.ask("POST", "/v1/aliases", { domain_id: domain.body.id, local_part: "desk", action: "store" });
  const mail = { to: "desk@bücher.example", from: "Zoë <zoe@jürgen.example>", subject: "Ärger mit Привет", text: "x" };
  const { body } = await r.api.ask("POST", "/v1/inbound-emails/simulate", mail);
  assert.equal(body.accepted, true, JSON.stringify(body));
  for (const filter of [
    ...["subject=ärger", "subject=ÄRGER mit", "subject=ärger mit привет", "subject=ПРИВЕТ", "q=привет"],
    ...[
      "to=desk@bücher.example",
      "to=BÜCHER",
      "to=xn--bcher",
      "q=@bücher",
      "envelope_sender=jürgen",
      "from=JÜRGEN.example",
    ],
  ]) {
    const found = await get(`?${new URLSearchParams(filter)}`);
    assert.deepEqual(
      found.body.emails.map(({ id }: { id: string }) => id),
      [body.email.id],
      filter,
    );
  }
  assert.equal((await get(`?${new URLSearchParams("subject=ärgern")}`)).body.total, 0);
});

test("a list refuses what it does not know", async () => {
  for (const query of [
    "limit=0",
    "limit=101",
    "offset=-1",
    "status=lost",
    "sort=color",
    "direction=up",
    "domain_id=x",
    "has_attachments=maybe",
    "from_date=yesterday",
    "to_date=2026-13-01",
    "to_date=2026-02-30",
    "from_date=2026-11-20%20(Friday)",
    "color=red",
  ]) {
    const { status, body } = await get(`?${query}`);
    assert.equal(status, 400, query);
    assert.equal(body.field, query.split("=")[0]);
  }
});

test("one mail has the event's fields, what became of it, and its deliveries", async () => {
  const row = await receive("one", { html: "<b>Hello</b>" });
  const [event] = await r.events(row.id);
  const { status, body } = await get(`/${row.id}`);
  assert.equal(status, 200);
  const { event: _name, timestamp: _at, event_id, ...payload } = event?.body ?? {};
  const { deliveries, defects, rule_ids, forwards, released_at, reason, ...email } = body.email;
  for (const [name, value] of Object.entries(payload)) assert.deepEqual(email[name], value, name);
  assert.equal(email.id, payload.email_id);
  assert.deepEqual([defects, rule_ids, forwards, released_at, reason], [[], [], [], null, null]);
  assert.deepEqual(
    [email.status, email.from_address, email.to_address, email.has_attachments, email.spam_score],
    ["delivered", "Anna <anna@sender.example>", "desk@in.example", false, 0],
  );
  assert.equal(deliveries.length, 1);
  assert.deepEqual(
    [deliveries[0].endpoint_id, deliveries[0].event_id, deliveries[0].status, deliveries[0].attempt],
    [r.webhook_id, event_id, "pending", deliveries[0].attempt],
  );
});

test("attachments are downloads, and what a browser would run is octets", async () => {
  const row = await receive("files", {
    attachments: [
      { filename: "Rechnung ä.pdf", content: Buffer.from("%PDF"), contentType: "application/pdf" },
      { filename: "page.html", content: "<script>alert(1)</script>", contentType: "text/html" },
      { filename: "image.svg", content: "<svg/>", contentType: "image/svg+xml" },
      { filename: "feed.xml", content: "<a/>", contentType: "application/xml" },
      { filename: '../../etc/pass"wd\\x.txt', content: "x", contentType: "text/plain" },
      { filename: "exe\u202efdp.exe", content: "x", contentType: "text/plain" },
    ],
  });
  const { body } = await get(`/${row.id}`);
  const answers = await Promise.all(
    body.email.attachments.map((a: { url: string }) => r.api.ask("GET", new URL(a.url).pathname)),
  );
  assert.deepEqual(
    answers.map(({ headers }) => [headers["content-type"], headers["content-disposition"]]),
    [
      ["application/pdf", "attachment; filename=\"Rechnung _.pdf\"; filename*=UTF-8''Rechnung%20%C3%A4.pdf"],
      ["application/octet-stream", "attachment; filename=\"page.html\"; filename*=UTF-8''page.html"],
      ["application/octet-stream", "attachment; filename=\"image.svg\"; filename*=UTF-8''image.svg"],
      ["application/octet-stream", "attachment; filename=\"feed.xml\"; filename*=UTF-8''feed.xml"],
      ["text/plain", "attachment; filename=\"x.txt\"; filename*=UTF-8''x.txt"],
      ["text/plain", "attachment; filename=\"exefdp.exe\"; filename*=UTF-8''exefdp.exe"],
    ],
  );
  for (const { status, headers } of answers) {
    assert.equal(status, 200);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.match(String(headers["content-security-policy"]), /sandbox/);
  }
  assert.deepEqual([answers[0].body, answers[0].headers["content-length"]], ["%PDF", "4"]);
});

test("an attachment of one mail is not found through another, nor by another organization", async () => {
  const attachments = [{ filename: "a.txt", content: "a" }];
  const [one, two] = [await receive("mix 1", { attachments }), await receive("mix 2", { attachments })];
  const { body } = await get(`/${one.id}`);
  const attachmentId = body.email.attachments[0].id;
  const other = await r.api.organization();
  const download = (id: string, attachment: string, key?: string) =>
    get(`/${id}/attachments/${attachment}/download`, key);
  assert.equal((await download(one.id, attachmentId)).status, 200);
  for (const [id, attachment, key] of [
    [two.id, attachmentId],
    [one.id, NOBODY],
    [NOBODY, attachmentId],
    ["nonsense", attachmentId],
    [one.id, "../../../etc/passwd"],
    [one.id, attachmentId, other.live_key],
  ] as const) {
    assert.equal((await download(id, encodeURIComponent(attachment), key)).status, 404, `${id} ${attachment}`);
  }
  assert.equal((await r.api.ask("GET", `/v1/inbound-emails/${one.id}/raw`, undefined, { key: null })).status, 401);
});

test("raw is the message as it came, as a download", async () => {
  const row = await receive("raw");
  const { status, body, headers } = await get(`/${row.id}/raw`);
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "message/rfc822");
  assert.match(String(headers["content-disposition"]), /^attachment; filename="[0-9a-f-]{36}\.eml"/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.match(body, /\r\nSubject: raw\r\n[\s\S]*\r\n\r\nHello\r\n$/);
});

test("a replay makes a new event of the same mail", async () => {
  const row = await receive("again");
  const alias = (await r.api.ask("GET", `/v1/aliases/${aliasId}`)).body.alias;
  const { status, body } = await post(`/${row.id}/replay`);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.email.id, body.email.status], [row.id, "delivered"]);
  assert.equal(body.email.deliveries.length, 2);
  const [first, second] = await r.events(row.id);
  assert.notEqual(first?.body.event_id, second?.body.event_id);
  const { event_id: _1, timestamp: _2, ...before } = first?.body ?? {};
  const { event_id: _3, timestamp: _4, ...after } = second?.body ?? {};
  assert.deepEqual(after, before);
  const counted = (await r.api.ask("GET", `/v1/aliases/${aliasId}`)).body.alias;
  assert.equal(counted.emails_received, alias.emails_received, "a replay is no further mail");
});

test("addresses of attachments that went out with an event are good after a replay", async () => {
  const row = await receive("twice", {
    attachments: [
      { filename: "a.txt", content: "the same" },
      { filename: "b.txt", content: "the same" },
    ],
  });
  assert.equal((await post(`/${row.id}/replay`)).status, 200);
  const [first, second] = await r.events(row.id);
  const urls = (event: typeof first) => event?.body.attachments.map(({ url }: { url: string }) => url);
  assert.deepEqual(urls(second), urls(first));
  assert.equal(new Set(urls(first)).size, 2);
  for (const url of urls(first)) {
    const { status, body } = await r.api.ask("GET", new URL(url).pathname);
    assert.deepEqual([status, body], [200, "the same"]);
  }
});

test("a replay goes where the alias sends mail now, and where it did once it is gone", async () => {
  const alias = await addAlias(r, "moved", { action: "store" });
  const row = await receive("moved", { to: "moved@in.example" });
  assert.deepEqual(await r.events(row.id), []);
  const hook = (await r.api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/late" })).body.webhook;
  const change = { action: "webhook", webhook_ids: [hook.id] };
  assert.equal((await r.api.ask("PATCH", `/v1/aliases/${alias.id}`, change)).status, 200);
  assert.equal((await post(`/${row.id}/replay`)).status, 200);
  assert.deepEqual(
    (await r.events(row.id)).map(({ endpoints }) => endpoints),
    [[hook.id]],
  );
  await r.api.ask("DELETE", `/v1/aliases/${alias.id}`);
  assert.equal((await post(`/${row.id}/replay`)).status, 200);
  assert.equal((await r.events(row.id)).length, 2);
  await r.api.ask("DELETE", `/v1/webhooks/${hook.id}`);
});

test("a rule counts a mail once: when it came, when it was released, not when it is replayed", async () => {
  const rule = (
    await r.api.ask("POST", "/v1/inbound-rules", {
      ...{ name: "hits", domain_id: r.domain.id, action: "store" },
      conditions: [{ field: "subject", comparator: "contains", value: "counted" }],
    })
  ).body.rule;
  const hits = async () => (await r.api.ask("GET", `/v1/inbound-rules/${rule.id}`)).body.rule.hits;
  const row = await receive("counted");
  assert.equal(await hits(), 1);
  await post(`/${row.id}/replay`);
  assert.equal(await hits(), 1);
  // As it stands after quarantine: processed, and no rule was asked.
  await r.api.world.db.query("update inbound_email set status = 'quarantined', rule_ids = '{}' where id = $1", [
    row.id,
  ]);
  assert.equal((await post(`/${row.id}/release`)).status, 200);
  assert.equal(await hits(), 2);
  await r.api.ask("DELETE", `/v1/inbound-rules/${rule.id}`);
});

test("a quarantined mail is released, not replayed; others are not released", async () => {
  const row = await receive("held");
  assert.equal((await post(`/${row.id}/release`)).status, 409);
  await r.api.world.db.query("update inbound_email set status = 'quarantined' where id = $1", [row.id]);
  const refused = await post(`/${row.id}/replay`);
  assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  const released = await post(`/${row.id}/release`);
  assert.equal(released.status, 200, JSON.stringify(released.body));
  assert.equal(released.body.email.status, "delivered");
  assert.ok(released.body.email.released_at);
  assert.equal((await r.events(row.id)).length, 2);
});

test("what is under way is not replayed, and a test key does not touch live mail", async () => {
  const row = await receive("busy");
  assert.deepEqual(
    [
      (await post(`/${row.id}/replay`, r.api.test_key)).status,
      (await post(`/${row.id}/replay`, r.api.test_key)).body.code,
    ],
    [403, "test_key_not_allowed"],
  );
  await r.api.world.db.query("update inbound_email set status = 'processing' where id = $1", [row.id]);
  assert.equal((await post(`/${row.id}/replay`)).status, 409);
});

test("a damaged blob and a missing one are the same 503, for a message and for an attachment, until they are back", async () => {
  const content = Buffer.alloc(300_000, "z").toString("base64");
  const { id } = await receive("stored apart", { attachments: [{ filename: "z.bin", content, encoding: "base64" }] });
  const [attachment] = (await get(`/${id}`)).body.email.attachments;
  const [keys] = await r.api.world.db.query<{ raw: string; attached: string }>(
    `select r.blob_key as raw, b.blob_key as attached from inbound_email e join inbound_raw r on r.id = e.raw_id
       join blob_reference b on b.owner_id = e.id where e.id = $1`,
    [id],
  );
  for (const [path, key] of [
    [`/${id}/raw`, keys?.raw ?? ""],
    [`/${id}/attachments/${attachment.id}/download`, keys?.attached ?? ""],
  ] as const) {
    const file = join(r.api.config.data_dir, "blobs", key.slice(0, 2), key.slice(2, 4), key);
    const kept = readFileSync(file);
    const answers = [];
    for (const trouble of ["missing", "damaged"]) {
      if (trouble === "missing") rmSync(file);
      else writeFileSync(file, Buffer.concat([kept.subarray(0, -1), Buffer.from("!")]));
      const { status, body, headers } = await get(path);
      const { request_id, ...reported } = body;
      answers.push({ status, reported, retry_after: headers["retry-after"] });
    }
    assert.deepEqual(
      [answers[0]?.status, answers[0]?.reported.code, answers[0]?.retry_after],
      [503, "unavailable", "1"],
    );
    assert.deepEqual(answers[1], answers[0], path);
    writeFileSync(file, kept);
    assert.equal((await get(path)).status, 200);
  }
});

test("a deleted mail is gone with its attachments, and the message with its last recipient", async () => {
  await addAlias(r, "second");
  const big = Buffer.alloc(300_000, "y").toString("base64");
  await r.send({
    from: "a@b.example",
    to: ["desk@in.example", "second@in.example"],
    subject: "doomed",
    text: "x",
    attachments: [{ filename: "big.bin", content: big, encoding: "base64" }],
  });
  const rows = await r.processed("subject=doomed", 2);
  const keys = await r.api.world.db.query<{ blob_key: string }>(
    "select distinct blob_key from blob_reference where owner_id = any($1)",
    [rows.map(({ id }) => id)],
  );
  const [raw] = await r.api.world.db.query<{ id: string; blob_key: string }>(
    "select r.id, r.blob_key from inbound_raw r join inbound_email e on e.raw_id = r.id where e.id = $1",
    [rows[0].id],
  );
  assert.equal(keys.length, 1, "one blob for both recipients");
  const [attachmentKey, rawKey] = [keys[0]?.blob_key ?? "", raw?.blob_key ?? ""];
  const { blobs } = r.api.world;
  const del = (id: string) => r.api.ask("DELETE", `/v1/inbound-emails/${id}`);
  const deleted = await del(rows[0].id);
  assert.deepEqual([deleted.status, deleted.body], [200, { deleted: true, id: rows[0].id }]);
  assert.equal((await get(`/${rows[0].id}`)).status, 404);
  const bytes = (await blobs.get(rawKey)) as Buffer;
  await blobs.delete(rawKey);
  assert.equal((await get(`/${rows[1].id}/raw`)).status, 503, "missing is not deleted");
  assert.equal((await get(`/${rows[1].id}`)).status, 503, "nor without a text");
  await blobs.put(bytes);
  assert.deepEqual(
    [await blobs.exists(attachmentKey), await blobs.exists(rawKey)],
    [true, true],
    "the other needs them",
  );
  assert.equal((await get(`/${rows[1].id}`)).body.email.attachments.length, 1);
  await del(rows[1].id);
  assert.deepEqual([await blobs.exists(attachmentKey), await blobs.exists(rawKey)], [false, false]);
  const left = await r.api.world.db.query("select 1 from inbound_raw where id = $1", [raw?.id]);
  assert.equal(left.length, 0);
  assert.equal((await del(rows[1].id)).status, 404);
});

test("what events say of a deleted mail is gone: nothing more goes out, and the log stays", async () => {
  const row = await receive("forgotten", { text: "a word that must not stay" });
  await post(`/${row.id}/replay`);
  const { deliveries } = (await get(`/${row.id}`)).body.email;
  assert.equal(deliveries.length, 2);
  const { db } = r.api.world;
  const eventIds = deliveries.map((delivery: { event_id: string }) => delivery.event_id);
  const kept = () => db.query("select 1 from webhook_event where id = any($1)", [eventIds]);
  assert.equal((await kept()).length, 2);
  // One was delivered long ago: a replay of it would send the mail again.
  await db.execute(
    `with done as (delete from webhook_queue where id = $1 returning *)
     insert into webhook_delivery (org_id, id, webhook_id, event_id, event, created_at, finished_at, attempt, status)
     select org_id, id, webhook_id, event_id, event, created_at, created_at, 1, 'delivered' from done`,
    [deliveries[0].id],
  );
  assert.equal((await r.api.ask("DELETE", `/v1/inbound-emails/${row.id}`)).status, 200);
  assert.equal((await kept()).length, 0);
  assert.deepEqual(await db.query("select 1 from webhook_queue where event_id = any($1)", [eventIds]), []);
  const { body } = await r.api.ask("GET", "/v1/webhook-deliveries?days=1");
  const log = (id: string) => body.deliveries.find((delivery: { id: string }) => delivery.id === id);
  assert.deepEqual([log(deliveries[0].id).status, log(deliveries[0].id).error], ["delivered", null]);
  assert.equal(log(deliveries[1].id).status, "failed");
  assert.match(log(deliveries[1].id).error, /was deleted/);
  for (const { id } of deliveries) {
    const again = await r.api.ask("POST", `/v1/webhook-deliveries/${id}/replay`);
    assert.deepEqual([again.status, again.body.code], [409, "invalid_state"]);
    assert.match(again.body.error, /its e-mail was deleted/);
  }
});

test("another organization gets 404 for everything", async () => {
  const row = await receive("walled");
  const other = await r.api.organization();
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/raw"],
    ["POST", "/replay"],
    ["POST", "/release"],
    ["DELETE", ""],
  ] as const) {
    const as = { key: other.live_key };
    const answer = await r.api.ask(method, `/v1/inbound-emails/${row.id}${path}`, undefined, as);
    const unknown = await r.api.ask(method, `/v1/inbound-emails/${NOBODY}${path}`, undefined, as);
    assert.deepEqual([answer.status, answer.body.error], [404, unknown.body.error], `${method} ${path}`);
    assert.equal((await r.api.ask(method, `/v1/inbound-emails/nonsense${path}`, undefined, as)).status, 404);
  }
  assert.equal((await get("", other.live_key)).body.total, 0);
  assert.equal((await get(`/${row.id}`)).status, 200);
});
