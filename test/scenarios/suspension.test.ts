// What a suspended destination means for mail that is accepted meanwhile, over real SMTP and with the clock moved instead of
// waiting.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MINUTE_MS = 60_000;
const LISTED = { code: 550, text: "5.7.1 Service unavailable; client host [127.0.0.1] blocked using zen.spamhaus.org" };

let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;
let clock: MovedClock;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  clock = runningClock(new Date().toISOString());
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  await sink.stop();
  await dns.stop();
});

async function send(domain: string, change: object = {}): Promise<string> {
  const mail = { from: "a@sender.example", to: [`anna@${domain}`], subject: "x", text_body: "x", ...change };
  const { status, body } = await api.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

/** Three refusals in a row for our address suspend the destination for a quarter of an hour. */
async function suspended(domain: string): Promise<void> {
  receiveAt(dns, domain);
  sink.onMessage(() => LISTED);
  for (let n = 0; n < 3; n += 1) await emailWithStatus(api, await send(domain), ["bounced"], 15_000);
  await until("its lane sleeps", async () => (await lanesOf(domain)).every(({ asleep }) => asleep));
  sink.onMessage(() => null);
}

function lanesOf(domain: string) {
  return api.world.db.query<{ asleep: boolean; reason: string; waiting: number }>(
    `select coalesce(paused_until > $2, false) as asleep, reason,
            (select count(*) from delivery where lane_id = l.id and owner is null) as waiting
       from lane l where domain = $1 order by class`,
    [domain, new Date(clock.now())],
  );
}

const arrivals = (domain: string) => sink.messages.filter(({ to }) => to[0]?.endsWith(`@${domain}`)).length;

describe("a suspended destination", () => {
  it("gets no mail that is accepted meanwhile, until its time has come", async () => {
    await suspended("listed.example");
    const id = await send("listed.example");
    const [lane] = await lanesOf("listed.example");
    assert.deepEqual([lane?.asleep, lane?.waiting], [true, 1], "it was not handed over");
    assert.match(lane?.reason ?? "", /spamhaus/);
    clock.move(14 * MINUTE_MS);
    assert.equal(arrivals("listed.example"), 0);
    clock.move(2 * MINUTE_MS);
    const { recipients } = await emailWithStatus(api, id, ["delivered"], 15_000);
    assert.equal(recipients[0].attempts, 1);
  });

  it("gets none by a lane it did not know of either", async () => {
    await suspended("other.example");
    const id = await send("other.example", { unsubscribe: {} });
    await until("both lanes sleep", async () => {
      const lanes = await lanesOf("other.example");
      return lanes.length === 2 && lanes.every(({ asleep }) => asleep) && lanes[1]?.waiting === 1;
    });
    assert.equal(arrivals("other.example"), 0);
    clock.move(16 * MINUTE_MS);
    await emailWithStatus(api, id, ["delivered"], 15_000);
  });
});
