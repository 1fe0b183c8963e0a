// What a remote server's answer means: for the timeline, the recipient's state, suppressions and webhooks, over real
// SMTP and with the clock moved instead of waiting.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MINUTE_MS = 60_000;
const clock = runningClock(new Date().toISOString());
let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  sink.onRcpt((address) => {
    const [local] = address.split("@");
    if (local === "unknown") return { code: 550, text: "5.1.1 No such user here" };
    if (local === "full") return { code: 452, text: "4.2.2 Mailbox full" };
    if (local === "spam") return { code: 550, text: "5.7.1 Message rejected by policy" };
    return null;
  });
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await api.close();
  await sink.stop();
  await dns.stop();
});

async function send(to: string[], more: object = {}): Promise<string> {
  const { status, body } = await api.ask("POST", "/v1/send", {
    from: "shop@sender.example",
    to,
    subject: "An order",
    text_body: "Hello",
    ...more,
  });
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

async function events(id: string): Promise<{ event_type: string; smtp_code: string; message: string }[]> {
  return (await api.ask("GET", `/v1/emails/${id}/events`)).body.events;
}

/** Waits until the timeline has an event of this type (the `n`-th one). */
async function eventOf(id: string, type: string, n = 1) {
  let seen: unknown;
  return until(
    () => `no ${type} in ${JSON.stringify(seen)}`,
    async () => {
      const all = await events(id);
      seen = all;
      return all.filter((event) => event.event_type === type)[n - 1];
    },
  );
}

test("an unknown user bounces hard, is suppressed, and the next send to it alone is 422", async () => {
  const id = await send(["unknown@recipient.example"]);
  const email = await emailWithStatus(api, id, ["bounced"]);
  const [recipient] = email.recipients;
  assert.deepEqual(
    [recipient.status, recipient.bounce_type, recipient.bounce_code, recipient.diag_code, recipient.bounce_class],
    ["bounced", "hard", "550", "5.1.1", "invalid_recipient"],
  );
  const check = await api.ask("GET", "/v1/suppressions/check?email=unknown@recipient.example");
  assert.equal(check.body.suppressed, true);
  assert.equal(check.body.entry.source, "delivery_event");
  const again = await api.ask("POST", "/v1/send", {
    from: "shop@sender.example",
    to: ["unknown@recipient.example"],
    subject: "x",
    text_body: "x",
  });
  assert.equal(again.status, 422);
  assert.deepEqual(again.body.suppressed, [{ email: "unknown@recipient.example", reason: "hard_bounce" }]);
});

test("a refusal of the content bounces softly and suppresses nobody", async () => {
  const email = await emailWithStatus(api, await send(["spam@recipient.example"]), ["bounced"]);
  assert.equal(email.recipients[0].bounce_type, "soft");
  const check = await api.ask("GET", "/v1/suppressions/check?email=spam@recipient.example");
  assert.equal(check.body.suppressed, false);
});

test("three recipients with three fates are distinguished", async () => {
  const id = await send(["fine@recipient.example", "full@recipient.example"], { cc: ["nobody@recipient.example"] });
  const email = await emailWithStatus(api, id, ["deferred"]);
  const states = email.recipients.map(({ email: address, status }: { email: string; status: string }) => [
    address,
    status,
  ]);
  await eventOf(id, "delivered", 2);
  assert.equal(states.length, 3);
  const full = (await api.ask("GET", `/v1/emails/${id}`)).body.email.recipients[1];
  assert.equal(full.status, "deferred");
  assert.equal(full.attempts, 1);
  const waitMs = Date.parse(full.next_attempt_at) - clock.now();
  assert.ok(waitMs > 3.5 * MINUTE_MS && waitMs < 6 * MINUTE_MS, `the next try is in ${waitMs} ms`);
});

test("a deferred message is tried again on schedule and delivered once the server takes it", async () => {
  let isFull = true;
  sink.onMessage(() => (isFull ? { code: 451, text: "4.3.0 Try later" } : null));
  const id = await send(["later@recipient.example"]);
  await eventOf(id, "deferred");
  clock.move(6 * MINUTE_MS);
  await eventOf(id, "deferred", 2);
  isFull = false;
  clock.move(12 * MINUTE_MS);
  const email = await emailWithStatus(api, id, ["delivered"]);
  assert.equal(email.recipients[0].attempts, 3);
  sink.onMessage(() => null);
});

test("mail that is not delivered by its own time expires, tried once more right before that", async () => {
  sink.onMessage(() => ({ code: 451, text: "4.7.1 Greylisted" }));
  const expires_at = new Date(clock.now() + 4 * MINUTE_MS).toISOString();
  const ids = {
    late: await send(["late@recipient.example"], { expires_at }),
    passed: await send(["ok@recipient.example"], { expires_at }),
  };
  for (const id of Object.values(ids)) {
    const { recipients } = await emailWithStatus(api, id, ["deferred"]);
    assert.equal(Date.parse(expires_at) - Date.parse(recipients[0].next_attempt_at), 15_000);
  }
  sink.onRcpt((address) => (address.startsWith("late@") ? { code: 451, text: "4.7.1 Greylisted" } : null));
  sink.onMessage(() => null);
  clock.move(4 * MINUTE_MS - 14_000);
  const email = await emailWithStatus(api, ids.late, ["expired"]);
  assert.deepEqual([email.recipients[0].status, email.recipients[0].attempts], ["expired", 2]);
  assert.equal((await emailWithStatus(api, ids.passed, ["delivered"])).recipients[0].attempts, 2);
  sink.onRcpt(() => null);
});

test("mail whose end passes between two attempts says in its webhook and its timeline what its server said last", async () => {
  const start = (await api.ask("GET", "/v1/events")).body.next;
  const hook = await api.ask("POST", "/v1/webhooks", { url: "https://hooks.example/x", events: ["email.bounced"] });
  sink.onMessage(() => ({ code: 451, text: "4.7.1 Greylisted, come back" }));
  const expires_at = new Date(clock.now() + 30 * MINUTE_MS).toISOString();
  const id = await send(["asleep@recipient.example"], { expires_at });
  await eventOf(id, "deferred");
  clock.move(31 * MINUTE_MS);
  const email = await emailWithStatus(api, id, ["expired"]);
  sink.onMessage(() => null);
  assert.equal(email.recipients[0].attempts, 1);
  assert.equal(email.recipients[0].diag_message, "Greylisted, come back");
  const reported = await until("its webhook", async () => {
    const { body } = await api.ask("GET", `/v1/events?limit=100&after=${start}`);
    const all = body.events.map((event: { body: string }) => JSON.parse(event.body));
    return all.find((one: { event: string }) => one.event === "email.bounced");
  });
  const { event, bounce_type, bounce_code, diag_code, diag_message } = reported;
  assert.deepEqual(
    [event, reported.email_id, bounce_type, bounce_code, diag_code],
    ["email.bounced", id, "soft", "451", "4.7.1"],
  );
  assert.match(diag_message, /^gave up after 1 attempt over \d+ min: Greylisted, come back$/);
  const last = (await events(id)).at(-1);
  assert.deepEqual([last?.event_type, last?.smtp_code, last?.message], ["expired", "451", diag_message]);
  await api.ask("DELETE", `/v1/webhooks/${hook.body.webhook.id}`);
});

test("a failing name server never bounces; an absent domain bounces when still absent an hour later", async () => {
  dns.fail("broken.example", "servfail");
  const broken = await send(["anna@broken.example"]);
  assert.match((await eventOf(broken, "deferred"))?.message ?? "", /broken\.example/);
  const absent = await send(["anna@nowhere.example"]);
  await eventOf(absent, "deferred");
  clock.move(72 * MINUTE_MS);
  const email = await emailWithStatus(api, absent, ["bounced"], 15_000);
  assert.equal(email.recipients[0].bounce_class, "bad_domain");
  assert.ok(["deferred"].includes((await api.ask("GET", `/v1/emails/${broken}`)).body.email.status));
});

test("a message that requires TLS is not given to a server without it", async () => {
  const id = await send(["tls@recipient.example"], { require_tls: true });
  const deferred = await eventOf(id, "deferred");
  assert.match(deferred?.message ?? "", /TLS/);
  assert.ok(!sink.messages.some(({ to }) => to.includes("tls@recipient.example")));
});

test("when the answer to the final dot is lost the timeline says ambiguous, and the second copy has the same id", async () => {
  const seen: string[] = [];
  const dropper = await dropAfterDot((message) => seen.push(/^Message-ID: <([^>]+)>/im.exec(message)?.[1] ?? ""));
  dns.set("drop.example", "MX", [{ exchange: "mx.drop.example", preference: 1 }]);
  dns.set("mx.drop.example", "A", ["127.0.0.2"]);
  dropper.listen(sink.port, "127.0.0.2");
  const id = await send(["anna@drop.example"]);
  await eventOf(id, "ambiguous");
  clock.move(7 * MINUTE_MS);
  await eventOf(id, "ambiguous", 2);
  assert.equal(seen.length, 2);
  assert.equal(new Set(seen).size, 1);
  await new Promise((resolve) => dropper.close(resolve));
});

/** A server that takes the message and hangs up instead of answering. */
async function dropAfterDot(keep: (message: string) => void): Promise<Server> {
  return createServer((socket) => {
    let text = "";
    let inData = false;
    socket.on("error", () => undefined);
    socket.write("220 drop ESMTP\r\n");
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      for (let end = text.indexOf("\r\n"); !inData && end !== -1; end = text.indexOf("\r\n")) {
        const verb = text.slice(0, 4).toUpperCase();
        text = text.slice(end + 2);
        inData = verb === "DATA";
        socket.write(inData ? "354 go\r\n" : verb === "EHLO" ? "250 drop\r\n" : "250 ok\r\n");
      }
      if (!inData || !text.endsWith("\r\n.\r\n")) return;
      keep(text);
      socket.destroy();
    });
  });
}
