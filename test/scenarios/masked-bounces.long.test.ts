// What happens to mail of masked addresses that cannot be delivered or must not leave, over real SMTP: bounces in session
// and by report, notices to the owner, answers by machines; and what is left of all that afterwards: nothing.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import PostalMime from "postal-mime";
import { settleTraces } from "../../src/masked/settle/settling.ts";
import { settlingPorts } from "../../src/ports.ts";
import { C, D, DOMAIN, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import { SPAMMY } from "../support/spam-texts.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let s: MaskedStage;
/** Of a domain that keeps what looks like spam. */
let domain_id: string;
before(async () => {
  s = await startMaskedStage();
  domain_id = (await addVerifiedDomain(s.api, s.dns, "own.example", { type: "both" })).id;
  await s.api.ask("PUT", "/v1/domains/own.example/spam", { thresholds: { quarantine: 8, reject: null } });
});
after(() => s.close());
beforeEach(async () => {
  s.sink.onRcpt(() => null);
  await s.settle();
  s.sink.messages.length = 0;
});

const mail = (from: string, to: string, more = "", text = "hi") =>
  `From: ${from}\r\nTo: ${to}\r\nSubject: order\r\n${more}\r\n${text}\r\n`;
const toAlias = (to: string, more = "") => s.send({ from: C, to, content: mail(C, to, more) });
const reverse = async (id: string, email = C): Promise<string> =>
  (await s.api.ask("POST", `/v1/masked/aliases/${id}/contacts`, { email })).body.contact.reply_address;
const reply = (to: string, more = "", text = "yes") => s.send({ from: D, to, content: mail(D, to, more, text) });
const destination = async () => (await s.api.ask("GET", `/v1/masked/destinations?email=${D}`)).body.destinations[0];

/** A report as a server writes it. */
const dsn = (to: string, status: string, action = "failed") =>
  `From: MAILER-DAEMON@mx.home.example\r\nTo: ${to}\r\nSubject: Undelivered Mail Returned to Sender\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nI'm sorry to have to inform you that your message could not be delivered.\r\n\r\n<${D}>: user unknown\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.home.example\r\n\r\nFinal-Recipient: rfc822; ${D}\r\nAction: ${action}\r\nStatus: ${status}\r\nDiagnostic-Code: smtp; 550 ${status} <${D}>: user unknown\r\n\r\n--b--\r\n`;

test("three hard bounces within a day suspend the destination; the alias says why, the contact hears nothing", async () => {
  const a = await s.alias();
  s.sink.onRcpt((address) => (address === D ? { code: 550, text: `5.1.1 <${D}>: user unknown` } : null));
  for (let n = 1; n <= 3; n += 1) {
    assert.equal((await destination()).status, "verified", `after ${n - 1}`);
    assert.equal((await toAlias(a.full)).code, 250);
    await s.settle();
  }
  const { status, suspended_reason, id } = await destination();
  assert.deepEqual([status, suspended_reason], ["suspended", "bouncing"]);
  const { alias } = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}`)).body;
  assert.deepEqual([alias.active, alias.disabled_reason], [false, "destination_bouncing"]);
  const entries = await s.activity(a.id);
  assert.equal(entries.filter((entry) => entry.startsWith("bounce failed hard 5.1.1")).length, 3, entries.join("; "));
  assert.ok(entries.includes("config sent destination_suspended"));
  assert.deepEqual(
    s.sink.messages.map(({ to }) => to),
    [],
    "nobody was informed",
  );
  const suppressed = await s.api.ask("GET", "/v1/suppressions");
  assert.equal(suppressed.body.total, 0, "a mailbox behind an alias is in no list");

  s.sink.onRcpt(() => null);
  await s.api.world.db.execute("update masked_destination set confirmation_sent_at = now() - interval '2 minutes'");
  assert.equal((await s.api.ask("POST", `/v1/masked/destinations/${id}/resend`)).status, 200);
  const [asked] = await s.arrived(D);
  const text = (await PostalMime.parse(asked?.bytes ?? "")).text ?? "";
  const path = /https:\/\/api\.postern\.test(\/masked\/confirm\/\S+)/.exec(text)?.[1] ?? "";
  assert.equal((await s.api.ask("POST", path, undefined, { key: null })).status, 200);
  const after = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias;
  assert.deepEqual([after.active, after.disabled_reason], [true, null], "consent takes it up again");
});

test("the entry of a forward says what became of it: deferred, delivered after all, given up", async () => {
  const a = await s.alias();
  const entries = () => s.activity(a.id);
  s.sink.onRcpt(() => ({ code: 451, text: "4.7.1 greylisted, come again" }));
  await toAlias(a.full);
  const look = async () => {
    await s.api.world.db.execute("update masked_trace set due_at = to_timestamp(0) where due_at is not null");
    await settleTraces(s.api.world, settlingPorts(s.api.world, s.api.engine));
    return (await entries())[0];
  };
  await until("it is reported as deferred", async () => (await look()) === "forward deferred -");
  s.sink.onRcpt(() => null);
  await s.api.world.db.execute("update delivery set due_at = to_timestamp(0)");
  await until("it is reported as sent", async () => (await look()) === "forward sent -");
  await s.settle();
  s.sink.onRcpt(() => ({ code: 550, text: "5.1.1 no such user" }));
  await toAlias(a.full);
  await s.settle();
  const [bounce, forward] = await entries();
  assert.match(bounce ?? "", /^bounce failed hard 5\.1\.1/);
  assert.equal(forward, "forward failed -");
});

test("a report that comes later counts as well, once, and a warning does not", async () => {
  const a = await s.alias();
  await toAlias(a.full);
  const [forward] = await s.arrived(D);
  const path = forward?.from ?? "";
  assert.match(path, /^b\+[a-z2-7]{44}@/);
  await s.settle();
  const from = (content: string) => s.send({ from: "", to: path, content, ip: "127.0.0.3" });
  assert.equal((await from(dsn(path, "4.2.2", "delayed"))).code, 250);
  assert.equal((await from(dsn(path, "5.1.1"))).code, 250);
  assert.equal((await from(dsn(path, "5.1.1"))).code, 250);
  await s.settle();
  const entries = await s.activity(a.id);
  assert.deepEqual(entries, ["bounce failed hard 5.1.1 invalid_recipient", "forward sent -", "config sent created"]);
  assert.equal(s.sink.messages.length, 1, "only the forward itself ever left");
});

test("a forward that its mailbox calls spam is reported to the owner, and nobody is suppressed", async () => {
  const a = await s.alias();
  await toAlias(a.full);
  const [forward] = await s.arrived(D);
  const path = forward?.from ?? "";
  const report = `From: fbl@home.example\r\nTo: ${path}\r\nSubject: complaint\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThis is an abuse report.\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: X/1\r\nVersion: 1\r\nOriginal-Rcpt-To: ${D}\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nFrom: x\r\n--b--\r\n`;
  assert.equal((await s.send({ from: "", to: path, content: report, ip: "127.0.0.3" })).code, 250);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "bounce failed complaint");
  assert.equal((await s.api.ask("GET", "/v1/suppressions")).body.total, 0);
  assert.equal(s.sink.messages.length, 1);
});

test("a reply that bounces is reported to its author, in our words and naming the contact", async () => {
  const a = await s.alias();
  const r = await reverse(a.id);
  s.sink.onRcpt((address) =>
    address === C ? { code: 550, text: "5.1.1 gone, says secret-host.contact.example" } : null,
  );
  assert.equal((await reply(r, "Message-ID: <d9@home.example>\r\n")).code, 250);
  await s.settle();
  const [notice] = await s.arrived(D);
  assert.equal(notice?.from, "", "a notice cannot bounce");
  const read = await PostalMime.parse(notice?.bytes ?? "", { attachmentEncoding: "utf8" });
  assert.match(
    read.text ?? "",
    new RegExp(`reply from ${a.full} to ${C} could not be delivered: there is no such mailbox`),
  );
  assert.equal(read.headers.find(({ key }) => key === "auto-submitted")?.value, "auto-replied");
  assert.doesNotMatch(notice?.bytes.toString("latin1") ?? "", /secret-host/);
  assert.match(
    notice?.bytes.toString("latin1") ?? "",
    new RegExp(`Final-Recipient: rfc822; ${r}\r\nAction: failed\r\nStatus: 5\\.1\\.1`),
  );
  assert.match(notice?.bytes.toString("latin1") ?? "", /^DKIM-Signature: .*d=masked\.postern\.test/ms);
  await s.settle();
  assert.equal(s.sink.messages.length, 1, "one notice, and nothing about it");
  assert.ok((await s.activity(a.id)).some((entry) => entry.startsWith("bounce failed hard 5.1.1")));
});

test("a reply that names strangers, shows the mailbox, or cannot be looked into stays, and its author learns why", async () => {
  const a = await s.alias();
  const r = await reverse(a.id);
  const file = "Content-Type: application/pdf; name=x.pdf\r\nContent-Transfer-Encoding: base64\r\n";
  const encrypted = "Content-Type: multipart/encrypted; boundary=e\r\n";
  const cases: [more: string, text: string, words: RegExp, entry: RegExp][] = [
    ["Cc: third@party.example\r\n", "x", /neither the alias nor a reply address/, /^reply failed foreign_recipient/],
    [file, Buffer.from(`%PDF\x00${D}`).toString("base64"), /part|message \(application\/pdf\)/, /^reply held leak$/],
    [encrypted, "--e\r\n\r\nx\r\n--e--", /is encrypted/, /^reply failed encrypted/],
  ];
  for (const [at, [more, text, words, entry]] of cases.entries()) {
    assert.equal((await reply(r, `Message-ID: <n${at}@home.example>\r\n${more}`, text)).code, 250);
    const notice = (await s.arrived(D, at + 1))[at];
    const read = await PostalMime.parse(notice?.bytes ?? "");
    assert.match((read.text ?? "").replace(/\s+/g, " "), words);
    assert.equal(read.inReplyTo, `<n${at}@home.example>`);
    assert.doesNotMatch(read.text ?? "", /anna\.real/);
    assert.match((await s.activity(a.id))[0] ?? "", entry);
  }
  assert.ok(
    s.sink.messages.every(({ to }) => to[0] === D),
    "nothing left for the contact",
  );
});

test("two vacation responders through one mask exchange at most two messages", async () => {
  const a = await s.alias();
  const r = await reverse(a.id);
  const vacation = (from: string, to: string) =>
    `From: ${from}\r\nTo: ${to}\r\nSubject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nI am away.\r\n`;
  await toAlias(a.full, "Message-ID: <v1@contact.example>\r\n");
  const [forward] = await s.arrived(D);
  // The mailbox's responder answers the return path, and another kind answers the author.
  await s.send({ from: "", to: forward?.from ?? "", content: vacation(D, forward?.from ?? ""), ip: "127.0.0.3" });
  await s.send({ from: D, to: r, content: vacation(D, r) });
  await reply(r);
  const [answer] = await s.arrived(C);
  assert.equal((await s.send({ from: "", to: answer?.from ?? "", content: vacation(C, a.full) })).code, 250);
  const toOwner = await s.arrived(D, 2);
  const relayed = await PostalMime.parse(toOwner[1]?.bytes ?? "");
  assert.equal(relayed.subject, "Out of office", "what the contact's machine says reaches the owner");
  assert.equal(relayed.headers.find(({ key }) => key === "auto-submitted")?.value, "auto-replied");
  await s.settle();
  assert.equal(
    s.sink.messages.filter(({ to }) => to[0] === C).length,
    1,
    "the owner's machine never reaches the contact",
  );
  assert.equal(s.sink.messages.length, 3);
});

test("the return path of a reply takes the contact's automatic answers, within the limits of mail to the alias", async () => {
  const a = await s.alias();
  const r = await reverse(a.id);
  await reply(r);
  const [answer] = await s.arrived(C);
  const path = answer?.from ?? "";
  const automatic = (from: string) => mail(from, path, "Auto-Submitted: auto-replied\r\n", "I am away.");
  const comes = async (from: string, envelope = "") =>
    s.send({ from: envelope, to: path, content: automatic(from), ip: "127.0.0.2" });
  const eve = "eve@elsewhere.example";
  assert.match((await comes(eve, eve)).text, /^550 5\.7\.1/, "only the contact has something to answer");
  assert.match((await comes(`${C}, ${eve}`)).text, /^550 5\.7\.1/, "alone");
  assert.equal((await comes(C)).code, 250);
  assert.equal((await s.arrived(D)).length, 1);
  await s.api.world.db.execute(
    `insert into masked_window (org_id, alias_id, kind, starts_at, used)
     select $1, $2, 'forward_minute', date_trunc('minute', now()) + n * interval '1 minute', 30 from generate_series(0, 2) n
     on conflict (org_id, alias_id, kind, starts_at) do update set used = 30`,
    [s.api.org_id, a.id],
  );
  assert.match((await comes(C)).text, /^450 4\.7\.1/);
  await s.settle();
  assert.equal(s.sink.messages.filter(({ to }) => to[0] === D).length, 1);
  const entries = await s.activity(a.id);
  assert.deepEqual(entries.slice(0, 2), ["forward deferred rate_limited", "forward sent -"]);
  assert.equal(entries.filter((entry) => entry === "block failed foreign_answer").length, 2, entries.join("; "));
});

test("an automatic answer that looks like spam waits for the owner's word", async () => {
  const a = await s.alias({ domain_id });
  await reply(await reverse(a.id));
  const [answer] = await s.arrived(C);
  const path = answer?.from ?? "";
  const content = mail(C, path, "Auto-Submitted: auto-replied\r\n", SPAMMY);
  assert.equal((await s.send({ from: "", to: path, content, ip: "127.0.0.2" })).code, 250);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "quarantine held spam");
  const [waits] = (await s.api.ask("GET", "/v1/inbound-emails?status=quarantined")).body.emails;
  assert.equal((await s.api.ask("POST", `/v1/inbound-emails/${waits.id}/release`)).status, 200);
  assert.match((await s.arrived(D))[0]?.bytes.toString("latin1") ?? "", /Claim your prize/);
  await s.settle();
  assert.equal((await s.api.ask("GET", "/v1/inbound-emails")).body.total, 0);
});

test("nothing readable of either side is left in the database, on the disk or in the log when the mail is over", async () => {
  const a = await s.alias({ display_name: "Anna" });
  const big = `${"x".repeat(76)}\r\n`.repeat(5_000);
  await s.send({
    from: C,
    to: a.full,
    content: mail(`"Shop Keeper" <${C}>`, a.full, "Message-ID: <p1@contact.example>\r\n"),
  });
  await s.send({ from: C, to: a.full, content: mail(C, a.full, "", big) });
  const [forward] = await s.arrived(D, 2);
  const r = (await PostalMime.parse(forward?.bytes ?? "")).from?.address ?? "";
  await reply(r, "", `> To: ${D}`);
  await s.arrived(C);
  s.sink.onRcpt((address) => (address === D ? { code: 550, text: `5.2.1 <${D}>: disabled` } : null));
  await toAlias(a.full);
  await s.settle();
  await s.settle();
  const b = await s.alias({ domain_id });
  s.sink.onRcpt(() => null);
  const suspected = mail(`"Shop Keeper" <${C}>`, b.full, "", SPAMMY);
  assert.equal((await s.send({ from: C, to: b.full, content: suspected })).code, 250);
  await s.settle();
  const [waits] = (await s.api.ask("GET", "/v1/inbound-emails?status=quarantined")).body.emails;
  assert.match(waits.from_address, /Shop Keeper/, "what waits for the owner's word is kept and shown as it is");
  await s.api.ask("POST", `/v1/inbound-emails/${waits.id}/release`);
  await s.settle();
  const tables = await s.api.world.db.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname = current_schema()`,
  );
  assert.ok(tables.length > 30);
  const secret = /anna\.real|shop\.keeper|Shop Keeper/i;
  for (const { name } of tables) {
    for (const { row } of await s.api.world.db.query<{ row: string }>(`select t::text as row from ${name} t`)) {
      const bytes = row.replace(/\\\\x([0-9a-f]+)/g, (_, hex) => Buffer.from(hex, "hex").toString("latin1"));
      assert.doesNotMatch(bytes, secret, name);
    }
  }
  const folder = s.api.config.data_dir;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (statSync(join(folder, path)).isFile())
      assert.doesNotMatch(readFileSync(join(folder, path), "latin1"), secret, path);
  }
  s.api.world.log.info("the log is kept");
  assert.match(s.log.at(-1) ?? "", /the log is kept/);
  assert.doesNotMatch(s.log.join(""), secret);
  const { body } = await s.api.ask("GET", `/v1/masked/aliases/${a.id}/activity`);
  assert.equal(body.activity.at(-2).contact, C, "its owner still sees whom it was about");
  assert.equal(DOMAIN, a.domain);
});
