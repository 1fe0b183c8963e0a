import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { testConfig } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { fixedClock } from "../platform/clock.ts";
import { createRandom } from "../platform/random.ts";
import { createResolver } from "../platform/resolver.ts";
import { findRoute } from "./route.ts";

let dns: DnsServer;
let ask: (domain: string, env?: Record<string, string>) => ReturnType<typeof findRoute>;

before(async () => {
  dns = await startDnsServer();
  ask = (domain, env = {}) => {
    const resolver = createResolver({
      servers: [dns.address],
      timeout_ms: 200,
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

test("goes to the MX hosts by preference, at most four addresses", async () => {
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
  assert.equal(hops.length, 4);
});

test("falls back to the domain's own address when it has no MX (RFC 5321 §5.1)", async () => {
  dns.set("b.example", "A", ["192.0.9.1"]);
  const route = await ask("b.example");
  assert.deepEqual(route.kind === "route" && route.hops, [{ host: "b.example", address: "192.0.9.1" }]);
});

test("takes a null MX as a refusal (RFC 7505) and an absent domain as absent", async () => {
  dns.set("null.example", "MX", [{ exchange: ".", preference: 0 }]);
  const refused = await ask("null.example");
  assert.deepEqual(refused.kind === "none" && refused.reason, "null_mx");
  const absent = await ask("nowhere.example");
  assert.deepEqual(absent.kind === "none" && absent.reason, "nxdomain");
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
    assert.deepEqual(route.kind === "none" && route.reason, "forbidden", address);
  }
  dns.set("mx.evil.example", "A", ["127.0.0.1"]);
  assert.equal((await ask("evil.example", { POSTERN_TESTING_ALLOW_LOOPBACK: "0" })).kind, "none");
  assert.equal((await ask("evil.example")).kind, "route");
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
