// A destination that an operator suspends: nothing leaves for it, mail to others does; resumed, its mail arrives. A retry calls a
// site that rests before its time.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dropOrdered } from "../../src/outbound/operate/drop.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { type Browser, setUp } from "../support/people.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const QUEUE = "/dashboard/api/operator/queue";
const SETTLED_MS = 30_000;
let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;
let operator: Browser;
/** How often the engine learned which destinations wait, since it was asked to look. */
let held: string[] = [];

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  for (const name of ["held.example", "other.example", "slow.example"]) receiveAt(dns, name);
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  const { query } = api.world.db;
  api.world.db.query = async (text, ...values) => {
    const rows = await query(text, ...values);
    if (text.includes("from destination_order") && text.includes("retry_at is not null"))
      held = rows.map((row) => (row as { domain: string }).domain);
    return rows as never;
  };
  await addVerifiedDomain(api, dns, "sender.example");
  operator = await setUp(api, "operator@example.net");
  await api.startMta();
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

async function send(to: string): Promise<string> {
  const request = { from: "a@sender.example", to: [to], subject: "x", text_body: "x" };
  const { status, body } = await api.ask("POST", "/v1/send", request);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

async function order(act: string, domain: string, body: unknown = undefined): Promise<void> {
  const answer = await operator.ask("POST", `${QUEUE}/${domain}/${act}`, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

const recipients = () => sink.messages.flatMap(({ to }) => to);
const isHeld = (domain: string) => until("the engine knows it", () => held.includes(domain), SETTLED_MS);

test("mail to a suspended destination waits, that to others leaves; resumed it arrives", async () => {
  await order("suspend", "held.example", { note: "moving" });
  await isHeld("held.example");
  const id = await send("anna@held.example");
  await emailWithStatus(api, await send("bert@other.example"), ["delivered"], SETTLED_MS);
  const [row] = await api.world.db.query("select owner, attempts from delivery where message_id = $1", [id]);
  assert.deepEqual([row?.owner, row?.attempts], [null, 0]);
  assert.ok(!recipients().includes("anna@held.example"));
  await order("resume", "held.example");
  await emailWithStatus(api, id, ["delivered"], SETTLED_MS);
});

test("a deferred mail is tried at once when an operator asks for it", async () => {
  sink.onRcpt((address) => (address.endsWith("slow.example") ? { code: 451, text: "4.3.0 Try later" } : null));
  const id = await send("carl@slow.example");
  await emailWithStatus(api, id, ["deferred"], SETTLED_MS);
  sink.onRcpt(() => null);
  await order("retry", "slow.example");
  await emailWithStatus(api, id, ["delivered"], SETTLED_MS);
});

test("what was dropped reaches nobody, also after the destination is resumed", async () => {
  await order("suspend", "held.example", {});
  await isHeld("held.example");
  const id = await send("dora@held.example");
  const { read_at, waiting } = (await operator.ask("GET", `${QUEUE}/held.example`)).body.destination;
  assert.equal(waiting, 1);
  await order("drop", "held.example", { accepted_before: read_at });
  // What a node has in its hands at the moment is left to the next round.
  await until("the mail is dropped", async () => {
    await dropOrdered(api.world);
    return (await api.ask("GET", `/v1/emails/${id}`)).body.email.status === "failed";
  });
  await order("resume", "held.example");
  await emailWithStatus(api, await send("emil@held.example"), ["delivered"], SETTLED_MS);
  assert.ok(!recipients().includes("dora@held.example"));
});
