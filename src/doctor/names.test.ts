// What the doctor says of the service's own names: a real name server on loopback, a real database, each record in turn
// published as `postern dns zone` prints it, taken away, or wrong.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { promisify } from "node:util";
import { spf } from "mailauth/lib/spf/index.js";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { nodeStyleResolver } from "../../test/support/node-resolver.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { findConfig } from "../config.ts";
import { examine } from "../doctor.ts";
import type { Check } from "./check.ts";
import { ownZone } from "./own-zone.ts";
import { serviceRecords, type ZoneRecord, zoneFile } from "./zone.ts";

const V4 = "192.0.2.25";
const V6 = "2001:db8::25";
const HOST = "mail.example.eu";

let dns: DnsServer;
let api: TestApi;
let data: string;
let zone: ZoneRecord[];

before(async () => {
  dns = await startDnsServer();
  data = mkdtempSync(join(tmpdir(), "postern-names-"));
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_HOSTNAME: HOST, POSTERN_PUBLIC_ADDRESSES: `${V4}, ${V6}` });
});
after(async () => {
  await api?.close();
  await dns?.stop();
  rmSync(data, { recursive: true, force: true });
});
beforeEach(async () => {
  dns.clear();
  zone = (await ownZone(api.world)).records;
  publish(zone);
  for (const ip of [V4, V6]) dns.set(ip, "PTR", [HOST]);
});

function publish(records: ZoneRecord[]): void {
  const sets = Map.groupBy(records, ({ name, type }) => `${name} ${type}`);
  for (const [{ name, type, priority }, values] of [...sets.values()].map(
    (set) => [set[0] as ZoneRecord, set] as const,
  )) {
    dns.set(
      name,
      type,
      values.map(({ value }) => (type === "MX" ? { exchange: value, preference: priority } : value)),
    );
  }
}

const OUTSIDE = [
  ..."address MX bounces reports SPF PTR listed".split(" "),
  ...["hostname", "DNS", "masked addresses", "masked domain", "DMARC reports"],
];

/** What it finds of names, without the good. */
async function bad(change: Record<string, string> = {}): Promise<Check[]> {
  const env = {
    ...{ POSTERN_DATA: data, POSTERN_HOSTNAME: HOST, POSTERN_BASE_URL: `https://${HOST}`, POSTERN_DNS: dns.address },
    ...{ POSTERN_PUBLIC_ADDRESSES: `${V4},${V6}`, POSTERN_DNS_BLOCK_LISTS: "list.example.eu" },
    ...{ DATABASE_URL: api.database_url, POSTERN_MX: "0.0.0.0:25", ...change },
  };
  const checks = await examine({ try_smtp: null }, () => findConfig(env));
  return checks.filter(({ name, status }) => OUTSIDE.includes(name) && status !== "ok");
}

async function only(change: Record<string, string> = {}): Promise<Check> {
  const found = await bad(change);
  assert.equal(found.length, 1, JSON.stringify(found, null, 1));
  return found[0] as Check;
}

describe("the doctor and the service's own names", () => {
  it("finds nothing wrong once the zone that is printed is published", async () => {
    assert.deepEqual(await bad(), []);
  });

  it("misses each record of that zone, and names it in the remedy", async () => {
    for (const { name, type, value } of zone) {
      if (type === "A" || type === "AAAA") continue;
      dns.remove(name, type);
      const found = await bad();
      assert.notEqual(found.length, 0, `${type} ${name} is not missed`);
      const text = found.map(({ says, remedy }) => `${says} ${remedy}`).join("\n");
      assert.ok(text.includes(name), `${type} ${name}: ${text}`);
      assert.doesNotMatch(text, /undefined|null/);
      publish([{ name, type, value, priority: 10 }]);
    }
    assert.deepEqual(await bad(), []);
  });

  it("evaluates SPF from every address, by IPv4 and IPv6", async () => {
    dns.set(`_spf.${HOST}`, "TXT", [`v=spf1 ip4:${V4} -all`]);
    const found = await bad();
    assert.deepEqual([...new Set(found.map(({ name }) => name))], ["SPF"]);
    const ours = found[0] as Check;
    assert.equal(ours.status, "problem");
    assert.match(
      ours.says,
      /^Receivers find "fail" for 2001:db8::25: _spf\.mail\.example\.eu does not list that address/,
    );
    assert.equal(ours.remedy, `Publish the record: _spf.${HOST} TXT "v=spf1 ip4:${V4} ip6:${V6} -all"`);
  });

  it("says that two SPF records at one name are none", async () => {
    dns.set(`bounces.${HOST}`, "TXT", [`v=spf1 include:_spf.${HOST} -all`, "v=spf1 -all"]);
    const found = await only();
    assert.deepEqual([found.name, found.status], ["SPF", "problem"]);
    assert.match(found.says, /"permerror".*more than one SPF record.*the return path of any mail/);
  });

  it("sees addresses in DNS that are not this machine's, and own ones that are not in DNS", async () => {
    dns.set(`mx.${HOST}`, "A", ["192.0.2.99"]);
    assert.match(
      (await only()).says,
      /^mx\.mail\.example\.eu leads to 192\.0\.2\.99, which this machine does not have/,
    );
    dns.set(`mx.${HOST}`, "A", [V4]);
    dns.remove(`mx.${HOST}`, "AAAA");
    assert.match(
      (await only()).says,
      /^Mail may leave from 2001:db8::25, and mx\.mail\.example\.eu does not lead there/,
    );
  });

  it("asks the PTR of IPv6 addresses too, and that it leads back", async () => {
    dns.remove(V6, "PTR");
    assert.match((await only()).says, /^2001:db8::25 has no name in DNS/);
    dns.set(V6, "PTR", ["six.example.eu"]);
    assert.match((await only()).says, /^2001:db8::25 is called six\.example\.eu in DNS, not mail\.example\.eu/);
  });

  it("does not call it receiving when the MX listens on loopback, or on another port than 25", async () => {
    for (const POSTERN_MX of ["127.0.0.1:25", "[::1]:25", "localhost:2525"]) {
      const found = await only({ POSTERN_MX });
      assert.deepEqual([found.name, found.status], ["MX", "problem"]);
      assert.match(found.says, /other machines do not reach: no mail and no bounce arrives/);
      assert.match(found.remedy ?? "", /POSTERN_MX=0\.0\.0\.0:25/);
    }
    assert.deepEqual(await bad({ POSTERN_MX: "127.0.0.1:2525", POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.1" }), []);
    const other = await only({ POSTERN_MX: "0.0.0.0:2525" });
    assert.equal(other.status, "warning");
    assert.match(other.remedy ?? "", /forward port 25 to port 2525/);
  });

  it("says that the MX listens on loopback also when no name server answers", async () => {
    const silent = { POSTERN_DNS: "127.0.0.1:9" };
    const names = async (more: object) => (await bad({ ...silent, ...more })).map(({ name }) => name);
    assert.deepEqual(await names({ POSTERN_MX: "127.0.0.1:25" }), ["DNS", "MX", "listed"]);
    assert.deepEqual((await bad({ ...silent, POSTERN_MX: "127.0.0.1:25" }))[1]?.status, "problem");
  });

  it("asks the block lists that are set for our own addresses", async () => {
    dns.set("25.2.0.192.list.example.eu", "A", ["127.0.0.2"]);
    const found = await only();
    assert.equal(found.status, "problem");
    assert.match(
      found.says,
      /^192\.0\.2\.25 is listed by list\.example\.eu \(127\.0\.0\.2\): servers that ask this list/,
    );
    dns.clear();
    publish(zone);
    for (const ip of [V4, V6]) dns.set(ip, "PTR", [HOST]);
    assert.equal((await only({ POSTERN_DNS_BLOCK_LISTS: "" })).status, "skipped");
  });

  it("knows the addresses of pools and their names", async () => {
    // 198.51.100.0/24 stands for real addresses here, and the API takes none of it.
    await api.world.db.execute("insert into source (id, ip, ehlo) values ($1, '198.51.100.7', 'out7.example.eu')", [
      api.world.random.uuid(),
    ]);
    try {
      const missing = await bad();
      assert.match(
        missing.map(({ says }) => says).join("\n"),
        /198\.51\.100\.7: _spf\.mail\.example\.eu does not list/,
      );
      assert.match(missing.map(({ says }) => says).join("\n"), /198\.51\.100\.7 has no name in DNS/);
      publish((await ownZone(api.world)).records);
      dns.set("198.51.100.7", "PTR", ["out7.example.eu"]);
      assert.deepEqual(await bad(), []);
    } finally {
      await api.world.db.execute("delete from source where ip = '198.51.100.7'");
    }
  });

  it("says what it could not ask, and blames nobody for it", async () => {
    dns.fail(`_spf.${HOST}`, "servfail");
    const found = await bad();
    assert.deepEqual([...new Set(found.map(({ status }) => status))], ["skipped"], JSON.stringify(found));
  });
});

describe("the service's zone", () => {
  it("is a zone file in which every name is complete and every text fits", async () => {
    const { text } = await ownZone(api.world);
    const lines = text.split("\n").filter((line) => !line.startsWith(";"));
    assert.equal(lines.length, zone.length);
    for (const line of lines)
      assert.match(line, /^\S+\.eu\. 3600 IN (A|AAAA|MX|TXT) (\S+|10 \S+\.|("[^"]{1,255}" ?)+)$/);
    assert.match(text, /^mail\.example\.eu\. 3600 IN AAAA 2001:db8::25$/m);
    assert.match(text, /^;\s+192\.0\.2\.25 PTR mail\.example\.eu\.$/m);
    assert.match(text, /^postern1\._domainkey\.masked\.mail\.example\.eu\. 3600 IN TXT "v=DKIM1; .{200,}" "/m);
  });

  it("is printed by a command, as text or as JSON", async () => {
    const env = {
      ...{ ...process.env, POSTERN_DATA: data, DATABASE_URL: api.database_url, POSTERN_HOSTNAME: HOST },
      ...{ POSTERN_DNS: dns.address, POSTERN_PUBLIC_ADDRESSES: `${V4},${V6}` },
      POSTERN_MASTER_KEY: api.config.master_key.toString("hex"),
    };
    const run = promisify(execFile);
    const text = await run(process.execPath, ["src/main.ts", "dns", "zone"], { env, timeout: 240_000 });
    assert.equal(text.stdout, `${(await ownZone(api.world)).text}\n`);
    const json = await run(process.execPath, ["src/main.ts", "dns", "zone", "--json"], { env, timeout: 240_000 });
    assert.deepEqual(JSON.parse(json.stdout), { records: zone });
  });

  it("names no address that it does not know, and says which setting is missing", () => {
    assert.match(zoneFile({ ...api.config, hostname: "postern.localhost" }, [], []), /^; Set POSTERN_HOSTNAME first/m);
    const text = zoneFile(api.config, [], []);
    assert.doesNotMatch(text, /POSTERN_HOSTNAME/);
    assert.match(text, /set\n; POSTERN_PUBLIC_ADDRESSES, and print this again/);
  });

  it("holds no record twice, and one SPF record a name, when names of the service coincide", () => {
    const hosts = { ...api.config, mx_host: HOST, bounce_host: HOST, report_domain: HOST };
    const masked_key = { selector: "postern1", public_key: "AAAA" };
    const records = serviceRecords(hosts, { addresses: [{ ip: V4, ehlo: HOST }], masked_key });
    const lines = records.map(({ name, type, value }) => `${name} ${type} ${value}`);
    assert.equal(new Set(lines).size, lines.length, lines.join("\n"));
    const spf = records.filter(({ value }) => value.startsWith("v=spf1")).map(({ name }) => name);
    assert.deepEqual(spf.toSorted(), [HOST, `_spf.${HOST}`, `masked.${HOST}`].toSorted());
  });
});

describe("mail as documented", () => {
  it("passes SPF for envelope and From once both zones are published, by another library too", async () => {
    const domain = "shop.example.com";
    await addVerifiedDomain(api, dns, domain);
    const verified = await api.ask("POST", `/v1/domains/${domain}/verify`);
    assert.equal(verified.body.summary, `${domain} is verified: 3 of 3 required records are in place.`);
    const resolver = nodeStyleResolver(api.world.resolver);
    for (const ip of [V4, V6]) {
      for (const sender of [`b+token@pt-bounces.${domain}`, `orders@${domain}`, `b+token@bounces.${HOST}`]) {
        const { status } = await spf({ sender, ip, helo: HOST, resolver: resolver as never });
        assert.equal(status.result, "pass", `${sender} from ${ip}: ${JSON.stringify(status)}`);
      }
    }
  });

  it("is not said to be in order by verify when our own part is missing", async () => {
    const domain = "held.example.com";
    await addVerifiedDomain(api, dns, domain);
    dns.remove(`_spf.${HOST}`, "TXT");
    const { body } = await api.ask("POST", `/v1/domains/${domain}/verify`);
    assert.equal(body.spf_verified, true, "the owner's record is right");
    const says = (name: string) =>
      `TXT ${name} is in place, but: Receivers find "permerror" for mail from ${V4}: _spf\\.mail\\.example\\.eu has no SPF record`;
    assert.match(body.summary, new RegExp(says(domain)));
    assert.match(body.summary, /CNAME pt-bounces\.held\.example\.com is in place, but: Receivers find "permerror"/);
    assert.match(body.summary, /Only the operator of this service can mend that\./);
  });
});
