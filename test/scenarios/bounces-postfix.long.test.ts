// A real Postfix takes our mail and bounces it afterwards: a user it does not have, and a backend behind it that refuses.
// Its own reports come back to our MX.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../support/free-port.ts";
import { type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";
import { type Receiving, startTestReceiving } from "../support/receiving.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";

const skip = postfixMissing() ?? false;
let postfix: Postfix;
let backend: SmtpSink;
let r: Receiving;

before(async () => {
  if (skip) return;
  const port = await freePort();
  r = await startTestReceiving({ POSTERN_TESTING_OUTBOUND_PORT: String(port) });
  backend = await startSmtpSink();
  backend.onRcpt(() => ({ code: 552, text: "5.2.2 The mailbox is over its quota" }));
  postfix = await startPostfix(
    () => `mydestination = there.example
local_recipient_maps =
relay_domains = behind.example
relay_transport = smtp:[127.0.0.1]:${backend.port}
relayhost = [127.0.0.1]:${r.port}`,
    { address: "127.0.0.1", port, hostname: "mx.there.example" },
  );
  for (const domain of ["there.example", "behind.example"]) receiveAt(r.dns, domain);
});
after(async () => {
  if (skip) return;
  postfix.stop();
  await r.close();
  await backend.stop();
});

async function sendTo(to: string) {
  const body = { from: "shop@in.example", to: [to], subject: "An order", text_body: "Hello" };
  const sent = await r.api.ask("POST", "/v1/send", body);
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  const email = await emailWithStatus(r.api, sent.body.id, ["bounced"], 20_000);
  const { body: timeline } = await r.api.ask("GET", `/v1/emails/${sent.body.id}/events`);
  const types = timeline.events.map((event: { event_type: string }) => event.event_type);
  assert.deepEqual(types, ["queued", "delivered", "bounced"]);
  return { recipient: email.recipients[0], reporter: timeline.events.at(-1).mx_host };
}

test("a user that Postfix does not have bounces hard and is suppressed", { skip }, async () => {
  const { recipient, reporter } = await sendTo("no.such.user@there.example");
  assert.deepEqual([recipient.bounce_type, recipient.diag_code], ["hard", "5.1.1"]);
  assert.match(recipient.diag_message, /unknown user/);
  assert.equal(reporter, "mx.there.example");
  const { body } = await r.api.ask("GET", "/v1/suppressions/check?email=no.such.user@there.example");
  assert.equal(body.entry.reason, "hard_bounce");
});

test("a refusal of the server behind Postfix arrives with that server's words", { skip }, async () => {
  const { recipient } = await sendTo("full@behind.example");
  assert.deepEqual(
    [recipient.bounce_type, recipient.bounce_code, recipient.diag_code, recipient.bounce_class],
    ["soft", "552", "5.2.2", "mailbox_full"],
  );
  assert.match(recipient.diag_message, /over its quota/);
  const { body } = await r.api.ask("GET", "/v1/suppressions/check?email=full@behind.example");
  assert.equal(body.suppressed, false);
});
