// SIGTERM to a process of all roles (reliability rule 16): it ends in good order whatever its clients have left half done,
// what is on the wire is finished, and no lease is kept.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "pg";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import {
  ask,
  type PosternProcess,
  type Posterns,
  posternSettings,
  setUpDomain,
  startPostern,
} from "../support/postern-process.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";

let dns: DnsServer;
let sink: SmtpSink;
let database: TestDatabase;
let admin: Client;
let dir: string;
let settings: Posterns;
let postern: PosternProcess;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "postern-stopping-"));
  chmodSync(dir, 0o711);
  dns = await startDnsServer();
  sink = await startSmtpSink();
  database = await testDatabase();
  admin = new Client({ connectionString: database.admin_url });
  await admin.connect();
  settings = await posternSettings(dir, {
    DATABASE_URL: database.url,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
  });
});
after(async () => {
  postern?.child.kill("SIGKILL");
  await admin?.end();
  await sink?.stop();
  await dns?.stop();
  await database?.drop();
  rmSync(dir, { recursive: true, force: true });
});

/** A client that sends this and then nothing. */
async function silentAfter(text: string): Promise<Socket> {
  const { hostname, port } = new URL(settings.base_url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  await new Promise<void>((done) => socket.once("connect", () => done()));
  await new Promise<void>((done) => (text === "" ? done() : socket.write(text, () => done())));
  return socket;
}

test("it ends in good order although clients have sent half a request, and finishes what is on the wire", async () => {
  postern = await startPostern(settings);
  const domain = await setUpDomain(settings, dns, "shop.example");
  receiveAt(dns, "customer.example");
  const answering = Promise.withResolvers<null>();
  const held = Promise.withResolvers<void>();
  sink.onMessage(() => {
    held.resolve();
    return answering.promise;
  });
  const message = { from: "shop@shop.example", to: ["anna@customer.example"], subject: "hello", text_body: "hello" };
  const sent = await ask(settings, "POST", "/v1/send", message);
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  await held.promise;

  const head = `POST /v1/send HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${settings.live_key}\r\n`;
  const clients = await Promise.all([
    silentAfter(""),
    silentAfter("GET /v1/domains HTTP/1.1\r\nhos"),
    silentAfter(`${head}content-type: application/json\r\ncontent-length: 500\r\n\r\n{"from": "shop@`),
  ]);
  // The one with a body is being read once a later request on another connection was answered.
  assert.equal((await ask(settings, "GET", `/v1/domains/${domain}`)).status, 200);
  postern.child.kill("SIGTERM");
  const ready = `http://${settings.env.POSTERN_INTERNAL}/readyz`;
  await until("whoever asks is told that it stops", async () => (await fetch(ready)).status === 503);
  answering.resolve(null);

  assert.equal(await postern.exited, 0, postern.output());
  const leases = await admin.query("select count(*)::int as kept from lease where node_id is not null");
  assert.deepEqual(leases.rows, [{ kept: 0 }]);
  assert.deepEqual((await admin.query("select * from delivery")).rows, []);
  assert.deepEqual((await admin.query("select status from recipient")).rows, [{ status: "delivered" }]);
  for (const client of clients) client.destroy();
});
