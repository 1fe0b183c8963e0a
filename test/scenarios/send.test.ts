// From POST /v1/send to a real SMTP server and back to the timeline.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await api.close();
  await sink.stop();
  await dns.stop();
});

test("an accepted e-mail reaches the recipient's server signed, and the timeline says so", async () => {
  const sent = await api.ask("POST", "/v1/send", {
    from: "Ünï Code <hello@sender.example>",
    to: ["Anna <anna@recipient.example>"],
    subject: "Grüße aus Köln",
    html_body: "<p>Hallo <b>Anna</b></p>",
    tags: ["welcome"],
    metadata: { order: 17 },
  });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  assert.equal(sent.body.status, "queued");
  const email = await emailWithStatus(api, sent.body.id, ["delivered"]);
  const received = sink.messages.find((message) => message.message_id === sent.body.message_id);
  assert.ok(received, "the sink has the message");
  assert.deepEqual(received.to, ["anna@recipient.example"]);
  assert.match(received.from, /^b\+[a-z2-7]{44}@pt-bounces\.sender\.example$/);
  const verdict = await dkimVerify(received.bytes, { resolver: nodeStyleResolver(api.world.resolver) as never });
  assert.equal(verdict.results[0]?.status.result, "pass");
  assert.equal(email.recipients[0].status, "delivered");
  const { body } = await api.ask("GET", `/v1/emails/${sent.body.id}/events`);
  assert.deepEqual(
    body.events.map((event: { event_type: string }) => event.event_type),
    ["queued", "delivered"],
  );
  assert.equal(body.events[1].mx_host, "mx.recipient.example");
  assert.equal(body.events[1].smtp_code, "250");
});
