// Warming and statistics from real deliveries: two weeks of mail to a real SMTP server with a moved clock, then a day on
// which the addresses are wrong.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { warmingPorts } from "../../src/ports.ts";
import { lookAtDue } from "../../src/warming/background.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;
const clock = runningClock("2026-11-02T09:00:00.000Z");

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  await api.startMta();
  receiveAt(dns, "customer.example");
  receiveAt(dns, "workspace.example", "aspmx.l.google.com");
});
after(async () => {
  await api.close();
  await sink.stop();
  await dns.stop();
});

const get = async (path: string) => (await api.ask("GET", `/v1/domains/shop.example/${path}`)).body;
const send = (to: string[]) =>
  api.ask("POST", "/v1/send", { from: "shop@shop.example", to, subject: "s", text_body: "t" });
const look = () => lookAtDue(api.world, warmingPorts(api.world));

test("two weeks of delivered mail end phase_1, a day of wrong addresses pauses phase_2", async () => {
  await addVerifiedDomain(api, dns, "shop.example", { warm: false });
  for (let day = 1; day <= 14; day += 1) {
    const { body, status } = await send([`anna${day}@customer.example`, `ben${day}@workspace.example`]);
    assert.equal(status, 202, JSON.stringify(body));
    await emailWithStatus(api, body.id, ["delivered"]);
    assert.deepEqual([(await get("warming")).phase, (await get("warming")).today_sent], ["phase_1", 2]);
    clock.nextDay(60_000);
    await look();
  }
  const { phase, delivery_rate, current_limits } = await get("warming");
  assert.deepEqual([phase, delivery_rate, current_limits.daily_limit], ["phase_2", 1, 2_000]);
  assert.equal((await get("warming/history")).history[0].decision, "advanced");

  sink.onRcpt((address) => (address.startsWith("wrong") ? { code: 550, text: "5.1.1 no such user here" } : null));
  for (let minute = 0; minute < 3; minute += 1) {
    const wrong = Array.from({ length: 8 }, (_unused, n) => `wrong${minute}-${n}@workspace.example`);
    const { body, status } = await send(wrong);
    assert.equal(status, 202, JSON.stringify(body));
    await emailWithStatus(api, body.id, ["bounced"]);
    clock.move(60_000);
  }
  clock.move(5 * 60_000);
  await look();
  const { paused, paused_reason, bounce_rate } = await get("warming");
  assert.equal(paused, true);
  assert.match(paused_reason, /hard bounces are 85\.71 % of 28 recipients/);
  assert.equal(bounce_rate, 0.8571);
  const refused = await send(["anna@customer.example"]);
  assert.deepEqual([refused.status, refused.body.limit, refused.body.warming_phase], [429, 0, "phase_2"]);

  const { metrics } = await get("stats?days=90");
  assert.deepEqual(
    [metrics.total_sent, metrics.total_delivered, metrics.total_bounced, metrics.total_hard_bounce],
    [52, 28, 24, 24],
  );
  const { isps } = await get("stats/isp?days=90");
  assert.deepEqual(
    isps.map((row: { isp: string; total_sent: number; total_delivered: number }) => [
      row.isp,
      row.total_sent,
      row.total_delivered,
    ]),
    [
      ["google", 38, 14],
      ["other", 14, 14],
    ],
    "by the MX that answered, not by the recipient's domain",
  );
  assert.deepEqual(isps[0].top_bounce_reasons, [{ reason: "invalid_recipient", code: "5.1.1", count: 24 }]);
});
