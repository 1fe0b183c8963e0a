// Forwards over real SMTP, in and out: what stays, what is rewritten, bounces on their way back, loops.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { nodeStyleResolver } from "../../../test/support/node-resolver.ts";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { type Received, type SmtpSink, startSmtpSink } from "../../../test/support/smtp-sink.ts";
import { receiveAt } from "../../../test/support/stories.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../../mail/dkim/key.ts";
import { signMessage } from "../../mail/dkim/sign.ts";

let r: Receiving;
let sink: SmtpSink;

before(async () => {
  sink = await startSmtpSink();
  r = await startTestReceiving({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  for (const domain of ["real.example", "author.example", "strict.example"]) receiveAt(r.dns, domain);
});
after(async () => {
  await r.close();
  await sink.stop();
});

const deliver = async (mail: { from: string; to: string[]; content: string | Buffer }) => {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const answer = await smtp.deliver(mail);
  smtp.destroy();
  return answer;
};
const arrived = (predicate: (message: Received) => boolean): Promise<Received> =>
  until(
    () => `not among ${sink.messages.length} messages`,
    () => sink.messages.find(predicate),
  );
const bodyOf = (message: Received) => message.bytes.toString("latin1");

/** A message signed by its author's domain, whose key is in the DNS. */
async function signedMail(domain: string, subject: string): Promise<Buffer> {
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  r.dns.set(`s1._domainkey.${domain}`, "TXT", [dkimRecord(public_key, "rsa")]);
  const message = Buffer.from(
    `From: Author <me@${domain}>\r\nTo: x@in.example\r\nSubject: ${subject}\r\nDate: Fri, 20 Nov 2026 09:00:00 +0000\r\nMessage-ID: <${subject.replaceAll(" ", "-")}@${domain}>\r\n\r\nBody\r\n`,
  );
  const key = loadSigningKey(private_key_pem, { domain, selector: "s1" });
  return Buffer.concat([await signMessage(message, [key], { now_s: Date.now() / 1000 }), message]);
}

test("a signed mail is forwarded untouched, with our trace in front and its sender rewritten", async () => {
  await addAlias(r, "team", { action: "forward", forward_to: ["one@real.example", "two@real.example"] });
  r.dns.set("_dmarc.author.example", "TXT", ["v=DMARC1; p=reject"]);
  const content = await signedMail("author.example", "signed forward");
  assert.equal((await deliver({ from: "me@author.example", to: ["team@in.example"], content })).code, 250);
  const [one, two] = await Promise.all(
    ["one", "two"].map((name) => arrived(({ to }) => to[0] === `${name}@real.example`)),
  );
  for (const message of [one, two] as Received[]) {
    assert.match(message.from, /^SRS0=[a-z2-7]{9}=[a-z2-7]{2}=author\.example=me@pt-bounces\.in\.example$/);
    assert.ok(message.bytes.toString("latin1").endsWith(content.toString("latin1")), "not a byte is changed");
    const { results } = await dkimVerify(message.bytes, { resolver: nodeStyleResolver(r.api.world.resolver) as never });
    const passed = results.filter(({ status }) => status.result === "pass").map(({ signingDomain }) => signingDomain);
    assert.deepEqual(passed.sort(), ["author.example", "in.example"]);
    assert.match(bodyOf(message), /\r\nReceived: from client\.example \(\[127\.0\.0\.1\]\)\r\n\tby mx\.postern\.test/);
    assert.match(bodyOf(message), /\r\nX-Loop-Guard: [0-9a-f]{20}\r\n/);
    assert.ok(!/return-path/i.test(bodyOf(message)));
  }
  const [row] = await r.processed("subject=signed%20forward");
  assert.equal(row.status, "delivered");
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${row.id}`);
  assert.equal(body.email.forwards.length, 2);
  assert.deepEqual(body.email.deliveries, []);
});

test("a sender whose local part needs quotes is forwarded from our return path, as no rewritten one can hold it", async () => {
  await addAlias(r, "dots", { action: "forward", forward_to: ["dots@real.example"] });
  const content = "From: taro..x.@docomo.example\r\nSubject: dots\r\n\r\nBody\r\n";
  await deliver({ from: "taro..x.@docomo.example", to: ["dots@in.example"], content });
  const message = await arrived(({ to }) => to[0] === "dots@real.example");
  assert.match(message.from, /^b\+[a-z2-7]{44}@pt-bounces\.in\.example$/);
});

test("an author whose DMARC would not survive gets our From, and answers still reach the author", async () => {
  await addAlias(r, "plain", { action: "forward", forward_to: ["plain@real.example"] });
  r.dns.set("_dmarc.strict.example", "TXT", ["v=DMARC1; p=reject"]);
  r.dns.set("strict.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  const content =
    "From: Ms Strict <me@strict.example>\r\nDKIM-Signature: v=1; broken\r\nTo: plain@in.example\r\nSubject: rewritten\r\n\r\nBody\r\n";
  await deliver({ from: "me@strict.example", to: ["plain+tag@in.example"], content });
  const message = await arrived(({ to }) => to[0] === "plain@real.example");
  assert.match(message.from, /^b\+[a-z2-7]{44}@pt-bounces\.in\.example$/);
  assert.match(bodyOf(message), /\r\nFrom: "?Ms Strict via plain@in\.example"? <plain@in\.example>\r\n/);
  assert.match(bodyOf(message), /\r\nReply-To: me@strict\.example\r\n/);
  assert.ok(!bodyOf(message).includes("v=1; broken"));
  assert.match(bodyOf(message), /\r\nTo: plain@in\.example\r\nSubject: rewritten\r\n\r\nBody\r\n$/);
  assert.match(
    bodyOf(message),
    /\r\nDate: \w{3}, \d+ \w{3} \d{4} [\d:]{8} \+0000\r\nMessage-ID: <[0-9a-f-]{36}@in\.example>\r\n/,
  );
  const { results } = await dkimVerify(message.bytes, { resolver: nodeStyleResolver(r.api.world.resolver) as never });
  assert.deepEqual(
    results.map(({ status, signingDomain }) => [signingDomain, status.result]),
    [["in.example", "pass"]],
  );
});

test("a forward has the Date and Message-ID that its mail lacks, unless a signature may say that they are not there", async () => {
  await addAlias(r, "bare", { action: "forward", forward_to: ["bare@real.example"] });
  const from = "From: me@free.example\r\n";
  const mails: [content: string, fields: RegExp[], end: string][] = [
    [
      `${from}Subject: 1\r\n\r\nBody\r\n`,
      [/^Date: \w/m, /^Message-ID: <.+@in\.example>/m],
      "Subject: 1\r\n\r\nBody\r\n",
    ],
    [
      `${from}Subject: 2\r\nMessage-Id: broken\r\n\r\nBody\r\n`,
      [/^Date: \w/m, /^Message-Id: broken/m],
      "broken\r\n\r\nBody\r\n",
    ],
    [`DKIM-Signature: v=1\r\n${from}Subject: 3\r\n\r\nBody\r\n`, [], "Subject: 3\r\n\r\nBody\r\n"],
    ["4 is all text\r\n", [/^Date: \w/m, /^Message-ID: </m], "\r\n\r\n4 is all text\r\n"],
  ];
  for (const [content, fields, end] of mails) {
    await deliver({ from: "me@free.example", to: ["bare@in.example"], content });
    const message = await arrived(({ to, bytes }) => to[0] === "bare@real.example" && bytes.toString().endsWith(end));
    // What we sign names them as well.
    const head =
      bodyOf(message)
        .replace(/^DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*/, "")
        .split("\r\n\r\n")[0] ?? "";
    const found = head.match(/^(?:Date|Message-ID):.*/gim) ?? [];
    assert.equal(found.length, fields.length, head);
    for (const field of fields) assert.match(head, field);
  }
});

test("a mail replayed when its signature does not hold any more is forwarded with our From", async () => {
  await addAlias(r, "late", { action: "forward", forward_to: ["late@real.example"] });
  r.dns.set("_dmarc.author.example", "TXT", ["v=DMARC1; p=reject"]);
  const content = await signedMail("author.example", "late forward");
  assert.equal((await deliver({ from: "me@author.example", to: ["late@in.example"], content })).code, 250);
  const [row] = await r.processed("subject=late%20forward");
  r.dns.remove("s1._domainkey.author.example");
  assert.equal((await r.api.ask("POST", `/v1/inbound-emails/${row.id}/replay`)).status, 200);
  const forwards = await until("both forwards", () => {
    const both = sink.messages.filter(({ to }) => to[0] === "late@real.example");
    return both.length === 2 && both;
  });
  const froms = forwards.map((message) => /\r\nFrom: .*<(.*)>\r\n/.exec(bodyOf(message))?.[1]);
  assert.deepEqual(froms, ["me@author.example", "late@in.example"]);
});

test("the masked mode rewrites From always and keeps a given Reply-To", async () => {
  await addAlias(r, "mask", { action: "forward", forward_to: ["mask@real.example"], forward_mode: "masked" });
  const content = "From: me@author.example\r\nReply-To: desk@author.example\r\nSubject: masked\r\n\r\nBody\r\n";
  await deliver({ from: "me@author.example", to: ["mask@in.example"], content });
  const message = await arrived(({ to }) => to[0] === "mask@real.example");
  assert.match(bodyOf(message), /\r\nFrom: "?me@author\.example via mask@in\.example"? <mask@in\.example>\r\n/);
  assert.equal(bodyOf(message).match(/\r\nReply-To: /g)?.length, 1);
  assert.match(bodyOf(message), /\r\nReply-To: desk@author\.example\r\n/);
});

test("a bounce to the rewritten sender goes to the author, from nobody; a forged or stale one is refused", async () => {
  await addAlias(r, "bouncing", { action: "forward", forward_to: ["gone@real.example"] });
  const content = await signedMail("author.example", "will bounce");
  await deliver({ from: "verp-7@author.example", to: ["bouncing@in.example"], content });
  const forwarded = await arrived(({ to }) => to[0] === "gone@real.example");
  const dsn =
    "From: MAILER-DAEMON@real.example\r\nSubject: Undelivered\r\nMessage-ID: <dsn@real.example>\r\n\r\nno such user\r\n";
  assert.equal((await deliver({ from: "", to: [forwarded.from], content: dsn })).code, 250);
  const bounce = await arrived(({ to }) => to[0] === "verp-7@author.example");
  assert.equal(bounce.from, "");
  assert.ok(bodyOf(bounce).endsWith(dsn));
  assert.match((await deliver({ from: "spam@x.example", to: [forwarded.from], content: dsn })).text, /^550 5\.7\.1 /);
  const forged = forwarded.from.replace(/^SRS0=(.)/, (_, c) => `SRS0=${c === "a" ? "b" : "a"}`);
  assert.match((await deliver({ from: "", to: [forged], content: dsn })).text, /^550 5\.1\.1 /);
  const elsewhere = forwarded.from.replace("pt-bounces.in.example", "pt-bounces.elsewhere.example");
  assert.match((await deliver({ from: "", to: [elsewhere], content: dsn })).text, /^550 5\.[17]\.1 /);
  const listed = await r.api.ask("GET", "/v1/inbound-emails?subject=Undelivered");
  assert.equal(listed.body.total, 0, "a bounce is nobody's mail");
});

test("a bounce that is forwarded keeps its null sender, so it cannot bounce again", async () => {
  await addAlias(r, "null", { action: "forward", forward_to: ["null@real.example"] });
  await deliver({ from: "", to: ["null@in.example"], content: "From: a@author.example\r\nSubject: x\r\n\r\nx\r\n" });
  assert.equal((await arrived(({ to }) => to[0] === "null@real.example")).from, "");
});

test("a domain that only receives forwards under the service's return path, unsigned", async () => {
  const inbound = await addVerifiedDomain(r.api, r.dns, "only-in.example", { type: "inbound" });
  const body = { domain_id: inbound.id, local_part: "x", action: "forward", forward_to: ["only@real.example"] };
  assert.equal((await r.api.ask("POST", "/v1/aliases", body)).status, 201);
  await deliver({
    from: "a@b.example",
    to: ["x@only-in.example"],
    content: "From: a@b.example\r\nSubject: y\r\n\r\nx\r\n",
  });
  const message = await arrived(({ to }) => to[0] === "only@real.example");
  assert.match(message.from, /^b\+[a-z2-7]{44}@bounces\.postern\.test$/);
  assert.ok(!/^dkim-signature/im.test(bodyOf(message)));
});

test("a mail that comes back to the alias it left is refused in session", async () => {
  await addAlias(r, "circle", { action: "forward", forward_to: ["circle@real.example"] });
  const content = "From: a@b.example\r\nSubject: circle\r\n\r\nx\r\n";
  await deliver({ from: "a@b.example", to: ["circle@in.example"], content });
  const message = await arrived(({ to }) => to[0] === "circle@real.example");
  const again = await deliver({ from: "a@b.example", to: ["circle@in.example"], content: message.bytes });
  assert.match(again.text, /^554 5\.4\.6 /);
  await addAlias(r, "other-circle", { action: "forward", forward_to: ["other@real.example"] });
  assert.equal(
    (await deliver({ from: "a@b.example", to: ["other-circle@in.example"], content: message.bytes })).code,
    250,
  );
  await addAlias(r, "keeps");
  const both = { from: "a@b.example", to: ["circle@in.example", "keeps@in.example"], content: message.bytes };
  assert.equal((await deliver(both)).code, 250, "one recipient still wants it");
  const rows = await r.processed("subject=circle&to=circle%40in.example", 3);
  assert.deepEqual(rows.map(({ to_address, status }) => `${to_address} ${status}`).sort(), [
    "circle@in.example delivered",
    "circle@in.example failed",
    "other-circle@in.example delivered",
  ]);
  const other = await arrived(({ to }) => to[0] === "other@real.example");
  assert.equal(bodyOf(other).match(/X-Loop-Guard/g)?.length, 2, "marks of earlier hops stay");
});

test("forwards announce nothing to outbound webhooks, and are reported on the timeline", async () => {
  await r.api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/out", events: ["email.delivered"] });
  await addAlias(r, "quiet", { action: "forward", forward_to: ["quiet@real.example"] });
  await deliver({
    from: "a@b.example",
    to: ["quiet@in.example"],
    content: "From: a@b.example\r\nSubject: quiet\r\n\r\nx\r\n",
  });
  await arrived(({ to }) => to[0] === "quiet@real.example");
  const [row] = await r.processed("subject=quiet");
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${row.id}`);
  const forward = `/v1/emails/${body.email.forwards[0]}`;
  await until("it is delivered", async () => (await r.api.ask("GET", forward)).body.email.status === "delivered");
  const events = await r.api.world.db.query("select 1 from webhook_event where event = 'email.delivered'");
  assert.equal(events.length, 0);
});

test("a mail over 256 KiB is forwarded whole", async () => {
  await addAlias(r, "big", { action: "forward", forward_to: ["big@real.example"] });
  const content = `From: a@b.example\r\nSubject: big\r\n\r\n${`${"x".repeat(76)}\r\n`.repeat(6_000)}`;
  await deliver({ from: "a@b.example", to: ["big@in.example"], content });
  const message = await arrived(({ to }) => to[0] === "big@real.example");
  assert.ok(bodyOf(message).endsWith(content));
});
