// What comes back after a server took a message, over real SMTP: bounces to the return path, complaints to the feedback
// address, and everything that looks like one and must change nothing. Read from the API and from a webhook's receiver.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { describeOperatorMail, readOperatorMail } from "../../src/inbound/read/operator-mail.ts";
import { setUp } from "../support/people.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { processedMail, type Receiving, startTestReceiving, takenId } from "../support/receiving.ts";
import { type Copy, feedbackReport, fieldOf, postfixBounce } from "../support/returned-mail.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";

let sink: SmtpSink;
let r: Receiving;
let smtp: RawSmtp;
before(async () => {
  sink = await startSmtpSink();
  r = await startTestReceiving({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  receiveAt(r.dns, "there.example");
  const events = ["email.delivered", "email.bounced", "email.deferred", "email.complained"];
  await r.api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/out", events });
  smtp = await rawSmtp(r.port);
  await smtp.reply();
});
after(async () => {
  smtp.destroy();
  await r.close();
  await sink.stop();
});

type Sent = { id: string; message_id: string; copies: Copy[] };

async function send(to: string[], more: object = {}): Promise<Sent> {
  const body = { from: "Shop <shop@in.example>", to, subject: "An order", text_body: "Hello", tags: ["t"], ...more };
  const { status, body: answer } = await r.api.ask("POST", "/v1/send", body);
  assert.equal(status, 202, JSON.stringify(answer));
  await emailWithStatus(r.api, answer.id, ["delivered"]);
  const got = sink.messages.filter(({ message_id }) => message_id === answer.message_id);
  const copies = to.map((address) => {
    const copy = got.find((message) => message.to.includes(address));
    assert.ok(copy, address);
    return { from: "shop@in.example", to: address, return_path: copy.from, bytes: copy.bytes };
  });
  return { id: answer.id, message_id: answer.message_id, copies };
}

const first = ({ copies }: Sent): Copy => copies[0] as Copy;

/** Mails `content` to our own address; the reply to it. */
function mail(to: string, content: string, from = ""): Promise<{ code: number; text: string }> {
  return smtp.deliver({ from, to: [to], content });
}

async function taken(to: string, content: string, from = ""): Promise<void> {
  const { code, text } = await mail(to, content, from);
  assert.equal(code, 250, text);
  await processedMail(r, takenId(text));
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; the assertions are the check
async function email(id: string): Promise<any> {
  return (await r.api.ask("GET", `/v1/emails/${id}`)).body.email;
}

async function timeline(id: string): Promise<string[]> {
  const { body } = await r.api.ask("GET", `/v1/emails/${id}/events`);
  return body.events.map((event: { event_type: string }) => event.event_type);
}

async function suppression(address: string) {
  return (await r.api.ask("GET", `/v1/suppressions/check?email=${encodeURIComponent(address)}`)).body;
}

/** The bodies of a webhook event about an e-mail. */
// biome-ignore lint/suspicious/noExplicitAny: as above
async function reported(id: string, event: string): Promise<any[]> {
  return (await r.events(id)).map(({ body }) => body).filter((body) => body.event === event);
}

const UNKNOWN = { status: "5.1.1", reply: "550 5.1.1 <x>: Recipient address rejected: User unknown" };

test("a hard bounce after delivery: state, timeline, webhook, suppression, and the next send is 422", async () => {
  const sent = await send(["gone@there.example"], { metadata: { order: 7 } });
  await taken(first(sent).return_path, postfixBounce(first(sent), UNKNOWN));
  const after = await email(sent.id);
  assert.equal(after.status, "bounced");
  const { status, bounce_type, bounce_code, diag_code, bounce_class, delivered_at } = after.recipients[0];
  assert.deepEqual(
    [status, bounce_type, bounce_code, diag_code, bounce_class],
    ["bounced", "hard", "550", "5.1.1", "invalid_recipient"],
  );
  assert.notEqual(delivered_at, null, "it was taken, then it bounced");
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered", "bounced"]);
  const [event, another] = await reported(sent.id, "email.bounced");
  assert.equal(another, undefined);
  const { event_id, timestamp, ...fields } = event;
  assert.match(event_id, /^[0-9a-f-]{36}$/);
  assert.ok(Date.parse(timestamp));
  assert.deepEqual(fields, {
    event: "email.bounced",
    email_id: sent.id,
    message_id: sent.message_id,
    environment: "live",
    tags: ["t"],
    metadata: { order: 7 },
    from: "shop@in.example",
    recipient: "gone@there.example",
    subject: "An order",
    bounce_type: "hard",
    bounce_code: "550",
    diag_code: "5.1.1",
    diag_message: "550 5.1.1 <x>: Recipient address rejected: User unknown",
    bounce_class: "invalid_recipient",
  });
  const { entry } = await suppression("gone@there.example");
  assert.deepEqual(
    [entry.reason, entry.scope_type, entry.source, entry.source_message_id, entry.bounce_code, entry.diag_code],
    ["hard_bounce", "org", "delivery_event", sent.id, "550", "5.1.1"],
  );
  const again = await r.api.ask("POST", "/v1/send", {
    ...{ from: "shop@in.example", to: ["gone@there.example"], subject: "x", text_body: "x" },
  });
  assert.equal(again.status, 422);
  assert.deepEqual(again.body.suppressed, [{ email: "gone@there.example", reason: "hard_bounce" }]);
});

test("the same bounce twice, or a second one, counts once", async () => {
  const sent = await send(["twice@there.example"]);
  const before = await figures();
  const bounce = postfixBounce(first(sent), { status: "5.2.2", reply: "552 5.2.2 Mailbox full" });
  await Promise.all([taken(first(sent).return_path, bounce)]);
  await taken(first(sent).return_path, bounce);
  await taken(first(sent).return_path, postfixBounce(first(sent), UNKNOWN), "someone@there.example");
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered", "bounced"]);
  assert.equal((await reported(sent.id, "email.bounced")).length, 1);
  assert.equal((await email(sent.id)).recipients[0].bounce_type, "soft");
  assert.equal(
    (await suppression("twice@there.example")).suppressed,
    true,
    "the address does not work, as became known later",
  );
  const after = await figures();
  assert.equal(after.total_bounced - before.total_bounced, 1);
  assert.equal(after.total_hard_bounce, before.total_hard_bounce);
  assert.equal(after.total_sent, before.total_sent, "a bounce is no further send");
});

async function figures() {
  return (await r.api.ask("GET", `/v1/domains/${r.domain.id}/stats`)).body.metrics;
}

test("a bounce that names another address than ours suppresses nobody", async () => {
  const sent = await send(["forwarder@there.example"]);
  const bounce = postfixBounce(first(sent), { ...UNKNOWN, about: "someone.else@elsewhere.example" });
  await taken(first(sent).return_path, bounce);
  assert.equal((await email(sent.id)).recipients[0].status, "bounced");
  for (const address of ["forwarder@there.example", "someone.else@elsewhere.example"]) {
    assert.equal((await suppression(address)).suppressed, false, address);
  }
});

test("a report without the refused command: a disabled mailbox is suppressed as the contract says", async () => {
  const sent = await send(["disabled@there.example"]);
  const bounce = postfixBounce(first(sent), { status: "5.2.1", reply: "550 5.2.1 This mailbox is disabled" });
  await taken(first(sent).return_path, bounce.replace("    (in reply to RCPT TO command)\r\n", ""));
  const { bounce_type, bounce_class } = (await email(sent.id)).recipients[0];
  assert.deepEqual([bounce_type, bounce_class], ["hard", "inactive_mailbox"]);
  assert.equal((await suppression("disabled@there.example")).entry.reason, "hard_bounce");
});

test("a report that names nobody is about the one whose return path it came to", async () => {
  const sent = await send(["nameless@there.example", "beside@there.example"]);
  const bounce = postfixBounce(first(sent), UNKNOWN)
    .replace("<nameless@there.example>: host backend", "host backend")
    .replace(/Original-Recipient: .*\r\n/, "")
    .replace("Final-Recipient: rfc822; nameless@there.example", "Final-Recipient: unknown; mailbox 7");
  await taken(first(sent).return_path, bounce);
  const { recipients } = await email(sent.id);
  assert.deepEqual(
    recipients.map((one: { email: string; status: string }) => [one.email, one.status]),
    [
      ["nameless@there.example", "bounced"],
      ["beside@there.example", "delivered"],
    ],
  );
  assert.equal((await suppression("nameless@there.example")).entry.reason, "hard_bounce");
  assert.equal((await suppression("beside@there.example")).suppressed, false);
});

test("of several recipients only the one whose copy came back bounces; one cannot have another marked or suppressed", async () => {
  const sent = await send(["one@there.example", "two@there.example", "three@there.example"]);
  const [one, two] = sent.copies as [Copy, Copy];
  await taken(two.return_path, postfixBounce(two, UNKNOWN));
  const after = await email(sent.id);
  assert.equal(after.status, "partially_delivered");
  assert.deepEqual(
    after.recipients.map(({ status }: { status: string }) => status),
    ["delivered", "bounced", "delivered"],
  );
  await taken(one.return_path, postfixBounce(one, { ...UNKNOWN, about: "three@there.example" }));
  const marked = await email(sent.id);
  assert.equal(marked.recipients[2].status, "delivered", "one recipient cannot mark another");
  assert.equal(marked.recipients[0].status, "bounced", "the report is about the copy that came back");
  assert.equal((await suppression("two@there.example")).suppressed, true);
  assert.equal((await suppression("three@there.example")).suppressed, false);
  assert.equal((await suppression("one@there.example")).suppressed, false);
  const three = sent.copies[2] as Copy;
  await taken(three.return_path, postfixBounce(three, UNKNOWN));
  assert.equal((await suppression("three@there.example")).suppressed, true, "its own return path is believed");
  assert.equal((await reported(sent.id, "email.bounced")).length, 3);
});

test("a warning that a message is late is a deferral in the timeline, and the message stays delivered", async () => {
  const sent = await send(["late@there.example"]);
  const warning = postfixBounce(first(sent), {
    ...{ status: "4.4.1", reply: "451 4.4.1 connection timed out", action: "delayed" },
  });
  await taken(first(sent).return_path, warning);
  await taken(first(sent).return_path, warning);
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered", "deferred"]);
  assert.equal((await email(sent.id)).status, "delivered");
  const [event, another] = await reported(sent.id, "email.deferred");
  assert.deepEqual([event.bounce_code, event.diag_code, event.attempt], ["451", "4.4.1", null]);
  assert.equal(another, undefined);
  assert.equal((await suppression("late@there.example")).suppressed, false);
  await taken(first(sent).return_path, postfixBounce(first(sent), UNKNOWN));
  assert.equal((await email(sent.id)).status, "bounced");
});

test("automatic replies, read receipts and people's answers change nothing", async () => {
  const sent = await send(["away@there.example"]);
  const { return_path } = first(sent);
  const head = `From: Away <away@there.example>\r\nTo: ${return_path}\r\n`;
  const vacation = `${head}Subject: Out of office: An order\r\nAuto-Submitted: auto-replied\r\n\r\nI am away. User unknown.\r\n`;
  const receipt =
    `${head}Subject: Read: An order\r\nMIME-Version: 1.0\r\n` +
    'Content-Type: multipart/report; report-type=disposition-notification; boundary="b"\r\n\r\n--b\r\n\r\nRead.\r\n--b\r\n' +
    "Content-Type: message/disposition-notification\r\n\r\nFinal-Recipient: rfc822;away@there.example\r\n" +
    "Disposition: manual-action/MDN-sent-manually; displayed\r\n--b--\r\n";
  const answer = `${head}Subject: Re: An order\r\n\r\nThanks! 550 5.1.1 user unknown, you joker.\r\n`;
  const relayed = postfixBounce(first(sent), { status: "2.0.0", reply: "250 2.0.0 ok" }).replace(
    "Action: failed",
    "Action: relayed",
  );
  for (const content of [vacation, receipt, answer, relayed]) await taken(return_path, content);
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered"]);
  assert.equal((await suppression("away@there.example")).suppressed, false);
});

test("a forged, cut or strange token is refused at RCPT", async () => {
  const sent = await send(["forged@there.example"]);
  const [local = "", host = ""] = first(sent).return_path.split("@");
  const other = local.at(-3) === "a" ? "b" : "a";
  const forged = `${local.slice(0, -3)}${other}${local.slice(-2)}`;
  for (const address of [
    `${forged}@${host}`,
    `${local.slice(0, -1)}@${host}`,
    `b+@${host}`,
    `${forged.replace(/^b/, "f")}@${host}`,
  ]) {
    const { code, text } = await mail(address, postfixBounce(first(sent), UNKNOWN));
    assert.equal(code, 550, address);
    if (!address.startsWith("b+@")) assert.match(text, /5\.1\.1/);
    await smtp.ask("RSET");
  }
  assert.equal((await email(sent.id)).status, "delivered");
});

test("each copy says where complaints go, and says it under its signature", async () => {
  const sent = await send(["head@there.example"]);
  const { bytes, return_path } = first(sent);
  const [address = "", report] = fieldOf(bytes, "CFBL-Address").split("; ");
  assert.equal(address, return_path.replace(/^b/, "f"));
  assert.equal(report, "report=arf");
  assert.equal(`f+${fieldOf(bytes, "CFBL-Feedback-ID")}`, address.slice(0, address.indexOf("@")));
  assert.match(fieldOf(bytes, "DKIM-Signature"), /h=[^;]*CFBL-Address:\s?CFBL-Feedback-ID/);
});

test("a complaint to the feedback address: state, timeline, webhook, suppression, once", async () => {
  const sent = await send(["angry@there.example"], { tags: ["news"] });
  const before = await figures();
  const address = fieldOf(first(sent).bytes, "CFBL-Address").split(";")[0] as string;
  const report = feedbackReport(first(sent));
  await taken(address, report, "feedback@provider.example");
  await taken(address, report, "feedback@provider.example");
  const after = await email(sent.id);
  assert.deepEqual([after.status, after.recipients[0].status], ["complained", "complained"]);
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered", "complained"]);
  const [event, another] = await reported(sent.id, "email.complained");
  assert.equal(another, undefined);
  const { event_id: _id, timestamp: _at, ...fields } = event;
  assert.deepEqual(fields, {
    event: "email.complained",
    email_id: sent.id,
    message_id: sent.message_id,
    environment: "live",
    tags: ["news"],
    metadata: {},
    from: "shop@in.example",
    recipient: "angry@there.example",
    subject: "An order",
    feedback_type: "abuse",
    source_ip: "192.0.2.55",
    arrival_date: "2026-11-20T12:00:00.000Z",
  });
  const { entry } = await suppression("angry@there.example");
  assert.deepEqual([entry.reason, entry.scope_type, entry.feedback_type], ["complaint", "org", "abuse"]);
  assert.equal((await figures()).total_complaints - before.total_complaints, 1);
});

const WITHOUT_TOKENS = (head: string) =>
  head.replace(/^(?:x-postern-id|cfbl-[a-z-]+|list-[a-z-]+):.*\r\n(?:[ \t].*\r\n)*/gim, "");

test("a complaint finds its message by our header, its return path or its Message-ID, at the operator's addresses too", async () => {
  const ways: [string, string, Parameters<typeof feedbackReport>[1]][] = [
    ["header", "feedback@postern.test", { return_path: null, rcpt_to: null }],
    ["return path", "abuse@bounces.postern.test", { keep: WITHOUT_TOKENS }],
    ["message id", "fbl@postern.test", { keep: WITHOUT_TOKENS, return_path: null }],
    ["our return path itself", "", { keep: () => "Subject: x\r\n", return_path: null }],
  ];
  for (const [name, to, given] of ways) {
    const sent = await send([`${name.replaceAll(" ", "-")}@there.example`]);
    await taken(to || first(sent).return_path, feedbackReport(first(sent), given), "fbl@provider.example");
    assert.equal((await email(sent.id)).status, "complained", name);
    assert.equal((await suppression(first(sent).to)).entry?.reason, "complaint", name);
  }
});

test("with several recipients a Message-ID alone proves nothing, and nobody is suppressed", async () => {
  const sent = await send(["left@there.example", "right@there.example"]);
  const report = feedbackReport(first(sent), {
    ...{ keep: WITHOUT_TOKENS, return_path: null, rcpt_to: "right@there.example" },
  });
  await taken("feedback@postern.test", report, "fbl@provider.example");
  assert.equal((await email(sent.id)).status, "delivered");
  assert.equal((await suppression("right@there.example")).suppressed, false);
});

test("reports on authentication, complaints taken back and unknown messages suppress nobody; an opt-out unsubscribes", async () => {
  const sent = await send(["calm@there.example"], { unsubscribe: { list: "weekly" } });
  const address = fieldOf(first(sent).bytes, "CFBL-Address").split(";")[0] as string;
  for (const type of ["auth-failure", "not-spam"]) await taken(address, feedbackReport(first(sent), { type }));
  const stranger = {
    ...first(sent),
    bytes: Buffer.from("Message-ID: <x@nowhere.example>\r\nTo: calm@there.example\r\n\r\n"),
  };
  await taken("feedback@postern.test", feedbackReport(stranger, { return_path: "x@y.example" }));
  assert.equal((await email(sent.id)).status, "delivered");
  assert.equal((await suppression("calm@there.example")).entries.length, 0);
  await taken(address, feedbackReport(first(sent), { type: "opt-out" }));
  const { entries } = await suppression("calm@there.example");
  assert.deepEqual(
    entries.map((entry: Record<string, unknown>) => [entry.reason, entry.scope_type, entry.scope_id]),
    [["unsubscribe", "list", "weekly"]],
  );
  assert.deepEqual(await timeline(sent.id), ["queued", "delivered"]);
});

test("the operator's mailboxes exist at each of our names, postmaster without one; others do not", async () => {
  const plain = "From: a@b.example\r\nSubject: hello\r\n\r\nhello\r\n";
  const hosts = [
    "postern.test",
    "mx.postern.test",
    "bounces.postern.test",
    "masked.postern.test",
    "reports.postern.test",
  ];
  for (const host of hosts) {
    await taken(`postmaster@${host}`, plain, "a@b.example");
    await taken(`Abuse@${host}`, plain, "a@b.example");
  }
  await taken("Postmaster", plain, "a@b.example");
  for (const address of ["nobody@postern.test", "nobody", "abuse"]) {
    assert.equal((await mail(address, plain, "a@b.example")).code, 550, address);
    await smtp.ask("RSET");
  }
  const { body } = await r.api.ask("GET", "/v1/inbound-emails");
  assert.equal(body.total, 0, "they belong to no organization");
  const lines = (await describeOperatorMail(r.api.world)).split("\n");
  const line = lines.find((text) => text.includes("  Postmaster  from <a@b.example>  "));
  assert.ok(line, lines.join("\n"));
  const [id = ""] = line.split("  ");
  assert.equal((await readOperatorMail(r.api.world, id))?.toString(), plain);
  for (const unknown of [r.api.world.random.uuid(), "x"]) {
    assert.equal(await readOperatorMail(r.api.world, unknown), null);
  }
  assert.ok(lines.some((text) => text.endsWith("none of our messages was found for this complaint")));
});

const MAIL = "/dashboard/api/operator/mail";
const COMPLAINT = [
  "From: Ann Reader <ann@b.example>",
  "Subject: =?utf-8?q?Spam_from_r=C3=A9seau?=",
  "Message-ID: <complaint-7@b.example>",
  'Content-Type: multipart/mixed; boundary="x"',
  "",
  "--x",
  "Content-Type: text/html; charset=utf-8",
  "",
  "<p>Please stop</p><script>alert(1)</script>",
  "--x",
  'Content-Type: text/html; name="evidence.html"',
  'Content-Disposition: attachment; filename="evidence.html"',
  "",
  "<script>alert(2)</script>",
  "--x--",
  "",
].join("\r\n");

test("operators list, search and read the installation's mail in the dashboard; its files leave as downloads", async () => {
  const operator = await setUp(r.api, "operator@example.net");
  const list = async (query: string) => {
    const { status, body } = await operator.ask("GET", `${MAIL}?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  await taken("abuse+seven@postern.test", COMPLAINT, "ann@b.example");
  for (const query of ["query=R%C3%89SEAU", "query=ann@b", "query=Ann%20Reader", "query=abuse%2Bseven"]) {
    const { mails, total, next } = await list(`mailbox=abuse&${query}`);
    assert.deepEqual([mails.length, total, next, mails[0].subject], [1, 1, null, "Spam from r\u00e9seau"], query);
  }
  assert.equal((await list("mailbox=security")).total, 0);
  assert.equal((await list("query=seven&mailbox=postmaster")).total, 0);
  const [row] = (await list("query=seven")).mails;
  assert.deepEqual(
    [row.mailbox, row.recipient, row.envelope_from, row.from_address, row.has_attachments],
    ["abuse", "abuse+seven@postern.test", "ann@b.example", "Ann Reader <ann@b.example>", true],
  );
  const { mail: one } = (await operator.ask("GET", `${MAIL}/${row.id}`)).body;
  assert.equal(one.html.trim(), "<p>Please stop</p><script>alert(1)</script>");
  assert.deepEqual([one.message_id, one.envelope.helo], ["<complaint-7@b.example>", "client.example"]);
  assert.equal(one.auth_results.dkim.result, "none");
  const [file] = one.attachments;
  const download = await operator.ask("GET", `${MAIL}/${row.id}/attachments/${file.id}/download`);
  assert.equal(download.headers["content-type"], "application/octet-stream");
  assert.match(String(download.headers["content-disposition"]), /^attachment; filename="evidence.html"/);
  assert.match(String(download.headers["content-security-policy"]), /^sandbox/);
  const raw = await operator.ask("GET", `${MAIL}/${row.id}/raw`);
  assert.match(String(raw.headers["content-disposition"]), /^attachment/);
  assert.match(raw.body, /^Return-Path: <ann@b.example>\r\n/);
  assert.ok(raw.body.endsWith(COMPLAINT));
});

test("pages of the operator's mail follow each other; what is not the operator's is not there", async () => {
  const operator = await setUp(r.api, "second.operator@example.net");
  const all: string[] = [];
  for (let next: string | null = ""; next !== null; ) {
    const { body } = await operator.ask("GET", `${MAIL}?limit=3${next && `&after=${next}`}`);
    all.push(...body.mails.map(({ id }: { id: string }) => id));
    next = body.next;
  }
  assert.deepEqual(all, [...new Set(all)].toSorted().reverse());
  assert.equal(all.length, (await operator.ask("GET", MAIL)).body.total);
  const simulated = await r.api.ask("POST", "/v1/inbound-emails/simulate", {
    ...{ from: "a@b.example", to: "postmaster@postern.test", text: "for a test" },
  });
  assert.equal(simulated.body.accepted, false, JSON.stringify(simulated.body));
  const theirs = await r.api.ask("GET", "/v1/inbound-emails");
  const others = [r.api.world.random.uuid(), "x", ...theirs.body.emails.map(({ id }: { id: string }) => id)];
  for (const id of others) {
    for (const path of [id, `${id}/raw`, `${id}/attachments/${id}/download`])
      assert.equal((await operator.ask("GET", `${MAIL}/${path}`)).status, 404, path);
  }
  for (const [query, field] of [
    ["mailbox=nobody", "mailbox"],
    ["after=x", "after"],
  ]) {
    const { status, body } = await operator.ask("GET", `${MAIL}?${query}`);
    assert.deepEqual([status, body.field], [400, field]);
  }
});
