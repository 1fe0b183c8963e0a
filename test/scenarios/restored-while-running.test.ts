// A database that is set back under a running process: its engine ends, mail is accepted and waits, and once that was
// confirmed the same process sends again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Running, startRoles } from "../../src/app.ts";
import { resumeSending } from "../../src/outbound/outbound.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;
let running: Running;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
  api = await testApi({
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_HTTP: "127.0.0.1:0",
    POSTERN_INTERNAL: "127.0.0.1:0",
  });
  await addVerifiedDomain(api, dns, "sender.example");
  running = await startRoles(api.world, ["api", "mta"]);
});

after(async () => {
  await running?.stop();
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

/** Over the process's own API, which hands mail to its engine where it may. */
async function send(subject: string): Promise<string> {
  const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject, text_body: "x" };
  const headers = { authorization: `Bearer ${api.live_key}`, "content-type": "application/json" };
  const answer = await fetch(`${running.address}/v1/send`, { method: "POST", headers, body: JSON.stringify(mail) });
  assert.equal(answer.status, 202);
  return ((await answer.json()) as { id: string }).id;
}

const paused = async () => (await api.world.db.query("select 1 from sending_guard where paused_at is not null")).length;
const nodes = async () => (await api.world.db.query("select 1 from node where 'mta' = any(roles)")).length;

test("the process ends its engine, keeps what it accepts, and sends it when that was confirmed", async () => {
  await emailWithStatus(api, await send("before"), ["delivered"]);
  await api.world.db.query("update sending_guard set beats = 0");
  await until("it has seen that the database went back", async () => (await paused()) === 1);
  await until("its engine has ended", async () => (await nodes()) === 0);
  const id = await send("meanwhile");
  const [row] = await api.world.db.query("select owner, attempts from delivery where message_id = $1", [id]);
  assert.deepEqual(row, { owner: null, attempts: 0 });
  assert.equal(sink.messages.length, 1);
  assert.equal(await resumeSending(api.world), true);
  await emailWithStatus(api, id, ["delivered"], 15_000);
  await emailWithStatus(api, await send("afterwards"), ["delivered"], 15_000);
  assert.equal(await nodes(), 1);
  assert.equal(sink.messages.length, 3);
});
