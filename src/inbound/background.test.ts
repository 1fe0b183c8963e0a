// Received mail of an organization that keeps it for a shorter time than the installation: gone after that time, rows and
// files, and nobody else's with it.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../../test/support/moved-clock.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { changeSetting } from "../accounts/accounts.ts";
import { sweepOrganizations } from "./background.ts";

const DAY_MS = 86_400_000;
const LARGE = Buffer.alloc(300_000, "x").toString("base64");

let api: TestApi;
let dns: DnsServer;
let clock: MovedClock;

before(async () => {
  dns = await startDnsServer();
  clock = runningClock(new Date().toISOString());
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

/** Receives a mail with an attachment that is kept as a file; its id. */
async function receive(key: string, domain: string): Promise<string> {
  const lines = ["From: a@there.example", `To: desk@${domain}`, "Subject: x", "MIME-Version: 1.0"];
  const type = 'Content-Type: application/octet-stream; name="x.bin"';
  const raw = [...lines, type, "Content-Transfer-Encoding: base64", "", domain, LARGE.replace(/.{76}/g, "$&\r\n"), ""];
  const mail = { to: `desk@${domain}`, raw: raw.join("\r\n") };
  const { status, body } = await api.ask("POST", "/v1/inbound-emails/simulate", mail, { key });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.email.status, "delivered");
  return body.email.id;
}

const statusOf = async (id: string, key: string) =>
  (await api.ask("GET", `/v1/inbound-emails/${id}`, undefined, { key })).status;
const files = () =>
  readdirSync(join(api.config.data_dir, "blobs"), { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  ).length;

test("mail goes with its files after its organization's days, not before, and not that of others", async () => {
  const other = await api.organization();
  const keys: [key: string, domain: string][] = [
    [api.live_key, "short.example"],
    [other.live_key, "long.example"],
  ];
  const ids: string[] = [];
  for (const [key, domain] of keys) {
    await addVerifiedDomain(api, dns, domain, { key, type: "inbound" });
    const { body } = await api.ask("GET", `/v1/domains/${domain}`, undefined, { key });
    const hook = { url: "https://hooks.example/in", domain_id: body.id };
    assert.equal((await api.ask("POST", "/v1/webhooks", hook, { key })).status, 201);
    await api.ask("POST", "/v1/aliases", { domain_id: body.id, local_part: "desk" }, { key });
    ids.push(await receive(key, domain));
  }
  const [short, long] = ids as [string, string];
  const kept = files();
  assert.ok(kept >= 2, "both mails have files");
  await changeSetting(api.world, api.org_id, "inbound_retention_days", "7");

  clock.move(7 * DAY_MS - 60_000);
  await sweepOrganizations(api.world);
  assert.equal(await statusOf(short, api.live_key), 200);

  clock.move(120_000);
  const bodies = async () =>
    (await api.world.db.query<{ org_id: string }>("select org_id from webhook_event order by org_id")).map(
      ({ org_id }) => org_id,
    );
  assert.deepEqual(await bodies(), [api.org_id, other.org_id].sort());
  await sweepOrganizations(api.world);
  assert.deepEqual(await bodies(), [other.org_id], "what its event says goes with it");
  assert.deepEqual([await statusOf(short, api.live_key), await statusOf(long, other.live_key)], [404, 200]);
  assert.ok(files() < kept && files() > 0);
});

test("a setting is one that there is, of an organization that there is, and can be taken back", async () => {
  const change = (name: string, value: string, id: string | null = null) => changeSetting(api.world, id, name, value);
  await assert.rejects(change("retention", "7"), /there is no setting 'retention'/);
  for (const value of ["0", "-1", "1.5", "36501", "soon", ""]) {
    await assert.rejects(change("inbound_retention_days", value), /whole days from 1 to 36500/);
  }
  await assert.rejects(change("warming_auto_start", "yes"), /true or false/);
  await assert.rejects(change("inbound_retention_days", "7", api.world.random.uuid()), /no such organization/);
  const settings = async () =>
    (await api.world.db.query("select settings from organization where id = $1", [api.org_id]))[0];
  await change("warming_auto_start", "false");
  await change("inbound_retention_days", "30");
  assert.deepEqual(await settings(), { settings: { warming_auto_start: false, inbound_retention_days: 30 } });
  await change("inbound_retention_days", "default");
  assert.deepEqual(await settings(), { settings: { warming_auto_start: false } });
});
