import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import type { RawSmtp } from "../../test/support/raw-smtp.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { startSubmitting } from "../app.ts";
import { b64, connected, hangUp, loginCommand as plain, securedClient } from "./client.fixture.ts";
import type { Submission } from "./submission.ts";

let api: TestApi;
let dns: DnsServer;
let submission: Submission;
let other: Awaited<ReturnType<TestApi["organization"]>>;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({
    POSTERN_DNS: dns.address,
    POSTERN_SUBMISSION: "127.0.0.1:0",
    POSTERN_SUBMISSIONS: "127.0.0.1:0",
  });
  await addVerifiedDomain(api, dns, "sender.example");
  other = await api.organization();
  await addVerifiedDomain(api, dns, "other.example", { key: other.live_key });
  assert.equal((await api.ask("POST", "/v1/domains", { domain: "pending.example", type: "outbound" })).status, 201);
  submission = await startSubmitting(api.world, api.engine);
});

after(async () => {
  hangUp();
  await submission?.stop();
  await api?.close();
  await dns?.stop();
});

const secured = (port = submission.port) => securedClient(port);

async function loggedIn(key = api.live_key): Promise<RawSmtp> {
  const smtp = await secured();
  assert.match((await smtp.ask(plain(key))).text, /^235 2\.7\.0 /);
  return smtp;
}

let mails = 0;

function message(fields: string[] = [], body = "Hello\r\n"): string {
  mails += 1;
  return [
    "From: Shop <orders@sender.example>",
    "To: anna@recipient.example",
    `Subject: m${mails}`,
    ...fields,
    "",
    body,
  ].join("\r\n");
}

type Envelope = { from?: string; to?: string[]; content?: string; key?: string; smtp?: RawSmtp };

async function submit({
  from = "bounces@sender.example",
  to = ["anna@recipient.example"],
  content = message(),
  key,
  smtp,
}: Envelope) {
  const client = smtp ?? (await loggedIn(key));
  return client.deliver({ from, to, content });
}

async function accepted(envelope: Envelope = {}) {
  const { text } = await submit(envelope);
  const id = /^250 2\.0\.0 (queued|simulated) as ([0-9a-f-]{36})/.exec(text)?.[2] as string;
  assert.ok(id, text);
  const options = envelope.key ? { key: envelope.key } : {};
  const { status, body } = await api.ask("GET", `/v1/emails/${id}`, undefined, options);
  assert.equal(status, 200);
  const raw = await api.ask("GET", `/v1/emails/${id}/content`, undefined, {
    ...options,
    headers: { accept: "message/rfc822" },
  });
  return { email: body.email, wire: String(raw.body), text };
}

describe("logging in to submission", () => {
  it("takes a live or test key of any organization as password", async () => {
    for (const key of [api.live_key, api.test_key, other.live_key]) await loggedIn(key);
    const smtp = await secured();
    assert.equal((await smtp.ask("AUTH LOGIN")).code, 334);
    assert.equal((await smtp.ask(b64("Postern"))).code, 334);
    assert.equal((await smtp.ask(b64(api.live_key))).code, 235);
  });

  it("works with TLS from the first byte", async () => {
    const smtp = await connected(submission.implicit_port as number);
    await smtp.startTls();
    assert.equal((await smtp.reply()).code, 220);
    await smtp.ask("EHLO client.example");
    assert.equal((await smtp.ask(plain(api.live_key))).code, 235);
    assert.match((await submit({ smtp })).text, /^250 2\.0\.0 queued as /);
  });

  it("takes no login, sender or recipient that stood in clear behind STARTTLS", async () => {
    const smtp = await connected(submission.port);
    await smtp.reply();
    await smtp.ask("EHLO client.example");
    const injected = [plain(api.live_key), "MAIL FROM:<a@sender.example>", "RCPT TO:<anna@recipient.example>"];
    smtp.write(`STARTTLS\r\nEHLO smuggled\r\n${injected.join("\r\n")}\r\n`);
    assert.equal((await smtp.reply()).code, 220);
    await smtp.startTls();
    await smtp.ask("EHLO client.example");
    assert.match((await smtp.ask("MAIL FROM:<a@sender.example>")).text, /^530 5\.7\.0 /, "nobody has logged in");
    assert.match((await smtp.ask(plain(api.live_key))).text, /^235 2\.7\.0 /);
    assert.equal((await smtp.ask("RCPT TO:<anna@recipient.example>")).code, 503, "there is no MAIL");
  });

  it("ends for a key that is revoked, at the next message", async () => {
    const { body } = await api.ask("POST", "/v1/api-keys", { name: "smtp", environment: "live" });
    const smtp = await loggedIn(body.secret);
    assert.match((await submit({ smtp })).text, /^250/);
    await smtp.ask("MAIL FROM:<a@sender.example>");
    await smtp.ask("RCPT TO:<anna@recipient.example>");
    assert.equal((await api.ask("DELETE", `/v1/api-keys/${body.key.id}`)).status, 200);
    await smtp.ask("DATA");
    smtp.write(`${message()}.\r\n`);
    assert.match((await smtp.reply()).text, /^535 5\.7\.8 .*revoked/);
    assert.match((await smtp.ask("MAIL FROM:<a@sender.example>")).text, /^535 5\.7\.8 /);
  });

  it("offers what RFC 6409 and its company name", async () => {
    const smtp = await secured();
    const offers = (await smtp.ask("EHLO client.example")).lines.map((line) => line.slice(4));
    for (const offer of [
      "PIPELINING",
      "SIZE 26214400",
      "8BITMIME",
      "SMTPUTF8",
      "ENHANCEDSTATUSCODES",
      "AUTH PLAIN LOGIN",
    ]) {
      assert.ok(offers.includes(offer), `${offer} in ${offers.join("|")}`);
    }
  });
});

describe("a submitted message", () => {
  it("is stored as the customer wrote it before its 250, with what was missing", async () => {
    const body = ["--x", "Content-Type: text/plain", "", ".. dots", "", "--x--", "", ""].join("\r\n");
    const fields = [
      "MIME-Version: 1.0",
      'Content-Type: multipart/mixed; boundary="x"',
      "X-Odd:  two  spaces",
      "X-Folded: a",
      "\tb",
    ];
    const content = message(fields, body);
    const { email, wire } = await accepted({ content });
    const [added, kept] = [wire.slice(0, wire.indexOf("From: Shop")), wire.slice(wire.indexOf("From: Shop"))];
    assert.equal(kept, content);
    assert.match(
      added,
      new RegExp(
        `^Received: by postern\\.test \\(Postern\\) with ESMTPSA id ${email.id};\\r\\n [A-Z][a-z]{2}, .* \\+0000\\r\\n` +
          `Date: [A-Z][a-z]{2}, .* \\+0000\\r\\nMessage-ID: <${email.id}@sender\\.example>\\r\\n$`,
      ),
    );
    assert.deepEqual(
      [email.status, email.environment, email.message_id, email.from, email.subject, email.size],
      ["queued", "live", `${email.id}@sender.example`, "Shop <orders@sender.example>", `m${mails}`, wire.length],
    );
    const { events } = (await api.ask("GET", `/v1/emails/${email.id}/events`)).body;
    assert.deepEqual(
      events.map((event: { event_type: string }) => event.event_type),
      ["queued"],
    );
  });

  it("keeps its own Date and Message-ID, and is found by it", async () => {
    const date = "Date: Fri, 20 Nov 2026 10:00:00 +0100";
    const { email, wire } = await accepted({ content: message([date, "Message-ID: <Own.1@sender.example>"]) });
    assert.equal(email.message_id, "Own.1@sender.example");
    assert.equal(wire.match(/^(Date|Message-ID):/gm)?.length, 2);
    assert.equal((await api.ask("GET", "/v1/emails/Own.1@sender.example")).body.email.id, email.id);
  });

  it("names its recipients as the header shows them; Bcc and our own fields stay here", async () => {
    const content = message([
      "Cc: Cora <cora@Recipient.example>",
      "Bcc: secret@recipient.example",
      "Return-Path: <x@y.example>",
      "Reply-To: help@sender.example",
      "X-Service-Tag: welcome",
      "X-Service-Tag: =?utf-8?q?gr=C3=BCn?=",
      "X-Service-Metadata-Order: 17",
      "X-Postern-Id: forged",
    ]);
    const to = [
      "anna@recipient.example",
      "cora@recipient.example",
      "Secret@recipient.example",
      "ANNA@recipient.example",
    ];
    const { email, wire } = await accepted({ content, to });
    assert.deepEqual(
      [email.to, email.cc, email.bcc],
      [["anna@recipient.example"], ["cora@recipient.example"], ["Secret@recipient.example"]],
    );
    assert.deepEqual(
      [email.reply_to, email.tags, email.metadata],
      [["help@sender.example"], ["welcome", "grün"], { order: "17" }],
    );
    assert.doesNotMatch(wire, /^(bcc|return-path|x-service-[a-z-]+|x-postern-[a-z-]+):/im);
    assert.ok(!wire.includes("secret@"));
  });

  it("takes tags and metadata within the API's limits only", async () => {
    const many = (count: number, field: (n: number) => string) => Array.from({ length: count }, (_, n) => field(n));
    const cases: string[][] = [
      many(11, (n) => `X-Service-Tag: t${n}`),
      ["X-Service-Tag:"],
      [`X-Service-Tag: ${"x".repeat(65)}`],
      many(21, (n) => `X-Service-Metadata-K${n}: 1`),
      many(3, (n) => `X-Service-Metadata-K${n}: ${"y".repeat(900)}`),
      ["X-Service-Metadata-: 1"],
    ];
    for (const fields of cases)
      assert.match((await submit({ content: message(fields) })).text, /^554 5\.6\.0 /, fields[0]);
    await accepted({
      content: message([...many(10, (n) => `X-Service-Tag: t${n}`), "X-Service-Metadata-__proto__: 1"]),
    });
  });

  it("with a test key is only simulated", async () => {
    const { email, text } = await accepted({ key: api.test_key });
    assert.match(text, /^250 2\.0\.0 simulated as /);
    assert.deepEqual([email.status, email.environment, email.recipients[0].status], ["simulated", "test", "simulated"]);
  });

  it("may be 8-bit and international", async () => {
    const smtp = await loggedIn();
    const lines = [
      "MAIL FROM:<bounces@sender.example> BODY=8BITMIME SMTPUTF8",
      "RCPT TO:<жук@recipient.example>",
      "DATA",
    ];
    for (const line of lines) assert.ok((await smtp.ask(line)).code < 400, line);
    smtp.write(`From: Käfer <жук@sender.example>\r\nSubject: Grüße\r\n\r\nÄpfel\r\n.\r\n`);
    const id = /as ([0-9a-f-]{36})/.exec((await smtp.reply()).text)?.[1];
    const { email } = (await api.ask("GET", `/v1/emails/${id}`)).body;
    assert.deepEqual(
      [email.from, email.bcc, email.subject],
      ["Käfer <жук@sender.example>", ["жук@recipient.example"], "Grüße"],
    );
    await smtp.ask("MAIL FROM:<bounces@sender.example>");
    assert.match((await smtp.ask("RCPT TO:<жук@recipient.example>")).text, /^553 5\.6\.7 /);
  });

  it("is refused when receivers could not take it, and the connection goes on", async () => {
    const smtp = await loggedIn();
    const cases: [content: string, answer: RegExp][] = [
      [message(["Subject: again"]), /^554 5\.6\.0 .*more than one Subject/],
      [message(["this is no field"]), /^554 5\.6\.0 .*not a header field/],
      [message([], "x".repeat(1_200)), /^554 5\.6\.0 .*998/],
    ];
    for (const [content, answer] of cases) assert.match((await submit({ content, smtp })).text, answer);
    assert.match((await submit({ smtp })).text, /^250/);
  });

  it("is shown as JSON, parsed where it can do no harm", async () => {
    const depth = 4_000;
    const parts = Array.from({ length: depth }, (_, n) => [
      `--b${n}`,
      `Content-Type: multipart/mixed; boundary=b${n + 1}`,
      "",
    ]);
    const fields = ["MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b0"];
    const { email } = await accepted({ content: message(fields, `${parts.flat().join("\r\n")}\r\n`) });
    const [shown, meanwhile] = await Promise.all([
      api.ask("GET", `/v1/emails/${email.id}/content`),
      api.ask("GET", "/v1/emails?limit=1"),
    ]);
    assert.ok([200, 409].includes(shown.status), JSON.stringify(shown.body).slice(0, 200));
    assert.equal(meanwhile.status, 200);
    const { email: simple } = await accepted({ content: message(["Content-Type: text/html"], "<p>Hi</p>\r\n") });
    const { content } = (await api.ask("GET", `/v1/emails/${simple.id}/content`)).body;
    assert.deepEqual([content.html_body, content.text_body, content.attachments], ["<p>Hi</p>\n", null, []]);
  });

  it("may end its lines with LF alone, which never ends the message", async () => {
    const smtp = await loggedIn();
    for (const line of ["MAIL FROM:<a@sender.example>", "RCPT TO:<anna@recipient.example>", "DATA"])
      await smtp.ask(line);
    const smuggled = ["MAIL FROM:<b@sender.example>", "RCPT TO:<ben@recipient.example>", "DATA", "Subject: y", "", "z"];
    smtp.write(
      `From: a@sender.example\nSubject: x\n\na\n.\r\n${smuggled.join("\r\n")}\r\n.\n${smuggled.join("\n")}\n.\n`,
    );
    smtp.write("b\r\n.\r\n");
    const id = /^250 2\.0\.0 queued as ([0-9a-f-]{36})/.exec((await smtp.reply()).text)?.[1];
    assert.equal((await smtp.ask("NOOP")).code, 250, "one message, one answer");
    const { body } = await api.ask("GET", `/v1/emails/${id}/content`, undefined, {
      headers: { accept: "message/rfc822" },
    });
    const text = ["a", ".", ...smuggled, ".", ...smuggled, ".", "b", ""].join("\r\n");
    assert.ok(String(body).endsWith(`\r\nFrom: a@sender.example\r\nSubject: x\r\n\r\n${text}`), String(body));
  });

  it("ends the connection with 554 for a CR alone, and a command with LF alone as well", async () => {
    for (const said of ["DATA\r\nSubject: x\r\n\r\na\rb\r\n.\r\n", "RSET\n"]) {
      const smtp = await loggedIn();
      for (const line of ["MAIL FROM:<a@sender.example>", "RCPT TO:<anna@recipient.example>"]) await smtp.ask(line);
      smtp.write(said);
      if (said.startsWith("DATA")) assert.equal((await smtp.reply()).code, 354);
      assert.match((await smtp.reply()).text, /^554 5\.5\.2 /);
      await smtp.closed;
    }
  });

  it("has at most 25 MiB and 50 recipients, each an address", async () => {
    const smtp = await loggedIn();
    assert.match((await smtp.ask(`MAIL FROM:<a@sender.example> SIZE=${25 * 1024 * 1024 + 1}`)).text, /^552 5\.3\.4 /);
    assert.equal((await smtp.ask("MAIL FROM:<a@sender.example>")).code, 250);
    assert.match((await smtp.ask("RCPT TO:<a..b@recipient.example>")).text, /^553 5\.1\.3 /);
    for (let n = 0; n < 50; n += 1) assert.equal((await smtp.ask(`RCPT TO:<r${n}@recipient.example>`)).code, 250);
    assert.match((await smtp.ask("RCPT TO:<one-more@recipient.example>")).text, /^452 4\.5\.3 /);
    assert.equal((await smtp.ask("DATA")).code, 354);
    smtp.write(`${message()}.\r\n`);
    const id = /as ([0-9a-f-]{36})/.exec((await smtp.reply()).text)?.[1];
    assert.equal((await api.ask("GET", `/v1/emails/${id}`)).body.email.recipients.length, 50);
  });
});

describe("the sender of a submitted message", () => {
  const FOREIGN = ["other.example", "pending.example", "mail.sender.example", "unknown.example"];

  it("must be of the organization's ready domains in every place that names one", async () => {
    const smtp = await loggedIn();
    for (const domain of FOREIGN) {
      assert.match((await smtp.ask(`MAIL FROM:<a@${domain}>`)).text, /^550 5\.7\.1 /, `envelope ${domain}`);
      const contents = [
        message().replace("orders@sender.example", `orders@${domain}`),
        ...["Sender", "Resent-From", "Resent-Sender"].map((field) => message([`${field}: a@${domain}`])),
        message([`Resent-From: a@sender.example, b@${domain}`]),
      ];
      for (const content of contents) {
        const fresh = await loggedIn();
        assert.match((await submit({ content, smtp: fresh })).text, /^550 5\.7\.1 /, content.slice(0, 120));
        fresh.destroy();
      }
    }
    const own = message(["Sender: b@sender.example", "Resent-From: c@sender.example"]);
    assert.match((await submit({ content: own })).text, /^250/);
    assert.match((await submit({ from: "" })).text, /^250/, "the null reverse-path names nobody");
  });

  it("must be given once and clearly", async () => {
    for (const from of [
      "orders@sender.example, ceo@victim.example",
      "ceo@victim.example <orders@sender.example>",
      "<ceo@victim.example> <orders@sender.example>",
      "ceo@victim.example (<orders@sender.example>)",
      "nobody",
    ]) {
      const content = message().replace("Shop <orders@sender.example>", from);
      assert.match((await submit({ content })).text, /^550 5\.7\.1 /, from);
    }
    assert.match(
      (await submit({ content: message(["From: a@sender.example"]) })).text,
      /^550 5\.7\.1 .*more than one From/,
    );
    assert.match((await submit({ content: "Subject: x\r\n\r\nx\r\n" })).text, /^550 5\.7\.1 .*no From/);
  });

  it("is another organization's business with its own key only", async () => {
    const content = message().replace("sender.example", "other.example");
    const { email } = await accepted({ content, from: "a@other.example", key: other.live_key });
    assert.equal((await api.ask("GET", `/v1/emails/${email.id}`)).status, 404);
    assert.match(
      (await submit({ content: message(), from: "a@other.example", key: other.live_key })).text,
      /^550 5\.7\.1 /,
    );
  });

  it("needs an organization that may send live", async () => {
    const review = await api.organization("growth", "pending_review");
    const suspended = await api.organization("growth", "suspended");
    for (const key of [review.live_key, suspended.live_key, suspended.test_key]) {
      const smtp = await loggedIn(key);
      assert.match((await smtp.ask("MAIL FROM:<a@sender.example>")).text, /^550 5\.7\.1 /);
    }
  });
});

describe("suppressions and limits at submission", () => {
  it("leave out suppressed recipients, and refuse when nobody is left", async () => {
    for (const email of ["gone@recipient.example", "left@recipient.example"]) {
      assert.equal((await api.ask("POST", "/v1/suppressions", { email })).status, 201);
    }
    const all = await submit({ to: ["gone@recipient.example", "left@recipient.example"] });
    assert.match(all.text, /^550 5\.7\.1 all recipients are suppressed: gone@recipient\.example \(manual\), left@/);
    const { email, text } = await accepted({ to: ["gone@recipient.example", "anna@recipient.example"] });
    assert.match(text, /left out as suppressed: 1$/);
    assert.deepEqual(
      email.recipients.map(({ status }: { status: string }) => status),
      ["suppressed", "queued"],
    );
    const tagged = { email: "tired@recipient.example", scope_type: "stream", scope_id: "offers" };
    assert.equal((await api.ask("POST", "/v1/suppressions", tagged)).status, 201);
    const offer = message(["X-Service-Tag: offers"]);
    assert.match((await submit({ to: [tagged.email], content: offer })).text, /^550 5\.7\.1 /);
    assert.match((await submit({ to: [tagged.email] })).text, /^250/);
  });

  it("spend the month's quota to the last recipient and no further, over many connections", async () => {
    const left = 100;
    const poor = await api.organization("scale");
    await addVerifiedDomain(api, dns, "poor.example", { key: poor.live_key });
    // This month and the next, which may begin while this runs.
    const months = [0, 1].map((n) => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + n, 1)));
    await api.world.db.execute(
      `insert into allowance (org_id, scope_id, kind, starts_at, used, ceiling)
       select $1, $1, 'monthly_quota', month, $3, $4 from unnest($2::timestamptz[]) as month`,
      [poor.org_id, months, 10_000_000 - left, 10_000_000],
    );
    const content = message().replace("sender.example", "poor.example");
    const answers: string[] = [];
    const connection = async (): Promise<void> => {
      const smtp = await loggedIn(poor.live_key);
      for (let n = 0; n < 30; n += 1) {
        const { text } = await submit({ smtp, from: "a@poor.example", to: [`r${n}@recipient.example`], content });
        answers.push(text.slice(0, 9));
        if (!text.startsWith("250")) break;
      }
      smtp.destroy();
    };
    await Promise.all(Array.from({ length: 5 }, connection));
    assert.equal(answers.filter((text) => text === "250 2.0.0").length, left);
    assert.ok(answers.includes("452 4.7.1"));
    assert.equal((await api.ask("GET", "/v1/emails?limit=1", undefined, { key: poor.live_key })).body.total, left);
  });

  it("answer 450 for a window that is full, and say what lifts it and when to come back", async () => {
    const fresh = await api.organization();
    await addVerifiedDomain(api, dns, "fresh.example", { key: fresh.live_key, warm: false });
    const content = message().replace("sender.example", "fresh.example");
    const smtp = await loggedIn(fresh.live_key);
    const submitOne = () => submit({ smtp, from: "a@fresh.example", content });
    for (let n = 0; n < 5; n += 1) assert.match((await submitOne()).text, /^250/);
    const full = (await submitOne()).text;
    assert.match(full, /^450 4\.7\.1 the hourly limit .*"warmed".*try again in \d+ seconds$/);
  });

  it("count each message as a request of its organization", async () => {
    const slow = await api.organization("starter");
    await addVerifiedDomain(api, dns, "slow.example", { key: slow.live_key });
    const smtp = await loggedIn(slow.live_key);
    const answers: string[] = [];
    const beganAt = performance.now();
    while (answers.length < 500 && (answers.at(-1) ?? "250").startsWith("250")) {
      answers.push((await smtp.ask("MAIL FROM:<a@slow.example>")).text.slice(0, 9));
      await smtp.ask("RSET");
    }
    assert.equal(answers.at(-1), "450 4.7.1");
    // Requests to the API, such as those that set the domain up, are taken from the same bucket; ten a second come back.
    const allowed = 10 + 10 * ((performance.now() - beganAt) / 1_000);
    assert.ok(answers.length >= 5 && answers.length <= allowed + 2, answers.join(" "));
  });
});
