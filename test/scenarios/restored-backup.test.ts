// A backup that was restored holds a queue that was sent meanwhile: nothing of it leaves until the operator says so.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { ask, type Posterns, posternSettings, setUpDomain, startPostern } from "../support/postern-process.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

let dns: DnsServer;
let sink: SmtpSink;
let folder: string;
let settings: Posterns;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  receiveAt(dns, "recipient.example");
  folder = mkdtempSync(join(tmpdir(), "postern-restored-"));
  chmodSync(folder, 0o711); // run by root, the embedded database runs as an ordinary user
  settings = await posternSettings(join(folder, "data"), {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_LOG_LEVEL: "info",
  });
});

after(async () => {
  await sink?.stop();
  await dns?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function send(subject: string): Promise<string> {
  const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject, text_body: "x" };
  const { status, body } = await ask(settings, "POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}

async function statusOf(id: string): Promise<string> {
  const { body } = await ask(settings, "GET", `/v1/emails/${id}`);
  return (body.email as unknown as { status: string }).status;
}

const data = () => join(folder, "data");

test("the old queue waits, new mail is accepted, and `postern resume` sends both", { timeout: 110_000 }, async () => {
  const writing = await startPostern(settings, ["api", "mta", "clock"]);
  await setUpDomain(settings, dns, "sender.example");
  const first = await send("first");
  await until("the first is delivered", async () => (await statusOf(first)) === "delivered");
  await writing.stop();
  const accepting = await startPostern(settings, ["api"]);
  const queued = await send("in the backup");
  await accepting.stop();
  execFileSync("cp", ["-a", data(), join(folder, "backup")]); // with its owners, as backups are made

  const sending = await startPostern(settings);
  await until("what was queued leaves", async () => (await statusOf(queued)) === "delivered");
  await sending.stop();
  assert.doesNotMatch(sending.output(), /nothing is sent/, "a plain restart is no restored backup");

  rmSync(data(), { recursive: true });
  renameSync(join(folder, "backup"), data());
  const restored = await startPostern(settings);
  assert.match(restored.output(), /nothing is sent: run `postern resume`/);
  const later = await send("after it was restored");
  assert.deepEqual([await statusOf(queued), await statusOf(later)], ["queued", "queued"]);

  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "resume"], {
    env: { PATH: process.env.PATH, ...settings.env },
  });
  assert.match(stdout, /Mail leaves again/);
  await until(
    "both leave",
    async () => (await statusOf(queued)) === "delivered" && (await statusOf(later)) === "delivered",
  );
  await restored.stop();

  const again = await startPostern(settings);
  assert.doesNotMatch(again.output(), /nothing is sent/, "it was confirmed once and for all");
  await again.stop();
});
