import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { testConfig } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { fixedClock } from "../../platform/clock.ts";
import { createResolver } from "../../platform/dns/resolver.ts";
import { createRandom } from "../../platform/random.ts";
import { findRoute } from "./route.ts";

let dns: DnsServer;
let ask: (domain: string, env?: Record<string, string>) => ReturnType<typeof findRoute>;

before(async () => {
  dns = await startDnsServer();
  ask = (domain, env = {}) => {
    const resolver = createResolver({
      servers: [dns.address],
      timeout_ms: 1_000,
      attempts: 1,
      cache_max: 0,
      validating: false,
      now: Date.now,
    });
    return findRoute({ resolver, config: testConfig(env), random: createRandom(fixedClock(Date.now())) }, domain);
  };
});
beforeEach(() => dns.clear());
after(() => dns.stop());

test("goes to the MX hosts by preference, at most five addresses, four of one host", async () => {
  dns.set("a.example", "MX", [
    { exchange: "late.a.example", preference: 20 },
    { exchange: "first.a.example", preference: 10 },
  ]);
  dns.set("first.a.example", "A", ["192.0.9.1", "192.0.9.2", "192.0.9.3"]);
  dns.set("late.a.example", "A", ["192.0.9.8", "192.0.9.9"]);
  const route = await ask("a.example");
  assert.equal(route.kind, "route");
  const hops = route.kind === "route" ? route.hops : [];
  assert.deepEqual(
    hops.slice(0, 3).map(({ host }) => host),
    Array(3).fill("first.a.example"),
  );
  assert.deepEqual(hops[3], { host: "late.a.example", address: "192.0.9.8" });
  assert.equal(hops.length, 5);
  dns.set("first.a.example", "A", ["192.0.9.1", "192.0.9.2", "192.0.9.3", "192.0.9.4", "192.0.9.5"]);
  dns.set("first.a.example", "AAAA", ["2a01:4f8::1", "2a01:4f8::2", "2a01:4f8::3", "2a01:4f8::4", "2a01:4f8::5"]);
  const crowded = await ask("a.example");
  assert.deepEqual(crowded.kind === "route" && crowded.hops.map(({ host }) => host), [
    ...Array(8).fill("first.a.example"),
    "late.a.example",
  ]);
});

test("goes to a host that is named twice once, and shares its path with those that name it once", async () => {
  dns.set("twice.example", "MX", [
    { exchange: "mx.twice.example", preference: 10 },
    { exchange: "MX.twice.example", preference: 20 },
  ]);
  dns.set("once.example", "MX", [{ exchange: "mx.twice.example", preference: 10 }]);
  dns.set("mx.twice.example", "A", ["192.0.9.1"]);
  const [twice, once] = [await ask("twice.example"), await ask("once.example")];
  assert.deepEqual(twice.kind === "route" && twice.hops, [{ host: "mx.twice.example", address: "192.0.9.1" }]);
  assert.deepEqual(twice.kind === "route" && twice.site, once.kind === "route" && once.site);
});

test("falls back to the domain's own address when it has no MX (RFC 5321 §5.1)", async () => {
  dns.set("b.example", "A", ["192.0.9.1"]);
  const route = await ask("b.example");
  assert.deepEqual(route.kind === "route" && route.hops, [{ host: "b.example", address: "192.0.9.1" }]);
});

test("is never this installation, nor what comes behind it, where others come first (RFC 5321 §5.1)", async () => {
  const hostsOf = async (...records: [string, number][]) => {
    const found = records.map(([exchange, preference]) => ({ exchange, preference }));
    dns.set("loop.example", "MX", found);
    const route = await ask("loop.example");
    return route.kind === "route" ? route.hops.map(({ host }) => host) : route;
  };
  for (const name of ["first.example", "behind.example", "mx.postern.test", "postern.test"])
    dns.set(name, "A", ["192.0.9.1"]);
  assert.deepEqual(await hostsOf(["first.example", 10], ["MX.Postern.test", 20], ["behind.example", 30]), [
    "first.example",
  ]);
  assert.deepEqual(await hostsOf(["first.example", 10], ["postern.test", 20]), ["first.example"]);
  assert.deepEqual(await hostsOf(["mx.postern.test", 10], ["behind.example", 30]), [
    "mx.postern.test",
    "behind.example",
  ]);
  assert.deepEqual(await hostsOf(["mx.postern.test", 10]), ["mx.postern.test"]);
});

test("takes a null MX as a refusal (RFC 7505) and an absent domain as absent", async () => {
  dns.set("null.example", "MX", [{ exchange: ".", preference: 0 }]);
  const refused = await ask("null.example");
  assert.deepEqual(refused.kind === "none" && refused.reason, "null_mx");
  const absent = await ask("nowhere.example");
  assert.deepEqual(absent.kind === "none" && absent.reason, "absent");
});

test("never takes a failing name server for an absent domain", async () => {
  for (const fault of ["servfail", "refused", "timeout"] as const) {
    dns.clear();
    dns.fail("c.example", fault);
    assert.equal((await ask("c.example")).kind, "unknown", fault);
    dns.clear();
    dns.set("d.example", "MX", [{ exchange: "mx.d.example", preference: 1 }]);
    dns.fail("mx.d.example", fault);
    assert.equal((await ask("d.example")).kind, "unknown", `address: ${fault}`);
  }
});

test("refuses MX records that point into private networks; loopback only when tests allow it", async () => {
  for (const address of ["10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1"]) {
    dns.set("evil.example", "MX", [{ exchange: "mx.evil.example", preference: 1 }]);
    dns.set("mx.evil.example", "A", [address]);
    const route = await ask("evil.example");
    assert.deepEqual(route.kind === "none" && route.reason, "absent", address);
  }
  dns.set("mx.evil.example", "A", ["127.0.0.1"]);
  assert.equal((await ask("evil.example", { POSTERN_TESTING_ALLOW_LOOPBACK: "0" })).kind, "none");
  assert.equal((await ask("evil.example")).kind, "route");
});

test("answers a name that is not there and one that leads inside alike, as an MX host and as the domain itself", async () => {
  dns.set("10-0-0-7.example", "A", ["10.0.0.7"]);
  dns.set("to-inside.example", "MX", [{ exchange: "10-0-0-7.example", preference: 1 }]);
  dns.set("to-nowhere.example", "MX", [{ exchange: "nowhere.example", preference: 1 }]);
  const names = ["nowhere.example", "10-0-0-7.example", "to-inside.example", "to-nowhere.example"];
  const answers = await Promise.all(names.map(async (name) => JSON.stringify(await ask(name)).replaceAll(name, "X")));
  assert.deepEqual([...new Set(answers)].length, 1, answers.join("\n"));
});

test("domains with the same mail servers share a site, known providers share a label", async () => {
  for (const domain of ["one.example", "two.example"]) {
    dns.set(domain, "MX", [{ exchange: "mx.shared.example", preference: 1 }]);
  }
  dns.set("mx.shared.example", "A", ["192.0.9.1"]);
  dns.set("corp.example", "MX", [{ exchange: "aspmx.l.google.com", preference: 1 }]);
  dns.set("aspmx.l.google.com", "A", ["192.0.9.7"]);
  const sites = await Promise.all(["one.example", "two.example", "corp.example"].map((domain) => ask(domain)));
  const [one, two, corp] = sites.map((route) => (route.kind === "route" ? route.site : null));
  assert.equal(one, two);
  assert.equal(corp, "google");
});

const routeOf = async (domain: string) => {
  const route = await ask(domain);
  assert.equal(route.kind, "route", domain);
  return route.kind === "route" ? route : assert.fail();
};

test("a stranger's server shares no provider's path, whatever other servers its domain names", async () => {
  const google = "aspmx.l.google.com";
  dns.set(google, "A", ["192.0.9.7"]);
  dns.set("mx.evil.example", "A", ["192.0.9.66"]);
  const records = {
    "absent.example": [
      { exchange: "nowhere.google.com", preference: 0 },
      { exchange: "mx.evil.example", preference: 10 },
    ],
    "beside.example": [
      { exchange: google, preference: 5 },
      { exchange: "mx.evil.example", preference: 5 },
    ],
    "behind.example": [
      { exchange: google, preference: 0 },
      { exchange: "mx.evil.example", preference: 10 },
    ],
  };
  for (const [domain, mx] of Object.entries(records)) {
    dns.set(domain, "MX", mx);
    const { site, isp } = await routeOf(domain);
    assert.deepEqual(
      [isp, site],
      [
        "other",
        mx
          .map(({ exchange }) => exchange)
          .sort()
          .join(","),
      ],
      domain,
    );
  }
});

test("names that a provider's customers have their own servers under are not the provider's mail servers", async () => {
  const servers = {
    "ec2-192-0-9-1.eu-west-1.compute.amazonaws.com": "other",
    "inbound-smtp.eu-west-1.amazonaws.com": "amazon",
    "vps-0123abcd.vps.ovh.net": "other",
    "mx1.mail.ovh.net": "ovh",
    "mx4.ovh.net": "ovh",
    "lfbn-1-2.w90-1.abo.wanadoo.fr": "other",
    "smtp-in.orange.fr": "orange",
    "box.hd.free.fr": "other",
    "mx1.free.fr": "free",
    "s12345.kundenserver.de": "other",
    "mx00.kundenserver.de": "gmx",
    "alt1.aspmx.l.google.com": "google",
    "google.com.evil.example": "other",
    "notgoogle.com": "other",
  };
  for (const [host, isp] of Object.entries(servers)) {
    dns.set("customer.example", "MX", [{ exchange: host, preference: 1 }]);
    dns.set(host, "A", ["192.0.9.1"]);
    assert.equal((await routeOf("customer.example")).isp, isp, host);
  }
});

test("holds four addresses of each family: what one of them crowds out a source may need", async () => {
  dns.set("six.example", "MX", [
    { exchange: "one.six.example", preference: 1 },
    { exchange: "two.six.example", preference: 2 },
  ]);
  const v4 = ["192.0.9.1", "192.0.9.2", "192.0.9.3", "192.0.9.4", "192.0.9.5"];
  dns.set("one.six.example", "A", v4);
  dns.set("two.six.example", "AAAA", ["2a01:4f8::1"]);
  const { hops } = await routeOf("six.example");
  assert.equal(hops.length, 5);
  assert.deepEqual(hops[4], { host: "two.six.example", address: "2a01:4f8::1" });
});
