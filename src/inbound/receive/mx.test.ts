// Mail over real SMTP to the event: what is accepted, what is refused, and what the event says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { until } from "../../../test/support/until.ts";
import { startMx } from "./mx.ts";

let r: Receiving;

before(async () => {
  r = await startTestReceiving();
});
after(() => r.close());

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const greeted = async () => {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  return smtp;
};

test("a mail for an alias becomes exactly the event of the contract", async () => {
  const alias = await addAlias(r, "support");
  r.dns.set("sender.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  await r.send({
    envelope: { from: "bounce@sender.example", to: ["support+vip@in.example"] },
    from: "Anna Ä <anna@sender.example>",
    to: "Support <support+vip@in.example>",
    cc: ["Bob <bob@sender.example>", "carl@sender.example"],
    replyTo: "Desk <desk@sender.example>",
    subject: "Grüße",
    text: "Hallo\nzweite Zeile",
    html: "<p>Hallo</p>",
    messageId: "<one@sender.example>",
    date: new Date("2026-11-20T09:00:00Z"),
    attachments: [{ filename: "a b.txt", content: "Inhalt", contentType: "text/plain" }],
  });
  const [row] = await r.processed("subject=Grüße");
  const [event, ...more] = await r.events(row.id);
  assert.deepEqual(more, []);
  assert.deepEqual(event?.endpoints, [r.webhook_id]);
  const { event_id, timestamp, headers, attachments, thread, size, auth_results, ...rest } = event?.body ?? {};
  assert.match(event_id, ID);
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 10_000);
  assert.ok(size > 500);
  assert.deepEqual(rest, {
    event: "email.received",
    email_id: row.id,
    message_id: "<one@sender.example>",
    environment: "live",
    from: "Anna Ä <anna@sender.example>",
    to: "support+vip@in.example",
    cc: ["Bob <bob@sender.example>", "carl@sender.example"],
    reply_to: "Desk <desk@sender.example>",
    date: "2026-11-20T09:00:00.000Z",
    subject: "Grüße",
    text: "Hallo\nzweite Zeile",
    html: "<p>Hallo</p>",
    spf: "pass",
    dkim: "none",
    envelope: {
      from: "bounce@sender.example",
      to: "support+vip@in.example",
      remote_ip: "127.0.0.1",
      helo: rest.envelope.helo,
      tls: true,
    },
    spam: { score: 0, verdict: "ham", symbols: [] },
    auto_submitted: false,
    recipient_tag: "vip",
    domain_id: r.domain.id,
    alias_id: alias.id,
    raw_url: `https://api.postern.test/v1/inbound-emails/${row.id}/raw`,
    truncated: false,
  });
  assert.deepEqual(auth_results, {
    dkim: { result: "none", domain: null, selector: null, passed_domains: [], from_aligned: false },
    spf: { result: "pass", domain: "sender.example", from_aligned: true },
    dmarc: { result: "none", from_domain: "sender.example", dkim_aligned: false, spf_aligned: true },
  });
  assert.equal(headers.find((h: { name: string }) => h.name === "Subject").value, "Grüße");
  const { id: attachmentId, ...attachment } = attachments[0];
  assert.match(attachmentId, ID);
  assert.deepEqual(attachment, {
    filename: "a b.txt",
    content_type: "text/plain",
    size: 6,
    url: `https://api.postern.test/v1/inbound-emails/${row.id}/attachments/${attachmentId}/download`,
    content_id: null,
    disposition: "attachment",
  });
  assert.deepEqual({ ...thread, id: null }, { id: null, in_reply_to: null, references: [], matched_email_id: null });
  const counted = await r.api.ask("GET", `/v1/aliases/${alias.id}`);
  assert.equal(counted.body.alias.emails_received, 1);
  assert.equal(counted.body.alias.last_received_at, row.received_at);
});

test("a message to a hundred and fifty recipients arrives in two transactions of one session", async () => {
  const alias = await addAlias(r, "crowd-*", { action: "store" });
  const smtp = await greeted();
  await smtp.ask("EHLO list.example");
  let left = Array.from({ length: 150 }, (_, index) => `crowd-${index}@in.example`);
  const taken: number[] = [];
  while (left.length > 0) {
    assert.equal((await smtp.ask("MAIL FROM:<list@sender.example>")).code, 250);
    smtp.write(left.map((address) => `RCPT TO:<${address}>\r\n`).join(""));
    const putOff: string[] = [];
    for (const address of left) {
      const { code, text } = await smtp.reply();
      if (code !== 250) assert.match(text, /^452 4\.5\.3 /);
      if (code !== 250) putOff.push(address);
    }
    assert.equal((await smtp.ask("DATA")).code, 354);
    smtp.write("From: list@sender.example\r\nSubject: to the crowd\r\n\r\nx\r\n.\r\n");
    assert.equal((await smtp.reply()).code, 250);
    taken.push(left.length - putOff.length);
    left = putOff;
  }
  assert.deepEqual(taken, [100, 50]);
  await until("all of them are processed", async () => {
    const { body } = await r.api.ask("GET", `/v1/inbound-emails?alias_id=${alias.id}&status=delivered&limit=1`);
    return body.total === 150;
  });
  smtp.destroy();
});

test("each accepted recipient gets an event of its own, of one stored message", async () => {
  await addAlias(r, "one");
  await addAlias(r, "two");
  await r.send({
    from: "a@b.example",
    to: ["one@in.example", "two@in.example", "ONE@in.example"],
    subject: "both",
    text: "x",
  });
  const rows = await r.processed("subject=both", 3);
  assert.deepEqual(rows.map(({ to_address }) => to_address).sort(), [
    "ONE@in.example",
    "one@in.example",
    "two@in.example",
  ]);
  for (const row of rows) assert.equal((await r.events(row.id)).length, 1);
  const [counted] = await r.api.world.db.query<{ raws: number }>(
    "select count(distinct raw_id)::int as raws from inbound_email where subject = 'both'",
  );
  assert.equal(counted?.raws, 1);
});

test("without an alias mail is refused in session, and a catch-all takes it", async () => {
  const smtp = await greeted();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.match((await smtp.ask("RCPT TO:<nobody@in.example>")).text, /^550 5\.1\.1 /);
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: true });
  assert.match((await smtp.ask("RCPT TO:<nobody+tag@in.example>")).text, /^250 2\.1\.5 /);
  await smtp.ask("DATA");
  smtp.write("Subject: caught\r\n\r\nx\r\n.\r\n");
  assert.match((await smtp.reply()).text, /^250 2\.0\.0 taken as /);
  const [row] = await r.processed("subject=caught");
  const [event] = await r.events(row.id);
  assert.deepEqual(
    [event?.body.alias_id, event?.body.recipient_tag, event?.body.domain_id, event?.body.from],
    [null, "tag", r.domain.id, null],
  );
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: false });
  assert.equal((await smtp.ask("RCPT TO:<nobody@in.example>")).code, 503);
  smtp.destroy();
});

test("an inactive alias refuses, also beside a catch-all", async () => {
  await addAlias(r, "off", { active: false });
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: true });
  const smtp = await greeted();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.match((await smtp.ask("RCPT TO:<off@in.example>")).text, /^550 5\.1\.1 /);
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: false });
  smtp.destroy();
});

test("nothing is relayed", async () => {
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: true });
  for (const [address, code] of [
    ["victim@elsewhere.example", "550 5.7.1"],
    ["victim@sub.in.example", "550 5.7.1"],
    ["victim%elsewhere.example@in.example", "550 5.7.1"],
    ["elsewhere.example!victim@in.example", "550 5.7.1"],
    ['"victim@elsewhere.example"@in.example', "550 5.7.1"],
    ['"victim%elsewhere.example"@in.example', "550 5.7.1"],
    ["victim@[127.0.0.1]", "550 5.7.1"],
    ["victim@[IPv6:::1]", "550 5.7.1"],
    ["@in.example:victim@elsewhere.example", "550 5.7.1"],
    ["@in.example,@in.example:victim@elsewhere.example", "550 5.7.1"],
    ["victim@elsewhere.example@in.example", "550 5.7.1"],
    ["in.example!victim@elsewhere.example", "550 5.7.1"],
    ["victim%in.example@elsewhere.example", "550 5.7.1"],
    ["victim@in.example@elsewhere.example", "550 5.7.1"],
    ["victim@127.0.0.1", "550 5.7.1"],
    ["victim@localhost", "550 5.7.1"],
    ["victim", "550 5.7.1"],
    ["victim@", "550 5.7.1"],
    ["someone@mx.postern.test", "550 5.1.1"],
    ["someone@bounces.postern.test", "550 5.1.1"],
    ["@elsewhere.example:reader@in.example", "250 2.1.5"],
  ]) {
    const smtp = await greeted();
    await smtp.ask("EHLO x");
    await smtp.ask("MAIL FROM:<spammer@elsewhere.example>");
    const { text } = await smtp.ask(`RCPT TO:<${address}>`);
    assert.equal(text.slice(0, 9), code, `${address}: ${text}`);
    smtp.destroy();
  }
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { catch_all_enabled: false });
});

test("a domain that is only claimed, inactive or outbound receives nothing", async () => {
  await r.api.ask("POST", "/v1/domains", { domain: "pending.example", catch_all_enabled: true });
  const smtp = await greeted();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.match((await smtp.ask("RCPT TO:<a@pending.example>")).text, /^550 5\.7\.1 /);
  await addAlias(r, "paused");
  assert.equal((await smtp.ask("RCPT TO:<paused@in.example>")).code, 250);
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { active: false });
  assert.match((await smtp.ask("RCPT TO:<paused+x@in.example>")).text, /^550 5\.7\.1 /);
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { active: true, type: "outbound" });
  assert.match((await smtp.ask("RCPT TO:<paused+x@in.example>")).text, /^550 5\.7\.1 /);
  await r.api.ask("PUT", `/v1/domains/${r.domain.id}`, { type: "both" });
  smtp.destroy();
});

test("an address and a header in UTF-8 come through", async () => {
  await addAlias(r, "büro");
  const smtp = await greeted();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<jürgen@b.example> SMTPUTF8 BODY=8BITMIME");
  assert.equal((await smtp.ask("RCPT TO:<BÜRO@in.example>")).code, 250);
  await smtp.ask("DATA");
  smtp.write(Buffer.from("From: Jürgen <jürgen@b.example>\r\nSubject: Büro\r\n\r\nGrüße\r\n.\r\n"));
  assert.equal((await smtp.reply()).code, 250);
  const [row] = await r.processed("subject=Büro");
  const [event] = await r.events(row.id);
  assert.deepEqual(
    [event?.body.from, event?.body.to, event?.body.text, event?.body.envelope.from],
    ["Jürgen <jürgen@b.example>", "BÜRO@in.example", "Grüße\n", "jürgen@b.example"],
  );
});

test("a message that has been through too many hands is refused", async () => {
  await addAlias(r, "hops");
  const hop = "Received: from a by b; Thu, 1 Jan 1970 00:00:00 +0000\r\n";
  const smtp = await greeted();
  const mail = (hops: number) => ({
    from: "a@b.example",
    to: ["hops@in.example"],
    content: `${hop.repeat(hops)}Subject: hops\r\n\r\nx\r\n`,
  });
  assert.match((await smtp.deliver(mail(31))).text, /^554 5\.4\.6 /);
  assert.equal((await smtp.deliver(mail(30))).code, 250);
});

test("mail of 256 KiB and more is kept outside the database, and comes back whole", async () => {
  await addAlias(r, "large");
  const line = `${"x".repeat(76)}\r\n`;
  const smtp = await greeted();
  const content = `Subject: large\r\n\r\n${line.repeat(40_000)}`;
  assert.equal((await smtp.deliver({ from: "a@b.example", to: ["large@in.example"], content })).code, 250);
  const [row] = await r.processed("subject=large");
  const [raw] = await r.api.world.db.query<{ bytes: Buffer | null; blob_key: string }>(
    "select r.bytes, r.blob_key from inbound_raw r join inbound_email e on e.raw_id = r.id where e.id = $1",
    [row.id],
  );
  assert.equal(raw?.bytes, null);
  assert.equal((await r.api.world.blobs.get(raw?.blob_key ?? ""))?.length, content.length);
  const [event] = await r.events(row.id);
  assert.equal(event?.body.truncated, true);
  assert.equal(Buffer.byteLength(event?.body.text), 1024 * 1024);
  const shown = await r.api.ask("GET", `/v1/inbound-emails/${row.id}`);
  assert.equal(shown.body.email.text.length, 77 * 40_000);
  assert.equal(shown.body.email.truncated, false);
});

test("where the endpoints that a rule or an alias names are deleted, the next choice gets the event", async () => {
  const endpoint = async (path: string): Promise<string> =>
    (await r.api.ask("POST", "/v1/webhooks", { url: `https://hooks.example/${path}` })).body.webhook.id;
  const remove = (id: string) => r.api.ask("DELETE", `/v1/webhooks/${id}`);
  const [ofRule, ofAlias] = [await endpoint("rule"), await endpoint("alias")];
  await addAlias(r, "orphan", { webhook_ids: [ofAlias] });
  const rule = { name: "r", domain_id: r.domain.id, action: "webhook", webhook_ids: [ofRule] };
  const conditions = [{ field: "subject", comparator: "starts_with", value: "orphan" }];
  const { body } = await r.api.ask("POST", "/v1/inbound-rules", { ...rule, conditions });
  const notified = async (subject: string) => {
    await r.send({ from: "a@b.example", to: "orphan@in.example", subject, text: "x" });
    const [row] = await r.processed(`subject=${subject}`);
    return (await r.events(row.id)).flatMap(({ endpoints }) => endpoints);
  };
  assert.deepEqual(await notified("orphan-1"), [ofRule]);
  await remove(ofRule);
  assert.deepEqual(await notified("orphan-2"), [ofAlias]);
  await remove(ofAlias);
  assert.deepEqual(await notified("orphan-3"), [r.webhook_id]);
  await r.api.ask("DELETE", `/v1/inbound-rules/${body.rule.id}`);
});

test("of more than 1,000 parts the rest is left out: event and record say so", async () => {
  await addAlias(r, "parts");
  const smtp = await greeted();
  const mail = (parts: number) => ({
    from: "a@b.example",
    to: ["parts@in.example"],
    content: `Subject: parts-${parts}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${"--b\r\n\r\nx\r\n".repeat(parts)}--b--\r\n`,
  });
  for (const [parts, isCut] of [
    [999, false],
    [1_000, true],
  ] as const) {
    assert.equal((await smtp.deliver(mail(parts))).code, 250);
    const [row] = await r.processed(`subject=parts-${parts}`);
    const [event] = await r.events(row.id);
    const shown = (await r.api.ask("GET", `/v1/inbound-emails/${row.id}`)).body.email;
    assert.deepEqual([event?.body.truncated, shown.truncated], [isCut, isCut], `${parts} parts`);
    assert.deepEqual(shown.defects, isCut ? ["too_many_parts"] : []);
  }
});

test("over 35 MiB is refused: when it is announced, and when it comes all the same", async () => {
  await addAlias(r, "huge");
  const smtp = await greeted();
  await smtp.ask("EHLO x");
  assert.match((await smtp.ask(`MAIL FROM:<a@b.example> SIZE=${35 * 1024 * 1024 + 1}`)).text, /^552 5\.3\.4 /);
  await smtp.ask("MAIL FROM:<a@b.example>");
  await smtp.ask("RCPT TO:<huge@in.example>");
  await smtp.ask("DATA");
  const block = Buffer.from(`${"x".repeat(1022)}\r\n`.repeat(1024));
  for (let at = 0; at < 36; at += 1) smtp.write(block);
  smtp.write(".\r\n");
  assert.match((await smtp.reply(20_000)).text, /^552 5\.3\.4 /);
  assert.equal((await smtp.ask("NOOP")).code, 250);
  smtp.destroy();
});

test("a head beyond 256 KiB or 1,000 fields is refused, up to it and without any field a message is taken", async () => {
  await addAlias(r, "heads");
  const smtp = await greeted();
  const answerTo = async (content: string) =>
    (await smtp.deliver({ from: "a@b.example", to: ["heads@in.example"], content })).text;
  const field = `X-Filler: ${"y".repeat(500)}\r\n`;
  assert.match(await answerTo(`${field.repeat(512)}\r\nbody\r\n`), /^250 /);
  assert.match(await answerTo(`${field.repeat(513)}\r\nbody\r\n`), /^552 5\.3\.4 /);
  assert.match(await answerTo(field.repeat(900)), /^552 5\.3\.4 /);
  assert.match(await answerTo(`${"X: y\r\n".repeat(1_000)}\r\nbody\r\n`), /^250 /);
  assert.match(await answerTo(`${"X: y\r\n".repeat(1_001)}\r\nbody\r\n`), /^552 5\.3\.4 .* 1000 fields/);
  assert.match(await answerTo(`Subject: s\r\n${" folded\r\n".repeat(40_000)}\r\nbody\r\n`), /^552 5\.3\.4 /);
  assert.match(await answerTo(`${"no field at all\r\n".repeat(20_000)}`), /^250 /);
  assert.match(await answerTo(`Subject: s\r\n\r\n${field.repeat(9_000)}`), /^250 /);
});

test("the stored copy has our trace and verdicts, and no forged ones", async () => {
  await addAlias(r, "trace");
  const smtp = await greeted();
  const content =
    "Authentication-Results: mx.postern.test; spf=pass smtp.mailfrom=bank.example\r\n" +
    "Authentication-Results: elsewhere.example; spf=fail\r\n" +
    "X-Postern-Id: forged\r\nX-Service-Secret: forged\r\nSubject: trace\r\nFrom: a@b.example\r\n\r\nBody\r\n";
  await smtp.deliver({ from: "a@b.example", to: ["trace@in.example"], content, helo: "evil.example" });
  const [row] = await r.processed("subject=trace");
  const raw = await r.api.ask("GET", `/v1/inbound-emails/${row.id}/raw`);
  assert.equal(raw.status, 200);
  assert.match(
    raw.body,
    /^Return-Path: <a@b\.example>\r\nAuthentication-Results: mx\.postern\.test;\r\n[\s\S]* spf=none [\s\S]*\r\nReceived: from evil\.example \(\[127\.0\.0\.1\]\)\r\n\tby mx\.postern\.test \(Postern\) with ESMTP\r\n\tid [0-9a-f-]{36}\r\n\tfor <trace@in\.example>;\r\n\t\w{3}, [^\r]*\r\nAuthentication-Results: elsewhere\.example; spf=fail\r\nSubject: trace\r\nFrom: a@b\.example\r\n\r\nBody\r\n$/,
  );
  assert.ok(!raw.body.includes("forged"));
});

test("actions: store keeps without an event, drop puts aside, chosen endpoints get it, patterns choose", async () => {
  const everywhere = await r.api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/all" });
  const picky = await r.api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/p", match_pattern: "vip*@*" });
  const [all, vip] = [everywhere.body.webhook.id, picky.body.webhook.id];
  await addAlias(r, "kept", { action: "store" });
  await addAlias(r, "dropped", { action: "drop" });
  await addAlias(r, "vip-chosen", { webhook_ids: [all, vip] });
  await addAlias(r, "chosen", { webhook_ids: [all, vip] });
  for (const local of ["kept", "dropped", "vip-chosen", "chosen"]) {
    await r.send({ from: "a@b.example", to: `${local}@in.example`, subject: `action ${local}`, text: "x" });
  }
  const rows = await r.processed("subject=action", 4);
  const of = (local: string) => rows.find(({ to_address }) => to_address === `${local}@in.example`);
  assert.deepEqual([of("kept").status, of("dropped").status], ["delivered", "dropped"]);
  assert.deepEqual(await r.events(of("kept").id), []);
  assert.deepEqual(await r.events(of("dropped").id), []);
  assert.deepEqual((await r.events(of("vip-chosen").id))[0]?.endpoints, [all, vip].sort());
  assert.deepEqual((await r.events(of("chosen").id))[0]?.endpoints, [all]);
});

test("auth_results are for paid plans", async () => {
  await r.api.world.db.query("update organization set plan = 'free' where id = $1", [r.api.org_id]);
  await addAlias(r, "free");
  await r.send({ from: "a@b.example", to: "free@in.example", subject: "plan", text: "x" });
  const [row] = await r.processed("subject=plan");
  const [event] = await r.events(row.id);
  assert.equal("auth_results" in (event?.body ?? {}), false);
  assert.deepEqual([event?.body.spf, event?.body.dkim], ["none", "none"]);
  assert.equal("auth_results" in (await r.api.ask("GET", `/v1/inbound-emails/${row.id}`)).body.email, false);
  await r.api.world.db.query("update organization set plan = 'enterprise' where id = $1", [r.api.org_id]);
  assert.equal("auth_results" in (await r.api.ask("GET", `/v1/inbound-emails/${row.id}`)).body.email, true);
});

test("recipients of two organizations in one message see nothing of each other", async () => {
  const other = await r.api.organization();
  const { addVerifiedDomain } = await import("../../../test/support/verified-domain.ts");
  const theirs = await addVerifiedDomain(r.api, r.dns, "theirs.example", { type: "inbound", key: other.live_key });
  await r.api.ask("POST", "/v1/aliases", { domain_id: theirs.id, local_part: "x" }, { key: other.live_key });
  await addAlias(r, "shared");
  await r.send({ from: "a@b.example", to: ["shared@in.example", "x@theirs.example"], subject: "shared", text: "x" });
  const [ours] = await r.processed("subject=shared");
  const list = await r.api.ask("GET", "/v1/inbound-emails", undefined, { key: other.live_key });
  assert.deepEqual(
    list.body.emails.map((e: { to_address: string }) => e.to_address),
    ["x@theirs.example"],
  );
  assert.equal((await r.api.ask("GET", "/v1/inbound-emails?subject=shared")).body.total, 1);
  for (const path of ["", "/raw"]) {
    const answer = await r.api.ask("GET", `/v1/inbound-emails/${ours.id}${path}`, undefined, { key: other.live_key });
    assert.equal(answer.status, 404);
  }
});

test("what is deferred at RCPT while the database is away is counted, and connections are", async () => {
  const { world, engine } = r.api;
  const count = async (series: string): Promise<number> => {
    const line = (await world.metrics.text()).split("\n").find((text) => text.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const away = () => Promise.reject(Object.assign(new Error("shutting down"), { code: "57P01" }));
  const parts = { decide: away, take: away, spool: engine.spool, hasRoom: () => true, tls: null };
  const mx = await startMx(world, parts);
  const open = 'postern_smtp_connections{server="mx"}';
  const [before, putOff] = [await count(open), 'postern_inbound_messages_total{answer="451"}'];
  try {
    const smtp = await rawSmtp(mx.port);
    await smtp.reply();
    assert.equal(await count(open), before + 1);
    await smtp.ask("EHLO client.example");
    await smtp.ask("MAIL FROM:<a@b.example>");
    assert.equal((await smtp.ask("RCPT TO:<support@in.example>")).code, 451);
    assert.equal(await count(putOff), 1);
    smtp.destroy();
    await until("the connection is gone", async () => (await count(open)) === before);
  } finally {
    await mx.stop();
  }
});
