// Mail that waits for its time: sent when the clock gets there, never when it was canceled, never after its own end.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { signingKeys } from "../../src/dkim/dkim.ts";
import { startOutbound } from "../../src/outbound/outbound.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { setScene } from "../support/scene.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let dns: DnsServer;
let sink: SmtpSink;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await sink?.stop();
  await dns?.stop();
});

function arrived(subject: string): string | undefined {
  const found = sink.messages.find(({ bytes }) => bytes.includes(`Subject: ${subject}\r\n`));
  return found?.bytes.toString("latin1");
}

describe("a scheduled e-mail", () => {
  let api: TestApi;
  let clock: MovedClock;

  before(async () => {
    clock = runningClock("2026-05-04T10:00:00Z");
    const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
    api = await testApi(env, byClock(clock));
    await addVerifiedDomain(api, dns, "sender.example");
    await api.startMta();
  });

  after(async () => {
    await api?.close();
  });

  const at = (ms: number): string => new Date(clock.now() + ms).toISOString();

  async function send(subject: string, change: Record<string, unknown> = {}): Promise<string> {
    const request = { from: "a@sender.example", to: ["b@recipient.example"], subject, text_body: "x", ...change };
    const { status, body } = await api.ask("POST", "/v1/send", request);
    assert.equal(status, 202, JSON.stringify(body));
    return body.id;
  }

  it("is sent when its time has come, dated so, and not before", async () => {
    const scheduled_at = at(3 * DAY_MS);
    const id = await send("in three days", { scheduled_at });
    clock.move(3 * DAY_MS - HOUR_MS);
    await emailWithStatus(api, await send("meanwhile"), ["delivered"]);
    assert.equal(arrived("in three days"), undefined);
    assert.equal((await emailWithStatus(api, id, ["scheduled"])).recipients[0].attempts, 0);
    clock.move(HOUR_MS);
    const email = await emailWithStatus(api, id, ["delivered"]);
    assert.ok(Date.parse(email.completed_at) >= Date.parse(scheduled_at));
    const date = /^Date: (.*)\r$/m.exec(arrived("in three days") as string)?.[1] as string;
    assert.equal(Date.parse(date), Math.floor(Date.parse(scheduled_at) / 1000) * 1000);
    const { events } = (await api.ask("GET", `/v1/emails/${id}/events`)).body;
    assert.deepEqual(
      events.map((event: { event_type: string }) => event.event_type),
      ["scheduled", "delivered"],
    );
  });

  it("is never sent once it was canceled, and can be canceled until it is tried", async () => {
    const id = await send("canceled", { scheduled_at: at(HOUR_MS) });
    const canceled = await api.ask("POST", `/v1/emails/${id}/cancel`);
    assert.deepEqual([canceled.status, canceled.body.email.status], [200, "canceled"]);
    assert.equal((await api.ask("POST", `/v1/emails/${id}/cancel`)).status, 409);
    const kept = await send("kept", { scheduled_at: at(HOUR_MS) });
    clock.move(HOUR_MS);
    await emailWithStatus(api, kept, ["delivered"]);
    assert.equal(arrived("canceled"), undefined);
    const late = await api.ask("POST", `/v1/emails/${kept}/cancel`);
    assert.deepEqual([late.status, late.body.code], [409, "invalid_state"]);
  });

  it("can be canceled as well while it waits for its turn behind others, and no more once it is on the wire", async () => {
    const gate = Promise.withResolvers<null>();
    const onTheWire = new Set<string>();
    sink.onMessage(({ bytes }) => {
      onTheWire.add(/^Subject: (.*)\r$/m.exec(bytes.toString("latin1"))?.[1] as string);
      return gate.promise;
    });
    const subjects = Array.from({ length: 12 }, (_, n) => `in line ${n}`);
    const ids = new Map<string, string>();
    for (const subject of subjects) ids.set(subject, await send(subject));
    const inHand = async () => {
      const ours = "select count(*)::int as count from delivery where owner is not null";
      return (await api.world.db.query<{ count: number }>(ours))[0]?.count === subjects.length;
    };
    await until("all are in the hands of the process", async () => onTheWire.size > 0 && (await inHand()));
    const cancel = (subject?: string) => api.ask("POST", `/v1/emails/${ids.get(subject ?? "")}/cancel`);
    const begun = await cancel([...onTheWire][0]);
    assert.deepEqual([begun.status, begun.body.code], [409, "invalid_state"]);
    // The last one: the sink has some five connections at most.
    const waiting = subjects.at(-1) as string;
    const canceled = await cancel(waiting);
    assert.deepEqual([canceled.status, canceled.body.email?.status], [200, "canceled"]);
    sink.onMessage(() => null);
    gate.resolve(null);
    for (const subject of subjects.slice(0, -1)) await emailWithStatus(api, ids.get(subject) as string, ["delivered"]);
    assert.equal(arrived(waiting), undefined);
  });

  it("keeps its 72 hours of trying from its own time on", async () => {
    sink.onMessage(() => ({ code: 451, text: "4.3.0 Try later" }));
    const id = await send("tried", { scheduled_at: at(20 * DAY_MS) });
    clock.move(20 * DAY_MS);
    await emailWithStatus(api, id, ["deferred"]);
    sink.onMessage(() => null);
    clock.move(10 * 60_000);
    const email = await emailWithStatus(api, id, ["delivered"]);
    assert.equal(email.recipients[0].attempts, 2);
  });

  it("expires instead of arriving after its own end, even when nobody was there to send it", async () => {
    const other = await testApi(
      { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) },
      byClock(clock),
    );
    try {
      await addVerifiedDomain(other, dns, "late.example");
      const request = {
        from: "a@late.example",
        to: ["b@recipient.example"],
        subject: "too late",
        text_body: "x",
        scheduled_at: at(HOUR_MS),
        expires_at: at(2 * HOUR_MS),
      };
      const sent = await other.ask("POST", "/v1/send", request);
      assert.equal(sent.body.status, "scheduled");
      clock.move(3 * HOUR_MS);
      await other.startMta();
      const email = await emailWithStatus(other, sent.body.id, ["expired"]);
      assert.equal(email.recipients[0].status, "expired");
      assert.equal(arrived("too late"), undefined);
    } finally {
      await other.close();
    }
  });

  it("is sent by another process than the one that accepted it", async () => {
    const other = await testApi(
      { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) },
      byClock(clock),
    );
    try {
      await addVerifiedDomain(other, dns, "moves.example");
      const request = { from: "a@moves.example", to: ["b@recipient.example"], subject: "moved on", text_body: "x" };
      const sent = await other.ask("POST", "/v1/send", { ...request, scheduled_at: at(HOUR_MS) });
      const second = await startOutbound(other.world, { signingKeys: signingKeys(other.world), roles: ["mta"] });
      clock.move(HOUR_MS);
      await emailWithStatus(other, sent.body.id, ["delivered"]);
      await second.stop();
      assert.notEqual(arrived("moved on"), undefined);
    } finally {
      await other.close();
    }
  });
});

describe("a jump of the clock, in a process of its own", () => {
  it("sends what is due", async (t) => {
    const s = await setScene();
    try {
      await s.start(["api", "mta"]);
      receiveAt(s.dns, "recipient.example");
      await addVerifiedDomain(s, s.dns, "jump.example");
      const scheduled_at = new Date(Date.now() + 2 * DAY_MS).toISOString();
      const message = { from: "a@jump.example", to: ["b@recipient.example"], text_body: "x" };
      const emails = Array.from({ length: 100 }, (_, n) => ({ ...message, subject: `jump ${n}`, scheduled_at }));
      const sent = await s.ask("POST", "/v1/send/batch", emails);
      assert.equal(sent.body.accepted, 100, JSON.stringify(sent.body));
      const count = () => s.sink.messages.filter(({ bytes }) => bytes.includes("Subject: jump ")).length;
      assert.equal(count(), 0);
      const jumpedAt = performance.now();
      await s.moveClock(2 * DAY_MS + 1_000);
      await until("all 100 were sent", () => count() >= 100);
      t.diagnostic(`it took ${Math.round(performance.now() - jumpedAt)} ms; two seconds are wanted`);
      assert.equal(count(), 100);
    } finally {
      await s.close();
    }
  });
});
