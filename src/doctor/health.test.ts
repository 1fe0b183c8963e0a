// Health as operators see it: what runs, a look that is made once for all who ask, and kept.
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { type Browser, setUp } from "../../test/support/people.ts";
import { ownVersion } from "../platform/own-version.ts";
import { type Check, ok, warning } from "./check.ts";
import { looker, readHealth } from "./health.ts";

const HEALTH = "/dashboard/api/operator/health";
let api: TestApi;
let dns: DnsServer;
let operator: Browser;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  operator = await setUp(api, "operator@example.net");
});
after(async () => {
  await api?.close();
  await dns?.stop();
});

test("it says what runs, and before anybody looked that nobody did", async () => {
  await api.startMta();
  const { status, body } = await operator.ask("GET", HEALTH);
  assert.equal(status, 200, JSON.stringify(body));
  const { versions, disk, database, looks, nodes } = body.health;
  assert.deepEqual([versions.postern, versions.node], [ownVersion(), process.versions.node]);
  assert.match(versions.database, /^\d+/);
  assert.ok(disk.free_bytes > 0 && disk.bytes > disk.free_bytes && database.bytes > 0);
  assert.deepEqual(looks, []);
  const processes = nodes.map(({ machine, pid }: { machine: string; pid: number }) => [machine, pid]);
  assert.deepEqual(processes, [[hostname(), process.pid]]);
});

test("an operator has the doctor look at this machine; what it finds is kept, and the audit log has who asked", async () => {
  const { status, body } = await operator.ask("POST", `${HEALTH}/look`);
  assert.equal(status, 200, JSON.stringify(body));
  const [look] = body.health.looks;
  assert.equal(look.asked_by, "operator@example.net");
  const names = look.checks.map(({ name }: Check) => name);
  for (const name of ["node", "data folder", "database"]) assert.ok(names.includes(name), `${name} in ${names}`);
  const kept = (await operator.ask("GET", HEALTH)).body.health.looks;
  assert.deepEqual(kept, body.health.looks);
  const { entries } = (await api.ask("GET", "/v1/audit-log?operation=lookAtHealth")).body;
  assert.equal(entries[0].name, "operator@example.net");
});

test("who asks while a look is under way gets that one, and the next look replaces it", async () => {
  let looks = 0;
  const found = Promise.withResolvers<Check[]>();
  const look = looker(api.world, () => {
    looks += 1;
    return looks === 1 ? found.promise : Promise.resolve([ok("node", "It is new.")]);
  });
  const both = [look("a@example.net"), look("b@example.net")];
  found.resolve([warning("disk", "It is nearly full.", "Make room.")]);
  await Promise.all(both);
  assert.equal(looks, 1);
  assert.equal((await readHealth(api.world)).looks[0]?.checks[0]?.remedy, "Make room.");
  await look("b@example.net");
  const after = (await readHealth(api.world)).looks;
  assert.deepEqual([after.length, after[0]?.asked_by, after[0]?.checks[0]?.says], [1, "b@example.net", "It is new."]);
});
