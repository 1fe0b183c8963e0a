// Domains over time, with a moved clock and a real name server: the schedule of checks, loss and return of records,
// failure, and several organizations that want the same domain.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { until } from "../../test/support/until.ts";
import { addVerifiedDomain, publish } from "../../test/support/verified-domain.ts";
import { fixedClock } from "../platform/clock.ts";
import type { Db } from "../platform/database/db.ts";
import { domainPorts } from "../ports.ts";
import { runDueChecks, startDomainChecks } from "./background.ts";
import { findReceiver, findSender } from "./domains.ts";
import type { DnsRecord } from "./types.ts";

let dns: DnsServer;
let api: TestApi;
let ports: ReturnType<typeof domainPorts>;
const clock = fixedClock(Date.parse("2026-11-05T10:00:00.000Z"));

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_DNS_TIMEOUT_MS: "2000" }, (world) => ({
    ...world,
    clock,
  }));
  ports = domainPorts(api.world);
});
after(async () => {
  await api.close();
  await dns.stop();
});
beforeEach(async () => {
  dns.clear();
  await api.world.db.execute("delete from domain");
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const get = async (name: string, key = api.live_key) =>
  (await api.ask("GET", `/v1/domains/${name}`, undefined, { key })).body;
const recordsOf = async (name: string, key = api.live_key): Promise<DnsRecord[]> =>
  (await api.ask("GET", `/v1/domains/${name}/dns`, undefined, { key })).body.records;
const verify = (name: string, key = api.live_key) => api.ask("POST", `/v1/domains/${name}/verify`, undefined, { key });
const add = (domain: string, type: string, key = api.live_key) =>
  api.ask("POST", "/v1/domains", { domain, type }, { key });
const sender = (name: string) => findSender(api.world)(api.org_id, name);
const runDue = () => runDueChecks(api.world, ports);
const pass = async (ms: number) => {
  clock.advance(ms);
  return runDue();
};

test("a domain is looked at every 5 minutes for 2 hours, hourly for 3 days, then daily", async () => {
  await add("schedule.example.com", "inbound");
  const created = clock.now();
  const waits: number[] = [];
  let last = created;
  while (waits.filter((wait) => wait === DAY).length < 3) {
    const [due] = await api.world.db.query<{ next_check_at: Date }>("select next_check_at from domain");
    const next = due?.next_check_at.getTime() ?? 0;
    waits.push(next - last);
    clock.advance(next - clock.now() - 1);
    assert.equal(await runDue(), 0, "not a millisecond early");
    clock.advance(1);
    assert.equal(await runDue(), 1);
    last = next;
  }
  const count = (ms: number) => waits.filter((wait) => wait === ms).length;
  assert.deepEqual([count(5 * MINUTE), count(HOUR), count(DAY)], [24, 72, 3]);
  assert.deepEqual(
    waits,
    waits.toSorted((a, b) => a - b),
  );
});

test("a scheduled check verifies a domain by itself", async () => {
  await add("auto.example.com", "outbound");
  publish(dns, await recordsOf("auto.example.com"));
  assert.equal(await pass(5 * MINUTE), 1);
  const record = await get("auto.example.com");
  assert.deepEqual([record.status, record.verified_at], ["verified", new Date(clock.now()).toISOString()]);
  assert.equal((await sender("auto.example.com"))?.ready, true);
});

test("a domain not verified for 14 days has failed, and a good check verifies it all the same", async () => {
  await add("late.example.com", "inbound");
  await pass(14 * DAY - 1);
  assert.equal((await get("late.example.com")).status, "pending");
  await pass(DAY);
  assert.equal((await get("late.example.com")).status, "failed");
  publish(dns, await recordsOf("late.example.com"));
  assert.equal((await verify("late.example.com")).body.status, "verified");
});

test("whatever a record holds, it is looked at, and a hint may quote it", async () => {
  const domain = "odd.example.com";
  await addVerifiedDomain(api, dns, domain);
  const records = await recordsOf(domain);
  const [dkim] = records.filter(({ purpose }) => purpose === "dkim");
  const odd: [name: string, value: string][] = [
    [`_dmarc.${domain}`, "v=DMARC1; p=no\0ne"],
    [`_dmarc.${domain}`, `v=DMARC1; p=${"n".repeat(39)}\u{1f600}`],
    [`_dmarc.${domain}`, "v=DMARC1; p=none; rua=mailto:a\0b@c.example"],
    [dkim?.name ?? "", `${dkim?.value}; s=\0`],
    [domain, "v=spf1 include:a\0b.example -all"],
  ];
  for (const [name, value] of odd) {
    publish(dns, records);
    dns.set(name, "TXT", [value]);
    const seen = await verify(domain);
    assert.equal(seen.status, 200, JSON.stringify([value, seen.body]));
    const record = seen.body.records.find((one: DnsRecord) => one.name === name && one.type === "TXT");
    assert.deepEqual([record.status, /\ufffd/.test(record.hint)], ["mismatch", true], JSON.stringify(record));
  }
});

test("a record gone on one look changes nothing but its own flag", async () => {
  const domain = "slip.example.com";
  await addVerifiedDomain(api, dns, domain);
  const records = await recordsOf(domain);
  dns.remove(domain, "TXT");
  const seen = (await verify(domain)).body;
  assert.deepEqual([seen.status, seen.verified, seen.spf_verified], ["verified", true, false]);
  assert.equal((await sender(domain))?.ready, true);
  clock.advance(9 * MINUTE + 59_000);
  assert.equal((await verify(domain)).body.status, "verified", "a second look, but too soon");
  publish(dns, records);
  assert.equal((await verify(domain)).body.spf_verified, true);
  dns.remove(domain, "TXT");
  clock.advance(HOUR);
  assert.equal((await verify(domain)).body.status, "verified", "the count of looks began again");
});

for (const [purpose, type] of [
  ["ownership", "outbound"],
  ["spf", "outbound"],
  ["dkim", "outbound"],
  ["mx", "both"],
] as const) {
  test(`${purpose} gone on two looks 10 minutes apart degrades a domain; it sends 72 hours more, and returns`, async () => {
    const domain = `${purpose}.degrade.example.com`;
    const { verified_at } = await addVerifiedDomain(api, dns, domain, { type });
    clock.advance(30 * DAY);
    await verify(domain);
    const records = await recordsOf(domain);
    const lost = records.find((record) => record.purpose === purpose);
    assert.ok(lost);
    dns.remove(lost.name, lost.type);
    await pass(DAY);
    assert.equal((await get(domain)).status, "verified");
    await pass(5 * MINUTE);
    assert.equal((await get(domain)).status, "verified", "5 minutes apart");
    await pass(5 * MINUTE);
    const degraded = await get(domain);
    assert.deepEqual([degraded.status, degraded.verified, degraded[`${purpose}_verified`]], ["degraded", true, false]);
    assert.equal((await sender(domain))?.ready, true);
    await pass(72 * HOUR - 1);
    assert.equal((await sender(domain))?.ready, true);
    clock.advance(1);
    const late = await sender(domain);
    assert.deepEqual([late?.ready, late?.status], [false, "degraded"]);
    assert.match(late?.not_ready_reason ?? "", /^the domain .* lost .* record and its 72 hours of grace are over$/);
    assert.deepEqual([(await get(domain)).verified, (await get(domain)).status], [false, "degraded"]);
    publish(dns, records);
    const back = (await verify(domain)).body;
    assert.deepEqual([back.status, back.verified, back.verified_at], ["verified", true, verified_at]);
    assert.equal((await sender(domain))?.ready, true);
  });
}

test("a degraded domain fails after 14 days", async () => {
  await addVerifiedDomain(api, dns, "forgotten.example.com", { type: "inbound" });
  dns.clear();
  await verify("forgotten.example.com");
  await pass(10 * MINUTE);
  assert.equal((await get("forgotten.example.com")).status, "degraded");
  await pass(14 * DAY);
  assert.equal((await get("forgotten.example.com")).status, "failed");
});

test("a recommended record that goes does not degrade, but mail takes our return path again", async () => {
  const domain = "recommended.example.com";
  await addVerifiedDomain(api, dns, domain);
  assert.equal((await sender(domain))?.return_path_host, `pt-bounces.${domain}`);
  dns.remove(`pt-bounces.${domain}`);
  dns.remove(`_dmarc.${domain}`);
  await verify(domain);
  await pass(HOUR);
  const record = await get(domain);
  assert.deepEqual([record.status, record.return_path_verified, record.dmarc_verified], ["verified", false, false]);
  assert.equal((await sender(domain))?.return_path_host, api.config.bounce_host);
});

for (const fault of ["servfail", "refused"] as const) {
  test(`name servers that answer ${fault} for a month degrade nothing`, async () => {
    const domain = `${fault}.example.com`;
    await addVerifiedDomain(api, dns, domain, { type: "both" });
    for (const { name } of await recordsOf(domain)) dns.fail(name, fault);
    for (let day = 0; day < 30; day += 1) await pass(DAY);
    const record = await get(domain);
    assert.deepEqual([record.status, record.return_path_verified, record.dmarc_verified], ["verified", true, true]);
    assert.deepEqual(new Set((await recordsOf(domain)).map((shown) => shown.status)), new Set(["error"]));
    assert.equal((await sender(domain))?.ready, true);
  });
}

test("what could not be asked for is asked again within the hour, not on the next day", async () => {
  const domain = "soon.example.com";
  await addVerifiedDomain(api, dns, domain, { type: "inbound" });
  await pass(10 * DAY);
  assert.equal(await pass(HOUR), 0);
  dns.fail(`_postern.${domain}`, "servfail");
  await verify(domain);
  assert.equal(await pass(HOUR), 1);
});

test("a loss between two answers that could not be had still needs two looks that saw it", async () => {
  const domain = "mixed.example.com";
  await addVerifiedDomain(api, dns, domain, { type: "inbound" });
  dns.remove(domain, "MX");
  await verify(domain);
  dns.fail(domain, "servfail");
  await pass(HOUR);
  assert.equal((await get(domain)).status, "verified");
  dns.heal(domain);
  await pass(HOUR);
  assert.equal((await get(domain)).status, "degraded");
});

test("only one of several organizations can verify a domain, also at the same moment", async () => {
  const domain = "contested.example.com";
  const others = await Promise.all([1, 2, 3].map(() => api.organization()));
  const keys = [api.live_key, ...others.map((other) => other.live_key)];
  const tokens: string[] = [];
  for (const key of keys) {
    assert.equal((await add(domain, "inbound", key)).status, 201);
    const records = await recordsOf(domain, key);
    tokens.push(...records.filter((record) => record.purpose === "ownership").map((record) => record.value));
  }
  dns.set(`_postern.${domain}`, "TXT", tokens);
  dns.set(domain, "MX", [{ exchange: api.config.mx_host, preference: 10 }]);

  const answers = await Promise.all(keys.map((key) => verify(domain, key)));
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 409, 409, 409]);
  const winner = answers.findIndex((answer) => answer.status === 200);
  const loser = answers.find((answer) => answer.status === 409);
  assert.equal(loser?.body.code, "already_exists");
  assert.match(loser?.body.error, /is verified by another organization/);
  const statuses = await Promise.all(keys.map(async (key) => (await get(domain, key)).status));
  assert.deepEqual(
    statuses,
    keys.map((_, index) => (index === winner ? "verified" : "pending")),
  );
  const held = (await findReceiver(api.world)(domain))?.org_id;
  assert.equal(held, [api.org_id, ...others.map((other) => other.org_id)][winner]);

  await pass(5 * MINUTE);
  const still = await recordsOf(domain, keys[(winner + 1) % 4]);
  assert.match(still.find((record) => record.purpose === "ownership")?.hint ?? "", /Another organization has verified/);

  const winnerKey = keys[winner] as string;
  assert.equal((await api.ask("DELETE", `/v1/domains/${domain}`, undefined, { key: winnerKey })).status, 200);
  assert.equal((await verify(domain, keys[(winner + 1) % 4])).body.status, "verified");
});

test("a domain whose ownership record is gone for 72 hours of degradation is free for another organization", async () => {
  const domain = "sold.example.com";
  const buyer = await api.organization();
  await addVerifiedDomain(api, dns, domain, { type: "inbound" });
  await add(domain, "inbound", buyer.live_key);
  publish(dns, await recordsOf(domain, buyer.live_key));
  assert.equal((await verify(domain, buyer.live_key)).status, 409);
  await pass(5 * MINUTE);
  await pass(10 * MINUTE);
  assert.equal((await get(domain)).status, "degraded");
  await pass(71 * HOUR);
  assert.equal((await verify(domain, buyer.live_key)).status, 409);
  await pass(2 * HOUR);
  const bought = await verify(domain, buyer.live_key);
  assert.deepEqual([bought.status, bought.body.status], [200, "verified"]);
  assert.equal((await verify(domain)).status, 409, "the seller cannot have it back");
  assert.equal((await findReceiver(api.world)(domain))?.org_id, buyer.org_id);
});

test("the parent's owner does not own its subdomains: another organization may verify one", async () => {
  const other = await api.organization();
  await addVerifiedDomain(api, dns, "parent.example.com", { type: "inbound" });
  await addVerifiedDomain(api, dns, "child.parent.example.com", { type: "inbound", key: other.live_key });
});

test("why a domain may not send is said exactly", async () => {
  const reason = async (name: string) => (await sender(name))?.not_ready_reason;
  assert.equal(await sender("nobody.example.com"), undefined);
  await add("r.example.com", "inbound");
  assert.equal(
    await reason("r.example.com"),
    "the domain r.example.com is of type inbound: set its type to outbound or both to send",
  );
  await api.ask("PUT", "/v1/domains/r.example.com", { type: "outbound" });
  const path = "see GET /v1/domains/r.example.com/dns";
  assert.equal(
    await reason("r.example.com"),
    `the domain r.example.com is not verified: DNS does not show the ownership record, the SPF record and a DKIM record yet (${path})`,
  );
  const records = await recordsOf("r.example.com");
  publish(
    dns,
    records.filter((record) => record.purpose !== "spf"),
  );
  await verify("r.example.com");
  assert.equal(
    await reason("r.example.com"),
    `the domain r.example.com is not verified: DNS does not show the SPF record yet (${path})`,
  );
  publish(dns, records);
  await verify("r.example.com");
  assert.equal(await reason("r.example.com"), null);
  await api.ask("PUT", "/v1/domains/r.example.com", { active: false });
  assert.equal(await reason("r.example.com"), "the domain r.example.com is switched off (active is false)");
  await api.ask("PUT", "/v1/domains/r.example.com", { active: true });
  await api.ask("DELETE", "/v1/domains/r.example.com/dkim/postern1?force=true");
  assert.equal(await reason("r.example.com"), "the domain r.example.com has no active DKIM key");
});

test("sender domains are found by organization and name, many in one round trip", async () => {
  const other = await api.organization();
  const mine = await addVerifiedDomain(api, dns, "batch.example.com");
  await add("batch2.example.com", "inbound");
  await add("batch2.example.com", "outbound", other.live_key);
  let asked = 0;
  const db: Db = {
    ...api.world.db,
    query: (text, values) => {
      asked += 1;
      return api.world.db.query(text, values);
    },
  };
  const find = findSender({ ...api.world, db });
  const found = await Promise.all([
    find(api.org_id, "batch.example.com"),
    find(api.org_id, "batch2.example.com"),
    find(other.org_id, "batch.example.com"),
    find(other.org_id, "batch2.example.com"),
    find(api.org_id, "batch.example.com"),
  ]);
  assert.deepEqual(
    found.map((row) => row?.type),
    ["outbound", "inbound", undefined, "outbound", "outbound"],
  );
  assert.equal(asked, 1);
  assert.deepEqual(found[0], {
    id: mine.id,
    domain: "batch.example.com",
    type: "outbound",
    active: true,
    status: "verified",
    ready: true,
    not_ready_reason: null,
    return_path_host: "pt-bounces.batch.example.com",
    tls_policy: "opportunistic",
    ip_pool: null,
  });
});

test("incoming mail finds the organization that holds an active domain of a type that receives", async () => {
  const find = findReceiver(api.world);
  await add("in.example.com", "inbound");
  assert.equal(await find("in.example.com"), undefined, "pending");
  publish(dns, await recordsOf("in.example.com"));
  await verify("in.example.com");
  assert.equal((await find("in.example.com"))?.org_id, api.org_id);
  await api.ask("PUT", "/v1/domains/in.example.com", { active: false });
  assert.equal(await find("in.example.com"), undefined, "switched off");
  await addVerifiedDomain(api, dns, "out.example.com");
  assert.equal(await find("out.example.com"), undefined, "outbound");
});

test("two processes never check the same domain at once, and a crash leaves it due again", async () => {
  for (let index = 0; index < 20; index += 1) await add(`p${index}.example.com`, "inbound");
  clock.advance(5 * MINUTE);
  const counts = await Promise.all([runDue(), runDue(), runDue()]);
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    20,
  );
  // As after a crash: taken, never finished.
  clock.advance(5 * MINUTE);
  await api.world.db.execute("update domain set next_check_at = $1", [new Date(clock.now() + 10 * MINUTE)]);
  assert.equal(await runDue(), 0);
  assert.equal(await pass(10 * MINUTE), 20);
});

test("a check that fails holds up no other, and is run again", async () => {
  await add("broken.example.com", "inbound");
  await add("fine.example.com", "inbound");
  publish(dns, await recordsOf("fine.example.com"));
  const broken = {
    ...ports,
    dkim: {
      ...ports.dkim,
      records: async (...args: Parameters<typeof ports.dkim.records>) => {
        if (args[2].domain === "broken.example.com") throw new Error("a bug");
        return ports.dkim.records(...args);
      },
    },
  };
  clock.advance(5 * MINUTE);
  assert.equal(await runDueChecks(api.world, broken), 2);
  assert.equal((await get("fine.example.com")).status, "verified");
  assert.equal((await get("broken.example.com")).last_dns_check, null);
  await pass(10 * MINUTE);
  assert.notEqual((await get("broken.example.com")).last_dns_check, null);
});

test("the loop of the clock role checks what is due and ends when it is stopped", async () => {
  await add("loop.example.com", "inbound");
  publish(dns, await recordsOf("loop.example.com"));
  clock.advance(5 * MINUTE);
  const noted = Promise.withResolvers<void>();
  const loop = startDomainChecks(api.world, {
    ...ports,
    dkim: {
      ...ports.dkim,
      noteChecks: async (...args) => {
        noted.resolve();
        return ports.dkim.noteChecks(...args);
      },
    },
  });
  await noted.promise;
  await loop.stop();
  assert.equal((await get("loop.example.com")).status, "verified");
});

test("checks of a domain whose name servers are silent keep no other organization's waiting", async () => {
  const other = await api.organization();
  await add("quiet.example.com", "both");
  for (const { name } of await recordsOf("quiet.example.com")) dns.fail(name, "timeout");
  await addVerifiedDomain(api, dns, "lively.example.com", { key: other.live_key });
  let ended = 0;
  const slow = Array.from({ length: 100 }, () =>
    verify("quiet.example.com").then(() => {
      ended += 1;
    }),
  );
  const asked = () => dns.queries.filter(({ name }) => name.endsWith("quiet.example.com")).length;
  await until("the flood to be under way", () => asked() >= 250);
  assert.equal((await verify("lively.example.com", other.live_key)).body.status, "verified");
  assert.equal((await api.world.resolver.txt("lively.example.com")).kind, "found");
  assert.equal(ended, 0);
  await Promise.all(slow);
});
