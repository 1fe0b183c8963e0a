// Bounces at odd moments: before the outcome is recorded, after the final answer was lost, for mail that never left, weeks
// after it was accepted, and for an organization that may not send any more.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeToken } from "../../src/mail/bounce-token.ts";
import { TOKEN_CONTEXT } from "../../src/outbound/outbound.ts";
import { byClock, runningClock } from "../support/moved-clock.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { addAlias, processedMail, type Receiving, startTestReceiving, takenId } from "../support/receiving.ts";
import { type Copy, feedbackReport, postfixBounce } from "../support/returned-mail.ts";
import { type Received, type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";

const DAY_MS = 86_400_000;
const UNKNOWN = { status: "5.1.1", reply: "550 5.1.1 User unknown" };
const clock = runningClock(new Date().toISOString());
let sink: SmtpSink;
let r: Receiving;

before(async () => {
  sink = await startSmtpSink();
  r = await startTestReceiving({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) }, byClock(clock));
  receiveAt(r.dns, "there.example");
});
after(async () => {
  await r.close();
  await sink.stop();
});

async function send(to: string, more: object = {}, key = r.api.live_key): Promise<string> {
  const body = { from: "shop@in.example", to: [to], subject: "x", text_body: "x", ...more };
  const answer = await r.api.ask("POST", "/v1/send", body, { key });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body.id;
}

async function mail(to: string, content: string): Promise<{ code: number; text: string }> {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const reply = await smtp.deliver({ from: "", to: [to], content });
  smtp.destroy();
  return reply;
}

/** Mails it and waits until it is processed; what became of it. */
async function taken(to: string, content: string): Promise<{ status: string; reason: string | null }> {
  const { code, text } = await mail(to, content);
  assert.equal(code, 250, text);
  return processedMail(r, takenId(text));
}

const token = (id: string) => makeToken(id, 0, (text) => r.api.world.seal.hash(text, TOKEN_CONTEXT));
const returnPath = (id: string) => `b+${token(id)}@bounces.postern.test`;
const copyOf = (id: string, to: string): Copy => ({
  ...{ from: "shop@in.example", to, return_path: returnPath(id) },
  bytes: Buffer.from("Subject: x\r\n\r\nx\r\n"),
});
const bounceOf = (id: string, to: string) => postfixBounce(copyOf(id, to), UNKNOWN);

async function status(id: string): Promise<string> {
  return (await r.api.ask("GET", `/v1/emails/${id}`)).body.email.status;
}

async function timeline(id: string): Promise<string[]> {
  const { body } = await r.api.ask("GET", `/v1/emails/${id}/events`);
  return body.events.map((event: { event_type: string }) => event.event_type);
}

async function isSuppressed(address: string): Promise<boolean> {
  return (await r.api.ask("GET", `/v1/suppressions/check?email=${address}`)).body.suppressed;
}

test("a server that bounces before it has answered us counts once the delivery is recorded", async () => {
  const bounced = Promise.withResolvers<{ code: number }>();
  sink.onMessage(async (message: Received) => {
    const copy = { from: "", to: message.to[0] as string, return_path: message.from, bytes: message.bytes };
    bounced.resolve(await mail(message.from, postfixBounce(copy, UNKNOWN)));
    return null;
  });
  const id = await send("hasty@there.example");
  assert.equal((await bounced.promise).code, 250);
  await emailWithStatus(r.api, id, ["bounced"]);
  assert.deepEqual(await timeline(id), ["queued", "delivered", "bounced"]);
  assert.equal(await isSuppressed("hasty@there.example"), true);
  sink.onMessage(() => null);
});

test("ten copies of a bounce at the same moment count once", async () => {
  const id = await send("ten@there.example");
  await emailWithStatus(r.api, id, ["delivered"]);
  const bounce = bounceOf(id, "ten@there.example");
  const results = await Promise.all(Array.from({ length: 10 }, () => taken(returnPath(id), bounce)));
  assert.ok(results.every(({ status }) => status === "delivered"));
  assert.deepEqual(await timeline(id), ["queued", "delivered", "bounced"]);
});

test("where the final answer was lost a bounce is that answer: the message is not sent again", async () => {
  let copies = 0;
  sink.onMessage(async () => {
    copies += 1;
    return { code: 421, text: "4.4.2 closing" };
  });
  const id = await send("lost@there.example");
  await emailWithStatus(r.api, id, ["deferred"]);
  await r.api.world.db.execute("update event set event_type = 'ambiguous' where message_id = $1", [id]);
  const before = copies;
  await taken(returnPath(id), bounceOf(id, "lost@there.example"));
  assert.equal(await status(id), "bounced");
  const rows = await r.api.world.db.query("select 1 from delivery where message_id = $1", [id]);
  assert.equal(rows.length, 0, "it left the queue");
  assert.equal(copies, before);
  sink.onMessage(() => null);
});

test("nothing is believed about mail that no server took: deferred, scheduled, canceled, or a test", async () => {
  sink.onMessage(() => ({ code: 451, text: "4.3.0 later" }));
  const deferred = await send("put-off@there.example");
  await emailWithStatus(r.api, deferred, ["deferred"]);
  sink.onMessage(() => null);
  const scheduled_at = new Date(clock.now() + DAY_MS / 24).toISOString();
  const scheduled = await send("scheduled@there.example", { scheduled_at });
  const canceled = await send("canceled@there.example", { scheduled_at });
  await r.api.ask("POST", `/v1/emails/${canceled}/cancel`);
  const simulated = await send("simulated@there.example", {}, r.api.test_key);
  for (const [id, name] of [
    [deferred, "put-off"],
    [scheduled, "scheduled"],
    [canceled, "canceled"],
    [simulated, "simulated"],
  ] as const) {
    const address = `${name}@there.example`;
    const before = [await status(id), await timeline(id)];
    await taken(returnPath(id), bounceOf(id, address));
    await taken(`f+${token(id)}@bounces.postern.test`, feedbackReport(copyOf(id, address)));
    assert.deepEqual([await status(id), await timeline(id)], before, name);
    assert.equal(await isSuppressed(address), false, name);
  }
});

test("a suspended organization sends nothing and still hears what comes back and what is for it", async () => {
  const id = await send("gone@there.example");
  await emailWithStatus(r.api, id, ["delivered"]);
  await addAlias(r, "desk");
  const setState = (state: string) =>
    r.api.world.db.execute("update organization set state = $2 where id = $1", [r.api.org_id, state]);
  await setState("suspended");
  const refused = await r.api.ask("POST", "/v1/send", {
    ...{ from: "shop@in.example", to: ["a@there.example"], subject: "x", text_body: "x" },
  });
  assert.equal(refused.status, 403);
  await taken(returnPath(id), bounceOf(id, "gone@there.example"));
  assert.equal(
    (await taken("desk@in.example", "From: a@there.example\r\nSubject: x\r\n\r\nx\r\n")).status,
    "delivered",
  );
  await setState("active");
  assert.equal(await status(id), "bounced");
});

test("a return path ages from the delivery: mail that waited for weeks can still bounce, and not for ever", async () => {
  const scheduled_at = new Date(clock.now() + 25 * DAY_MS).toISOString();
  const id = await send("weeks@there.example", { scheduled_at });
  clock.move(25 * DAY_MS + 60_000);
  await emailWithStatus(r.api, id, ["delivered"], 20_000);
  clock.move(9 * DAY_MS);
  assert.equal((await mail(returnPath(id), "From: a@there.example\r\nSubject: Re: x\r\n\r\nthanks\r\n")).code, 250);
  clock.move(2 * DAY_MS);
  assert.equal((await mail(returnPath(id), bounceOf(id, "weeks@there.example"))).code, 550);
  const complaint = feedbackReport(copyOf(id, "weeks@there.example"));
  await taken(`f+${token(id)}@bounces.postern.test`, complaint);
  assert.equal(await status(id), "complained");
});
